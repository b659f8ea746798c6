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
// A journal that fails costs calls, never an answer.
type Recorder struct {
	ID string
	// Secret makes the marks of the fences in prompts: 32 random bytes. Anyone
	// who knows it can write a document that closes its fence.
	Secret []byte
	// Journal may be used by several calls at once.
	Journal Journal

	ledger  retrieve.Ledger // nil for a recorder that is in none
	worker  string          // that holds the job in the ledger, or will
	fresh   bool            // the journal is still empty
	outcome Outcome

	stopProlonging func() // nil where that has not begun

	mu       sync.Mutex
	stopWork context.CancelCauseFunc
	lost     *retrieve.HeldError // another worker has the job
	dropped  bool                // the ledger dropped the job while this worker held it
	heldAt   time.Time           // when the claim was last known to hold; zero before it is made
}

// ledgerWait is how long an answer waits for the ledger before it proceeds
// without: a ledger on a server may be unreachable or read-only, and its own
// time limits are much longer.
const ledgerWait = 5 * time.Second

// Begin begins a job in a ledger and claims it. Its kind is that of
// [retrieve.Job]; spec is everything that decides on what the job does, as JSON.
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
	r := &Recorder{ID: job.ID, Secret: job.Secret, ledger: l, worker: job.Worker, fresh: true, heldAt: now}
	r.Journal = heldJournal{r}
	return r, nil
}

// Resume finds a job of a kind that has not ended, and reads its spec into what spec
// points to. It does not claim it: see [Recorder.HoldJob]. The error wraps
// [retrieve.ErrNotFound] when there is none, or it is of another kind.
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
	r := &Recorder{ID: job.ID, Secret: job.Secret, ledger: l, worker: retrieve.NewWorker()}
	r.Journal = heldJournal{r}
	return r, nil
}

// A heldJournal is a ledger's journal. It notices when another worker has taken
// the job.
type heldJournal struct{ r *Recorder }

func (j heldJournal) Reply(ctx context.Context, run, key string) (reply []byte, ok bool, err error) {
	return j.r.ledger.Reply(ctx, run, key)
}

func (j heldJournal) Keep(ctx context.Context, run, key string, reply []byte) error {
	ctx, cancel := context.WithTimeout(ctx, ledgerWait)
	defer cancel()
	err := j.r.ledger.Keep(ctx, run, j.r.worker, key, reply)
	j.r.noteLoss(err)
	return err
}

// HoldJob claims the job, unless [Begin] has just done so, and prolongs the claim
// until [Recorder.StopProlonging]. It calls stop when another worker has taken the job,
// with a [*retrieve.HeldError]. It returns the same error for a claim that is
// refused, and [retrieve.ErrNotFound] for a job that has ended.
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

// claims are those of a ledger; they record when the job was last claimed.
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

// noteLoss stops the work when an error says that another worker has the job, or
// may have had it: the ledger no longer has the job, and the claim had expired. A
// job that the ledger has dropped before that continues, since nobody else had it.
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
// discarded. It claims the job again where that is uncertain because this
// process was suspended. A ledger that does not answer changes nothing.
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

// Release gives up a job that is not continued here: any worker may claim it.
func (r *Recorder) Release(ctx context.Context) error {
	if r == nil || r.ledger == nil {
		return nil
	}
	r.StopProlonging()
	ctx, cancel := finalContext(ctx)
	defer cancel()
	return r.ledger.Release(ctx, r.ID, r.worker)
}

// finalContext makes a context for the last writes: the client may have gone by then,
// and after ClaimTime another worker may have the job.
func finalContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), retrieve.ClaimTime)
}

// An Outcome says whether resuming a job may add something to its result.
type Outcome int

// The outcomes.
const (
	Unfinished Outcome = iota // it broke off, or a call failed that its result lacks
	Done                      // resuming it would make no call
	Refused                   // it made no call at all
)

// SetOutcome records how the work has ended.
func (r *Recorder) SetOutcome(o Outcome) {
	if r != nil {
		r.outcome = o
	}
}

// Conclude reports whether the job ends, for a caller that ends several at a time with
// [retrieve.Archive.Finish], and then releases those that are kept. A job is kept where it
// is unfinished or err says that its result could not be shown, unless it was cut, since
// nobody wants the rest of its result. One that another worker has is left to that worker.
func (r *Recorder) Conclude(ctx context.Context, err error, cut bool) (ended bool) {
	if r == nil {
		return true
	}
	return (cut || r.outcome == Refused || r.outcome == Done && err == nil) && !r.HasLostJob(ctx)
}

// StopProlonging stops renewing the claim on the job. Whoever calls Conclude calls it when
// the end is stored, which may take longer than a claim.
func (r *Recorder) StopProlonging() {
	if r != nil && r.stopProlonging != nil {
		r.stopProlonging()
	}
}
