package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/cite"
	"ibid/retrieve"
)

// A run is one answer or summary: its id, what came of it, and where it broke
// off its resumption. These are the routes:
//
//	POST   /api/runs      begins one in the background; 202 with its id
//	GET    /api/runs      those of the caller that were kept, newest first
//	GET    /api/runs/ID   the record; or its events, from the first on or after
//	                      Last-Event-ID, with Accept: text/event-stream
//	DELETE /api/runs/ID   stops it; with ?forget=true nothing is kept of it
//	PUT    /api/runs/ID/shared   lets others see its record, DELETE nobody again
//
// POST /api/ask and POST /api/summarize are runs too: their header Ibid-Run is
// the id, under which the answer can be shown again once it has ended, unless
// the request says {"record": false}. They end with their reader; one in the
// background goes on for [patience] without any. To share an answer is to share
// the address that the record has as "url", the home page with ?run=ID, and where
// keys are in use to PUT …/shared first.

// routeRuns enters the routes of runs.
func (s *server) routeRuns(e *echo.Echo, get func(string, echo.HandlerFunc)) {
	e.POST("/api/runs", s.beginRun)
	get("/api/runs", s.listRuns)
	get("/api/runs/:id", s.showRun)
	e.DELETE("/api/runs/:id", s.stopRun)
	e.PUT("/api/runs/:id/shared", s.shareRun)
	e.DELETE("/api/runs/:id/shared", s.shareRun)
}

// caller is who sends a request, as runs and feedback know it; empty where
// nobody is told from another.
func caller(c echo.Context) string {
	if who := holderFrom(c.Request().Context()); who != nil {
		return who.key.ID
	}
	return ""
}

// runRequest is the body of POST /api/runs: that of POST /api/ask, or that of
// POST /api/summarize in a member of its own. Run takes up either.
type runRequest struct {
	askRequest
	Summarize *summarizeRequest `json:"summarize,omitempty"`
}

// begunRun is the reply to POST /api/runs.
type begunRun struct {
	ID     string `json:"id"`
	Events string `json:"events"` // address of the record and its events
	URL    string `json:"url"`    // address of the page that shows it
}

// A runRecord is what is known of a run.
type runRecord struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"` // "ask" or "summarize"
	State    string `json:"state"`
	Question string `json:"question,omitempty"`
	// Request is the body it was asked for with.
	Request json.RawMessage `json:"request"`
	Started time.Time       `json:"started"`
	Ended   *time.Time      `json:"ended,omitempty"`
	// Resumable says that {"run": ID} goes on with it.
	Resumable bool `json:"resumable"`
	// Shared says that other keys see it as well which reach all its documents.
	Shared bool `json:"shared"`
	// Answer is the data of its event done, Error that of its event error.
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
	Events string          `json:"events"`
	URL    string          `json:"url"`

	log    []event
	by     string
	worker string // process that works on it, at another server
}

func kindName(kind string) string {
	if kind == summaryKind {
		return "summarize"
	}
	return "ask"
}

func (s *server) runAddress(c echo.Context, id string) (events, page string) {
	return s.base(c) + "/api/runs/" + id, s.base(c) + "/?run=" + id
}

// beginRun begins a run in the background.
func (s *server) beginRun(c echo.Context) error {
	release, err := s.acquire(c)
	if err != nil {
		return err
	}
	begun := false
	defer func() {
		if !begun {
			release()
		}
	}()
	var r runRequest
	if err := decode(c, &r); err != nil {
		return err
	}
	t, err := s.runTask(c, r)
	if err != nil {
		return err
	}
	ctx, done := context.WithoutCancel(c.Request().Context()), func() {}
	if s.keys != nil {
		ctx, done = s.keys.while(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l, err := s.begin(c, t, true, cancel)
	if err != nil {
		cancel(err)
		done()
		return err
	}
	begun = true
	citing := s.citing(c)
	go func() {
		defer s.Runs.work.Done()
		defer release()
		defer done()
		defer cancel(nil)
		s.conduct(ctx, l, t, citing)
	}()
	told := begunRun{ID: l.id}
	told.Events, told.URL = s.runAddress(c, l.id)
	c.Response().Header().Set(runHeader, l.id)
	c.Response().Header().Set(echo.HeaderLocation, told.Events)
	return reply(c, http.StatusAccepted, told)
}

// conduct works on a run in the background. Trouble that no reader is told of goes to the log.
func (s *server) conduct(ctx context.Context, l *liveRun, t task, citing cite.Options) {
	ended := errPanicked
	defer func() {
		if r := recover(); r != nil {
			s.Logger.LogAttrs(ctx, slog.LevelError, "panic", slog.String("run", l.id),
				slog.Any("error", r), slog.String("stack", string(debug.Stack())))
			l.end(ctx, ended)
		}
		if err := s.settle(ctx, l, ended); err != nil {
			s.Logger.WarnContext(ctx, "a run that has ended is not forgotten", "run", l.id, "error", err)
		}
	}()
	_, err := s.work(l, s.cited(ctx, t.kind, answer.Watch(l.run, t.events(ctx, l.run)), citing), nil)
	ended = s.ending(ctx, l, err)
	l.end(ctx, ended)
	attrs := []slog.Attr{slog.String("run", l.id), slog.Duration("took", time.Since(l.started))}
	level := slog.LevelInfo
	if ended != nil {
		p := problemFor(ended)
		attrs = append(attrs, slog.String("code", p.Code))
		if p.Status >= 500 {
			level = slog.LevelError
			attrs = append(attrs, slog.String("error", ended.Error()))
		}
	}
	s.Logger.LogAttrs(ctx, level, "run", attrs...)
}

// runTask checks what a run in the background is to do.
func (s *server) runTask(c echo.Context, r runRequest) (task, error) {
	if r.Summarize != nil {
		if s.Summarizer == nil {
			p := invalid("no_summaries", "this server does not summarize: leave summarize out")
			p.Field = "summarize"
			return task{}, p
		}
		if r.Summarize.Record == nil {
			r.Summarize.Record = r.Record
		}
		return s.summaryTask(c, *r.Summarize)
	}
	if r.Run != "" && s.Ledger != nil && s.Summarizer != nil {
		kept, err := s.Ledger.Job(c.Request().Context(), r.Run)
		if err != nil && !errors.Is(err, retrieve.ErrNotFound) {
			return task{}, fmt.Errorf("looking for a run to take up: %w", err)
		}
		if kept.Kind == summaryKind {
			return s.summaryTask(c, summarizeRequest{Run: r.Run, Record: r.Record})
		}
	}
	return s.askTask(c, r.askRequest)
}

// runNotFound is about a run that is not there, or not the caller's.
func runNotFound(id string) *Problem {
	return &Problem{Status: http.StatusNotFound, Code: "run_not_found",
		Detail: fmt.Sprintf("there is no run %.40q: it was not kept, or is kept no longer", id)}
}

// interrupted is about a run that nobody works on.
func interrupted(id string) *Problem {
	return &Problem{Status: http.StatusConflict, Code: "run_interrupted",
		Detail: fmt.Sprintf(`the run was interrupted when its server stopped: POST /api/runs with {"run": %q} resumes it`, id)}
}

// runElsewhere is about a run that another server works on. Its record is here once it has ended.
func runElsewhere(c echo.Context, r *runRecord) *Problem {
	c.Response().Header().Set(echo.HeaderRetryAfter, "1")
	return &Problem{Status: http.StatusConflict, Code: "run_elsewhere",
		Detail: fmt.Sprintf("another server works on the run (%s): follow or stop it there, or wait until it ends for its record", retrieve.WhoIs(r.worker))}
}

// findRun gives a run that is under way, or else what is kept of it.
func (s *server) findRun(c echo.Context, id string) (*liveRun, *runRecord, error) {
	if l := s.Runs.get(id); l != nil {
		if l.by != caller(c) {
			return nil, nil, runNotFound(id)
		}
		return l, nil, nil
	}
	if s.Ledger == nil {
		return nil, nil, runNotFound(id)
	}
	ctx := c.Request().Context()
	var under keptRequest
	begun, err := s.Ledger.Job(ctx, id)
	switch {
	case errors.Is(err, retrieve.ErrNotFound):
	case err != nil:
		return nil, nil, fmt.Errorf("looking for a run: %w", err)
	case begun.Kind == askKind || begun.Kind == summaryKind:
		if err := json.Unmarshal(begun.Spec, &under); err != nil {
			return nil, nil, fmt.Errorf("reading what the run %s is to do: %w", id, err)
		}
	}
	resumable := under.Request != nil
	unfinished := &runRecord{ID: id, Kind: kindName(begun.Kind), State: stateInterrupted, Question: questionOf(under.Request),
		Request: under.Request, Started: begun.Started, Resumable: true, by: under.By}
	if resumable && under.By == caller(c) && begun.Worker != "" {
		unfinished.State, unfinished.Resumable, unfinished.worker = stateRunning, false, begun.Worker
		return nil, unfinished, nil
	}
	r, err := s.Ledger.Record(ctx, id)
	switch {
	case errors.Is(err, retrieve.ErrNotFound) && resumable && under.By == caller(c):
		return nil, unfinished, nil
	case errors.Is(err, retrieve.ErrNotFound):
		return nil, nil, runNotFound(id)
	case err != nil:
		return nil, nil, fmt.Errorf("looking for a record: %w", err)
	}
	mine := r.By == caller(c)
	if !mine {
		seen, err := s.shownTo(ctx, r)
		if err != nil {
			return nil, nil, fmt.Errorf("looking for the documents of a record: %w", err)
		}
		if !seen {
			return nil, nil, runNotFound(id)
		}
	}
	known := recordOf(r)
	known.Resumable = resumable && mine
	if known.log, err = unpacked(r.Events); err != nil {
		return nil, nil, err
	}
	known.conclude()
	return nil, known, nil
}

// shownTo says whether a record of somebody else is to be seen: it was shared,
// and all the documents whose words are in it are in reach.
func (s *server) shownTo(ctx context.Context, r retrieve.Record) (bool, error) {
	if !r.Shared {
		return false, nil
	}
	for _, d := range r.Documents {
		if any, err := s.Library.Holds(ctx, retrieve.Filter{Document: d}); err != nil || !any {
			return false, err
		}
	}
	return true, nil
}

func recordOf(r retrieve.Record) *runRecord {
	return &runRecord{by: r.By, Shared: r.Shared, ID: r.ID, Kind: kindName(r.Kind), State: r.State, Question: questionOf(r.Spec), Request: r.Spec, Started: r.Started, Ended: &r.Ended}
}

// conclude takes the outcome from the last event.
func (r *runRecord) conclude() {
	if len(r.log) == 0 {
		return
	}
	switch last := r.log[len(r.log)-1]; last.kind {
	case "done":
		r.Answer = last.data
	case "error":
		r.Error = last.data
	}
}

// known is a run under way as a record.
func (l *liveRun) known() *runRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &runRecord{by: l.by, ID: l.id, Kind: kindName(l.kind), State: l.state, Question: questionOf(l.request), Request: l.request,
		Started: l.started, Resumable: l.resumable, log: l.log}
	if l.state != stateRunning {
		r.Ended = &l.ended
	}
	r.conclude()
	return r
}

// showRun gives the record of a run, or its events.
func (s *server) showRun(c echo.Context) error {
	l, known, err := s.findRun(c, c.Param("id"))
	if err != nil {
		return err
	}
	if l != nil {
		l.enter()
		defer l.leave()
	}
	if wantsEvents(c.Request()) {
		return s.follow(c, l, known)
	}
	if l != nil {
		known = l.known()
	}
	return s.replyRecord(c, known)
}

func (s *server) replyRecord(c echo.Context, r *runRecord) error {
	r.Events, r.URL = s.runAddress(c, r.ID)
	return reply(c, http.StatusOK, r)
}

// follow sends the events of a run that the reader does not have yet, and those
// that come. To a reader that has them all of a run that has ended it replies
// 204, which ends the browser's coming back.
func (s *server) follow(c echo.Context, l *liveRun, known *runRecord) error {
	if l == nil && known.State == stateInterrupted {
		return interrupted(known.ID)
	}
	ctx, cancel := context.WithCancelCause(c.Request().Context())
	defer cancel(nil)
	last := c.Request().Header.Get("Last-Event-ID")
	since := func(n int) ([]event, bool, <-chan struct{}, error) { return known.log[n:], false, nil, nil }
	switch {
	case l != nil:
		since = l.since
	case known.worker != "":
		return runElsewhere(c, known)
	}
	log, more, _, err := since(0)
	if err != nil {
		return err
	}
	seen := followed(log, last)
	if !more && seen == len(log) {
		return c.NoContent(http.StatusNoContent)
	}
	if more {
		who := caller(c)
		if !s.Runs.follow(who, cap(s.asks)) {
			return tooMany(c, "too_many_readers", 2*time.Second, "%d readers follow answers that are under way already: come back in a moment", cap(s.asks))
		}
		defer s.Runs.unfollow(who)
	}
	out := newEventStream(c.Response(), cancel)
	defer out.close()
	if c.QueryParam("html") == "1" {
		out.render(s.markdown)
	}
	if err := out.recall(log[:seen]); err != nil {
		return readerGone(err)
	}
	if seen == len(log) {
		if err := out.write([]byte(": following\n\n")); err != nil {
			return readerGone(err)
		}
	}
	for {
		news, more, grew, err := since(seen)
		if err != nil {
			return errors.Join(err, out.pass(event{kind: "error", data: problemData(problemOf(c, err))}))
		}
		for _, f := range news {
			if err := out.pass(f); err != nil {
				return readerGone(err)
			}
		}
		if seen += len(news); !more {
			return nil
		}
		if ctx.Err() != nil {
			if failed := out.failure(); failed != nil {
				return readerGone(failed)
			}
			return fmt.Errorf("following a run: %w", ctx.Err())
		}
		select {
		case <-grew:
		case <-ctx.Done(): // with a server that stops its runs end too: what they came to still goes out
		}
	}
}

func readerGone(err error) *Problem {
	return &Problem{Status: statusClientGone, Code: "reader_gone", Detail: "the reader takes no more of the answer", cause: err}
}

func problemData(p *Problem) []byte {
	data, err := json.Marshal(p)
	if err != nil { // strings and a number
		panic(err)
	}
	return data
}

// listedRuns is the reply of GET /api/runs.
type listedRuns struct {
	Runs []*runRecord `json:"runs"`
	More bool         `json:"more"`
}

// listRuns lists what was kept for the caller, newest first: ?limit= of those
// that began before the one in ?after=.
func (s *server) listRuns(c echo.Context) error {
	limit, err := limitOf(c, 50, 500)
	if err != nil {
		return err
	}
	list := listedRuns{Runs: []*runRecord{}}
	if s.Ledger == nil {
		return reply(c, http.StatusOK, list)
	}
	var after retrieve.Record
	if id := c.QueryParam("after"); id != "" {
		after, err = s.Ledger.Record(c.Request().Context(), id)
		if errors.Is(err, retrieve.ErrNotFound) || err == nil && after.By != caller(c) {
			return runNotFound(id)
		}
		if err != nil {
			return fmt.Errorf("looking for a record: %w", err)
		}
	}
	records, err := s.Ledger.Records(c.Request().Context(), caller(c), after, limit+1)
	if err != nil {
		return fmt.Errorf("listing the records: %w", err)
	}
	if len(records) > limit {
		records, list.More = records[:limit], true
	}
	for _, r := range records {
		known := recordOf(r)
		known.Events, known.URL = s.runAddress(c, r.ID)
		list.Runs = append(list.Runs, known)
	}
	return reply(c, http.StatusOK, list)
}

// limitOf reads ?limit=.
func limitOf(c echo.Context, usual, most int) (int, error) {
	v := c.QueryParam("limit")
	if v == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > most {
		return 0, invalid("bad_limit", "limit is %.40q: give a number from 1 to %d", v, most)
	}
	return n, nil
}

// stopRun stops a run that is under way. With ?forget=true nothing is kept of
// it, nor of one that has ended.
func (s *server) stopRun(c echo.Context) error {
	id := c.Param("id")
	l, known, err := s.findRun(c, id)
	if err == nil && l == nil && known.by != caller(c) {
		err = runNotFound(id)
	}
	if err != nil {
		return err
	}
	switch {
	case l != nil:
		l.cancel(errStopped)
		if err := l.wind(c.Request().Context()); err != nil {
			return fmt.Errorf("stopping a run: %w", err)
		}
		known = l.known()
	case known.worker != "":
		return runElsewhere(c, known)
	}
	if c.QueryParam("forget") != "true" {
		return s.replyRecord(c, known)
	}
	s.Runs.forget(id)
	if s.Ledger != nil {
		ctx := context.WithoutCancel(c.Request().Context())
		if err := errors.Join(s.Ledger.End(ctx, id), s.Ledger.ForgetRecord(ctx, id)); err != nil {
			return fmt.Errorf("forgetting a run: %w", err)
		}
	}
	return c.NoContent(http.StatusNoContent)
}

// shareRun lets others see the record of a run, or nobody again.
func (s *server) shareRun(c echo.Context) error {
	id := c.Param("id")
	l, known, err := s.findRun(c, id)
	switch {
	case err != nil:
		return err
	case l != nil && l.known().State == stateRunning, l == nil && known.worker != "":
		return runUnderWay(id)
	case l == nil && known.by != caller(c), s.Ledger == nil:
		return runNotFound(id)
	case l != nil:
		// It has ended, and is being written down.
		if err := l.wind(c.Request().Context()); err != nil {
			return fmt.Errorf("waiting for a record: %w", err)
		}
	}
	ctx := c.Request().Context()
	r, err := s.Ledger.Record(ctx, id)
	if errors.Is(err, retrieve.ErrNotFound) {
		return runNotFound(id)
	}
	if err == nil && r.Shared != (c.Request().Method == http.MethodPut) {
		r.Shared = !r.Shared
		err = s.Ledger.KeepRecord(ctx, r)
	}
	if err != nil {
		return fmt.Errorf("sharing a record: %w", err)
	}
	return c.NoContent(http.StatusNoContent)
}
