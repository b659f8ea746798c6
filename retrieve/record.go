package retrieve

import (
	"context"
	"time"
)

// An Archive is the part of a [Ledger] that keeps what came of runs, so that an
// answer can be shown again, and what people thought of it.
type Archive interface {
	// KeepRecord keeps a record, in place of one of its id; [ErrNotFound] where
	// one of its documents is no longer there. It forgets the records
	// that have expired, and the oldest until [MaxRecords] and
	// [MaxRecordBytes] hold.
	KeepRecord(ctx context.Context, r Record) error
	// Record gives a record; [ErrNotFound] if there is none, or it has expired
	// or is damaged.
	Record(ctx context.Context, id string) (Record, error)
	// Records lists n of those that by began, newest first and without events:
	// those that began before the record after, or from the newest on where
	// that is the zero value.
	Records(ctx context.Context, by string, after Record, n int) ([]Record, error)
	// ForgetRecord forgets a record, if there is one.
	ForgetRecord(ctx context.Context, id string) error
	// KeepFeedback keeps what one caller thinks of a run, or of one citation in
	// it, in place of what the same thought of it before. Of too many the oldest
	// are forgotten.
	KeepFeedback(ctx context.Context, f Feedback) error
	// Feedback lists n opinions, newest first: those that were given before
	// after, or from the newest on where that is zero.
	Feedback(ctx context.Context, after int64, n int) ([]Feedback, error)
}

// A Record is what came of a run.
type Record struct {
	ID string // of the run
	// Kind is what began it, as in [Run].
	Kind string
	// By is who may see it; empty where no one is told from another.
	By string
	// Shared lets others see it too who may read all its documents.
	Shared bool
	// State is how it ended, in a word of who keeps it.
	State          string
	Started, Ended time.Time // kept to the microsecond
	Expires        time.Time
	// Spec says what was to be done.
	Spec []byte
	// Events are all that happened, as who keeps the record writes them.
	Events []byte
	// Documents are the ids of those whose words are in the events: a record is
	// forgotten with the first of them that is deleted.
	Documents []string
}

// Feedback is what somebody thinks of an answer.
type Feedback struct {
	// Key orders opinions; it is set by the ledger.
	Key int64
	Run string
	By  string
	// Citation is the place of one in the answer's list of citations, 0-based;
	// -1 for the whole answer.
	Citation int
	Rating   int // 1 or -1
	Comment  string
	At       time.Time // kept to the microsecond
}

// What is kept of runs that have ended.
const (
	// MaxRecords is how many records are.
	MaxRecords = 10_000
	// MaxRecordBytes is the size of all their specs and events together. The one
	// that is kept last may be larger.
	MaxRecordBytes = 256 << 20
	// MaxFeedback is how many opinions are.
	MaxFeedback = 10_000
)
