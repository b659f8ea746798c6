package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MCP over streamable HTTP holds nothing between requests: each is checked on
// its own, as every other, and a server that was restarted goes on. The session
// that a client is given is a name it calls by, so that its notice that a call
// is canceled, which comes in a request of its own, finds that call.

// sessionHeader names the session.
const sessionHeader = "Mcp-Session-Id"

// mcpFace is MCP over HTTP.
type mcpFace struct {
	handler http.Handler

	mu    sync.Mutex
	calls map[mcpCallID]*mcpCall // under way
}

// An mcpCallID names a call under way.
type mcpCallID struct{ by, session, id string }

type mcpCall struct{ cancel context.CancelCauseFunc }

// errCalledOff ends a call that its client has canceled.
var errCalledOff = errors.New("the client canceled it")

// routeMCP adds /mcp.
func (s *server) routeMCP(e *echo.Echo) {
	server := s.newMCP()
	f := &mcpFace{calls: map[mcpCallID]*mcpCall{}, handler: mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{
			Stateless: true, MaxRequestBodyBytes: MaxBody, PropagateRequestCancellation: true,
			DisableLocalhostProtection: true, // checkHost knows the names that are ours
		})}
	e.POST("/mcp", func(c echo.Context) error { return s.mcpPost(c, f) })
	e.DELETE("/mcp", func(c echo.Context) error {
		f.end(caller(c), sessionOf(c.Request()))
		return c.NoContent(http.StatusNoContent)
	})
}

// sessionOf is the session that a request names, empty for none that we gave.
func sessionOf(r *http.Request) string {
	if v := r.Header.Get(sessionHeader); len(v) <= 64 {
		return v
	}
	return ""
}

// mcpPost takes one message.
func (s *server) mcpPost(c echo.Context, f *mcpFace) error {
	body, err := sent(c, MaxBody)
	if err != nil {
		return err
	}
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			RequestID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return invalid("bad_json", "the request body is not one JSON-RPC message; batches are not taken")
	}
	if message.ID != nil && message.Method != "" { // what asks for something takes a place
		release, err := s.acquire(c)
		if err != nil {
			return err
		}
		defer release()
	}
	r := c.Request()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	by, session := caller(c), sessionOf(r)
	switch {
	case message.Method == "notifications/cancelled":
		f.cancel(mcpCallID{by, session, string(message.Params.RequestID)})
	case message.Method == "initialize":
		c.Response().Header().Set(sessionHeader, rand.Text())
	case message.ID != nil && session != "":
		defer f.begin(mcpCallID{by, session, string(message.ID)}, &mcpCall{cancel})()
	}
	w := &patientWriter{ResponseWriter: c.Response()}
	ctx = context.WithValue(ctx, mcpRequestOf{}, &mcpRequest{ctx: ctx, base: s.base(c), working: w.working})
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	stop := w.beat(cancel)
	f.handler.ServeHTTP(w, r)
	stop()
	return nil
}

// begin enters a call until end is called.
func (f *mcpFace) begin(id mcpCallID, call *mcpCall) (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[id] = call
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.calls[id] == call {
			delete(f.calls, id)
		}
	}
}

// cancel stops a call, if it is under way.
func (f *mcpFace) cancel(id mcpCallID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if call := f.calls[id]; call != nil {
		call.cancel(errCalledOff)
	}
}

// end stops all calls of a session.
func (f *mcpFace) end(by, session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, call := range f.calls {
		if session != "" && id.by == by && id.session == session {
			call.cancel(errCalledOff)
		}
	}
}

// A patientWriter gives every write of a stream of events its time, and puts
// a comment in where nothing is written for long, as [eventStream] does.
type patientWriter struct {
	http.ResponseWriter

	mu     sync.Mutex
	begun  bool // the status has gone out
	events bool // what is written are events
}

// Unwrap is for [http.ResponseController].
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *patientWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin(status)
}

func (w *patientWriter) begin(status int) {
	w.begun = true
	if w.Header().Get(echo.HeaderContentType) == "text/event-stream" {
		w.Header().Set(echo.HeaderCacheControl, "no-store")
		w.Header().Set("X-Accel-Buffering", "no") // nginx would hold events back
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *patientWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(b)
}

func (w *patientWriter) write(b []byte) (int, error) {
	if !w.begun {
		w.begin(http.StatusOK)
	}
	if err := setWriteDeadline(w.ResponseWriter, time.Now().Add(eventTimeout)); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(b)
}

// working says that the work on a message has begun: its header is set, and
// what is written from here on are events.
func (w *patientWriter) working() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = true
}

// beat keeps a stream of events alive until stop is called; it calls cancel
// when nobody takes it.
func (w *patientWriter) beat(cancel context.CancelCauseFunc) (stop func()) {
	done := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if err := w.comment(); err != nil {
					cancel(readerGone(err))
					return
				}
			}
		}
	})
	return func() {
		close(done)
		beating.Wait()
	}
}

func (w *patientWriter) comment() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.events {
		return nil
	}
	if _, err := w.write([]byte(": still here\n\n")); err != nil {
		return err
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}
