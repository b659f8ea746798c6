package retrieve

import (
	"context"
	"time"
)

// A Ledger stores the data, other than documents, that outlives a process: jobs that can be resumed
// after a crash, and the records of jobs that have ended. It is safe for concurrent use by several
// goroutines and processes. Writes are durable when they return nil.
type Ledger interface {
	// Begin stores a job under its id, which no other job may have, and deletes jobs that began
	// more than [MaxRunAge] before it. Then it deletes the jobs that have been inactive for
	// longest, until [MaxRuns] and [MaxRunBytes] hold. If the job names a worker, Begin also claims
	// it for that worker for the time Left.
	Begin(ctx context.Context, run Job) error
	// Job returns a job that has not ended. If there is no such job, the error is [ErrNotFound].
	Job(ctx context.Context, id string) (Job, error)
	// Reply returns the stored reply to a call of a job; ok is false if it is missing or damaged.
	// Deleting a root deletes all replies, because they may contain a document's words.
	Reply(ctx context.Context, run, key string) (reply []byte, ok bool, err error)
	// KeepReply stores the reply to a call of a job, replacing an earlier one. If there is no such job,
	// the error is [ErrNotFound]. The worker must be the one that claimed the job last and has not
	// released it, even if that claim has expired, or "" for an unclaimed job; for any other worker
	// KeepReply returns a [*HeldError] and changes nothing.
	KeepReply(ctx context.Context, run, worker, key string, reply []byte) error
	// End deletes a job and all its replies, whichever worker holds it.
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
	// Secret is never shown; only the job uses it.
	Secret []byte
	// Spec describes the work, in the format of the job's kind.
	Spec []byte
	// Worker is the worker that holds the job, and Left the time until its claim expires by the
	// ledger's clock. Both are zero if the job is unclaimed.
	Worker string
	Left   time.Duration
}

// Limits of unfinished jobs.
const (
	// MaxRunAge is the longest time that a job is stored.
	MaxRunAge = 7 * 24 * time.Hour
	// MaxRuns is the largest number of jobs.
	MaxRuns = 1000
	// MaxRunBytes is the largest total size of all specs and replies, except that a new job may be
	// larger by itself.
	MaxRunBytes = 256 << 20
)

// An Archive is the part of a [Ledger] that stores the results of jobs, so that an answer can be
// shown again, and feedback on answers.
type Archive interface {
	// KeepRecord stores a record, replacing one with the same id. If one of its documents has been
	// deleted, the error is [ErrNotFound]. It deletes records that have expired, and then the
	// oldest until [MaxRecords] and [MaxRecordBytes] hold.
	KeepRecord(ctx context.Context, r Record) error
	// Finish stores records as KeepRecord does and deletes jobs, all at once, so that other
	// processes find either a job or its record at any time. It skips records of deleted documents;
	// stored reports for each record whether it was stored.
	Finish(ctx context.Context, records []Record, jobs []string) (stored []bool, err error)
	// Record returns a record. If it is missing, expired or damaged, the error is [ErrNotFound].
	Record(ctx context.Context, id string) (Record, error)
	// Records lists at most n records whose By equals by, newest first and without events. If after
	// is not zero, it begins with the first record older than after.
	Records(ctx context.Context, by string, after Record, n int) ([]Record, error)
	// ForgetRecord deletes a record if it exists.
	ForgetRecord(ctx context.Context, id string) error
	// ForgetQuoting deletes the records that quote the given document, which need not be stored, or
	// a document below it. Once the document is deleted, no further record that quotes it is
	// stored.
	ForgetQuoting(ctx context.Context, document string) error
	// KeepFeedback stores one caller's feedback on an answer or on one of its citations, replacing
	// that caller's earlier feedback. It deletes the oldest entries beyond [MaxFeedback].
	KeepFeedback(ctx context.Context, f Feedback) error
	// Feedback lists at most n entries, newest first. If after is not 0, it lists entries older
	// than that key.
	Feedback(ctx context.Context, after int64, n int) ([]Feedback, error)
}

// A Record is the result of a job that has ended.
type Record struct {
	ID string // of the job
	// Kind is the kind of the [Job].
	Kind string
	// By is the caller that may see the record; empty if callers are not distinguished.
	By string
	// Shared makes the record visible to every caller that may read all its documents.
	Shared bool
	// State is the outcome, a word that the caller of KeepRecord chooses.
	State          string
	Started, Ended time.Time // to the microsecond
	Expires        time.Time
	// Spec is the spec of the [Job].
	Spec []byte
	// Events are all events of the job, in the format of its kind.
	Events []byte
	// Documents are the ids of the documents that the events quote. The record
	// remains when their files disappear; [Archive.ForgetQuoting] deletes it.
	Documents []string
}

// DeletedBy returns the value of By for a record that the caller deleted. Such a record remains
// only for the log of the caller's key, and has no text.
func DeletedBy(caller string) string { return "deleted " + caller }

// Feedback is one caller's opinion of an answer.
type Feedback struct {
	// Key orders the entries; the ledger sets it.
	Key int64
	Run string
	By  string
	// Citation is an index into the answer's citations, or -1 for the whole answer.
	Citation int
	Rating   int // 1 or -1
	Comment  string
	At       time.Time // to the microsecond
}

// Limits of records and feedback.
const (
	// MaxRecords is the largest number of records.
	MaxRecords = 10_000
	// MaxRecordBytes is the largest total size of all specs and events, except that the newest
	// record may be larger by itself.
	MaxRecordBytes = 256 << 20
	// MaxFeedback is the largest number of feedback entries.
	MaxFeedback = 10_000
)
