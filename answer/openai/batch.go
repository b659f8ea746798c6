package openai

import (
	"context"
	"slices"
	"sync"
	"time"

	"ibid/ingest"
)

// A batcher combines the texts of many calls in few requests. It fills batches with
// waiting texts, sends a limited number of requests at a time, and delays all of them
// when the server asks one to wait.
type batcher struct {
	e *Embedder

	mu      sync.Mutex
	waiting []batchItem
	running int       // requests
	resume  time.Time // no request starts before this time
}

// mostWaits is how often a request is repeated, in addition to Options.Retries, when the
// server says how long to wait: an ingest can wait.
const mostWaits = 10

// A batchCall is a call of Embed that waits for its rows.
type batchCall struct {
	rows    [][]float32
	missing int // rows; also 0 after the call has failed or was canceled
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

// embed returns the vectors of the texts. If ctx ends, a request in progress is not
// canceled, since it may contain texts of other calls.
func (b *batcher) embed(ctx context.Context, texts []string) ([][]float32, error) {
	c := &batchCall{rows: make([][]float32, len(texts)), missing: len(texts), done: make(chan struct{})}
	if len(texts) == 0 {
		return c.rows, nil
	}
	items := make([]batchItem, len(texts))
	for i, text := range texts {
		items[i] = batchItem{batchCall: c, index: i, text: text, tokens: ingest.CountTokens(text)}
	}
	b.mu.Lock()
	if len(items) == 1 {
		b.waiting = slices.Insert(b.waiting, 0, items...) // a question, whose user is waiting
	} else {
		b.waiting = append(b.waiting, items...)
	}
	b.start()
	b.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(i batchItem) bool { return i.batchCall == c })
	missing := c.missing
	switch c.missing = 0; {
	case c.err != nil:
		return nil, c.err
	case missing > 0:
		return nil, b.e.contextError(ctx)
	}
	return c.rows, nil
}

// start starts as many requests as may run.
func (b *batcher) start() {
	for len(b.waiting) > 0 && b.running < b.e.o.Parallel {
		n, tokens, first := 0, 0, b.waiting[0]
		for _, i := range b.waiting {
			other := i.batchCall != first.batchCall && (i.alone || first.alone)
			if tokens += i.tokens; n > 0 && (n == b.e.o.BatchTexts || tokens > b.e.o.BatchTokens || other) {
				break
			}
			n++
		}
		items := slices.Clone(b.waiting[:n])
		b.waiting = slices.Delete(b.waiting, 0, n)
		b.running++
		go b.request(items)
	}
}

// request makes one request, with its retries, and delivers the result.
func (b *batcher) request(items []batchItem) {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = item.text
	}
	var rows [][]float32
	held := 0
	err := b.e.retry(context.Background(), b.e.o.Retries, func(ctx context.Context) (failed *Error) {
		if failed = b.waitTurn(ctx); failed == nil {
			rows, failed = b.e.attempt(ctx, texts)
			if failed != nil && failed.RetryAfter > 0 {
				held++
				failed.adapted = b.delayAll(ctx, failed) && held <= mostWaits
			}
		}
		return failed
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	// If the text of one call caused the error, each call is sent in a separate request.
	shared := slices.ContainsFunc(items, func(i batchItem) bool { return i.batchCall != items[0].batchCall })
	fault := err != nil && shared && (err.Kind == Rejected || err.Kind == ContextLength || err.Kind == Filtered)
	for i, item := range slices.Backward(items) {
		switch c := item.batchCall; {
		case c.missing == 0:
			continue
		case fault:
			item.alone = true
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
			return b.e.contextError(ctx)
		}
	}
	return nil
}

// delayAll delays all requests by the time that the server asked one of them to wait.
// It reports whether that request may be repeated: it was rejected only for its rate,
// and its deadline allows the wait.
func (b *batcher) delayAll(ctx context.Context, failed *Error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	until := time.Now().Add(failed.RetryAfter)
	deadline, bounded := ctx.Deadline()
	if bounded && !deadline.After(until) {
		return false // this request fails, so others need not wait
	}
	if until.After(b.resume) {
		b.resume = until
	}
	return failed.Kind == RateLimited
}
