package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/answer"
)

// Indexing is the progress of the sync, as replies have it.
type Indexing struct {
	Done  int  `json:"done"`
	Total int  `json:"total"`
	Ready bool `json:"ready"`
}

// health tells monitors and load balancers how the server is.
type health struct {
	version   string
	indexing  func() Indexing
	reachable func(context.Context) error
	logger    *slog.Logger
	model     *modelHealth

	unreachable atomic.Bool // the store, when it was last checked
}

// liveness is the reply of GET /healthz.
type liveness struct {
	Status  string `json:"status"`
	Version string `json:"version,omitempty"`
}

func (h *health) live(c echo.Context) error {
	return reply(c, http.StatusOK, liveness{"ok", h.version})
}

// readiness is the reply of GET /readyz.
type readiness struct {
	Indexing
	// Reason says why the server is not ready.
	Reason string `json:"reason,omitempty"`
	// Detail says what is wrong with a server that is ready.
	Detail string `json:"detail,omitempty"`
}

// modelHealth is what the last answers say of the model.
type modelHealth struct {
	logger   *slog.Logger
	fallback atomic.Pointer[string] // why the last answer was quoted in its place
}

// note logs when sentences begin to be quoted in place of the model's answers, for
// another reason than before, and when the model answers again.
func (m *modelHealth) note(e answer.Event) {
	now, err := "", error(nil)
	switch e := e.(type) {
	case answer.Fallback:
		now, err = e.Reason, e.Err
	case answer.Stepped:
		if !e.Changed {
			return
		}
	default:
		return
	}
	before := m.fallback.Swap(&now)
	switch {
	case now != "" && (before == nil || *before != now):
		m.logger.Error("the model gives no answers: sentences are quoted instead", "reason", now, "error", err)
	case now == "" && before != nil && *before != "":
		m.logger.Info("the model answers again")
	}
}

// detail says that the model gave no answer to the last question.
func (m *modelHealth) detail() string {
	reason := m.fallback.Load()
	if reason != nil && *reason == "model_untrusted" {
		return "the model did not pass its self-test: sentences are quoted instead (--no-self-test overrules this)"
	}
	if reason != nil && *reason != "" {
		return "the model gave no answer to the last question (" + *reason + "): sentences are quoted instead"
	}
	return ""
}

// storeTimeout is how long the store may take to respond.
const storeTimeout = 2 * time.Second

// ready reports whether the server can answer questions. What is wrong with the
// store is logged, once.
func (h *health) ready(c echo.Context) error {
	r := readiness{Indexing: h.indexing(), Detail: h.model.detail()}
	if !r.Ready {
		r.Reason = "the folders are being read for the first time"
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), storeTimeout)
	defer cancel()
	what, err := "", h.reachable(ctx)
	if gone := c.Request().Context().Err(); err != nil && gone != nil {
		return fmt.Errorf("checking the store: %w", gone)
	}
	if err != nil {
		what = "the store is unreachable"
		if errors.Is(err, syscall.ENOSPC) {
			what = "the disk is full"
		}
		r.Ready, r.Reason = false, what+": the server's log says why"
	}
	if unreachable := err != nil; h.unreachable.Swap(unreachable) != unreachable {
		if unreachable {
			h.logger.Error(what, "error", err)
		} else {
			h.logger.Info("the store is reachable again")
		}
	}
	if r.Reason == "" {
		return reply(c, http.StatusOK, r)
	}
	setRetryAfter(c, 2*time.Second)
	return reply(c, http.StatusServiceUnavailable, r)
}
