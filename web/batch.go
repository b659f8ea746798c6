package web

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// maxBatchAsks is how many questions one request may have.
	maxBatchAsks = 50
	// batchParallel is how many of them are answered at a time.
	batchParallel = 4
)

// A batchItem is the outcome of one question of a batch: an answer or an error.
type batchItem struct {
	// Run is the id of its record.
	Run    string          `json:"run,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  *Problem        `json:"error,omitempty"`
	// RetryAfter is after how many milliseconds to ask again, where the error is that the
	// question came too soon.
	RetryAfter int64 `json:"retry_after_ms,omitempty"`
}

// answeredBatch is the reply of POST /api/ask/batch, in the order of the questions.
type answeredBatch struct {
	Answers []batchItem `json:"answers"`
}

// A batch answers several questions, each as the request of its own that it could be.
type batch struct {
	*asking
	limiter limiter
	one     echo.HandlerFunc
}

func newBatch(a *asking, l limiter) *batch {
	one := func(c echo.Context, r askRequest) error {
		if r.Conversation != "" {
			return invalidField("conversation", "bad_batch", "the questions of a batch are answered side by side: send the history, or ask alone")
		}
		return a.ask(c, r)
	}
	return &batch{a, l, recoverPanics(a.logger)(a.catalog.withPoints(l.bounded(withBody(one))))}
}

// ask replies with all answers. The first are sent while others are being answered, with
// line ends between them while none is ready, so that no proxy gives up.
func (b *batch) ask(c echo.Context) error {
	var r struct {
		Questions []json.RawMessage `json:"questions"`
	}
	if _, err := decode(c, &r); err != nil {
		return err
	}
	if n := len(r.Questions); n == 0 || n > maxBatchAsks {
		return invalidField("questions", "bad_batch", "there are %d questions: send 1 to %d", n, maxBatchAsks)
	}
	for i, q := range r.Questions {
		if q[0] != '{' {
			return invalidField("questions", "bad_batch", "questions[%d] is no object: send the body of POST /api/ask", i)
		}
	}
	ended := b.begin(c, r.Questions)
	w := c.Response()
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.Header().Set(echo.HeaderCacheControl, "no-store")
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	next := []byte(`{"answers":[`)
	for i := 0; i < len(ended); {
		if _, err := w.Write(next); err != nil {
			return readerGone(err)
		}
		w.Flush()
		select {
		case item := <-ended[i]:
			if i++; i < len(ended) {
				item = append(item, ',')
			}
			next = item
		case <-tick.C:
			next = []byte("\n")
		}
	}
	if _, err := w.Write(append(next, "]}\n"...)); err != nil {
		return readerGone(err)
	}
	return nil
}

// begin answers questions, a few at a time. Each channel gets a [batchItem] as JSON, also
// when the key has been revoked meanwhile or the client has gone.
func (b *batch) begin(c echo.Context, questions []json.RawMessage) []chan []byte {
	e, r, id := c.Echo(), c.Request(), c.Response().Header().Get(echo.HeaderXRequestID)
	ended := make([]chan []byte, len(questions))
	for i := range ended {
		ended[i] = make(chan []byte, 1)
	}
	go func() {
		slots := make(chan struct{}, max(1, min(batchParallel, cap(b.limiter.slots)/2)))
		for i, question := range questions {
			slots <- struct{}{}
			if err := context.Cause(r.Context()); err != nil {
				<-slots
				ended[i] <- encoded(batchItem{Error: b.problem(r.Context(), "question", err)})
				continue
			}
			go func() {
				defer func() { <-slots }()
				one := r.Clone(r.Context())
				one.Body = io.NopCloser(bytes.NewReader(question))
				one.Header.Del(echo.HeaderAccept)
				w := &heldReply{header: http.Header{echo.HeaderXRequestID: {id}}}
				ended[i] <- b.askOne(e.NewContext(one, w), w)
			}()
		}
	}()
	return ended
}

// askOne answers one question, and returns a [batchItem] as JSON.
func (b *batch) askOne(c echo.Context, w *heldReply) []byte {
	var item batchItem
	if err := b.one(c); err != nil {
		item.Error = b.problem(c.Request().Context(), "question", err)
		item.RetryAfter = item.Error.retryAfter.Milliseconds()
	} else {
		item.Answer = bytes.TrimSpace(w.Bytes())
	}
	item.Run = w.header.Get(runHeader)
	return encoded(item)
}

// A heldReply is a reply in memory.
type heldReply struct {
	header http.Header
	bytes.Buffer
}

func (w *heldReply) Header() http.Header { return w.header }
func (w *heldReply) WriteHeader(int)     {}
