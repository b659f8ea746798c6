package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// Time limits on a connection.
const (
	bodyTimeout  = 15 * time.Second // for partBytes of a request's body
	writeTimeout = 10 * time.Second // for partBytes of a reply; less than heartbeat
	partBytes    = 64 << 10
	heartbeat    = 15 * time.Second // between comments on a silent stream, since proxies give up after 60 s
)

// An HTTPServer is an [http.Server] that drops clients that stop reading. A reply may take
// any time as long as it makes progress.
type HTTPServer struct {
	http.Server
	ended atomic.Int64 // number of replies and connections that have ended
}

// NewHTTPServer returns a server for the handler with time limits on slow clients. Each
// write has a limit, but a whole reply has none, since an answer streams for as long as it
// takes.
func NewHTTPServer(addr string, h http.Handler) *HTTPServer {
	s := &HTTPServer{Server: http.Server{
		Addr:              addr,
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}}
	s.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateIdle || state == http.StateClosed {
			s.ended.Add(1)
		}
	}
	return s
}

// End shuts down the server. It waits as long as replies keep ending; if none ends within
// wait, it closes the remaining connections and returns an error.
func (s *HTTPServer) End(wait time.Duration) error {
	for {
		before := s.ended.Load()
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		err := s.Shutdown(ctx)
		cancel()
		if err == nil {
			return nil
		}
		if s.ended.Load() == before {
			return errors.Join(fmt.Errorf("some replies did not end before the shutdown: %w", err), s.Close())
		}
	}
}

// Serve is [http.Server.Serve] with time limits on writes.
func (s *HTTPServer) Serve(l net.Listener) error { return s.Server.Serve(boundedListener{l}) }

// A boundedListener accepts connections whose writes have a time limit.
type boundedListener struct{ net.Listener }

func (l boundedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return boundedConn{c}, nil
}

// A boundedConn allows [writeTimeout] for each partBytes that it writes. The time begins at
// the write, since the data may have waited in buffers.
type boundedConn struct{ net.Conn }

func (c boundedConn) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, partBytes) {
		if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return n, fmt.Errorf("setting a deadline: %w", err)
		}
		wrote, err := c.Conn.Write(part)
		if n += wrote; err != nil {
			return n, err
		}
	}
	return n, nil
}

// CloseWrite lets the client read a reply that was sent before the end of its request.
func (c boundedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
