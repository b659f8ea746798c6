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

// answering works on answers and summaries: it numbers their citations, measures
// them, streams them, records them, and resumes interrupted ones.
type answering struct {
	address
	citations cite.Options
	indexing  func() Indexing
	markdown  *markdown
	metrics   *Metrics
	logger    *slog.Logger

	live     *Answers
	ledger   retrieve.Ledger
	keep     time.Duration                 // how long records are kept; 0: there are none
	runEnded func(run, kind, state string) // may be nil

	fallback atomic.Pointer[string] // why the model did not give the last answer; nil if it did
}

// A task is a checked request for an answer or a summary.
type task struct {
	kind     string           // askKind or summaryKind
	request  any              // as it is stored
	record   bool             // false where the client wants no record
	once     bool             // its client cannot resume it: only its record is stored
	recorder *replay.Recorder // of the run to resume; nil to begin one
	events   func(context.Context, *replay.Recorder) iter.Seq2[answer.Event, error]
}

// storedRequest is what is stored of a request, to resume it.
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

// resume finds an interrupted run by its id and reads its request into r; nil
// without an id.
func resume[R any](c echo.Context, a *answering, kind, id string, r *R) (*replay.Recorder, error) {
	if id == "" {
		return nil, nil
	}
	var stored storedRequest
	recorder, err := replay.Resume(c.Request().Context(), a.ledger, kind, id, &stored)
	switch {
	case errors.Is(err, retrieve.ErrNotFound),
		err == nil && (stored.By != callerID(c) || stored.Request == nil): // another caller's, or an earlier version's
		return nil, runNotFound(id).withField("run")
	case err != nil:
		return nil, fmt.Errorf("looking for a run to resume: %w", err)
	}
	*r, err = decodeStored[R](stored.Request)
	return recorder, err
}

// beginRun begins the run of a task, or resumes it. The task is carried out even
// where it cannot be stored. The reply names the run.
func (a *answering) beginRun(c echo.Context, t task, background bool, cancel context.CancelCauseFunc) (*liveAnswer, error) {
	request, err := json.Marshal(t.request)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}
	ctx := c.Request().Context()
	if err := a.live.outcomes.wait(ctx, maxWaiting); err != nil {
		return nil, fmt.Errorf("waiting for the store: %w", err)
	}
	l := &liveAnswer{Record: retrieve.Record{Kind: t.kind, By: callerID(c), Spec: request, Started: time.Now()},
		httpID: c.Response().Header().Get(echo.HeaderXRequestID), keep: t.record, background: background, recorder: t.recorder, cancel: cancel}
	if l.recorder == nil && !t.once {
		l.recorder, err = replay.Begin(ctx, a.ledger, l.Kind, storedRequest{l.By, l.Spec})
		if err != nil && ctx.Err() == nil {
			a.logger.WarnContext(ctx, "an answer could not be stored: it cannot be resumed if it is interrupted", "error", err)
		}
	}
	if l.recorder != nil {
		l.ID = l.recorder.ID
		if err := a.claimRun(ctx, l.recorder, cancel); err != nil {
			return nil, err
		}
	} else if background || t.record && a.keep > 0 { // it cannot be resumed, but recorded
		l.ID = strings.ToLower(rand.Text()[:16])
	}
	if err := a.live.add(l); err != nil {
		if l.recorder != nil {
			err = errors.Join(err, l.recorder.Release(ctx))
			if t.recorder == nil {
				err = errors.Join(err, a.ledger.End(context.WithoutCancel(ctx), l.ID))
			}
		}
		return nil, err
	}
	if l.ID != "" && (l.recorder != nil || t.once) {
		c.Response().Header().Set(runHeader, l.ID)
	}
	return l, nil
}

// claimRun claims a run for this server. An attempt whose reader has just gone may be ending.
func (a *answering) claimRun(ctx context.Context, r *replay.Recorder, cancel context.CancelCauseFunc) error {
	if old := a.live.get(r.ID); old != nil {
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
	return problem(http.StatusConflict, "run_running", "the run %s is under way: GET /api/runs/%s follows it", id, id).withField("run")
}

// respond replies with the answer of a task: its events or, folded, one JSON
// object. It stops when the client goes.
func (a *answering) respond(c echo.Context, t task) error {
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
	whole, last, ended := a.runTask(ctx, l, t, a.citeOptions(c), out, nil)
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
		// Even when the context has ended: a server that shuts down says so.
		return errors.Join(err, out.send(last))
	}
	return err
}

// runTask carries out a task that has begun, and has the outcome stored. Its events go to
// each or, without that, to out, which may be nil. It returns the answer, the event
// about an error, and how the answer ended.
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
	// A stream that has lost its reader ended for that.
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

// forms are the text for clients that render it, in the forms that the query asks for.
type forms struct {
	// Markdown has links and the list of sources.
	Markdown string `json:"markdown,omitempty"`
	// HTML is sanitized; its numbers are without links, as in the event "block".
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
		out.render(a.markdown)
	}
	out.markdown = wantsMarkdown(c)
	out.points, _ = c.Get(pointsKey).(*codePoints)
	return out
}

// numberCitations numbers the citations of an answer. Every answer of the server passes
// through here, and is measured on its way.
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
				a.logger.ErrorContext(ctx, "sentences are quoted in place of an answer of the model", "reason", e.Reason, "error", e.Err)
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

// modelDetail says why the model did not give the last answer; empty if it did, or was
// not believed.
func (a *answering) modelDetail() string {
	reason := a.fallback.Load()
	if reason == nil || *reason == "model_untrusted" {
		return ""
	}
	detail := "the model gave no answer to the last question (" + *reason + "): sentences are quoted instead"
	switch *reason {
	case "model_window":
		detail += "; the prompt is longer than its context window: set --context-tokens to the window, lower --top-k, " +
			"or use a model with a larger one"
	case "model_rejected":
		detail += "; its server refused the key, the model's name or the request: the log says which; " +
			"key and name are set on the page Settings, or with --api-key-file (or OPENAI_API_KEY) and --model"
	}
	return detail
}

// citeOptions returns how to cite, with links to the viewer below the client's address.
func (a *answering) citeOptions(c echo.Context) cite.Options { return a.citeOptionsAt(a.base(c)) }

// citeOptionsAt is citeOptions with links below an address; without links if it is empty.
func (a *answering) citeOptionsAt(base string) cite.Options {
	o := a.citations
	if base != "" {
		o.Link = func(p retrieve.Passage, start, end int) string { return QuoteLink(base, p, start, end) }
	}
	return o
}

// collectEvents reads an answer's events to their end. Each goes into the log and then
// to send, which may be nil; the last is "done".
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
	var places []cite.Placed // of the next text
	whole, err := cite.Collect(tee(events, func(e answer.Event) error {
		l.noteDocuments(e)
		switch e := e.(type) {
		case answer.Kept, answer.Stepped, answer.Verified, cite.Unsupported:
			return nil // not for clients, or in the object of the event "done"
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
		whole.Incomplete, whole.Reason, err = true, "the client asked for no more tokens", nil
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
	// Places are where it has printed numbers of sources, in bytes of the whole text.
	// They are there if it has a "[": another [1] is the model's own, as in code.
	Places []cite.Placed `json:"places,omitzero"`
}

// tee passes events on after each; its error ends the stream and the work on it.
func tee(events iter.Seq2[answer.Event, error], each func(answer.Event) error) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			if err == nil {
				err = each(e)
			}
			if errors.Is(err, errEnough) && !yield(e, nil) { // the client has a part of it
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
	return problem(statusClientGone, "reader_gone", "the reader has closed the connection").withCause(err)
}

// endReason replaces the error of a canceled answer by the reason for it.
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
		return problem(http.StatusConflict, "run_stopped", "the answer was stopped before its end: resume its run, or ask again").withCause(err)
	}
	if ended := causeOf(ctx, err); ended != nil {
		ended.cause = err
		return ended
	}
	return err
}

// problemIn returns an error inside a request as its client gets it; it is counted and logged.
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
