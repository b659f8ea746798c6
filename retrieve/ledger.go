package retrieve

import (
	"cmp"
	"context"
	"time"
)

// A Ledger keeps what outlives a process and is no document: the runs that can
// be taken up again after a crash, and the records of those that have ended. It is safe for concurrent use, by several
// processes too. Writes are durable when they return nil.
type Ledger interface {
	// Begin keeps a run under its id, which no other run may have, and forgets
	// those that began more than [MaxRunAge] before it. Of the others it forgets
	// those in which nothing has happened for the longest time, until [MaxRuns]
	// and [MaxRunBytes] hold.
	// Where the run names a worker that claims it for the time Left, in one step
	// with this.
	Begin(ctx context.Context, run Job) error
	// Job gives a run that has not ended; [ErrNotFound] if there is none.
	Job(ctx context.Context, id string) (Job, error)
	// Latest gives the run of a kind that has not ended, that nobody holds, and in
	// which something happened last; [ErrNotFound] if there is none.
	Latest(ctx context.Context, kind string) (Job, error)
	// Reply gives the reply kept for a call of a run; ok is false when none
	// is, or when it is damaged. [Engine.DeleteRoot] forgets all replies: what a
	// model wrote of a document is a trace of it.
	Reply(ctx context.Context, run, key string) (reply []byte, ok bool, err error)
	// Keep keeps the reply to a call of a run that has begun, in place of one
	// kept before; [ErrNotFound] if there is no such run. It is for the worker that
	// claimed the run last and has not released it, whether the time of that claim
	// has run out or not, or "" for a run that nobody holds; from any other it is
	// refused with a [*HeldError], and nothing is changed.
	Keep(ctx context.Context, run, worker, key string, reply []byte) error
	// End forgets a run and all its replies, whoever holds it.
	End(ctx context.Context, id string) error
	Claims
	Archive
}

// A Job is work that has begun and not ended: a question, a summary, or a
// process's turn at a root.
type Job struct {
	ID string
	// Kind is what began it, in words: "ibid ask".
	Kind    string
	Started time.Time // kept to the microsecond
	// Secret is for the run alone and never shown.
	Secret []byte
	// Spec says what is to be done, in the words of who began it.
	Spec []byte
	// Worker is who holds the run, as it is read, and Left for how long still, by
	// the ledger's clock; empty and 0 where nobody does.
	Worker string
	Left   time.Duration
}

// What is kept of runs that have not ended.
const (
	// MaxRunAge is how long one is kept.
	MaxRunAge = 7 * 24 * time.Hour
	// MaxRuns is how many are.
	MaxRuns = 1000
	// MaxRunBytes is the size of all their specs and replies together. The one
	// that begins may be larger.
	MaxRunBytes = 256 << 20
)

// Limits are how much a [Ledger] keeps, where that is not what Ibid keeps of its
// own accord: a member that is 0 stands for the constant of its name.
type Limits struct {
	Runs        int   // [MaxRuns]
	RunBytes    int64 // [MaxRunBytes]
	Records     int   // [MaxRecords]
	RecordBytes int64 // [MaxRecordBytes]
	Feedback    int   // [MaxFeedback]
}

// OrDefault gives the limits with the constants where none is set.
func (l Limits) OrDefault() Limits {
	return Limits{
		Runs: cmp.Or(l.Runs, MaxRuns), RunBytes: cmp.Or(l.RunBytes, MaxRunBytes),
		Records: cmp.Or(l.Records, MaxRecords), RecordBytes: cmp.Or(l.RecordBytes, MaxRecordBytes),
		Feedback: cmp.Or(l.Feedback, MaxFeedback),
	}
}
