package web

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"
)

const (
	// maxBatchAsks is the maximum number of questions in one request.
	maxBatchAsks = 50
	// batchParallel is how many questions of a batch are answered at a time.
	batchParallel = 4
)

// batchRequest is the body of POST /api/ask/batch.
type batchRequest struct {
	Questions []json.RawMessage `json:"questions"`
}

// A batchItem is the outcome of one question of a batch: an answer or an error.
type batchItem struct {
	// Run is the id of the answer's record.
	Run    string          `json:"run,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  *Problem        `json:"error,omitempty"`
	// RetryAfter is how many milliseconds to wait before asking again, if the question was
	// rejected by a rate limit.
	RetryAfter int64 `json:"retry_after_ms,omitempty"`
}

// answeredBatch is the reply of POST /api/ask/batch, in the order of the questions.
type answeredBatch struct {
	Answers []batchItem `json:"answers"`
}

// A batch answers several questions, each as a separate request to POST /api/ask.
type batch struct {
	parallel  int // how many questions are answered at a time
	handleOne echo.HandlerFunc
	problemIn func(ctx context.Context, where string, err error) *Problem
}

func newBatch(a *asking, l limiter) *batch {
	one := func(c echo.Context, r askRequest) error {
		if r.Conversation != "" {
			return invalidField("conversation", "bad_batch",
				"the questions of a batch are answered in parallel: send the history, or ask the question in a separate request")
		}
		return a.ask(c, r)
	}
	handleOne := recoverPanics(a.answering.logger)(a.catalog.withCodePoints(l.limitHandler(withBody(one))))
	return &batch{max(1, min(batchParallel, cap(l.slots)/2)), handleOne, a.answering.problemIn}
}

// ask replies with all answers. Until they are complete it sends newlines, so that no proxy
// closes the connection.
func (b *batch) ask(c echo.Context, r batchRequest) error {
	if n := len(r.Questions); n == 0 || n > maxBatchAsks {
		return invalidField("questions", "bad_batch", "there are %d questions: send 1 to %d", n, maxBatchAsks)
	}
	for i, q := range r.Questions {
		if q[0] != '{' {
			return invalidField("questions", "bad_batch", "questions[%d] is not an object: send the body of POST /api/ask", i)
		}
	}
	w := c.Response()
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.Header().Set(echo.HeaderCacheControl, "no-store")
	ctx, cancel := context.WithCancelCause(c.Request().Context())
	defer cancel(nil)
	c.SetRequest(c.Request().WithContext(ctx))
	write := func(b []byte) error {
		if _, err := w.Write(b); err != nil {
			return readerGone(err)
		}
		w.Flush()
		return nil
	}
	stop := keepAlive(func() error { return write([]byte("\n")) }, cancel)
	items := b.answer(c, r.Questions)
	stop()
	return write(append(mustEncode(answeredBatch{items}), '\n'))
}

// answer answers questions, a few at a time. If the key is revoked or the client disconnects,
// the remaining items get that error.
func (b *batch) answer(c echo.Context, questions []json.RawMessage) []batchItem {
	items := make([]batchItem, len(questions))
	e, r, id := c.Echo(), c.Request(), c.Response().Header().Get(echo.HeaderXRequestID)
	var some errgroup.Group
	some.SetLimit(b.parallel)
	for i, question := range questions {
		some.Go(func() error {
			if err := context.Cause(r.Context()); err != nil {
				items[i].Error = b.problemIn(r.Context(), "question", err)
				return nil
			}
			one := r.Clone(r.Context())
			one.Body = io.NopCloser(bytes.NewReader(question))
			one.Header.Del(echo.HeaderAccept)
			w := &heldReply{header: http.Header{echo.HeaderXRequestID: {id}}}
			items[i] = b.askOne(e.NewContext(one, w), w)
			return nil
		})
	}
	_ = some.Wait() // each error is in its item
	return items
}

func (b *batch) askOne(c echo.Context, w *heldReply) (item batchItem) {
	if err := b.handleOne(c); err != nil {
		item.Error = b.problemIn(c.Request().Context(), "question", err)
		item.RetryAfter = item.Error.retryAfter.Milliseconds()
	} else {
		item.Answer = bytes.TrimSpace(w.Bytes())
	}
	item.Run = w.header.Get(runHeader)
	return item
}

// A heldReply holds a reply in memory.
type heldReply struct {
	header http.Header
	bytes.Buffer
}

func (w *heldReply) Header() http.Header { return w.header }
func (w *heldReply) WriteHeader(int)     {}
