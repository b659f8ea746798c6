package answer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"ibid/retrieve"
)

// A Run is a question or a summary that can be taken up again after a crash:
// the same work under the same ID, Secret and Journal makes only those calls
// whose replies the journal lacks, and comes to the same end.
//
// Calls are known by their prompts. What is searched or read is searched or
// read anew, so that an answer rests on what is stored now: where documents
// have changed in between, the calls that show them are made again, and a
// document that is gone is not cited from memory.
//
// What failed is tried again, and what comes of that is new. Only the judges
// and the condensing of a question are not asked a second time about what was
// decided without them: every later call rests on it.
//
// A journal that fails costs calls, never an answer: a Warning tells of it.
// All methods may be called on nil, a run that is kept nowhere.
//
// One worker at a time holds a run that is in a ledger, from [BeginRun] or
// [Run.Hold] to [Run.Settle]. A reply that comes after another one has taken the
// run up is not kept.
type Run struct {
	ID string
	// Secret makes the marks of the fences in the run's prompts, 32 random
	// bytes. Whoever knows it can write a document that closes its fence.
	Secret []byte
	// Journal may be used by several calls at once.
	Journal Journal

	ledger retrieve.Ledger // nil for a run that is in none
	worker string          // that holds it in the ledger, or will
	fresh  bool            // the journal has nothing yet that it could ask for
	ended  bool            // for good: taking it up would make no call

	leaveOff func() // prolonging the claim; nil where that has not begun
	mu       sync.Mutex
	lose     context.CancelCauseFunc // stops the work
	lost     error                   // why the work must stop; nil while it need not
	sure     time.Time               // when the claim was known to hold; zero before it is made

	forgotten bool // by the ledger, while it was held
}

// patience is how long an answer waits for the ledger before it goes on without:
// one on a server may be away, or take no writes while a part of it is, and itself
// wait for much longer.
const patience = 5 * time.Second

// BeginRun begins a run in a ledger, unless that takes for long. Its kind is that of [retrieve.Job]; spec
// is all that decides on what the run does, as JSON keeps it.
func BeginRun(ctx context.Context, l retrieve.Ledger, kind string, spec any) (*Run, error) {
	b, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("writing down what a run is to do: %w", err)
	}
	now := time.Now()
	r := retrieve.Job{ID: strings.ToLower(rand.Text()[:16]), Kind: kind, Started: now, Secret: make([]byte, 32), Spec: b,
		Worker: retrieve.NewWorker(), Left: retrieve.ClaimTime}
	rand.Read(r.Secret) // never fails
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := l.Begin(ctx, r); err != nil {
		return nil, err
	}
	run := &Run{ID: r.ID, Secret: r.Secret, ledger: l, worker: r.Worker, fresh: true, sure: now}
	run.Journal = heldJournal{run}
	return run, nil
}

// A KindError says that a run is of another kind than the one looked for.
type KindError struct{ ID, Kind string }

func (e *KindError) Error() string {
	return fmt.Sprintf("the run %s was begun by '%s': go on with it there", e.ID, e.Kind)
}

// ResumeRun finds a run of a kind that has not ended, the latest one that nobody
// works on if id is empty, and reads its spec into what spec points to. It is not
// held yet: see [Run.Hold]. The error wraps
// [retrieve.ErrNotFound] when there is none, and is a [*KindError] when the id
// is that of another kind of run.
func ResumeRun(ctx context.Context, l retrieve.Ledger, kind, id string, spec any) (*Run, error) {
	var r retrieve.Job
	var err error
	if id == "" {
		r, err = l.Latest(ctx, kind)
	} else {
		r, err = l.Job(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	if r.Kind != kind {
		return nil, &KindError{r.ID, r.Kind}
	}
	if err := json.Unmarshal(r.Spec, spec); err != nil {
		return nil, fmt.Errorf("reading what the run %s is to do: %w", r.ID, err)
	}
	run := &Run{ID: r.ID, Secret: r.Secret, ledger: l, worker: retrieve.NewWorker()}
	run.Journal = heldJournal{run}
	return run, nil
}

// A heldJournal is a ledger that learns whether the worker still holds the run.
type heldJournal struct{ run *Run }

func (j heldJournal) Reply(ctx context.Context, run, key string) (reply []byte, ok bool, err error) {
	return j.run.ledger.Reply(ctx, run, key)
}

func (j heldJournal) Keep(ctx context.Context, run, key string, reply []byte) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := j.run.ledger.Keep(ctx, run, j.run.worker, key, reply)
	j.run.losing(err)
	return err
}

// Hold claims the run, unless it was begun with a claim just now, and prolongs
// the claim until [Run.Settle]. When another worker takes the run up, cancel is
// called with a [*retrieve.HeldError]. That is also the error of a claim that is
// refused; [retrieve.ErrNotFound] means that the run has ended.
func (run *Run) Hold(ctx context.Context, cancel context.CancelCauseFunc) error {
	if run == nil || run.ledger == nil {
		return nil
	}
	if run.sure.IsZero() {
		if err := run.claim(ctx); err != nil {
			return err
		}
	}
	run.mu.Lock()
	run.lose = cancel
	run.mu.Unlock()
	run.leaveOff = retrieve.Prolong(ctx, claims{run.ledger, run}, run.ID, run.worker, run.losing)
	return nil
}

// claims are those of a ledger, by which a run notes when its own was made.
type claims struct {
	retrieve.Claims
	run *Run
}

func (c claims) Claim(ctx context.Context, _, _ string, _ time.Duration) error {
	return c.run.claim(ctx)
}

func (run *Run) claim(ctx context.Context) error {
	before := time.Now()
	err := run.ledger.Claim(ctx, run.ID, run.worker, retrieve.ClaimTime)
	if err == nil {
		run.mu.Lock()
		run.sure = before
		run.mu.Unlock()
	}
	return err
}

// losing notes an error that means that the work must stop. A run that the ledger
// has forgotten while it was held goes on: there is nothing that another worker
// could take up.
func (run *Run) losing(err error) {
	if !retrieve.IsLost(err) {
		return
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.lost != nil || run.forgotten {
		return
	}
	if errors.Is(err, retrieve.ErrNotFound) {
		if time.Since(run.sure) < retrieve.ClaimTime {
			run.forgotten = true
			return
		}
		err = &retrieve.HeldError{Run: run.ID} // this process was held up, and another one has ended it
	}
	run.lost = err
	if run.lose != nil {
		run.lose(err)
	}
}

// Lost says whether another worker has the run: what came of it here must not
// stand for it. It asks the ledger where that is not sure, because this process
// was held up for long. A ledger that does not answer takes nothing away.
func (run *Run) Lost(ctx context.Context) bool {
	if run == nil || run.ledger == nil {
		return false
	}
	run.mu.Lock()
	sure := run.lost != nil || run.forgotten || time.Since(run.sure) < retrieve.ClaimTime/2
	run.mu.Unlock()
	if !sure {
		run.losing(run.claim(ctx))
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	held := (*retrieve.HeldError)(nil)
	return errors.As(run.lost, &held)
}

// Release lets go of a run that goes no further here: any worker may take it up.
func (run *Run) Release(ctx context.Context) error {
	if run == nil || run.ledger == nil {
		return nil
	}
	if run.leaveOff != nil {
		run.leaveOff()
	}
	ctx, cancel := lastly(ctx)
	defer cancel()
	return run.ledger.Release(ctx, run.ID, run.worker)
}

// lastly is for what is written down at the end: who asked may be gone by now,
// and after so long others may have the run.
func lastly(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), retrieve.ClaimTime)
}

// Watch passes the events of the run on and notes how they end, for [Run.Settle].
func (run *Run) Watch(events iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	if run == nil {
		return events
	}
	return func(yield func(Event, error) bool) {
		failed, cut := false, false
		for e, err := range events {
			switch e := e.(type) {
			case Stepped:
				failed = failed || e.Reason == "model_error" || e.Reason == "empty_reply"
			case Incomplete:
				cut = true
			case Usage:
				run.ended = !(cut && failed)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Settle forgets a run whose events came to their end, once what they told has
// been shown; err is what went wrong in that. It tells whether the run is kept
// instead, because taking it up again may bring it further: it broke off, or a
// call failed or gave nothing that its answer lacks. A run that is kept is let
// go; one that another worker has is left to it.
func (run *Run) Settle(ctx context.Context, err error) (kept bool, _ error) {
	if run == nil {
		return false, nil
	}
	ctx, cancel := lastly(ctx)
	defer cancel()
	wrong := (*QuestionError)(nil) // no call was made
	if !errors.As(err, &wrong) && (err != nil || !run.ended) || run.Lost(ctx) {
		return true, run.Release(ctx)
	}
	if run.ledger == nil {
		return false, nil
	}
	if run.leaveOff != nil {
		run.leaveOff()
	}
	return false, run.ledger.End(ctx, run.ID)
}
