package web

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpHTTP serves MCP over streamable HTTP. It keeps no state between requests, so
// that clients notice no restart. A call ends with its request.
type mcpHTTP struct {
	address
	handler http.Handler
}

func newMCPHTTP(m *mcpServer) *mcpHTTP {
	protocol := sync.OnceValue(m.newProtocol) // its schemas take longer than the rest of the server
	return &mcpHTTP{m.address, mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return protocol() },
		&mcp.StreamableHTTPOptions{
			Stateless: true, MaxRequestBodyBytes: MaxBody,
			DisableLocalhostProtection: true, // hostCheck does it
		})}
}

// post handles one message.
func (h *mcpHTTP) post(c echo.Context) error {
	ctx, cancel := context.WithCancelCause(c.Request().Context())
	defer cancel(nil)
	w := &mcpWriter{eventStream: &eventStream{w: c.Response()}}
	defer keepAlive(w.writeComment, func(err error) { cancel(readerGone(err)) })()
	ctx = context.WithValue(ctx, mcpRequestKey{}, &mcpRequest{ctx: ctx, base: h.base(c), started: func() { w.started.Store(true) }})
	h.handler.ServeHTTP(w, c.Request().WithContext(ctx))
	return nil
}

// An mcpWriter is an eventStream that the SDK writes to.
type mcpWriter struct {
	*eventStream
	started atomic.Bool // the header is set, and events follow
}

func (w *mcpWriter) Header() http.Header { return w.w.Header() }

func (w *mcpWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin(status)
}

func (w *mcpWriter) Write(b []byte) (int, error) {
	if err := w.write(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// FlushError does nothing: each write is flushed.
func (w *mcpWriter) FlushError() error { return nil }

func (w *mcpWriter) writeComment() error {
	if !w.started.Load() {
		return nil
	}
	return w.write([]byte(keepAliveComment))
}
