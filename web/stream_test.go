package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
)

// asker is an Asker made of a function.
type asker func(ctx context.Context, yield func(answer.Event, error) bool)

func (f asker) Ask(ctx context.Context, _ answer.Question) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) { f(ctx, yield) }
}

func post(t *testing.T, ctx context.Context, base, accept string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", base+"/api/ask", strings.NewReader(`{"question":"why?"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// serve is a real server over an Asker; it and its connections are gone when the test ends.
func serve(t *testing.T, change func(*Options)) *httptest.Server {
	s := httptest.NewServer(newHandler(t, change))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		s.Close()
	})
	return s
}

// TestTooMany turns the question over the limit away at once, and takes it once there is room.
func TestTooMany(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, func(o *Options) {
		o.MaxAsks = 1
		o.Asker = asker(func(ctx context.Context, yield func(answer.Event, error) bool) {
			entered <- struct{}{}
			<-leave
			yield(answer.Unanswered{Text: "no"}, nil)
		})
	})
	first := make(chan *http.Response)
	go func() { first <- post(t, t.Context(), s.URL, "application/json") }()
	<-entered
	res := post(t, t.Context(), s.URL, "text/event-stream")
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("over the limit: %s, Retry-After %q, %s", res.Status, res.Header.Get("Retry-After"), res.Header.Get("Content-Type"))
	}
	leave <- struct{}{}
	if res := <-first; res.StatusCode != http.StatusOK {
		t.Errorf("within the limit: %s", res.Status)
	}
	go func() { <-entered; leave <- struct{}{} }()
	if res := post(t, t.Context(), s.URL, "application/json"); res.StatusCode != http.StatusOK {
		t.Errorf("after the limit: %s", res.Status)
	}
}

// TestDisconnect stops the work upstream when the reader goes, streaming and not.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	for _, accept := range []string{"text/event-stream", "application/json"} {
		t.Run(accept, func(t *testing.T) {
			asked, stopped := make(chan struct{}), make(chan error, 1)
			s := serve(t, func(o *Options) {
				o.Asker = asker(func(ctx context.Context, yield func(answer.Event, error) bool) {
					yield(answer.Text{Text: "well. "}, nil)
					close(asked)
					<-ctx.Done()
					stopped <- ctx.Err()
					yield(nil, ctx.Err())
				})
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-asked
				cancel()
			}()
			r, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/api/ask", strings.NewReader(`{"question":"why?"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", accept)
			if res, err := http.DefaultClient.Do(r); err == nil {
				_, err = io.ReadAll(res.Body)
				res.Body.Close()
				if !errors.Is(err, context.Canceled) {
					t.Errorf("reading ended with %v", err)
				}
			}
			select {
			case err := <-stopped:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the work ended with %v", err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("the work goes on without a reader")
			}
		})
	}
}

// TestShutdown tells a reader why an answer ends that is stopped from inside.
func TestShutdown(t *testing.T) {
	for _, accept := range []string{"text/event-stream", "application/json"} {
		ctx, stop := context.WithCancel(t.Context())
		e := newHandler(t, func(o *Options) {
			o.Asker = asker(func(ctx context.Context, yield func(answer.Event, error) bool) {
				yield(answer.Text{Text: "well. And"}, nil)
				stop()
				<-ctx.Done()
				yield(nil, ctx.Err())
			})
		})
		r := httptest.NewRequestWithContext(ctx, "POST", "/api/ask", strings.NewReader(`{"question":"why?"}`))
		r.Host = "localhost"
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		told := w.Body.String()
		if accept == "text/event-stream" {
			kind, data, _ := strings.Cut(lastEvent(told), "\ndata: ")
			if told = data; kind != "event: error" {
				t.Errorf("the last event is %q", kind)
			}
		} else if w.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d", w.Code)
		}
		var p Problem
		if err := json.Unmarshal([]byte(told), &p); err != nil {
			t.Fatalf("%v: %s", err, told)
		}
		if p.Code != "canceled" || p.Status != http.StatusServiceUnavailable || p.Title != "Service Unavailable" {
			t.Errorf("%s: %+v", accept, p)
		}
	}
}

// TestHeartbeat lets a minute pass without an event.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newHandler(t, func(o *Options) {
			o.Asker = asker(func(ctx context.Context, yield func(answer.Event, error) bool) {
				select {
				case <-time.After(61 * time.Second):
				case <-ctx.Done():
				}
				yield(answer.Unanswered{Text: "no"}, nil)
			})
		})
		r := httptest.NewRequest("POST", "/api/ask", strings.NewReader(`{"question":"why?"}`))
		r.Host = "localhost"
		r.Header.Set("Accept", "text/event-stream")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if got := strings.Count(w.Body.String(), ": still here\n\n"); got != 4 {
			t.Errorf("%d comments in 61 s, want 4:\n%s", got, w.Body)
		}
		if !strings.HasSuffix(strings.TrimSpace(lastEvent(w.Body.String())), "}") || !strings.HasPrefix(lastEvent(w.Body.String()), "event: done\n") {
			t.Errorf("the last event is %q", lastEvent(w.Body.String()))
		}
	})
}

func lastEvent(body string) string {
	blocks := strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
	return blocks[len(blocks)-1]
}

// deafWriter is a client that takes its reply up to a point, then no more.
type deafWriter struct {
	*httptest.ResponseRecorder
	room int
}

func (w *deafWriter) Write(b []byte) (int, error) {
	if w.room -= len(b); w.room < 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return w.ResponseRecorder.Write(b)
}

// TestDeafReader ends the work when a write fails, at an event or at the heartbeat.
func TestDeafReader(t *testing.T) {
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprintf("silent=%t", silent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				sent := 0
				e := newHandler(t, func(o *Options) {
					o.Logger = slog.New(slog.NewTextHandler(&log, nil))
					o.Asker = asker(func(ctx context.Context, yield func(answer.Event, error) bool) {
						for yield(answer.Text{Text: strings.Repeat("word. ", 20)}, nil) {
							if sent++; sent > 1000 || ctx.Err() != nil {
								return
							}
							if silent {
								<-ctx.Done()
								yield(nil, ctx.Err())
								return
							}
						}
					})
				})
				r := httptest.NewRequest("POST", "/api/ask", strings.NewReader(`{"question":"why?"}`))
				r.Host = "localhost"
				r.Header.Set("Accept", "text/event-stream")
				room := 600
				if silent {
					room = 200
				}
				e.ServeHTTP(&deafWriter{httptest.NewRecorder(), room}, r)
				if sent > 20 {
					t.Errorf("%d events were made for a reader who took none", sent)
				}
				if !strings.Contains(log.String(), "i/o timeout") || !strings.Contains(log.String(), "code=reader_gone") {
					t.Errorf("the log does not say why: %s", log.String())
				}
			})
		})
	}
}

// TestStuckReader serves a client that asks over a real connection and then
// reads nothing: the first event that does not go out in time ends the work.
func TestStuckReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan time.Duration, 1)
		e := newHandler(t, func(o *Options) {
			o.Asker = asker(func(ctx context.Context, yield func(answer.Event, error) bool) {
				began := time.Now()
				for yield(answer.Text{Text: strings.Repeat("word. ", 200)}, nil) {
				}
				stopped <- time.Since(began)
			})
		})
		l := &pipes{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		srv := NewHTTPServer("", e)
		done := make(chan error, 1)
		go func() { done <- srv.Serve(l) }()
		client, served := net.Pipe()
		defer client.Close()
		l.conns <- served
		if _, err := io.WriteString(client, "POST /api/ask HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nContent-Length: 19\r\n\r\n"+`{"question":"why?"}`); err != nil {
			t.Fatal(err)
		}
		if took := <-stopped; took != eventTimeout {
			t.Errorf("the work ended after %v, want %v", took, eventTimeout)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// TestSlowHeaders drops a client that does not finish its headers.
func TestSlowHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		srv := NewHTTPServer("", newHandler(t, nil))
		done := make(chan error, 1)
		go func() { done <- srv.Serve(l) }()
		client, served := net.Pipe()
		defer client.Close()
		l.conns <- served
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: loc"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := io.ReadAll(client); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("dropped after %v", took)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
}

// TestSlowBody drops a client that does not finish its body.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		srv := NewHTTPServer("", newHandler(t, nil))
		done := make(chan error, 1)
		go func() { done <- srv.Serve(l) }()
		client, served := net.Pipe()
		defer client.Close()
		l.conns <- served
		if _, err := io.WriteString(client, "POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		got, err := io.ReadAll(client)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != bodyTimeout || !bytes.Contains(got, []byte(`"code":"unreadable_body"`)) {
			t.Errorf("after %v: %s", took, got)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
}

// pipes is a listener whose connections are handed to it.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestWriteDeadlineIsLifted asks twice over one connection: the second reply
// must not inherit the deadline of the first.
func TestWriteDeadlineIsLifted(t *testing.T) {
	s := serve(t, nil)

	for range 2 {
		res := post(t, t.Context(), s.URL, "text/event-stream")
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK || !strings.HasPrefix(lastEvent(string(body)), "event: done\n") {
			t.Errorf("%s, %v: %s", res.Status, err, body)
		}
	}
}

// TestHTTPServer holds the time limits: a client that is slow with its headers is dropped, a slow answer is not.
func TestHTTPServer(t *testing.T) {
	s := NewHTTPServer("127.0.0.1:0", http.NotFoundHandler())
	if s.ReadHeaderTimeout != 10*time.Second || s.WriteTimeout != 0 || s.IdleTimeout == 0 || s.MaxHeaderBytes == 0 {
		t.Errorf("%+v", s)
	}
}
