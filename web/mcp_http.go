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

// mcpHTTP serves MCP over streamable HTTP. It keeps no state between requests, so
// that clients notice no restart. The session id only lets a client cancel a call
// of its own, by a notification in another request.
type mcpHTTP struct {
	*mcpServer
	limiter limiter
	handler http.Handler

	mu    sync.Mutex
	calls map[mcpCallID]*mcpCall // under way
}

type mcpCallID struct{ by, session, id string }

type mcpCall struct{ cancel context.CancelCauseFunc }

// sessionHeader has the id of the session.
const sessionHeader = "Mcp-Session-Id"

// errCallCanceled ends a call that its client has canceled.
var errCallCanceled = errors.New("the client canceled it")

func newMCPHTTP(m *mcpServer, l limiter) *mcpHTTP {
	protocol := m.newProtocol()
	return &mcpHTTP{mcpServer: m, limiter: l, calls: map[mcpCallID]*mcpCall{}, handler: mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return protocol },
		&mcp.StreamableHTTPOptions{
			Stateless: true, MaxRequestBodyBytes: MaxBody, PropagateRequestCancellation: true,
			DisableLocalhostProtection: true, // hostCheck does it
		})}
}

// sessionOf is the session that a request names, empty for none of this server.
func sessionOf(r *http.Request) string {
	if v := r.Header.Get(sessionHeader); len(v) <= 64 {
		return v
	}
	return ""
}

// post handles one message.
func (h *mcpHTTP) post(c echo.Context) error {
	body, err := readBody(c, MaxBody)
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
		return invalid("bad_json", "the request body is not one JSON-RPC message; batches are not accepted")
	}
	if message.ID != nil && message.Method != "" { // not a notification or a reply
		release, err := h.limiter.acquire(c)
		if err != nil {
			return err
		}
		defer release()
	}
	r := c.Request()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	by, session := callerID(c), sessionOf(r)
	switch {
	case message.Method == "notifications/cancelled":
		canceled := mcpCallID{by, session, string(message.Params.RequestID)}
		h.cancelCalls(func(id mcpCallID) bool { return id == canceled })
	case message.Method == "initialize":
		c.Response().Header().Set(sessionHeader, rand.Text())
	case message.ID != nil && session != "":
		defer h.addCall(mcpCallID{by, session, string(message.ID)}, &mcpCall{cancel})()
	}
	w := &mcpWriter{ResponseWriter: c.Response()}
	ctx = context.WithValue(ctx, mcpRequestKey{}, &mcpRequest{ctx: ctx, base: h.base(c), started: w.startEvents})
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	stop := keepAlive(w.comment, func(err error) { cancel(readerGone(err)) })
	h.handler.ServeHTTP(w, r)
	stop()
	return nil
}

// deleteSession cancels all calls of a session.
func (h *mcpHTTP) deleteSession(c echo.Context) error {
	h.cancelCalls(inSession(callerID(c), sessionOf(c.Request())))
	return c.NoContent(http.StatusNoContent)
}

func inSession(by, session string) func(mcpCallID) bool {
	return func(id mcpCallID) bool { return session != "" && id.by == by && id.session == session }
}

// addCall adds a call until remove is called.
func (h *mcpHTTP) addCall(id mcpCallID, call *mcpCall) (remove func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[id] = call
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.calls[id] == call {
			delete(h.calls, id)
		}
	}
}

func (h *mcpHTTP) cancelCalls(match func(mcpCallID) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, call := range h.calls {
		if match(id) {
			call.cancel(errCallCanceled)
		}
	}
}

// An mcpWriter sets a deadline for every write of a stream of events, and writes
// a comment when there are none for long, as [eventStream] does.
type mcpWriter struct {
	http.ResponseWriter

	mu     sync.Mutex
	begun  bool // the status has been sent
	events bool // events are being written
}

// Unwrap is for [http.ResponseController].
func (w *mcpWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *mcpWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin(status)
}

func (w *mcpWriter) begin(status int) {
	w.begun = true
	if w.Header().Get(echo.HeaderContentType) == "text/event-stream" {
		w.Header().Set(echo.HeaderCacheControl, "no-store")
		w.Header().Set("X-Accel-Buffering", "no") // or nginx buffers events
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *mcpWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(b)
}

func (w *mcpWriter) write(b []byte) (int, error) {
	if !w.begun {
		w.begin(http.StatusOK)
	}
	if err := setWriteDeadline(w.ResponseWriter, time.Now().Add(eventTimeout)); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(b)
}

// startEvents notes that the header is set and that events follow.
func (w *mcpWriter) startEvents() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = true
}

func (w *mcpWriter) comment() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.events {
		return nil
	}
	if _, err := w.write([]byte(keepAliveComment)); err != nil {
		return err
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}
