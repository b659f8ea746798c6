package replay

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"ibid/retrieve"
)

// A Recorder records one question or summary. A nil Recorder records nothing;
// all methods may be called on it.
//
// If the journal fails, calls may be repeated, but the answer does not fail.
type Recorder struct {
	ID string
	// Secret makes the marks of the fences in prompts: 32 random bytes. Anyone
	// who knows it can write a document that closes its fence.
	Secret []byte
	// Journal may be used by several calls at once. For a job it is the ledger.
	Journal Journal

	ledger  retrieve.Ledger // nil if the recorder is in no ledger
	worker  string          // the worker that holds the job in the ledger, or will hold it
	fresh   bool            // the journal is still empty
	outcome Outcome

	stopProlonging func() // nil before HoldJob

	mu       sync.Mutex
	stopWork context.CancelCauseFunc
	lost     *retrieve.HeldError // another worker has the job
	dropped  bool                // the ledger dropped the job while this worker held it
	heldAt   time.Time           // when the claim was last known to hold; zero before the first claim
}

// ledgerWait is how long an answer waits for the ledger before it proceeds without
// it. A ledger on a server may be unreachable, and its own time limits are much longer.
const ledgerWait = 5 * time.Second

// Begin begins a job in a ledger and claims it. kind is [retrieve.Job.Kind]; spec,
// which is stored as JSON, has everything that determines the work.
func Begin(ctx context.Context, l retrieve.Ledger, kind string, spec any) (*Recorder, error) {
	b, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("storing a run: %w", err)
	}
	now := time.Now()
	job := retrieve.Job{
		ID: strings.ToLower(rand.Text()[:16]), Kind: kind, Started: now, Secret: make([]byte, 32), Spec: b,
		Worker: retrieve.NewWorker(), Left: retrieve.ClaimTime,
	}
	rand.Read(job.Secret) // never fails
	ctx, cancel := context.WithTimeout(ctx, ledgerWait)
	defer cancel()
	if err := l.Begin(ctx, job); err != nil {
		return nil, err
	}
	return &Recorder{ID: job.ID, Secret: job.Secret, Journal: l, ledger: l, worker: job.Worker, fresh: true, heldAt: now}, nil
}

// Resume finds an unfinished job by its id, and decodes its spec into the value that spec
// points to. It does not claim the job: see [Recorder.HoldJob]. The error wraps
// [retrieve.ErrNotFound] if the ledger lacks the job or its kind differs.
func Resume(ctx context.Context, l retrieve.Ledger, kind, id string, spec any) (*Recorder, error) {
	job, err := l.Job(ctx, id)
	if err == nil && job.Kind != kind {
		err = fmt.Errorf("the run %s was begun by '%s': %w", id, job.Kind, retrieve.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(job.Spec, spec); err != nil {
		return nil, fmt.Errorf("reading the run %s: %w", job.ID, err)
	}
	return &Recorder{ID: job.ID, Secret: job.Secret, Journal: l, ledger: l, worker: retrieve.NewWorker()}, nil
}

// HoldJob claims the job, unless [Begin] has just done so, and prolongs the claim
// until [Recorder.StopProlonging]. If another worker takes the job later, it calls stop
// with a [*retrieve.HeldError]. It returns such an error if the claim is refused, and
// [retrieve.ErrNotFound] if the job has ended.
func (r *Recorder) HoldJob(ctx context.Context, stop context.CancelCauseFunc) error {
	if r == nil || r.ledger == nil {
		return nil
	}
	if r.heldAt.IsZero() {
		if err := r.claim(ctx); err != nil {
			return err
		}
	}
	r.mu.Lock()
	r.stopWork = stop
	r.mu.Unlock()
	r.stopProlonging = retrieve.Prolong(ctx, claims{r.ledger, r}, r.ID, r.worker, retrieve.ClaimTime, r.noteLoss)
	return nil
}

// claims are the claims of a ledger. They record when the job was last claimed.
type claims struct {
	retrieve.Claims
	r *Recorder
}

func (c claims) Claim(ctx context.Context, _, _ string, _ time.Duration) error { return c.r.claim(ctx) }

func (r *Recorder) claim(ctx context.Context) error {
	before := time.Now()
	err := r.ledger.Claim(ctx, r.ID, r.worker, retrieve.ClaimTime)
	if err == nil {
		r.mu.Lock()
		r.heldAt = before
		r.mu.Unlock()
	}
	return err
}

// noteLoss stops the work if an error says that another worker has the job, or that the
// ledger no longer has the job and the claim has expired, since another worker may have
// finished it. If the ledger drops a job whose claim still holds, the work continues.
func (r *Recorder) noteLoss(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost != nil || r.dropped {
		return
	}
	if errors.Is(err, retrieve.ErrNotFound) {
		if r.dropped = time.Since(r.heldAt) <= retrieve.ClaimTime; r.dropped {
			return
		}
		err = errors.Join(&retrieve.HeldError{Run: r.ID}, err)
	}
	if errors.As(err, &r.lost) && r.stopWork != nil {
		r.stopWork(err)
	}
}

// HasLostJob reports whether another worker has the job, so that the result must be
// discarded. If this process was suspended and may have lost its claim, it claims the
// job again. If the ledger is unreachable, the job is not lost.
func (r *Recorder) HasLostJob(ctx context.Context) bool {
	if r == nil || r.ledger == nil {
		return false
	}
	r.mu.Lock()
	sure := r.lost != nil || time.Since(r.heldAt) < retrieve.ClaimTime/2
	r.mu.Unlock()
	if !sure {
		r.noteLoss(r.claim(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost != nil
}

// Release gives up the claim on the job, so that any worker may claim it.
func (r *Recorder) Release(ctx context.Context) error {
	if r == nil || r.ledger == nil {
		return nil
	}
	r.StopProlonging()
	ctx, cancel := finalContext(ctx)
	defer cancel()
	return r.ledger.Release(ctx, r.ID, r.worker)
}

// finalContext returns a context for the last writes. It ignores cancellation, since the
// client may have left, and ends after ClaimTime, when another worker may have the job.
func finalContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), retrieve.ClaimTime)
}

// An Outcome says whether resuming a job may add something to its result.
type Outcome int

// The outcomes.
const (
	Unfinished Outcome = iota // it broke off, or one of its calls failed
	Done                      // resuming it would make no call
	Refused                   // it never made a call
)

// SetOutcome records how the work has ended.
func (r *Recorder) SetOutcome(o Outcome) {
	if r != nil {
		r.outcome = o
	}
}

// IsJobDone reports whether the job is done. The caller then ends it with
// [retrieve.Archive.Finish]; otherwise it releases it. A job is not done if it was
// interrupted or if err says that its result could not be shown. If cut is set it is done,
// since nobody waits for more of its result. A job that another worker has is not done here.
func (r *Recorder) IsJobDone(ctx context.Context, err error, cut bool) (done bool) {
	if r == nil {
		return true
	}
	return (cut || r.outcome == Refused || r.outcome == Done && err == nil) && !r.HasLostJob(ctx)
}

// StopProlonging stops renewing the claim on the job. Callers of IsJobDone call it after
// they have stored the result, which may take longer than a claim lasts.
func (r *Recorder) StopProlonging() {
	if r != nil && r.stopProlonging != nil {
		r.stopProlonging()
	}
}
