package answer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
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
type Run struct {
	ID string
	// Secret makes the marks of the fences in the run's prompts, 32 random
	// bytes. Whoever knows it can write a document that closes its fence.
	Secret []byte
	// Journal may be used by several calls at once.
	Journal Journal

	ledger retrieve.Ledger // nil for a run that is in none
	fresh  bool            // the journal has nothing yet that it could ask for
	ended  bool            // for good: taking it up would make no call
}

// BeginRun begins a run in a ledger. Its kind is that of [retrieve.Run]; spec
// is all that decides on what the run does, as JSON keeps it.
func BeginRun(ctx context.Context, l retrieve.Ledger, kind string, spec any) (*Run, error) {
	b, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("writing down what a run is to do: %w", err)
	}
	r := retrieve.Run{ID: strings.ToLower(rand.Text()[:16]), Kind: kind, Started: time.Now(), Secret: make([]byte, 32), Spec: b}
	rand.Read(r.Secret) // never fails
	if err := l.Begin(ctx, r); err != nil {
		return nil, err
	}
	return &Run{ID: r.ID, Secret: r.Secret, Journal: l, ledger: l, fresh: true}, nil
}

// A KindError says that a run is of another kind than the one looked for.
type KindError struct{ ID, Kind string }

func (e *KindError) Error() string {
	return fmt.Sprintf("the run %s was begun by '%s': go on with it there", e.ID, e.Kind)
}

// ResumeRun finds a run of a kind that has not ended, the latest one if id is
// empty, and reads its spec into what spec points to. The error wraps
// [retrieve.ErrNotFound] when there is none, and is a [*KindError] when the id
// is that of another kind of run.
func ResumeRun(ctx context.Context, l retrieve.Ledger, kind, id string, spec any) (*Run, error) {
	var r retrieve.Run
	var err error
	if id == "" {
		r, err = l.Latest(ctx, kind)
	} else {
		r, err = l.Run(ctx, id)
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
	return &Run{ID: r.ID, Secret: r.Secret, Journal: l, ledger: l}, nil
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
// call failed or gave nothing that its answer lacks.
func (run *Run) Settle(ctx context.Context, err error) (kept bool, _ error) {
	if run == nil {
		return false, nil
	}
	wrong := (*QuestionError)(nil) // no call was made
	if !errors.As(err, &wrong) && (err != nil || !run.ended) {
		return true, nil
	}
	if run.ledger == nil {
		return false, nil
	}
	// Who asked may be gone by now.
	return false, run.ledger.End(context.WithoutCancel(ctx), run.ID)
}
