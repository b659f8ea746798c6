package web

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

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
func TakeTurns(s Counted, most int) Counted { return &turns{Counted: s, free: most} }

// turns are the searches of a searcher.
type turns struct {
	Counted

	mu      sync.Mutex
	free    int             // searches that may begin at once
	waiting []chan struct{} // each is closed when its turn comes
}

func (t *turns) Search(ctx context.Context, q retrieve.Query) ([]retrieve.Passage, error) {
	if err := t.wait(ctx); err != nil {
		return nil, err
	}
	defer t.pass()
	return t.Counted.Search(ctx, q)
}

func (t *turns) wait(ctx context.Context) error {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	t.waiting = append(t.waiting, turn)
	place := len(t.waiting)
	t.mu.Unlock()
	if note, ok := ctx.Value(queuedKey{}).(func(int)); ok {
		note(place)
	}
	late := time.NewTimer(turnTime)
	defer late.Stop()
	var err error
	select {
	case <-turn:
		return nil
	case <-late.C:
		err = tooMany("too_many_questions", 2*time.Second, "too many questions came before this one: ask again in a moment")
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.mu.Lock()
	at := slices.Index(t.waiting, turn)
	if at >= 0 {
		t.waiting = slices.Delete(t.waiting, at, at+1)
	}
	t.mu.Unlock()
	if at < 0 { // the turn has just come
		t.pass()
	}
	return err
}

// pass ends a search, and begins the next.
func (t *turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.free++
		return
	}
	close(t.waiting[0])
	t.waiting = slices.Delete(t.waiting, 0, 1)
}

type queuedKey struct{}

// queued is an event: the search of the question waits for others.
type queued struct {
	// Place is 1 for the one that is next.
	Place int `json:"place"`
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
		note := func(place int) {
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
