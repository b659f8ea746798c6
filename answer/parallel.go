package answer

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
)

// An endedCall is a call whose reply has ended, by an error unless err is nil.
type endedCall struct {
	*call
	err error
}

// A liveReply buffers a reply that is still coming.
type liveReply struct {
	mu   sync.Mutex
	text []byte         // not yet read
	more chan struct{}  // has a value when there is text
	done chan endedCall // has a value when there will be no more
}

func newLiveReply() *liveReply {
	return &liveReply{more: make(chan struct{}, 1), done: make(chan endedCall, 1)}
}

func (l *liveReply) add(piece string) {
	l.mu.Lock()
	l.text = append(l.text, piece...)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *liveReply) next() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := string(l.text)
	l.text = nil
	return text
}

// each makes the calls, some at a time, and yields them in the order of the
// prompts when they have ended. show, if not nil, gets the pieces of a reply
// before that, as they come once it is the reply's turn, and returns whether to
// continue. When a model turns out to be unusable, the remaining calls fail with
// the same error and are not made.
func (c *caller) each(ctx context.Context, m Model, prompts []Prompt, show func(i int, piece string) bool) iter.Seq2[int, endedCall] {
	return func(yield func(int, endedCall) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		replies := make([]*liveReply, len(prompts))
		for i := range replies {
			replies[i] = newLiveReply()
		}
		var next atomic.Int64
		var fatal atomic.Pointer[error]
		for range min(len(prompts), c.parallel) {
			wg.Go(func() {
				for i := int(next.Add(1)) - 1; i < len(prompts); i = int(next.Add(1)) - 1 {
					k := endedCall{call: c.call(prompts[i])}
					if err := fatal.Load(); err != nil {
						k.err = *err
					} else {
						k.err = k.collect(ctx, m, replies[i])
					}
					if isUnusable(k.err) {
						fatal.CompareAndSwap(nil, &k.err)
					}
					replies[i].done <- k
				}
			})
		}
		for i, reply := range replies {
			var k endedCall
			for ended := false; !ended; {
				select {
				case <-reply.more:
				case k = <-reply.done:
					ended = true
				}
				if piece := reply.next(); piece != "" && show != nil && !show(i, piece) {
					return
				}
			}
			if !yield(i, k) {
				return
			}
		}
	}
}

// collect makes the call and puts its reply into a buffer.
func (c *call) collect(ctx context.Context, m Model, into *liveReply) error {
	if err := ctx.Err(); err != nil {
		return callError(c.prompt.Role, err)
	}
	for piece, err := range c.pieces(ctx, m) {
		if err != nil {
			return callError(c.prompt.Role, err)
		}
		into.add(piece)
	}
	return nil
}
