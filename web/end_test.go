package web

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error { close(p); return nil }
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestEnd stops a server with many streams that can only end one after the other, as on
// a starved machine: all have their end, except for the reader that takes nothing.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams = 50
		processor := make(chan bool, 1) // no mutex: time goes on only where channels wait
		begun, stop := make(chan bool, streams+1), make(chan bool)
		var others sync.WaitGroup
		others.Add(streams)
		s := NewHTTPServer("", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun <- true
			<-stop
			if r.URL.Path == "/deaf" { // last, or its write would fail before the others have ended
				others.Wait()
			} else {
				defer others.Done()
			}
			processor <- true
			time.Sleep(time.Second)
			<-processor
			_, _ = io.WriteString(w, "data: [DONE]\n\n")
		}))
		listener := make(pipes)
		go func() { _ = s.Serve(listener) }()
		ask := func(path string) net.Conn {
			mine, its := net.Pipe()
			listener <- its
			_, err := io.WriteString(mine, "GET "+path+" HTTP/1.0\r\n\r\n")
			must(t, err)
			<-begun
			return mine
		}
		deaf := ask("/deaf")
		replies := make(chan string, streams)
		for range streams {
			c := ask("/")
			go func() {
				b, _ := io.ReadAll(c) // what there is
				replies <- string(b)
			}()
		}
		close(stop)
		started := time.Now()
		if err := s.End(3 * time.Second); err == nil {
			t.Error("the reader that takes nothing is not reported")
		}
		if took := time.Since(started); took > (streams+10)*time.Second {
			t.Errorf("it took %v", took)
		}
		for range streams {
			if r := <-replies; len(r) < 6 || r[len(r)-8:] != "[DONE]\n\n" {
				t.Errorf("a stream ends with %q", r)
			}
		}
		must(t, deaf.Close())
	})
}
