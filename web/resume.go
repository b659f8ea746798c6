package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/answer/replay"
	"ibid/retrieve"
)

// runHeader carries the id of the run that a reply belongs to.
const runHeader = "Ibid-Run"

// withoutLedger is how long nothing is asked of a ledger that was waited for in
// vain, so that not every question does.
const withoutLedger = 30 * time.Second

// ending is how long who takes up a run waits for the end of what is under way.
const ending = 2 * time.Second

// A task is what a request asks for, when it has been checked.
type task struct {
	kind    string           // of its run
	request any              // as the run keeps it
	record  bool             // false where the client wants no record
	run     *replay.Recorder // the one taken up; nil to begin one
	events  func(context.Context, *replay.Recorder) iter.Seq2[answer.Event, error]
}

// keptRequest is what a run keeps of who asked what.
type keptRequest struct {
	By      string          `json:"by,omitempty"`
	Request json.RawMessage `json:"request"`
	// Unrecorded says that no record is to be kept.
	Unrecorded bool `json:"unrecorded,omitempty"`
}

// resume finds the run of a kind that a request names, and puts what that is
// to do in the request's place; nil if it names none.
func resume[R any](c echo.Context, s *server, kind, id string, r *R) (*replay.Recorder, error) {
	if id == "" {
		return nil, nil
	}
	unknown := noSuchRun(id)
	if s.Ledger == nil {
		return nil, unknown
	}
	var kept keptRequest
	run, err := replay.Resume(c.Request().Context(), s.Ledger, kind, id, &kept)
	other := (*replay.KindError)(nil)
	switch {
	case errors.Is(err, retrieve.ErrNotFound), errors.As(err, &other), err == nil && (kept.By != caller(c) || kept.Request == nil):
		// Runs of another kind, or of somebody else, are none of this client's
		// business; those of an earlier version say nothing to this one.
		return nil, unknown
	case err != nil:
		return nil, fmt.Errorf("looking for a run to take up: %w", err)
	}
	var request R
	if err := json.Unmarshal(kept.Request, &request); err != nil {
		return nil, fmt.Errorf("reading what the run %s is to do: %w", id, err)
	}
	*r = request
	return run, nil
}

// begin begins the run of a task, or goes on with it. Where it cannot be kept
// the task is done all the same. The reply names the run.
func (s *server) begin(c echo.Context, t task, background bool, cancel context.CancelCauseFunc) (*liveRun, error) {
	request, err := json.Marshal(t.request)
	if err != nil {
		return nil, fmt.Errorf("writing down what a run is to do: %w", err)
	}
	ctx, by := c.Request().Context(), caller(c)
	run := t.run
	if run == nil && s.Ledger != nil && time.Now().UnixNano() >= s.ledgerFrom.Load() {
		start := time.Now()
		run, err = replay.Begin(ctx, s.Ledger, t.kind, keptRequest{by, request, !t.record})
		if err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "an answer cannot be taken up again if it is interrupted", "error", err)
			if time.Since(start) >= time.Second {
				s.ledgerFrom.Store(time.Now().Add(withoutLedger).UnixNano())
			}
		}
	}
	l := &liveRun{kind: t.kind, by: by, request: request, asked: c.Response().Header().Get(echo.HeaderXRequestID),
		started: time.Now(), record: t.record, background: background, run: run, cancel: cancel}
	if run != nil {
		l.id = run.ID
		if err := s.hold(c, run, cancel); err != nil {
			return nil, err
		}
	} else if background {
		l.id = strings.ToLower(rand.Text()[:16])
	}
	if err := s.Runs.add(l); err != nil {
		if run != nil {
			err = errors.Join(err, run.Release(ctx))
		}
		if t.run == nil && run != nil {
			err = errors.Join(err, s.Ledger.End(context.WithoutCancel(ctx), run.ID))
		}
		return nil, err
	}
	if run != nil {
		c.Response().Header().Set(runHeader, l.id)
	}
	return l, nil
}

// hold claims the run of a task for this server. Its reader may just have gone,
// from here or from another server: who comes back at once finds it ending.
func (s *server) hold(c echo.Context, run *replay.Recorder, cancel context.CancelCauseFunc) error {
	ctx := c.Request().Context()
	last, done := context.WithTimeout(ctx, ending)
	defer done()
	if old := s.Runs.get(run.ID); old != nil {
		if err := old.wind(last); err != nil {
			return runUnderWay(run.ID)
		}
	}
	for {
		err := run.Hold(ctx, cancel)
		held := (*retrieve.HeldError)(nil)
		switch {
		case errors.Is(err, retrieve.ErrNotFound):
			return noSuchRun(run.ID)
		case err == nil || !errors.As(err, &held):
			return err
		}
		select {
		case <-time.After(lookAgain):
		case <-last.Done():
			c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(int(held.Left.Seconds())+1))
			return runUnderWay(run.ID)
		}
	}
}

// lookAgain is after how long the ledger is asked again about a run of another server.
const lookAgain = 500 * time.Millisecond

// noSuchRun is about a run that cannot be taken up.
func noSuchRun(id string) *Problem {
	return &Problem{Status: http.StatusNotFound, Code: "run_not_found", Field: "run",
		Detail: fmt.Sprintf("there is no unfinished run %.40q here: it has ended, or began more than %d days ago: ask anew", id, int(retrieve.MaxRunAge.Hours()/24))}
}

// respond replies with what comes of a task: the events one by one or, folded,
// as JSON. It stops when the client goes.
func (s *server) respond(c echo.Context, t task) (err error) {
	ctx, cancel := context.WithCancelCause(c.Request().Context())
	defer cancel(nil)
	l, err := s.begin(c, t, false, cancel)
	if err != nil {
		return err
	}
	ended := errPanicked
	defer func() { err = errors.Join(err, s.settle(ctx, l, ended)) }()
	events := s.cited(ctx, t.kind, answer.Watch(l.run, t.events(ctx, l.run)), s.citing(c))
	if wantsEvents(c.Request()) {
		ended = s.stream(ctx, c, l, events, cancel)
		return ended
	}
	whole, err := s.work(l, events, nil)
	ended = s.ending(ctx, l, err)
	l.end(ctx, ended)
	if ended != nil {
		return fmt.Errorf("answering: %w", ended)
	}
	return reply(c, http.StatusOK, whole)
}
