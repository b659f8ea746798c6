package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/answer/replay"
	"ibid/cite"
	"ibid/retrieve"
)

// answering produces answers and summaries: it numbers their citations, measures
// them, streams them, records them, and resumes interrupted ones.
type answering struct {
	address   address
	citations cite.Options
	indexing  func() Indexing
	markdown  *markdown
	metrics   *Metrics
	logger    *slog.Logger

	records  *recordStore
	runEnded func(run, kind, state string) // may be nil

	fallback atomic.Pointer[string] // why the model did not write the last answer; nil if it did
}

// A task is a checked request for an answer or a summary.
type task struct {
	kind     string           // askKind or summaryKind
	request  any              // as stored
	record   bool             // false if the client wants no record
	once     bool             // the client cannot resume it, so only its record is stored
	recorder *replay.Recorder // of the run to resume; nil for a new run
	events   func(context.Context, *replay.Recorder) iter.Seq2[answer.Event, error]
}

// storedRequest is the stored form of a request, used to resume it.
type storedRequest struct {
	By      string          `json:"by,omitempty"`
	Request json.RawMessage `json:"request"`
}

const (
	// runHeader has the id of the run that a reply belongs to.
	runHeader = "Ibid-Run"
	// endingTime is how long resuming waits for an earlier attempt to end.
	endingTime = 2 * time.Second
)

// resume finds an interrupted run by its id and reads its request into r. It returns nil if
// the id is empty.
func resume[R any](c echo.Context, a *answering, kind, id string, r *R) (*replay.Recorder, error) {
	if id == "" {
		return nil, nil
	}
	var stored storedRequest
	recorder, err := replay.Resume(c.Request().Context(), a.records.ledger, kind, id, &stored)
	switch {
	case errors.Is(err, retrieve.ErrNotFound),
		err == nil && (stored.By != callerID(c) || stored.Request == nil): // another caller's, or stored by an earlier version
		return nil, runNotFound(id).withField("run")
	case err != nil:
		return nil, fmt.Errorf("finding the run to resume: %w", err)
	}
	*r, err = decodeStored[R](stored.Request)
	return recorder, err
}

// beginRun begins or resumes the run of a task, and names it in the header of the reply. If
// the run cannot be stored, the task is still carried out.
func (a *answering) beginRun(c echo.Context, t task, background bool, cancel context.CancelCauseFunc) (*liveAnswer, error) {
	request, err := json.Marshal(t.request)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}
	ctx := c.Request().Context()
	if err := a.records.live.waitStored(ctx, maxUnstored); err != nil {
		return nil, fmt.Errorf("waiting for the store: %w", err)
	}
	l := &liveAnswer{Record: retrieve.Record{Kind: t.kind, By: callerID(c), Spec: request, Started: time.Now()},
		httpID: c.Response().Header().Get(echo.HeaderXRequestID), keep: t.record, background: background, recorder: t.recorder, cancel: cancel}
	if l.recorder == nil && !t.once {
		l.recorder, err = replay.Begin(ctx, a.records.ledger, l.Kind, storedRequest{l.By, l.Spec})
		if err != nil && ctx.Err() == nil {
			a.logger.WarnContext(ctx, "an answer could not be stored, so it cannot be resumed after an interruption", "error", err)
		}
	}
	if l.recorder != nil {
		l.ID = l.recorder.ID
		if err := a.claimRun(ctx, l.recorder, cancel); err != nil {
			return nil, err
		}
	} else if background || t.record && a.records.keep > 0 { // it is recorded, but cannot be resumed
		l.ID = strings.ToLower(rand.Text()[:16])
	}
	if err := a.records.live.add(l); err != nil {
		if l.recorder != nil {
			err = errors.Join(err, l.recorder.Release(ctx))
			if t.recorder == nil {
				err = errors.Join(err, a.records.ledger.End(context.WithoutCancel(ctx), l.ID))
			}
		}
		return nil, err
	}
	if l.ID != "" && (l.recorder != nil || t.once) {
		c.Response().Header().Set(runHeader, l.ID)
	}
	return l, nil
}

// claimRun claims a run for this server. It gives an earlier attempt, whose client may have just
// disconnected, a moment to end.
func (a *answering) claimRun(ctx context.Context, r *replay.Recorder, cancel context.CancelCauseFunc) error {
	if old := a.records.live.get(r.ID); old != nil {
		last, done := context.WithTimeout(ctx, endingTime)
		defer done()
		if err := old.waitSettled(last); err != nil {
			return runUnderWay(r.ID)
		}
	}
	err := r.HoldJob(ctx, cancel)
	if held := (*retrieve.HeldError)(nil); errors.As(err, &held) {
		return runUnderWay(r.ID).withRetryAfter(held.Left + time.Second)
	}
	if errors.Is(err, retrieve.ErrNotFound) {
		return runNotFound(r.ID).withField("run")
	}
	return err
}

func runUnderWay(id string) *Problem {
	return problem(http.StatusConflict, "run_running", "the run %s is in progress: GET /api/runs/%s follows it", id, id).withField("run")
}

// respond replies with the events of a task or with one JSON object. If err is set, it only
// returns err. It stops when the client disconnects.
func (a *answering) respond(c echo.Context, t task, err error) error {
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(c.Request().Context())
	defer cancel(nil)
	l, err := a.beginRun(c, t, false, cancel)
	if err != nil {
		return err
	}
	var out *eventStream
	if wantsEvents(c.Request()) {
		out = a.openStream(c, cancel)
		defer out.close()
	}
	whole, last, ended := a.runTask(ctx, l, t, a.citeOptions(a.address.base(c)), out, nil)
	switch {
	case ended == nil && out == nil:
		if whole.forms, err = a.formsOf(c, whole.Answer); err != nil {
			return err
		}
		return reply(c, http.StatusOK, whole)
	case ended == nil || out.failure() != nil:
		return ended
	}
	err = fmt.Errorf("answering: %w", ended)
	if out.hasBegun() {
		// The event is sent even if the context has ended, so that a shutdown is reported.
		return errors.Join(err, out.send(last))
	}
	return err
}

// runTask carries out a task that has begun, and queues its outcome for the store. It passes
// the events to each if that is not nil, else to out, which may be nil. It returns the
// answer, the last event if the task failed, and the error that ended it.
func (a *answering) runTask(ctx context.Context, l *liveAnswer, t task, citing cite.Options, out *eventStream,
	each func(answer.Event) error) (whole answered, last event, ended error) {
	ended = errPanicked
	defer func() {
		if ended == errPanicked {
			l.markEnded(ctx, ended)
		}
		a.storeLater(ctx, l, ended)
	}()
	events := withQueue(ctx, func(ctx context.Context) iter.Seq2[answer.Event, error] {
		return a.numberCitations(ctx, t.kind, answer.Watch(l.recorder, t.events(ctx, l.recorder)), citing)
	})
	if each != nil {
		events = tee(events, each)
	}
	var send func(event) error
	if each == nil && out != nil {
		send = out.send
	}
	whole, err := a.collectEvents(l, events, send)
	// If a write failed, the answer ended because its client disconnected.
	if failed := out.failure(); failed != nil {
		ended = readerGone(failed)
		l.cancel(ended)
	} else {
		ended = l.endReason(ctx, err)
	}
	return whole, l.markEnded(ctx, ended), ended
}

func wantsMarkdown(c echo.Context) bool { return c.QueryParam("markdown") == "1" }
func wantsHTML(c echo.Context) bool     { return c.QueryParam("html") == "1" }

// forms has the answer's text in the rendered forms that the query asks for.
type forms struct {
	// Markdown has links and a list of sources.
	Markdown string `json:"markdown,omitempty"`
	// HTML is sanitized. Its numbers have no links, as in the event "block".
	HTML string `json:"html,omitempty"`
}

func (a *answering) formsOf(c echo.Context, whole cite.Answer) (f forms, err error) {
	if wantsMarkdown(c) {
		f.Markdown = asMarkdown(whole, true)
	}
	if wantsHTML(c) {
		f.HTML, err = a.markdown.renderAnswer(whole)
	}
	return f, err
}

// openStream opens a stream of events, with HTML and Markdown if the query asks for them.
func (a *answering) openStream(c echo.Context, cancel context.CancelCauseFunc) *eventStream {
	out := newEventStream(c.Response(), cancel)
	if wantsHTML(c) {
		out.page = &pageStream{markdown: a.markdown, answer: newRendering(a.markdown, 0), write: out.writeEvent}
	}
	out.markdown = wantsMarkdown(c)
	out.points, _ = c.Get(pointsKey).(*codePoints)
	return out
}

// numberCitations numbers the citations of an answer. All answers of the server pass through
// it, so it also counts them for the metrics.
func (a *answering) numberCitations(ctx context.Context, kind string, events iter.Seq2[answer.Event, error],
	o cite.Options) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		outcome := "answered"
		defer func() {
			if ctx.Err() != nil {
				outcome = "canceled"
			}
			a.metrics.answers.WithLabelValues(kindName(kind), outcome).Inc()
		}()
		events := tee(events, func(e answer.Event) error {
			switch e := e.(type) {
			case answer.Fallback:
				outcome = "fallback"
				a.fallback.Store(&e.Reason)
				a.logger.ErrorContext(ctx, "sentences are quoted instead of an answer by the model", "reason", e.Reason, "error", e.Err)
			case answer.Stepped:
				if e.Changed {
					a.fallback.Store(nil)
				}
			case answer.Incomplete:
				outcome = "incomplete"
			case answer.Unanswered:
				outcome = "refused"
			}
			return nil
		})
		for e, err := range cite.Number(events, o) {
			if err != nil {
				outcome = "failed"
			}
			if !yield(e, err) && err == nil {
				outcome = "canceled"
			}
			if outcome == "canceled" || outcome == "failed" {
				return
			}
		}
	}
}

// modelDetail says why the model did not write the last answer, or why its answer was not
// used; "" if it was.
func (a *answering) modelDetail() string {
	reason := a.fallback.Load()
	if reason == nil || *reason == "model_untrusted" {
		return ""
	}
	detail := "the model failed on the last question (" + *reason + "): sentences are quoted instead"
	switch *reason {
	case "model_window":
		detail += "; the prompt is longer than its context window: set --context-tokens to that window, lower --top-k, " +
			"or use a model with a larger one"
	case "model_rejected":
		detail += "; its server rejected the key, the model's name or the request: the log says which; " +
			"set the key and the name on the page Settings, or with --api-key-file (or OPENAI_API_KEY) and --model"
	}
	return detail
}

// citeOptions returns the options for citing, with links to the viewer below base, or without
// links if it is empty.
func (a *answering) citeOptions(base string) cite.Options {
	o := a.citations
	if base != "" {
		o.Link = func(p retrieve.Passage, start, end int) string { return QuoteLink(base, p, start, end) }
	}
	return o
}

// collectEvents reads all events of an answer. It adds each to the log and passes it to send,
// which may be nil; the last is "done".
func (a *answering) collectEvents(l *liveAnswer, events iter.Seq2[answer.Event, error], send func(event) error) (answered, error) {
	pass := func(kind string, v any) error {
		if l.ID == "" && send == nil {
			return nil
		}
		e, err := l.addEvent(kind, v)
		if err == nil && send != nil {
			err = send(e)
		}
		return err
	}
	var places []cite.Placed // in the next text
	whole, err := cite.Collect(tee(events, func(e answer.Event) error {
		l.noteDocuments(e)
		switch e := e.(type) {
		case answer.Kept, answer.Stepped, answer.Verified, cite.Unsupported:
			return nil // internal, or part of the event "done"
		case cite.Placed:
			places = append(places, e)
			return nil
		case answer.Text:
			t := textEvent{Text: e, Places: places}
			if places = nil; t.Places == nil && strings.Contains(e.Text, "[") {
				t.Places = []cite.Placed{}
			}
			return pass(e.Kind(), t)
		}
		return pass(e.Kind(), e)
	}))
	if l.stoppedByClient = errors.Is(err, errEnough); l.stoppedByClient {
		whole.Incomplete, whole.Reason, err = true, "the client's token limit is reached", nil
	}
	l.incomplete = whole.Incomplete
	reply := answered{Answer: whole, Indexing: a.indexing()}
	if err == nil {
		err = pass("done", reply)
	}
	return reply, err
}

// A textEvent is the next piece of the answer.
type textEvent struct {
	answer.Text
	// Places are the byte ranges of the sources' numbers in the whole text. They
	// are present if the piece contains "[", because a [1] at any other place is the model's
	// own, for example in code.
	Places []cite.Placed `json:"places,omitzero"`
}

// tee calls each with every event and passes the event on. An error of each ends the stream.
func tee(events iter.Seq2[answer.Event, error], each func(answer.Event) error) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			if err == nil {
				err = each(e)
			}
			if errors.Is(err, errEnough) && !yield(e, nil) { // the client already has part of the event
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func readerGone(err error) *Problem {
	return problem(statusClientGone, "reader_gone", "the client closed the connection").withCause(err)
}

// endReason replaces the error of a canceled answer with the cause of the cancellation.
func (l *liveAnswer) endReason(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if held := (*retrieve.HeldError)(nil); errors.As(cause, &held) {
		return problem(http.StatusConflict, "run_taken",
			"another server has resumed the run: GET /api/runs/%s follows it there", l.ID).withCause(errors.Join(cause, err))
	}
	if errors.Is(cause, errStopped) {
		return problem(http.StatusConflict, "run_stopped",
			"the answer was stopped before it was complete: resume its run, or ask again").withCause(err)
	}
	if ended := causeOf(ctx, err); ended != nil {
		ended.cause = err
		return ended
	}
	return err
}

// problemIn converts, counts and logs an error that occurred inside a request.
func (a *answering) problemIn(ctx context.Context, where string, err error) *Problem {
	p := problemFor(err)
	if ended := causeOf(ctx, err); ended != nil {
		p = ended
	}
	a.metrics.problems.WithLabelValues(p.Code).Inc()
	if p.Status >= 500 {
		a.logger.LogAttrs(ctx, slog.LevelError, where, slog.String("code", p.Code), slog.String("error", err.Error()))
	}
	return p.forClient(requestIDFrom(ctx))
}
