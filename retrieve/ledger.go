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
	// Latest returns the unclaimed job of a kind that has not ended and was
	// active last; [ErrNotFound] if there is none.
	Latest(ctx context.Context, kind string) (Job, error)
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
