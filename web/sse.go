package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// An eventStream writes server-sent events. The status goes out with the first
// event, so that an earlier error can still have a status of its own. While no
// event comes, a comment goes out every [heartbeat], so that proxies keep the
// connection and a client that has gone is noticed.
type eventStream struct {
	cancel context.CancelCauseFunc
	stop   chan struct{}
	beat   sync.WaitGroup
	page   *pageStream // nil unless the answer goes out as HTML too

	mu     sync.Mutex // guards what follows
	w      *echo.Response
	failed error // of the first write that failed; nothing is written after it
}

// newEventStream begins the heartbeat. A write that fails there calls cancel.
func newEventStream(w *echo.Response, cancel context.CancelCauseFunc) *eventStream {
	s := &eventStream{cancel: cancel, stop: make(chan struct{}), w: w}
	s.beat.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
				if err := s.write([]byte(": still here\n\n")); err != nil {
					s.cancel(err)
					return
				}
			}
		}
	})
	return s
}

// render makes the stream give the blocks of the answer as HTML too.
func (s *eventStream) render(m *markdown) {
	s.page = newPageStream(m, func(kind string, v any) error {
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encoding a %s event: %w", kind, err)
		}
		return s.write(event{kind: kind, data: data}.append(nil))
	})
}

// pass writes one event.
func (s *eventStream) pass(e event) error {
	if s.page == nil {
		return s.write(e.append(nil))
	}
	if err := s.page.before(e.kind, e.data); err != nil {
		return err
	}
	if err := s.write(e.append(nil)); err != nil {
		return err
	}
	return s.page.after(e.kind, e.data)
}

// recall gives the blocks of events that the reader has already: blocks have no
// ids of their own, and the last ones may not have arrived.
func (s *eventStream) recall(had []event) error {
	if s.page == nil {
		return nil
	}
	writing := slices.ContainsFunc(had, func(e event) bool { return e.kind == "text" })
	for _, e := range had {
		if e.kind == "draft" && writing {
			continue
		}
		if err := errors.Join(s.page.before(e.kind, e.data), s.page.after(e.kind, e.data)); err != nil {
			return err
		}
	}
	return nil
}

func (s *eventStream) write(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	s.failed = s.writeLocked(b)
	return s.failed
}

func (s *eventStream) writeLocked(b []byte) error {
	if !s.w.Committed {
		h := s.w.Header()
		h.Set(echo.HeaderContentType, "text/event-stream; charset=utf-8")
		h.Set(echo.HeaderCacheControl, "no-store")
		h.Set("X-Accel-Buffering", "no") // nginx would hold events back
		s.w.WriteHeader(http.StatusOK)
	}
	if err := setWriteDeadline(s.w, time.Now().Add(eventTimeout)); err != nil {
		return fmt.Errorf("bounding an event: %w", err)
	}
	if _, err := s.w.Write(b); err != nil {
		return fmt.Errorf("sending an event: %w", err)
	}
	if err := http.NewResponseController(s.w).Flush(); err != nil {
		return fmt.Errorf("sending an event: %w", err)
	}
	return nil
}

// begun says whether the status has gone out.
func (s *eventStream) begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Committed
}

// failure is the error of the first write that failed, if one did.
func (s *eventStream) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// close ends the heartbeat; the goroutine is gone when it returns.
func (s *eventStream) close() {
	if s.page != nil {
		s.page.close()
	}
	close(s.stop)
	s.beat.Wait()
}
