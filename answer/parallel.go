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

// each makes the calls, some at a time, and yields them in the order of the
// prompts when they have ended. When a model turns out to be unusable, the
// remaining calls fail with the same error and are not made.
func (c *caller) each(ctx context.Context, m Model, prompts []Prompt) iter.Seq2[int, endedCall] {
	return func(yield func(int, endedCall) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		ended := make([]chan endedCall, len(prompts))
		for i := range ended {
			ended[i] = make(chan endedCall, 1)
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
						k.err = k.collect(ctx, m)
					}
					if isUnusable(k.err) {
						fatal.CompareAndSwap(nil, &k.err)
					}
					ended[i] <- k
				}
			})
		}
		for i := range ended {
			if !yield(i, <-ended[i]) {
				return
			}
		}
	}
}

// collect makes the call and reads its reply to the end.
func (c *call) collect(ctx context.Context, m Model) error {
	err := ctx.Err()
	if err == nil {
		for _, err = range c.pieces(ctx, m) { // the text is in c
		}
	}
	if err != nil {
		return callError(c.prompt.Role, err)
	}
	return nil
}
