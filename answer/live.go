package answer

import (
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
)

// A replied is a call that has ended.
type replied struct {
	*call
	err error
}

// A live reply is one that is still coming.
type live struct {
	mu   sync.Mutex
	text []byte        // not yet taken
	more chan struct{} // holds one when there is text
	done chan replied  // holds one when there will be no more
}

func (l *live) add(piece string) {
	l.mu.Lock()
	l.text = append(l.text, piece...)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *live) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := string(l.text)
	l.text = nil
	return text
}

// each makes the calls, some at a time, and yields the replies in the order of
// the prompts. hear, if not nil, is given the pieces of a reply before that,
// as they come where it is the reply's turn, and tells whether to go on. When a
// model turns out to be unusable the calls not yet begun fail like that one,
// unmade.
func (r *run) each(ctx context.Context, prompts []Prompt, hear func(i int, piece string) bool) iter.Seq2[int, replied] {
	return func(yield func(int, replied) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		replies := make([]live, len(prompts))
		for i := range replies {
			replies[i].more, replies[i].done = make(chan struct{}, 1), make(chan replied, 1)
		}
		var next atomic.Int64
		var down atomic.Pointer[error]
		model := r.Model
		for range min(len(prompts), or(r.Parallel, defaultParallel)) {
			wg.Go(func() {
				for {
					i := int(next.Add(1)) - 1
					if i >= len(prompts) {
						return
					}
					a := replied{call: r.call(prompts[i])}
					if err := down.Load(); err != nil {
						a.err = *err
					} else if ctx.Err() != nil {
						a.err = asking(prompts[i].Role, ctx.Err())
					}
					if a.err != nil {
						replies[i].done <- a
						continue
					}
					for piece, err := range a.pieces(ctx, model) {
						if err != nil {
							a.err = asking(prompts[i].Role, err)
							break
						}
						replies[i].add(piece)
					}
					if isUnusable(a.err) {
						down.CompareAndSwap(nil, &a.err)
					}
					replies[i].done <- a
				}
			})
		}
		for i := range replies {
			reply, ended := replied{}, false
			for !ended {
				select {
				case <-replies[i].more:
				case reply = <-replies[i].done:
					ended = true
				}
				if piece := replies[i].take(); piece != "" && hear != nil && !hear(i, piece) {
					return
				}
			}
			if !yield(i, reply) {
				return
			}
		}
	}
}

// A drafting is a reply that is shown as it comes, as the draft of a step.
type drafting struct {
	listener
	sieve *sieve
	begun bool
}

// draft begins a draft that may cite the labels shown.
func (m *mapping) draft(shown []int) *drafting {
	return &drafting{listener: listener{said: said{answer: m.summary == nil}}, sieve: newSieve(shown, true)}
}

// hear shows a piece of the reply to the next step.
func (m *mapping) hear(d *drafting, piece string) bool {
	piece, _ = d.listener.hear(piece)
	if !d.begun {
		piece = strings.TrimLeft(piece, " \t\r\n")
	}
	if piece == "" {
		return true
	}
	d.begun = true
	out := d.sieve.feed(piece)
	return out == "" || m.emit(Draft{Step: m.steps + 1, Text: out})
}

// drafted ends the draft of the present step.
func (m *mapping) drafted(d *drafting, p Part) {
	rest := p.Text
	if d != nil && d.begun {
		rest = d.sieve.close()
	}
	m.emit(Draft{Step: m.steps, Text: rest, Labels: p.cited, Final: true})
}
