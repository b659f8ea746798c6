package openai

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"ibid/ingest"
)

// A batcher makes few requests for the texts of many calls: it fills batches
// with waiting texts, runs some of them at a time, and delays all of them when
// the server asks one to wait.
type batcher struct {
	e     *Embedder
	limit *rate.Limiter // nil without a rate

	mu      sync.Mutex
	waiting []batchItem
	running []*batch
	resume  time.Time // no request starts before
}

// A batchCall is a call of Embed that waits for its rows.
type batchCall struct {
	ctx     context.Context
	rows    [][]float32
	missing int // rows; 0 too when the call has ended otherwise
	err     error
	done    chan struct{} // closed when it has its rows or its error
}

// A batchItem is one text of a call.
type batchItem struct {
	*batchCall
	index, tokens int
	text          string
	alone         bool // must not share a request with texts of other calls
}

// A batch is a running request.
type batch struct {
	items  []batchItem
	cancel context.CancelFunc
	ended  chan struct{}
}

// embed returns the rows of the texts. No request for them is running when it
// returns.
func (b *batcher) embed(ctx context.Context, texts []string) ([][]float32, error) {
	c := &batchCall{ctx: ctx, rows: make([][]float32, len(texts)), missing: len(texts), done: make(chan struct{})}
	if len(texts) == 0 {
		return c.rows, nil
	}
	items := make([]batchItem, len(texts))
	for i, text := range texts {
		items[i] = batchItem{batchCall: c, index: i, text: text, tokens: ingest.CountTokens(text)}
	}
	b.mu.Lock()
	if len(items) == 1 {
		b.waiting = slices.Insert(b.waiting, 0, items...) // a question, which a person waits for
	} else {
		b.waiting = append(b.waiting, items...)
	}
	b.start()
	b.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	b.remove(c)
	select {
	case <-c.done:
	default:
		return nil, b.e.interrupted(ctx)
	}
	if c.err != nil {
		return nil, c.err
	}
	return c.rows, nil
}

// remove drops a call, and ends the requests that are for it. Those of other calls in
// them are made again.
func (b *batcher) remove(c *batchCall) {
	own := func(i batchItem) bool { return i.batchCall == c }
	b.mu.Lock()
	c.missing = 0
	b.waiting = slices.DeleteFunc(b.waiting, own)
	var running []*batch
	for _, r := range b.running {
		if slices.ContainsFunc(r.items, own) {
			r.cancel()
			running = append(running, r)
		}
	}
	b.mu.Unlock()
	for _, r := range running {
		<-r.ended
	}
}

// start starts as many requests as may run.
func (b *batcher) start() {
	for len(b.waiting) > 0 && len(b.running) < b.e.o.Parallel {
		n, tokens, first := 0, 0, b.waiting[0]
		for _, i := range b.waiting {
			other := i.batchCall != first.batchCall && (i.alone || first.alone)
			if tokens += i.tokens; n > 0 && (n == b.e.o.BatchTexts || tokens > b.e.o.BatchTokens || other) {
				break
			}
			n++
		}
		r := &batch{items: slices.Clone(b.waiting[:n]), ended: make(chan struct{})}
		b.waiting = slices.Delete(b.waiting, 0, n)
		var ctx context.Context
		ctx, r.cancel = context.WithCancel(context.WithoutCancel(first.ctx))
		b.running = append(b.running, r)
		go b.request(ctx, r)
	}
}

// request makes one request, with its retries, and delivers the result.
func (b *batcher) request(ctx context.Context, r *batch) {
	defer close(r.ended)
	defer r.cancel()
	texts := make([]string, len(r.items))
	for i, item := range r.items {
		texts[i] = item.text
	}
	var rows [][]float32
	held := 0
	err := b.e.attempts(ctx, b.e.o.Retries, func(ctx context.Context) (failed *Error) {
		if failed = b.waitTurn(ctx); failed == nil {
			rows, failed = b.e.attempt(ctx, texts)
			if failed != nil && failed.RetryAfter > 0 {
				held++
				failed.adapted = b.delayAll(ctx, failed) && held <= b.e.o.Patience
			}
		}
		return failed
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = slices.DeleteFunc(b.running, func(x *batch) bool { return x == r })
	// Where one call's text is at fault, each gets a request of its own.
	shared := slices.ContainsFunc(r.items, func(i batchItem) bool { return i.batchCall != r.items[0].batchCall })
	fault := err != nil && shared && (err.Kind == Rejected || err.Kind == ContextLength || err.Kind == Filtered)
	for i, item := range slices.Backward(r.items) {
		switch c := item.batchCall; {
		case c.missing == 0:
			continue
		case fault || err != nil && err.Kind == Canceled:
			item.alone = item.alone || fault
			b.waiting = slices.Insert(b.waiting, 0, item)
			continue
		case err != nil:
			c.err, c.missing = err, 0
		default:
			c.rows[item.index] = rows[i]
			c.missing--
		}
		if item.missing == 0 {
			close(item.done)
		}
	}
	b.start()
}

// waitTurn waits until a request may be made.
func (b *batcher) waitTurn(ctx context.Context) *Error {
	b.mu.Lock()
	pause := time.Until(b.resume)
	b.mu.Unlock()
	if pause > 0 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return b.e.interrupted(ctx)
		}
	}
	if b.limit != nil && b.limit.Wait(ctx) != nil {
		if ctx.Err() == nil { // the wait would outlast the deadline
			return b.e.fail(RateLimited, nil, "the rate limit that is set leaves no time for it")
		}
		return b.e.interrupted(ctx)
	}
	return nil
}

// delayAll has all requests wait as long as the server asks one to, and reports
// whether that one may be repeated: it was refused only for its rate, and there
// is time.
func (b *batcher) delayAll(ctx context.Context, failed *Error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	until := time.Now().Add(failed.RetryAfter)
	deadline, bounded := ctx.Deadline()
	if bounded && !deadline.After(until) {
		return false // this request is given up, so others need not wait
	}
	if until.After(b.resume) {
		b.resume = until
	}
	return failed.Kind == RateLimited
}
