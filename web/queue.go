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

// turnTime is how long a search or the reading of passages may wait for its turn.
const turnTime = 30 * time.Second

// A CountingSearcher also counts terms; [retrieve.Index] is one.
type CountingSearcher interface {
	Searcher
	answer.Counter
}

// LimitSearches returns a searcher that runs at most the given number of searches at once. More
// would only slow down one another and the answers being written. Other searches wait in order
// of arrival, and their clients get the event "queued". The searcher is an [answer.TurnTaker],
// so reading passages waits for a turn, too.
func LimitSearches(s CountingSearcher, most int) CountingSearcher {
	return &searchQueue{CountingSearcher: s, free: most}
}

var _ answer.TurnTaker = (*searchQueue)(nil)

// A searchQueue is a searcher whose searches wait for their turn.
type searchQueue struct {
	CountingSearcher
	mu      sync.Mutex
	free    int
	waiting []chan struct{} // in order of arrival; closed when the turn comes
}

func (t *searchQueue) Search(ctx context.Context, q retrieve.Query) ([]retrieve.Passage, error) {
	end, err := t.WaitTurn(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return t.CountingSearcher.Search(ctx, q)
}

// WaitTurn waits for a turn. It reports the place in the queue at first and whenever the place
// changes, at most once a second.
func (t *searchQueue) WaitTurn(ctx context.Context) (end func(), err error) {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return t.passTurn, nil
	}
	mine := make(chan struct{})
	t.waiting = append(t.waiting, mine)
	t.mu.Unlock()
	defer func() {
		if end == nil {
			t.giveUpPlace(mine)
		}
	}()
	note, _ := ctx.Value(queuedKey{}).(func(int64))
	second := time.NewTicker(time.Second)
	defer second.Stop()
	tooLong := time.After(turnTime)
	for told := int64(0); ; {
		if place := t.place(mine); note != nil && place != told && place > 0 {
			told = place
			note(place)
		}
		select {
		case <-mine:
			return t.passTurn, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tooLong:
			return nil, tooMany("too_many_questions", 2*time.Second, "too many questions are waiting: ask again in a moment")
		case <-second.C:
		}
	}
}

// place returns 1 for the next turn, or 0 if the turn has come.
func (t *searchQueue) place(mine chan struct{}) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(slices.Index(t.waiting, mine) + 1)
}

// passTurn passes a turn that has ended to the next in the queue.
func (t *searchQueue) passTurn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.free++
		return
	}
	close(t.waiting[0])
	t.waiting = slices.Delete(t.waiting, 0, 1)
}

// giveUpPlace leaves the queue, or passes on a turn that has just come.
func (t *searchQueue) giveUpPlace(mine chan struct{}) {
	t.mu.Lock()
	place := slices.Index(t.waiting, mine)
	if place >= 0 {
		t.waiting = slices.Delete(t.waiting, place, place+1)
	}
	t.mu.Unlock()
	if place < 0 {
		t.passTurn()
	}
}

type queuedKey struct{}

// queued is an event: the question waits for its turn to search or to read passages.
type queued struct {
	// Place is 1 for the next turn.
	Place int64 `json:"place"`
}

// Kind returns the event's name.
func (queued) Kind() string { return "queued" }

// withQueue passes on the events of an answer, with events about its place in the queue. A
// search waits on the goroutine of the caller's loop, between two events, so it can yield.
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
