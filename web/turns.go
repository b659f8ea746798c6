package web

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"ibid/answer"
	"ibid/retrieve"
)

// turnTime is how long a search waits for its turn.
const turnTime = 30 * time.Second

// A Counted searcher also counts terms; [retrieve.Index] is one.
type Counted interface {
	Searcher
	answer.Counter
}

// TakeTurns makes a searcher that searches most times at once: more only slow each
// other down, and the answers that are being written. Others wait in the order in
// which they came, and their clients get the event "queued".
func TakeTurns(s Counted, most int) Counted {
	return &turns{s, semaphore.NewWeighted(int64(most)), atomic.Int64{}}
}

// turns are the searches of a searcher.
type turns struct {
	Counted
	running *semaphore.Weighted // first come, first served
	waiting atomic.Int64
}

func (t *turns) Search(ctx context.Context, q retrieve.Query) ([]retrieve.Passage, error) {
	if err := t.wait(ctx); err != nil {
		return nil, err
	}
	defer t.running.Release(1)
	return t.Counted.Search(ctx, q)
}

func (t *turns) wait(ctx context.Context) error {
	if t.running.TryAcquire(1) {
		return nil
	}
	place := t.waiting.Add(1)
	defer t.waiting.Add(-1)
	if note, ok := ctx.Value(queuedKey{}).(func(int64)); ok {
		note(place)
	}
	turn, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	err := t.running.Acquire(turn, 1)
	if err != nil && ctx.Err() == nil {
		return tooMany("too_many_questions", 2*time.Second, "too many questions came before this one: ask again in a moment")
	}
	return err
}

type queuedKey struct{}

// queued is an event: the search of the question waits for others.
type queued struct {
	// Place is 1 for the one that is next.
	Place int64 `json:"place"`
}

// Kind is the event's name.
func (queued) Kind() string { return "queued" }

// withQueue passes the events of an answer on, with those about its turn. The search
// that waits runs on the goroutine of the range, between two events.
func withQueue(ctx context.Context, events func(context.Context) iter.Seq2[answer.Event, error]) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		left := false
		note := func(place int64) {
			if !left && !yield(queued{place}, nil) {
				left = true
				cancel()
			}
		}
		for e, err := range events(context.WithValue(ctx, queuedKey{}, note)) {
			if left || !yield(e, err) {
				return
			}
		}
	}
}
