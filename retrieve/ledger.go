package retrieve

import (
	"context"
	"time"
)

// A Ledger stores what outlives a process, apart from documents: jobs that can be
// resumed after a crash, and the records of those that have ended. It is safe
// for concurrent use, also by several processes. Writes are durable when they
// return nil.
type Ledger interface {
	// Begin stores a job under its id, which no other job may have, and deletes
	// jobs that began more than [MaxRunAge] before it. Then it deletes the jobs
	// that have been inactive for longest, until [MaxRuns] and [MaxRunBytes]
	// hold. If the job names a worker, Begin also claims it for that worker for
	// the time Left.
	Begin(ctx context.Context, run Job) error
	// Job returns a job that has not ended; [ErrNotFound] if there is none.
	Job(ctx context.Context, id string) (Job, error)
	// Reply returns the stored reply to a call of a job; ok is false if there is
	// none or it is damaged. The deletion of a root deletes all replies, because
	// they may contain a document's words.
	Reply(ctx context.Context, run, key string) (reply []byte, ok bool, err error)
	// Keep stores the reply to a call of a job, replacing an earlier one;
	// [ErrNotFound] if there is no such job. The worker must be the one that
	// claimed the job last and has not released it, even if that claim has
	// expired, or "" for an unclaimed job; for any other worker Keep returns a
	// [*HeldError] and changes nothing.
	Keep(ctx context.Context, run, worker, key string, reply []byte) error
	// End deletes a job and all its replies, whoever holds it.
	End(ctx context.Context, id string) error
	Claims
	Archive
}

// A Job is unfinished work: a question, a summary, or a process's turn at a root.
type Job struct {
	ID string
	// Kind names the command that began it: "ibid ask".
	Kind    string
	Started time.Time // to the microsecond
	// Secret is used by the job alone and never shown.
	Secret []byte
	// Spec describes the work, in the format of the job's kind.
	Spec []byte
	// Worker holds the job's claim and Left is the time until the claim expires,
	// by the ledger's clock; empty and 0 if the job is unclaimed.
	Worker string
	Left   time.Duration
}

// Limits of unfinished jobs.
const (
	// MaxRunAge is how long a job is stored.
	MaxRunAge = 7 * 24 * time.Hour
	// MaxRuns is the number of jobs.
	MaxRuns = 1000
	// MaxRunBytes is the size of all their specs and replies. A new job may be
	// larger by itself.
	MaxRunBytes = 256 << 20
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
