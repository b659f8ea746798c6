package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/retrieve"
)

// runHandlers serves the records of answers and summaries at /api/runs. POST /api/ask and
// POST /api/summarize also begin runs, which end when their reader disconnects. If keys are
// in use, other keys see a record only after PUT …/shared.
type runHandlers struct {
	asking    *asking
	answering *answering
	records   *recordStore
	keys      *keyring // nil if no keys are in use
}

// A recordStore finds and deletes the records of answers and summaries, in progress or ended.
type recordStore struct {
	library Library
	live    *Answers
	ledger  retrieve.Ledger
	keep    time.Duration // how long records are kept; 0: not at all
}

// callerID returns the id of the caller's key, or "" if no keys are in use.
func callerID(c echo.Context) string {
	if caller := holderFrom(c.Request().Context()); caller != nil {
		return caller.key.ID
	}
	return ""
}

// A runRequest is the body of POST /api/runs: the members of POST /api/ask, or in Summarize
// those of POST /api/summarize. Run resumes either kind.
type runRequest struct {
	askRequest
	Summarize *summarizeRequest `json:"summarize,omitempty"`
}

// An answerRecord is the record of an answer or summary, in progress or ended.
type answerRecord struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"` // "ask" or "summarize"
	State    string `json:"state"`
	Question string `json:"question,omitempty"`
	// Request is the body of the request that began it.
	Request json.RawMessage `json:"request"`
	Started time.Time       `json:"started"`
	Ended   *time.Time      `json:"ended,omitempty"`
	// Resumable means that a request with {"run": ID} resumes it.
	Resumable bool `json:"resumable"`
	// Sources is the worst state of its sources. It is set only in a list with ?states=.
	Sources quoteState `json:"sources,omitempty"`
	// Shared means that other keys see it if they may see all its documents.
	Shared bool `json:"shared"`
	// Answer is the data of the event "done", and Error of the event "error".
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
	forms
	Events string `json:"events"` // address of the record and its events
	URL    string `json:"url"`    // address of the page with the answer

	log    []event
	by     string // id of the caller's key
	worker string // process on another server that works on it
}

// recordOf returns a record with the events of its answer so far, or without events.
func recordOf(r retrieve.Record, log []event) *answerRecord {
	record := &answerRecord{by: r.By, Shared: r.Shared, ID: r.ID, Kind: kindName(r.Kind), State: r.State, Request: r.Spec, Started: r.Started,
		Question: strings.TrimSpace(storedQuestion(r.Spec).Question), log: log}
	if !r.Ended.IsZero() {
		record.Ended = &r.Ended
	}
	if n := len(log); n > 0 {
		switch last := log[n-1]; last.kind {
		case "done":
			record.Answer = last.data
		case "error":
			record.Error = last.data
		}
	}
	return record
}

func recordWithEvents(stored retrieve.Record) (*answerRecord, error) {
	log, err := unpackEvents(stored.Events)
	return recordOf(stored, log), err
}

func kindName(kind string) string {
	if kind == summaryKind {
		return "summarize"
	}
	return "ask"
}

func (r *answerRecord) setAddresses(base string) {
	r.Events, r.URL = base+"/api/runs/"+r.ID, base+"/?run="+r.ID
}

func (r *runHandlers) begin(c echo.Context, request runRequest) error {
	t, err := r.taskOf(c, request)
	if err != nil {
		return err
	}
	ctx, done := context.WithoutCancel(c.Request().Context()), func() {}
	if r.keys != nil {
		ctx, done = r.keys.withRevocation(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l, err := r.answering.beginRun(c, t, true, cancel)
	if err != nil {
		cancel(nil)
		done()
		return err
	}
	s := c.Get(slotKey).(*slot) // the run holds it until its end
	release := s.release
	s.release = func() {}
	record, citing := l.snapshot(), r.answering.citeOptions(r.answering.address.base(c))
	go func() {
		defer r.records.live.background.Done()
		defer func() {
			cancel(nil)
			done()
			release()
			if v := recover(); v != nil {
				r.answering.logger.LogAttrs(ctx, slog.LevelError, "panic", slog.String("run", l.ID),
					slog.Any("error", v), slog.String("stack", string(debug.Stack())))
			}
		}()
		_, _, err := r.answering.runTask(ctx, l, t, citing, nil, nil)
		r.logRun(ctx, l, err)
	}()
	record.setAddresses(r.answering.address.base(c))
	c.Response().Header().Set(runHeader, record.ID)
	c.Response().Header().Set(echo.HeaderLocation, record.Events)
	return reply(c, http.StatusAccepted, record)
}

// logRun logs how a run in the background ended.
func (r *runHandlers) logRun(ctx context.Context, l *liveAnswer, err error) {
	attrs := []slog.Attr{slog.String("run", l.ID), slog.Int64("took_ms", time.Since(l.Started).Milliseconds())}
	if l.By != "" {
		attrs = append(attrs, slog.String("key", l.By))
	}
	level := slog.LevelInfo
	if err != nil {
		p := problemFor(err)
		attrs = append(attrs, slog.String("code", p.Code))
		if p.Status >= 500 {
			level = slog.LevelError
			attrs = append(attrs, slog.String("error", err.Error()))
		}
	}
	r.answering.logger.LogAttrs(ctx, level, "run", attrs...)
}

func (r *runHandlers) taskOf(c echo.Context, request runRequest) (task, error) {
	if request.Summarize != nil {
		if request.Summarize.Record == nil {
			request.Summarize.Record = request.Record
		}
		return r.asking.summaryTask(c, *request.Summarize)
	}
	if request.Run != "" {
		stored, err := r.records.ledger.Job(c.Request().Context(), request.Run)
		if err != nil && !errors.Is(err, retrieve.ErrNotFound) {
			return task{}, fmt.Errorf("finding the run to resume: %w", err)
		}
		if stored.Kind == summaryKind {
			return r.asking.summaryTask(c, summarizeRequest{Run: request.Run, Record: request.Record})
		}
	}
	return r.asking.askTask(c, request.askRequest)
}

func runNotFound(id string) *Problem {
	return problem(http.StatusNotFound, "run_not_found",
		"there is no run %.40q to read or resume: it has no record, or its record has expired", id)
}

func runElsewhere(r *answerRecord) *Problem {
	return problem(http.StatusConflict, "run_elsewhere",
		"another server works on the run (%s): follow or stop it there, or read its record here after it has ended",
		retrieve.DescribeWorker(r.worker)).withRetryAfter(time.Second)
}

// find returns the record of a run, and the live answer if this server has it in memory.
func (s *recordStore) find(c echo.Context, id string) (*liveAnswer, *answerRecord, error) {
	if l := s.live.get(id); l != nil {
		if l.By != callerID(c) {
			return nil, nil, runNotFound(id)
		}
		return l, l.snapshot(), nil
	}
	ctx := c.Request().Context()
	unfinished, err := s.findUnfinished(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	mine := unfinished != nil && unfinished.by == callerID(c)
	if mine && unfinished.worker != "" {
		return nil, unfinished, nil
	}
	stored, err := s.loadRecord(ctx, id)
	if mine && isProblem(err, "run_not_found") {
		return nil, unfinished, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if stored.By != callerID(c) {
		visible, err := s.isVisible(ctx, stored)
		if err != nil {
			return nil, nil, fmt.Errorf("checking the documents of a record: %w", err)
		}
		if !visible {
			return nil, nil, runNotFound(id)
		}
	}
	record, err := recordWithEvents(stored)
	record.Resumable = unfinished != nil && record.by == callerID(c)
	return nil, record, err
}

// loadRecord returns a record from the store.
func (s *recordStore) loadRecord(ctx context.Context, id string) (retrieve.Record, error) {
	record, err := s.ledger.Record(ctx, id)
	switch {
	case errors.Is(err, retrieve.ErrNotFound):
		return record, runNotFound(id)
	case err != nil:
		return record, fmt.Errorf("reading a record: %w", err)
	}
	return record, nil
}

// findUnfinished returns the record of a run that has not ended, or nil.
func (s *recordStore) findUnfinished(ctx context.Context, id string) (*answerRecord, error) {
	stored, err := s.ledger.Job(ctx, id)
	switch {
	case errors.Is(err, retrieve.ErrNotFound), err == nil && stored.Kind != askKind && stored.Kind != summaryKind:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading a run: %w", err)
	}
	request, err := decodeStored[storedRequest](stored.Spec)
	if err != nil || request.Request == nil {
		return nil, err
	}
	record := recordOf(retrieve.Record{ID: id, Kind: stored.Kind, By: request.By, Spec: request.Request, State: stateInterrupted,
		Started: stored.Started}, nil)
	record.Resumable, record.worker = stored.Worker == "", stored.Worker
	if record.worker != "" {
		record.State = stateRunning
	}
	return record, nil
}

// isVisible reports whether the caller may see another caller's record. It must be shared,
// and the caller must be allowed to see the folders of all documents that it quotes.
func (s *recordStore) isVisible(ctx context.Context, record retrieve.Record) (bool, error) {
	if !record.Shared {
		return false, nil
	}
	for _, d := range record.Documents {
		root, _, _ := strings.Cut(d, "/") // the root still exists if the file was deleted
		if found, err := s.library.Holds(ctx, retrieve.Filter{Root: root}); err != nil || !found {
			return false, err
		}
	}
	return true, nil
}

// show replies with the record of a run, or with its events.
func (r *runHandlers) show(c echo.Context) error {
	l, record, err := r.records.find(c, c.Param("id"))
	if err != nil {
		return err
	}
	if wantsEvents(c.Request()) {
		return r.followRun(c, l, record)
	}
	return r.replyRecord(c, record)
}

func (r *runHandlers) replyRecord(c echo.Context, record *answerRecord) error {
	record.setAddresses(r.answering.address.base(c))
	if record.Answer != nil {
		whole, err := decodeStored[answered](record.Answer)
		if err == nil && record.Ended != nil {
			err = (&renames{catalog: r.asking.catalog}).setStates(c.Request().Context(), &whole.Answer)
		}
		if err == nil {
			record.forms, err = r.answering.formsOf(c, whole.Answer)
		}
		if err != nil {
			return err
		}
		record.Answer = mustEncode(whole)
	}
	return reply(c, http.StatusOK, record)
}

// followRun sends the events of a run that the reader does not have yet, and new events as
// they occur. If the run has ended and the reader has all its events, it replies with 204,
// which stops browsers from reconnecting.
func (r *runHandlers) followRun(c echo.Context, l *liveAnswer, record *answerRecord) error {
	after := func(n int) ([]event, bool, <-chan struct{}) { return record.log[n:], false, nil }
	switch {
	case l != nil:
		after = l.eventsAfter
	case record.worker != "":
		return runElsewhere(record)
	case record.State == stateInterrupted:
		return problem(http.StatusConflict, "run_interrupted",
			`the run was interrupted when its server stopped: POST /api/runs with {"run": %q} resumes it`, record.ID)
	}
	log, more, _ := after(0)
	last := c.Request().Header.Get("Last-Event-ID")
	seen := 1 + slices.IndexFunc(log, func(e event) bool { return last != "" && e.id == last })
	if !more && seen == len(log) {
		return c.NoContent(http.StatusNoContent)
	}
	return r.sendEvents(c, log[:seen], seen == len(log), after)
}

// sendEvents sends all events after seen. If the reader has to wait, it first sends a
// comment.
func (r *runHandlers) sendEvents(c echo.Context, seen []event, wait bool, after func(n int) ([]event, bool, <-chan struct{})) error {
	ctx, cancel := context.WithCancelCause(c.Request().Context())
	defer cancel(nil)
	out := r.answering.openStream(c, cancel)
	defer out.close()
	err := out.sendBlocks(seen)
	if err == nil && wait {
		err = out.write([]byte(": following\n\n"))
	}
	if err != nil {
		return readerGone(err)
	}
	for n := len(seen); ; {
		news, more, changed := after(n)
		for _, e := range news {
			if err := out.send(e); err != nil {
				return readerGone(err)
			}
		}
		if n += len(news); !more {
			return nil
		}
		if ctx.Err() != nil {
			if failed := out.failure(); failed != nil {
				return readerGone(failed)
			}
			return fmt.Errorf("following a run: %w", ctx.Err())
		}
		select {
		case <-changed:
		case <-ctx.Done(): // a shutdown also ends the runs, and their last events are sent
		}
	}
}

// A runList is the reply of GET /api/runs.
type runList struct {
	Runs []*answerRecord `json:"runs"`
	More bool            `json:"more"`
}

// list lists the caller's records, newest first: at most ?limit= that began before the record
// in ?after=. With ?states= it checks the state of their sources.
func (r *runHandlers) list(c echo.Context) error {
	limit, err := limitOf(c, 50, 1, 500)
	if err != nil {
		return err
	}
	list, names := runList{Runs: []*answerRecord{}}, renames{catalog: r.asking.catalog}
	ctx, after := c.Request().Context(), c.QueryParam("after")
	for stored, err := range r.records.list(ctx, callerID(c)) {
		if err != nil {
			return err
		}
		if after != "" {
			if stored.ID == after {
				after = ""
			}
			continue
		}
		if list.More = len(list.Runs) == limit; list.More {
			break
		}
		record := recordOf(stored, nil)
		record.setAddresses(r.answering.address.base(c))
		if c.QueryParams().Has("states") {
			if record.Sources, err = names.sourcesState(ctx, r.records.ledger, stored.ID); err != nil {
				return err
			}
		}
		list.Runs = append(list.Runs, record)
	}
	if after != "" {
		return runNotFound(after)
	}
	return reply(c, http.StatusOK, list)
}

// limitOf returns ?limit=, which must be from least to most, or usual if it is missing.
func limitOf(c echo.Context, usual, least, most int) (int, error) {
	sent, ok := c.QueryParams()["limit"]
	if !ok {
		return usual, nil
	}
	n, err := strconv.Atoi(sent[0])
	if err != nil || len(sent) > 1 || n < least || n > most {
		return 0, invalid("bad_limit", "limit is %.40q: give one number from %d to %d", strings.Join(sent, ", "), least, most)
	}
	return n, nil
}

// stop stops a run in progress. With ?forget=true it also deletes its record.
func (r *runHandlers) stop(c echo.Context) error {
	id, ctx := c.Param("id"), c.Request().Context()
	l, record, err := r.records.find(c, id)
	switch {
	case err != nil:
		return err
	case record.by != callerID(c):
		return runNotFound(id)
	case record.worker != "":
		return runElsewhere(record)
	case l != nil:
		l.cancel(errStopped)
		if err := l.waitSettled(ctx); err != nil {
			return fmt.Errorf("stopping a run: %w", err)
		}
		record = l.snapshot()
	}
	if c.QueryParam("forget") != "true" {
		return r.replyRecord(c, record)
	}
	return sendNoContent(c, r.records.forget(ctx, id, l))
}

// forget deletes a run that has ended from the store and from memory. The key's log still lists
// the run, without texts.
func (s *recordStore) forget(ctx context.Context, id string, l *liveAnswer) error {
	if l != nil {
		s.live.remove(l)
	}
	ctx = context.WithoutCancel(ctx)
	stored, err := s.ledger.Record(ctx, id)
	switch {
	case errors.Is(err, retrieve.ErrNotFound), err == nil && stored.By == "":
		err = s.ledger.ForgetRecord(ctx, id)
	case err == nil:
		err = s.ledger.KeepRecord(ctx, retrieve.Record{ID: id, Kind: stored.Kind, By: retrieve.DeletedBy(stored.By), State: stored.State,
			Started: stored.Started, Ended: stored.Ended, Expires: stored.Expires, Spec: []byte("{}"), Events: []byte{}})
	}
	if err = errors.Join(err, s.ledger.End(ctx, id)); err != nil {
		return fmt.Errorf("deleting a run: %w", err)
	}
	return nil
}

func (r *runHandlers) share(c echo.Context) error {
	id, ctx := c.Param("id"), c.Request().Context()
	l, record, err := r.records.find(c, id)
	switch {
	case err != nil:
		return err
	case record.State == stateRunning:
		return runUnderWay(id)
	case record.by != callerID(c):
		return runNotFound(id)
	case l != nil: // it has ended, but its record is not stored yet
		if err := l.waitSettled(ctx); err != nil {
			return fmt.Errorf("waiting for a record: %w", err)
		}
	}
	stored, err := r.records.loadRecord(ctx, id)
	if err == nil && stored.Shared != (c.Request().Method == http.MethodPut) {
		stored.Shared = !stored.Shared
		err = r.records.ledger.KeepRecord(ctx, stored)
	}
	return sendNoContent(c, err)
}
