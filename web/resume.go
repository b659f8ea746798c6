package web

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/cite"
	"ibid/retrieve"
)

// runHeader carries the id under which an interrupted question or summary can
// be taken up.
const runHeader = "Ibid-Run"

// resume finds the run of a kind that a request names, and puts what that is
// to do in the request's place; nil if it names none.
func resume[R any](ctx context.Context, s *server, kind, id string, r *R) (*answer.Run, error) {
	if id == "" {
		return nil, nil
	}
	unknown := &Problem{Status: http.StatusNotFound, Code: "run_not_found", Field: "run",
		Detail: fmt.Sprintf("there is no unfinished run %.40q of %s: it has ended, or began more than %d days ago: ask anew", id, kind, int(retrieve.MaxRunAge.Hours()/24))}
	if s.Ledger == nil {
		return nil, unknown
	}
	var kept R
	run, err := answer.ResumeRun(ctx, s.Ledger, kind, id, &kept)
	other := (*answer.KindError)(nil)
	switch {
	case errors.Is(err, retrieve.ErrNotFound), errors.As(err, &other):
		// Runs of another kind are none of this client's business.
		return nil, unknown
	case err != nil:
		return nil, fmt.Errorf("looking for a run to take up: %w", err)
	}
	*r = kept
	return run, nil
}

// begin begins a run of a request. Where it cannot be kept the request is
// answered all the same.
func (s *server) begin(ctx context.Context, kind string, request any) *answer.Run {
	if s.Ledger == nil {
		return nil
	}
	run, err := answer.BeginRun(ctx, s.Ledger, kind, request)
	if err != nil && ctx.Err() == nil {
		s.Logger.WarnContext(ctx, "an answer cannot be taken up again if it is interrupted", "error", err)
	}
	return run
}

// respond replies with the events of a run, which may be nil: one by one or,
// folded, as JSON. What came to its end is forgotten in the ledger, of the
// rest the finished calls are kept for who takes the run up.
func (s *server) respond(c echo.Context, run *answer.Run, events func(context.Context) iter.Seq2[answer.Event, error]) error {
	if run != nil {
		c.Response().Header().Set(runHeader, run.ID)
	}
	numbered := func(ctx context.Context) iter.Seq2[answer.Event, error] {
		return cite.Number(run.Watch(events(ctx)), s.citing(c))
	}
	reply := s.fold
	if wantsEvents(c.Request()) {
		reply = s.stream
	}
	err := reply(c, numbered)
	_, failed := run.Settle(c.Request().Context(), err)
	return errors.Join(err, failed)
}

// fold replies with the whole answer as JSON.
func (s *server) fold(c echo.Context, events func(context.Context) iter.Seq2[answer.Event, error]) error {
	a, err := cite.Collect(events(c.Request().Context()))
	if err != nil {
		return fmt.Errorf("answering: %w", err)
	}
	return reply(c, http.StatusOK, answered{a, s.indexing()})
}
