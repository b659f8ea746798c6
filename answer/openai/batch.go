package openai

import (
	"context"
	"slices"
	"time"

	"ibid/ingest"
)

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

// Embed implements [retrieve.Embedder]; its errors are of type [*Error]. Simultaneous calls
// share requests; each request has its own time limits and retries. If ctx ends, a request in
// progress is not canceled, since it may contain texts of other calls.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	c := &batchCall{rows: make([][]float32, len(texts)), missing: len(texts), done: make(chan struct{})}
	if len(texts) == 0 {
		return c.rows, nil
	}
	items := make([]batchItem, len(texts))
	for i, text := range texts {
		items[i] = batchItem{batchCall: c, index: i, text: text, tokens: ingest.CountTokens(text)}
	}
	e.mu.Lock()
	if len(items) == 1 {
		e.waiting = slices.Insert(e.waiting, 0, items...) // a question, whose user is waiting
	} else {
		e.waiting = append(e.waiting, items...)
	}
	e.start()
	e.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = slices.DeleteFunc(e.waiting, func(i batchItem) bool { return i.batchCall == c })
	missing := c.missing
	switch c.missing = 0; {
	case c.err != nil:
		return nil, c.err
	case missing > 0:
		return nil, e.contextError(ctx)
	}
	return c.rows, nil
}

// start starts as many requests as may run.
func (e *Embedder) start() {
	for len(e.waiting) > 0 && e.running < e.o.Parallel {
		n, tokens, first := 0, 0, e.waiting[0]
		for _, i := range e.waiting {
			other := i.batchCall != first.batchCall && (i.alone || first.alone)
			if tokens += i.tokens; n > 0 && (n == e.o.BatchTexts || tokens > e.o.BatchTokens || other) {
				break
			}
			n++
		}
		items := slices.Clone(e.waiting[:n])
		e.waiting = slices.Delete(e.waiting, 0, n)
		e.running++
		go e.request(items)
	}
}

// request makes one request, with its retries, and delivers the result.
func (e *Embedder) request(items []batchItem) {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = item.text
	}
	var rows [][]float32
	held := 0
	err := e.retry(context.Background(), e.o.Retries, func(ctx context.Context) (failed *Error) {
		if failed = e.waitTurn(ctx); failed == nil {
			rows, failed = e.attempt(ctx, texts)
			if failed != nil && failed.RetryAfter > 0 {
				held++
				failed.adapted = e.delayAll(ctx, failed) && held <= mostWaits
			}
		}
		return failed
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running--
	// If the text of one call caused the error, each call is sent in a separate request.
	shared := slices.ContainsFunc(items, func(i batchItem) bool { return i.batchCall != items[0].batchCall })
	fault := err != nil && shared && (err.Kind == Rejected || err.Kind == ContextLength || err.Kind == Filtered)
	for i, item := range slices.Backward(items) {
		switch c := item.batchCall; {
		case c.missing == 0:
			continue
		case fault:
			item.alone = true
			e.waiting = slices.Insert(e.waiting, 0, item)
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
	e.start()
}

// waitTurn waits until a request may be made.
func (e *Embedder) waitTurn(ctx context.Context) *Error {
	e.mu.Lock()
	pause := time.Until(e.resume)
	e.mu.Unlock()
	return e.wait(ctx, pause)
}

// delayAll delays all requests by the time that the server asked one of them to wait.
// It reports whether that request may be repeated: it was rejected only for its rate,
// and its deadline allows the wait.
func (e *Embedder) delayAll(ctx context.Context, failed *Error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	until := time.Now().Add(failed.RetryAfter)
	deadline, bounded := ctx.Deadline()
	if bounded && !deadline.After(until) {
		return false // this request fails, so others need not wait
	}
	if until.After(e.resume) {
		e.resume = until
	}
	return failed.Kind == RateLimited
}
