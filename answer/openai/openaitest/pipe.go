package openaitest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// PipeURL is the base URL to use with a transport from [Pipe].
const PipeURL = "http://pipe.test/v1"

// Pipe serves the handler over HTTP in memory until the test ends, and returns
// the transport that reaches it by any host name. It never waits for the system,
// so it works in a bubble of testing/synctest, where latencies and time limits
// cost no time.
func Pipe(t testing.TB, h *Handler) *http.Transport {
	t.Helper()
	l := pipeListener{conns: make(chan net.Conn)}
	l.Context, l.close = context.WithCancel(context.Background())
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	server.Start()
	transport := &http.Transport{MaxResponseHeaderBytes: 256 << 10, DisableCompression: true}
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		client, server := net.Pipe()
		select {
		case l.conns <- server:
			return client, nil
		case <-l.Done():
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	return transport
}

// A pipeListener accepts connections in memory until it is closed.
type pipeListener struct {
	context.Context
	conns chan net.Conn
	close context.CancelFunc
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.Done():
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error {
	l.close()
	return nil
}

func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }
