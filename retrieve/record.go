package retrieve

import (
	"context"
	"time"
)

// An Archive is the part of a [Ledger] that stores the results of jobs, so that
// an answer can be shown again, and feedback on them.
type Archive interface {
	// KeepRecord stores a record, replacing one with its id; [ErrNotFound] if one
	// of its documents has been deleted. It deletes records that have expired,
	// and the oldest until [MaxRecords] and [MaxRecordBytes] hold.
	KeepRecord(ctx context.Context, r Record) error
	// Finish stores records as KeepRecord does and deletes jobs, all at once, so that
	// others find a job or its record at any time. It skips the records of deleted
	// documents: stored reports for each whether it was stored.
	Finish(ctx context.Context, records []Record, jobs []string) (stored []bool, err error)
	// Record returns a record; [ErrNotFound] if there is none, or it has expired
	// or is damaged.
	Record(ctx context.Context, id string) (Record, error)
	// Records lists n records of the caller by, newest first and without events:
	// those that began before the record after, or the newest if after is zero.
	Records(ctx context.Context, by string, after Record, n int) ([]Record, error)
	// ForgetRecord deletes a record if it exists.
	ForgetRecord(ctx context.Context, id string) error
	// ForgetQuoting deletes the records that quote a document, stored or not, or one
	// below it. After the document's deletion no other record of it is stored.
	ForgetQuoting(ctx context.Context, document string) error
	// KeepFeedback stores one caller's feedback on an answer or on one of its
	// citations, replacing earlier feedback of that caller. It deletes the oldest
	// beyond [MaxFeedback].
	KeepFeedback(ctx context.Context, f Feedback) error
	// Feedback lists n entries, newest first: those older than the key after, or
	// the newest if after is 0.
	Feedback(ctx context.Context, after int64, n int) ([]Feedback, error)
}

// A Record is the result of a job that has ended.
type Record struct {
	ID string // of the job
	// Kind is that of the [Job].
	Kind string
	// By is the caller that may see it; empty if callers are not distinguished.
	By string
	// Shared makes it visible to every caller that may read all its documents.
	Shared bool
	// State is how it ended, a word that the caller of KeepRecord chooses.
	State          string
	Started, Ended time.Time // to the microsecond
	Expires        time.Time
	// Spec is that of the [Job].
	Spec []byte
	// Events are all events of the job, in the format of its kind.
	Events []byte
	// Documents are the ids of the documents that the events quote. The record
	// remains when their files disappear; [Archive.ForgetQuoting] deletes it.
	Documents []string
}

// DeletedBy is the caller of a record that a caller deleted: only for the log of its key,
// and without words.
func DeletedBy(caller string) string { return "deleted " + caller }

// Feedback is one caller's opinion of an answer.
type Feedback struct {
	// Key orders the entries; the ledger sets it.
	Key int64
	Run string
	By  string
	// Citation is an index into the answer's citations; -1 for the whole answer.
	Citation int
	Rating   int // 1 or -1
	Comment  string
	At       time.Time // to the microsecond
}

// Limits of records and feedback.
const (
	// MaxRecords is the number of records.
	MaxRecords = 10_000
	// MaxRecordBytes is the size of all their specs and events. The newest record
	// may be larger by itself.
	MaxRecordBytes = 256 << 20
	// MaxFeedback is the number of feedback entries.
	MaxFeedback = 10_000
)
