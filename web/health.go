package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/retrieve"
)

// Indexing is the progress of the sync in replies.
type Indexing struct {
	Done  int  `json:"done"`  // files
	Total int  `json:"total"` // files seen so far
	Ready bool `json:"ready"` // the first sync has ended
}

// health reports the server's state to monitors and load balancers.
type health struct {
	version   string
	indexing  func() Indexing
	reachable func(context.Context) error
	detail    func() string
	selfTest  func(context.Context) string
	encoded   func() (done, total int)
	logger    *slog.Logger

	unreachable atomic.Bool // whether the store was unreachable when last checked
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
	// Detail describes limitations: the model failed on the last question or in its
	// self-test, the self-test has not ended, chunks are not all encoded, or an earlier
	// search index is in use.
	Detail string `json:"detail,omitempty"`
}

// storeTimeout is the time limit for a check of the store.
const storeTimeout = 2 * time.Second

// ready reports whether the server can answer questions. It logs once that the store is
// unreachable.
func (h *health) ready(c echo.Context) error {
	r, details := readiness{Indexing: h.indexing()}, []string{h.detail(), h.selfTest(c.Request().Context())}
	if done, total := h.encoded(); done < total {
		details = append(details, fmt.Sprintf("%d of %d chunks encoded", done, total))
	}
	if !r.Ready {
		r.Reason = "the folders are being read for the first time"
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), storeTimeout)
	defer cancel()
	what, err := "", h.reachable(ctx)
	building := (*retrieve.BuildingError)(nil)
	if errors.As(err, &building) && building.Earlier {
		details = append(details, building.Error())
		err = nil
	}
	r.Detail = strings.Join(slices.DeleteFunc(details, func(detail string) bool { return detail == "" }), "; ")
	if gone := c.Request().Context().Err(); err != nil && gone != nil {
		return fmt.Errorf("checking the store: %w", gone)
	}
	if err != nil {
		what = "the store is unreachable"
		space := (*retrieve.SpaceError)(nil)
		switch {
		case errors.As(err, &space):
			what = "the documents are embedded with another model"
		case errors.Is(err, syscall.ENOSPC):
			what = "the disk is full"
		case errors.Is(err, retrieve.ErrIndexUnavailable):
			what = "the search index is unreachable"
		}
		r.Ready, r.Reason = false, what+": the server's log says why"
		if building != nil {
			what = "the search index is being built"
			r.Reason = building.Error()
		}
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
