package answer

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
)

// inParallel runs the jobs 0 to n-1 with the given number of workers. It returns a
// channel for each job's result, and a function that waits until all jobs have ended.
func inParallel[T any](n, workers int, job func(i int) T) (results []chan T, wait func()) {
	results = make([]chan T, n)
	for i := range results {
		results[i] = make(chan T, 1)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, workers) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				results[i] <- job(i)
			}
		})
	}
	return results, wg.Wait
}

// callAll makes the calls in parallel, and yields each when it has ended, in the order
// of the prompts. If a call finds the model unusable, or its context window too small,
// the remaining calls are not made and fail with the same error.
func (c *caller) callAll(ctx context.Context, m Model, prompts []Prompt) iter.Seq2[int, *call] {
	return func(yield func(int, *call) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var fatal atomic.Pointer[error]
		calls := make([]*call, len(prompts))
		for i, p := range prompts {
			calls[i] = c.newCall(p)
		}
		ended, wait := inParallel(len(prompts), c.parallel, func(i int) *call {
			k := calls[i]
			if err := fatal.Load(); err != nil {
				k.err = *err
			} else if k.err = k.readWhole(ctx, m); isUnusable(k.err) || errors.Is(k.err, ErrContextLength) {
				fatal.CompareAndSwap(nil, &k.err)
			}
			return k
		})
		defer wait()
		defer cancel()
		for i := range ended {
			if !yield(i, <-ended[i]) {
				return
			}
		}
	}
}

// readWhole makes the call and reads its reply to the end. If the reply breaks off, it
// makes the call once more, since nothing of the reply has been shown.
func (c *call) readWhole(ctx context.Context, m Model) error {
	err := c.readPieces(ctx, m)
	if c.isBrokenOff(err) && worthRetrying(ctx, err) {
		lost := c.tokens
		c.text, c.finish, c.tokens = nil, "", Tokens{}
		err = c.readPieces(ctx, m)
		c.tokens.Prompt += lost.Prompt
		c.tokens.Completion += lost.Completion
		c.tokens.Reasoning += lost.Reasoning
		c.tokens.Requests = max(1, c.tokens.Requests) + max(1, lost.Requests)
	}
	if err != nil {
		return callError(c.prompt.Role, err)
	}
	return nil
}

// isBrokenOff reports whether an error, other than a time limit of the client, ended a
// reply after it had begun.
func (c *call) isBrokenOff(err error) bool {
	return err != nil && len(c.text) > 0 && passedLimit(err) == "" && !isWordless(err)
}

func (c *call) readPieces(ctx context.Context, m Model) error {
	err := ctx.Err()
	if err == nil {
		for _, err = range c.pieces(ctx, m) { // the text is in c
		}
	}
	return err
}
