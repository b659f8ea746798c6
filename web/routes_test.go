package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/ingest"
	"ibid/retrieve"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// TestHeaders walks every route, and addresses that have none.
func TestHeaders(t *testing.T) {
	e := newHandler(t, nil)
	want := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":  "nosniff",
		"Referrer-Policy":         "no-referrer",
	}
	requests := [][2]string{{"GET", "/nowhere"}, {"DELETE", "/"}, {"POST", "/documents"}, {"OPTIONS", "/api/ask"}, {"GET", "/%zz"}, {"GET", "//"}}
	for _, r := range e.Routes() {
		requests = append(requests, [2]string{r.Method, strings.ReplaceAll(r.Path, "*", "app.css")})
	}
	if len(requests) < 20 {
		t.Fatalf("only %d requests: the routes are gone", len(requests))
	}
	for _, r := range requests {
		for _, host := range []string{"localhost:8080", "evil.example"} {
			req := &http.Request{Method: r[0], URL: &url.URL{Path: r[1]}, Host: host, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"question":"panics"}`))}
			w := httptest.NewRecorder()
			e.ServeHTTP(w, req)
			for name, value := range want {
				if got := w.Header().Values(name); len(got) != 1 || got[0] != value {
					t.Errorf("%s %s as %s: %s is %q", r[0], r[1], host, name, got)
				}
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s allows other origins", r[0], r[1])
			}
			if host == "evil.example" && w.Code != http.StatusForbidden {
				t.Errorf("%s %s as %s: status %d", r[0], r[1], host, w.Code)
			}
		}
	}
}

// TestRoutes holds the table of routes: a new one is added here on purpose.
func TestRoutes(t *testing.T) {
	want := map[string]string{"/": "GET HEAD", "/static/*": "GET HEAD", "/documents": "GET HEAD", "/documents/*": "GET HEAD",
		"/api/ask": "POST", "/api/search": "POST", "/api/documents": "GET HEAD", "/api/documents/*": "GET HEAD", "/healthz": "GET HEAD", "/readyz": "GET HEAD"}
	for _, r := range newHandler(t, nil).Routes() {
		if !strings.Contains(want[r.Path], r.Method) {
			t.Errorf("the route %s %s is not in the table", r.Method, r.Path)
		}
	}
}

func TestHosts(t *testing.T) {
	tests := []struct {
		addr, public, host string
		allow              []string
		want               bool
	}{
		{addr: "127.0.0.1:8080", host: "127.0.0.1:8080", want: true},
		{addr: "127.0.0.1:8080", host: "localhost:8080", want: true},
		{addr: "127.0.0.1:8080", host: "LOCALHOST", want: true},
		{addr: "127.0.0.1:8080", host: "localhost.:8080", want: true},
		{addr: "127.0.0.1:8080", host: "[::1]:8080", want: true},
		{addr: "127.0.0.1:8080", host: "[::1]", want: true},
		{addr: "127.0.0.1:8080", host: "127.9.9.9", want: true},
		{addr: "127.0.0.1:8080", host: "[::ffff:127.0.0.1]:8080", want: true},
		{addr: "127.0.0.1:8080", host: "evil.example"},
		{addr: "127.0.0.1:8080", host: "localhost.evil.example"},
		{addr: "127.0.0.1:8080", host: "127.0.0.1.evil.example"},
		{addr: "127.0.0.1:8080", host: "192.168.1.7:8080"},
		{addr: "127.0.0.1:8080", host: ""},
		{addr: "127.0.0.1:8080", host: "docs.example.org", public: "https://docs.example.org/ibid", want: true},
		{addr: "127.0.0.1:8080", host: "evil.example", public: "https://docs.example.org"},
		{addr: "127.0.0.1:8080", host: "ibid:8080", allow: []string{"ibid"}, want: true},
		{addr: "127.0.0.1:8080", host: "ibid:8080", allow: []string{"Ibid:80"}, want: true},
		{addr: ":8080", host: "192.168.1.7:8080", want: true},
		{addr: "0.0.0.0:8080", host: "[fe80::1]:8080", want: true},
		{addr: "0.0.0.0:8080", host: "evil.example"},
		{addr: "0.0.0.0:8080", host: "localhost:8080", want: true},
	}
	for _, tt := range tests {
		e := newHandler(t, func(o *Options) { o.Addr, o.PublicURL, o.AllowHosts = tt.addr, tt.public, tt.allow })
		r := httptest.NewRequest("GET", "/healthz", nil)
		r.Host = tt.host
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if got := w.Code == http.StatusOK; got != tt.want {
			t.Errorf("listening on %s, public %q, asked as %q: status %d", tt.addr, tt.public, tt.host, w.Code)
		}
	}
}

func TestCrossOrigin(t *testing.T) {
	tests := []struct {
		origin, site string
		want         bool
	}{
		{"", "", true}, // a program
		{"http://127.0.0.1:8080", "", true},
		{"http://127.0.0.1:8080", "same-origin", true},
		{"https://docs.example.org", "", true},
		{"https://docs.example.org", "cross-site", true}, // the configured address, through a proxy
		{"http://127.0.0.1:9999", "", false},
		{"https://evil.example", "", false},
		{"https://evil.example", "cross-site", false},
		{"null", "", false},
		{"", "cross-site", false},
	}
	e := newHandler(t, func(o *Options) { o.PublicURL = "https://docs.example.org/ibid" })
	for _, tt := range tests {
		r := httptest.NewRequest("POST", "/api/search", strings.NewReader(`{"question":"mooring"}`))
		r.Host = "127.0.0.1:8080"
		for name, value := range map[string]string{"Origin": tt.origin, "Sec-Fetch-Site": tt.site} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if got := w.Code == http.StatusOK; got != tt.want {
			t.Errorf("origin %q, site %q: status %d", tt.origin, tt.site, w.Code)
		}
	}
}

// TestLimits sends what is too large.
func TestLimits(t *testing.T) {
	e := newHandler(t, nil)
	for _, tt := range []struct {
		name, body string
		status     int
		code       string
	}{
		{"longest question", `{"question":"` + strings.Repeat("a", MaxQuestion) + `"}`, 200, ""},
		{"long question", `{"question":"` + strings.Repeat("a", MaxQuestion+1) + `"}`, 413, "question_too_long"},
		{"question of 100 KB", `{"question":"` + strings.Repeat("why ", 25_000) + `"}`, 413, "question_too_long"},
		{"large body", `{"question":"` + strings.Repeat("a", MaxBody) + `"}`, 413, "body_too_large"},
		{"deep nesting", `{"question":` + strings.Repeat("[", 100_000) + `}`, 400, "bad_json"},
		{"deep filter", `{"question":"a","filter":` + strings.Repeat(`{"a":`, 20_000) + `}`, 400, "bad_json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, path := range []string{"/api/ask", "/api/search"} {
				r := httptest.NewRequest("POST", path, strings.NewReader(tt.body))
				r.Host = "localhost"
				w := httptest.NewRecorder()
				e.ServeHTTP(w, r)
				var p Problem
				if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
					t.Fatalf("%s: %v in %.200s", path, err, w.Body)
				}
				if w.Code != tt.status || p.Code != tt.code {
					t.Errorf("%s: status %d, code %q", path, w.Code, p.Code)
				}
				if w.Body.Len() > 2000 {
					t.Errorf("%s: the reply has %d bytes", path, w.Body.Len())
				}
			}
		})
	}
}

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

// TestShutdown tells the reader of a stream that is stopped from inside why it ends.
func TestShutdown(t *testing.T) {
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
	r.Header.Set("Accept", "text/event-stream")
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	if last := lastEvent(w.Body.String()); !strings.HasPrefix(last, "event: error\n") || !strings.Contains(last, `"code":"canceled"`) {
		t.Errorf("the last event is %q", last)
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

// TestLog writes no words of questions, answers and documents.
func TestLog(t *testing.T) {
	var log bytes.Buffer
	e := newHandler(t, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	secrets := []string{"mooring", "Mooring", "crowns", "harbour", "handbook", "evil.example/ref", "10.9.8.7"}
	for _, accept := range []string{"application/json", "text/event-stream"} {
		for _, path := range []string{"/api/ask", "/api/search"} {
			for _, q := range []string{"What is the mooring fee?", "mooring"} {
				r := httptest.NewRequest("POST", path, strings.NewReader(`{"question":"`+q+`"}`))
				r.Host = "localhost"
				r.Header.Set("Accept", accept)
				r.Header.Set("Referer", "https://evil.example/ref")
				r.Header.Set("X-Forwarded-For", "10.9.8.7")
				e.ServeHTTP(httptest.NewRecorder(), r)
			}
		}
	}
	for _, path := range []string{"/documents/club/handbook/mooring.md?start=1&end=9", "/api/documents/club/handbook/mooring.md", "/api/documents?root=mooring"} {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "localhost"
		e.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := strings.Count(log.String(), "msg=request"); n != 11 {
		t.Errorf("%d lines for 11 requests:\n%s", n, log.String())
	}
	for _, s := range secrets {
		if strings.Contains(log.String(), s) {
			t.Errorf("the log holds %q:\n%s", s, log.String())
		}
	}
	log.Reset()
	r := httptest.NewRequest("POST", "/api/ask", strings.NewReader(`{"question":"breaks at once"}`))
	r.Host = "localhost"
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	if !strings.Contains(log.String(), errBroken.Error()) || !strings.Contains(log.String(), w.Header().Get("X-Request-Id")) {
		t.Errorf("the log does not tell the cause under the request's id: %s", log.String())
	}
	if strings.Contains(w.Body.String(), "secret/path") {
		t.Errorf("the reply tells the cause: %s", w.Body)
	}
}

// TestModelErrors tells people what the model's server said.
func TestModelErrors(t *testing.T) {
	for _, tt := range []struct {
		kind   openai.Kind
		status int
	}{{openai.Down, 502}, {openai.Unauthorized, 502}, {openai.TimedOut, 504}} {
		e := newHandler(t, func(o *Options) {
			o.Asker = asker(func(_ context.Context, yield func(answer.Event, error) bool) {
				yield(nil, fmt.Errorf("writing the answer: %w", &openai.Error{Kind: tt.kind, Server: "http://127.0.0.1:11434/v1", Model: "tiny"}))
			})
		})
		r := httptest.NewRequest("POST", "/api/ask", strings.NewReader(`{"question":"why?"}`))
		r.Host = "localhost"
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if w.Code != tt.status || p.Code != "model_"+string(tt.kind) || !strings.Contains(p.Detail, "127.0.0.1:11434") {
			t.Errorf("%s: %d %+v", tt.kind, w.Code, p)
		}
	}
}

func TestReadiness(t *testing.T) {
	ready := false
	e := newHandler(t, func(o *Options) { o.Indexing = func() (int, int, bool) { return 3, 20, ready } })
	for _, want := range []struct {
		status int
		body   string
	}{{503, `{"done":3,"total":20,"ready":false}`}, {200, `{"done":3,"total":20,"ready":true}`}} {
		r := httptest.NewRequest("GET", "/readyz", nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code != want.status || strings.TrimSpace(w.Body.String()) != want.body {
			t.Errorf("%d %s, want %d %s", w.Code, w.Body, want.status, want.body)
		}
		ready = true
	}
}

// TestPrefix serves behind a proxy that takes a path prefix off.
func TestPrefix(t *testing.T) {
	e := newHandler(t, func(o *Options) { o.PublicURL = "https://docs.example.org/ibid/" })
	get := func(path string) string {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "docs.example.org"
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w.Body.String()
	}
	for path, want := range map[string]string{
		"/":                         `src="/ibid/static/app.js"`,
		"/documents":                `href="/ibid/documents/club/guide.pdf"`,
		"/documents/club/guide.pdf": `href="/ibid/static/app.css"`,
	} {
		if body := get(path); !strings.Contains(body, want) {
			t.Errorf("%s does not hold %s:\n%s", path, want, body)
		}
	}
	r := httptest.NewRequest("POST", "/api/ask", strings.NewReader(`{"question":"What is the mooring fee?"}`))
	r.Host = "docs.example.org"
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	if want := `"link":"https://docs.example.org/ibid/documents/club/handbook/mooring.md?start=10\u0026end=49#quote"`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("the answer does not link below the public URL: %s", w.Body)
	}
}

func TestBadOptions(t *testing.T) {
	s := newShelf()
	good := Options{Asker: newScript(s), Searcher: s, Library: s, Logger: slog.New(slog.DiscardHandler)}
	for name, change := range map[string]func(*Options){
		"no asker":  func(o *Options) { o.Asker = nil },
		"no scheme": func(o *Options) { o.PublicURL = "docs.example.org" },
		"script":    func(o *Options) { o.PublicURL = "javascript:alert(1)" },
		"file":      func(o *Options) { o.PublicURL = "file:///etc" },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestStatic serves the files with tags, and nothing else.
func TestStatic(t *testing.T) {
	e := newHandler(t, nil)
	get := func(path, tag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL = &url.URL{Path: path}
		r.Host = "localhost"
		r.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w
	}
	first := get("/static/app.js", "")
	if first.Code != 200 || first.Header().Get("Content-Type") != "text/javascript; charset=utf-8" || first.Body.Len() == 0 {
		t.Errorf("%d %v", first.Code, first.Header())
	}
	if again := get("/static/app.js", first.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("asked again: %d", again.Code)
	}
	for _, path := range []string{"/static/", "/static/../web.go", "/static/%2e%2e/web.go", "/static/..%2fweb.go", "/static/app.js/", "/static//app.js", "/static/templates/home.html"} {
		if w := get(path, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
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

// FuzzLink makes a link, asks a real router for it, and wants the same document and place back.
func FuzzLink(f *testing.F) {
	for _, id := range []string{"a/b.md", "a/b c#d?e%f&g;h+i=j.txt", `a/<script>"'.md`, "a/日本/né.pdf", "a/..b", "a/%2e%2e/%2F", "a/b\\c", "a//b", "a/\x1b[31m", "a/b\u202e", "a/:x/*y"} {
		f.Add(id, 3, 9)
	}
	var seen string
	var place textRange
	e := newHandler(f, func(o *Options) { o.Library = probe{&seen} })
	f.Fuzz(func(t *testing.T, id string, start, end int) {
		link := Link("http://127.0.0.1:8080/", id, start, end)
		u, err := url.Parse(link)
		if err != nil {
			t.Fatalf("Link(%q) = %q: %v", id, link, err)
		}
		if u.Host != "127.0.0.1:8080" || !strings.HasPrefix(u.Path, "/documents/") {
			t.Fatalf("Link(%q) = %q leads elsewhere", id, link)
		}
		if strings.ContainsAny(link, "\"'<>\\^`{|} \x00\n\r\t") && !strings.ContainsAny(link, "'") {
			t.Fatalf("Link(%q) = %q is not escaped", id, link)
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + u.RequestURI() + " HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n")))
		if err != nil {
			t.Fatalf("Link(%q) = %q cannot be asked for: %v", id, link, err)
		}
		seen = ""
		e.ServeHTTP(httptest.NewRecorder(), r)
		if seen != id {
			t.Fatalf("Link(%q) = %q asks for %q", id, link, seen)
		}
		if start < 0 {
			return
		}
		if _, place, err = linked(u, "/documents/"); err != nil {
			t.Fatalf("Link(%q, %d, %d) = %q: %v", id, start, end, link, err)
		}
		if want := (textRange{Start: start, End: end}); end > start && place != want {
			t.Fatalf("Link(%q, %d, %d) = %q gives %+v", id, start, end, link, place)
		}
	})
}

// FuzzRequest sends requests of any shape: the server never fails, and what
// it says is JSON or a page.
func FuzzRequest(f *testing.F) {
	f.Add("POST", "/api/ask", `{"question":"pizza","history":[{"role":"user","content":"x"}],"top_k":3,"filter":{"root":"a"}}`, "text/event-stream")
	f.Add("POST", "/api/search", `{"question":"mooring","collection":"x"}`, "")
	f.Add("GET", "/api/documents/club/guide.pdf?start=3&end=9", "", "")
	f.Add("GET", "/documents/club/guide.pdf?at=99999999999", "", "text/html")
	f.Add("GET", "/documents?after=%ff&limit=1&format=pdf", "", "text/html")
	f.Add("GET", "/documents?limit=0", "", "text/html")
	f.Add("HEAD", "/static/app.js", "", "")
	f.Add("PUT", "/documents/%2e%2e/%00", "[", "*/*")
	e := newHandler(f, func(o *Options) {
		o.Asker = asker(func(_ context.Context, yield func(answer.Event, error) bool) {
			yield(answer.Unanswered{Text: "no"}, nil)
		})
	})
	f.Fuzz(func(t *testing.T, method, target, body, accept string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.ContainsAny(method, " \r\n") {
			t.Skip()
		}
		r := &http.Request{Method: method, URL: u, RequestURI: target, Host: "localhost", Header: http.Header{"Accept": {accept}}, Body: io.NopCloser(strings.NewReader(body))}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("%s %s: %d %s", method, target, w.Code, w.Body)
		}
		if strings.Contains(w.Header().Get("Content-Type"), "json") && w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s %s: not JSON: %s", method, target, w.Body)
		}
		if w.Header().Get("Content-Security-Policy") != contentSecurityPolicy {
			t.Fatalf("%s %s: no policy", method, target)
		}
	})
}

// TestDocumentPages lists more documents than go on one page: each once, in order.
func TestDocumentPages(t *testing.T) {
	var many shelf
	for i := range 2*pageOfDocuments + 7 {
		many = append(many, &ingest.Document{ID: fmt.Sprintf("club/%04d & more.md", i), Title: fmt.Sprintf("Title-%04d", i)})
	}
	e := newHandler(t, func(o *Options) { o.Library = many })
	seen, pages := "", 0
	for next := "/documents?format="; next != ""; pages++ {
		r := httptest.NewRequest("GET", next, nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		for _, m := range regexp.MustCompile(`Title-(\d+)`).FindAllStringSubmatch(w.Body.String(), -1) {
			seen += m[1] + " "
		}
		next = ""
		if m := regexp.MustCompile(`href="(/documents\?[^"]*)"`).FindStringSubmatch(w.Body.String()); m != nil {
			next = html.UnescapeString(m[1])
		}
	}
	want := ""
	for i := range many {
		want += fmt.Sprintf("%04d ", i)
	}
	if seen != want || pages != 3 {
		t.Errorf("%d pages list %s", pages, seen)
	}
}

// probe is a library that remembers what it was asked for.
type probe struct{ seen *string }

func (p probe) Document(_ context.Context, id string) (*ingest.Document, error) {
	*p.seen = id
	return &ingest.Document{ID: id, Text: "text"}, nil
}

func (p probe) Documents(context.Context, retrieve.Filter) ([]retrieve.DocumentInfo, error) {
	return nil, nil
}
