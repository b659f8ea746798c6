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
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/data/datatest"
)

// asker is an Asker that ignores the question.
type asker func(ctx context.Context, yield func(answer.Event, error) bool)

func (f asker) Ask(ctx context.Context, _ answer.Question) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) { f(ctx, yield) }
}

// askerFunc is an Asker made of its method.
type askerFunc func(context.Context, answer.Question) iter.Seq2[answer.Event, error]

func (f askerFunc) Ask(ctx context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
	return f(ctx, q)
}

const why = `{"question":"why?"}`

// serve starts a server, which is closed with its connections after the test.
func serve(t *testing.T, change func(*Options)) *httptest.Server {
	s := httptest.NewServer(newHandler(t, change))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		s.Close()
	})
	return s
}

// TestShutdown checks that replies report a shutdown, and that streams end properly, even
// while the model writes JSON.
func TestShutdown(t *testing.T) {
	for _, tt := range datatest.Lines[struct {
		Path, Accept, End string
		Body              json.RawMessage
	}](t, "testdata/rows/shutdown.jsonl") {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			stopped := failingModel(func(ctx context.Context) error {
				time.Sleep(16 * time.Second) // streams have begun
				stop()
				<-ctx.Done()
				return ctx.Err()
			})
			h := newHandler(t, func(o *Options) {
				o.Upstream = stopped
				o.Asker = asker(func(ctx context.Context, yield func(answer.Event, error) bool) {
					if yield(answer.Text{Text: "well. And"}, nil); !strings.Contains(string(tt.Body), "whole") {
						yield(nil, stopped(ctx))
					}
				})
			})
			body := callIn(ctx, h, "POST", tt.Path, string(tt.Body), "Accept", tt.Accept).Body.String()
			if v1 := strings.HasPrefix(tt.Path, "/v1"); !strings.Contains(body, tt.End) || v1 && !strings.Contains(body, ": the server stopped)") ||
				v1 && tt.Path != "/v1/responses" && !strings.HasSuffix(body, "data: [DONE]\n\n") {
				t.Errorf("%s %s %s: want the end %s in\n%s", tt.Path, tt.Accept, tt.Body, tt.End, body)
			}
		})
	}
}

// failingModel is a model that fails after some time.
type failingModel func(context.Context) error

func (failingModel) Model() string { return "m" }
func (s failingModel) Chat(ctx context.Context, _ []byte) (*openai.Relayed, error) {
	return nil, s(ctx)
}

// TestLateFailure checks that a response that fails before its first text still has its
// first events.
func TestLateFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, func(o *Options) {
			o.Asker = asker(func(_ context.Context, yield func(answer.Event, error) bool) {
				time.Sleep(16 * time.Second)
				yield(nil, errors.New("broken"))
			})
		})
		body := call(h, "POST", "/v1/responses", `{"model":"ibid","stream":true,"input":"a"}`).Body.String()
		if !regexp.MustCompile(`(?s)^: still here\n\nevent: response.created\n.*\nevent: response.failed\n`).MatchString(body) {
			t.Errorf("want a sign of life, then created and failed, in\n%s", body)
		}
	})
}

// TestHeartbeat counts the comments of a stream that has no event for a minute.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, func(o *Options) {
			o.Asker = asker(func(ctx context.Context, yield func(answer.Event, error) bool) {
				time.Sleep(61 * time.Second)
				yield(answer.Unanswered{Text: "no"}, nil)
			})
		})
		w := call(h, "POST", "/api/ask", why, asEvents...)
		if got := strings.Count(w.Body.String(), ": still here\n\n"); got != 4 {
			t.Errorf("%d comments in 61 s, want 4:\n%s", got, w.Body)
		}
		if events := eventsOf(t, w.Body.Bytes()); events[len(events)-1].kind != "done" {
			t.Errorf("last event = %q, want done", events[len(events)-1].kind)
		}
	})
}

// deafWriter is a client that stops reading its reply after some bytes.
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

// TestDeafReader checks that the work ends when writing an event or a heartbeat fails.
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
				r := httptest.NewRequest("POST", "http://127.0.0.1:8080/api/ask", strings.NewReader(why))
				r.Header.Set("Accept", "text/event-stream")
				room := 600
				if silent {
					room = 200
				}
				e.ServeHTTP(&deafWriter{httptest.NewRecorder(), room}, r)
				if sent > 20 {
					t.Errorf("%d events sent to a client that reads none, want at most 20", sent)
				}
				if !strings.Contains(log.String(), "i/o timeout") || !strings.Contains(log.String(), "code=reader_gone") {
					t.Errorf("log lacks the reason: %s", log.String())
				}
			})
		})
	}
}

// pipeTo connects to a server over a pipe, so that it works in a synctest bubble.
func pipeTo(t *testing.T, h http.Handler) (client net.Conn) {
	t.Helper()
	l := make(pipes, 1)
	srv := NewHTTPServer("", h)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	client, served := net.Pipe()
	l <- served
	t.Cleanup(func() {
		client.Close()
		must(t, srv.Close())
		<-done
	})
	return client
}

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

// TestStuckReader serves a client that reads nothing: the first event that can't be sent in
// time ends the work.
func TestStuckReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan time.Duration, 1)
		client := pipeTo(t, newHandler(t, func(o *Options) {
			o.Asker = asker(func(ctx context.Context, yield func(answer.Event, error) bool) {
				began := time.Now()
				for yield(answer.Text{Text: strings.Repeat("word. ", 200)}, nil) {
				}
				stopped <- time.Since(began)
			})
		}))
		if _, err := io.WriteString(client,
			"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nContent-Length: 19\r\n\r\n"+why); err != nil {
			t.Fatal(err)
		}
		if took := <-stopped; took != writeTimeout {
			t.Errorf("work ended after %v, want %v", took, writeTimeout)
		}
	})
}

// TestSlowRequests checks that clients that do not finish their headers or body are
// disconnected.
func TestSlowRequests(t *testing.T) {
	for request, want := range map[string]struct {
		after time.Duration
		reply string
	}{
		"GET / HTTP/1.1\r\nHost: loc": {10 * time.Second, ""},
		"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{": {bodyTimeout, `"code":"unreadable_body"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := pipeTo(t, newHandler(t, nil))
			_, err := io.WriteString(client, request)
			must(t, err)
			began := time.Now()
			got, err := io.ReadAll(client)
			if took := time.Since(began); err != nil || took != want.after || !strings.Contains(string(got), want.reply) {
				t.Errorf("after %v: %s, %v", took, got, err)
			}
		})
	}
}

// A haltedWriter is a reply in a process that gets no processor time between a write and its flush.
type haltedWriter struct{ http.ResponseWriter }

func (w haltedWriter) FlushError() error {
	time.Sleep(writeTimeout + time.Second)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// TestStarvedServer checks that a reader is not blamed for time in which the server did not
// run.
func TestStarvedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, nil)
		h.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				c.Response().Writer = haltedWriter{c.Response().Writer}
				return next(c)
			}
		})
		client := pipeTo(t, h)
		go io.WriteString(client, "POST /api/ask HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nConnection: close\r\n"+
			"Content-Length: 19\r\n\r\n"+why)
		reply, err := io.ReadAll(client)
		if err != nil || !strings.Contains(string(reply), "event: done\n") || !strings.HasSuffix(string(reply), "\r\n0\r\n\r\n") {
			t.Errorf("stream = %s, err = %v", reply, err)
		}
	})
}

// TestEnd stops a server with many streams that end one after the other, as on an
// overloaded machine. All streams end properly, except that of a client that reads nothing.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams = 50
		processor := make(chan bool, 1) // no mutex: in a synctest bubble time advances only while goroutines wait on channels
		begun, stop := make(chan bool, streams+1), make(chan bool)
		var others sync.WaitGroup
		others.Add(streams)
		s := NewHTTPServer("", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun <- true
			<-stop
			if r.URL.Path == "/deaf" { // last, since its write would fail before the other streams have ended
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
				b, _ := io.ReadAll(c) // the bytes read so far
				replies <- string(b)
			}()
		}
		close(stop)
		started := time.Now()
		if err := s.End(3 * time.Second); err == nil {
			t.Error("End = nil, want an error about the client that reads nothing")
		}
		if took := time.Since(started); took > (streams+10)*time.Second {
			t.Errorf("End took %v", took)
		}
		for range streams {
			if r := <-replies; len(r) < 6 || r[len(r)-8:] != "[DONE]\n\n" {
				t.Errorf("stream ends with %q", r)
			}
		}
		must(t, deaf.Close())
	})
}
