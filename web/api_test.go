package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ibid/answer"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testsWithBrowser{m})
}

// TestLimits sends the longest question, and bodies that nest deeply.
func TestLimits(t *testing.T) {
	e := newHandler(t, nil)
	for _, tt := range []struct {
		name, body string
		status     int
		code       string
	}{
		{"longest question", `{"question":"` + strings.Repeat("a", MaxQuestion) + `"}`, 200, ""},
		{"not UTF-8", `{"question":"When is ` + "\xff\xfe" + ` the office open?"}`, 400, "bad_json"},
		{"deep nesting", `{"question":` + strings.Repeat("[", 100_000) + `}`, 400, "bad_json"},
		{"deep filter", `{"question":"a","filter":` + strings.Repeat(`{"a":`, 20_000) + `}`, 400, "bad_json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, path := range []string{"/api/ask", "/api/search"} {
				w := call(e, "POST", path, tt.body)
				if p := into[Problem](t, w, tt.status); p.Code != tt.code {
					t.Errorf("%s: code = %q, want %q", path, p.Code, tt.code)
				}
				if w.Body.Len() > 2000 {
					t.Errorf("%s: reply has %d bytes, want at most 2000", path, w.Body.Len())
				}
			}
		})
	}
}

// TestLog checks that texts of questions, answers and documents are not logged.
func TestLog(t *testing.T) {
	var log bytes.Buffer
	e := newHandler(t, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	for _, accept := range []string{"application/json", "text/event-stream"} {
		for _, path := range []string{"/api/ask", "/api/search"} {
			for _, q := range []string{"What is the mooring fee?", "mooring"} {
				call(e, "POST", path, `{"question":"`+q+`"}`, "Accept", accept, "Referer", "https://evil.example/ref", "X-Forwarded-For", "10.9.8.7")
			}
		}
	}
	for _, path := range []string{"/documents/club/handbook/mooring.md?start=1&end=9", "/api/documents/club/handbook/mooring.md",
		"/api/documents?root=mooring"} {
		call(e, "GET", path, "")
	}
	if n := strings.Count(log.String(), "msg=request"); n != 11 {
		t.Errorf("%d log lines for 11 requests:\n%s", n, log.String())
	}
	for _, s := range []string{"mooring", "Mooring", "crowns", "harbour", "handbook", "evil.example/ref", "10.9.8.7"} {
		if strings.Contains(log.String(), s) {
			t.Errorf("log contains %q:\n%s", s, log.String())
		}
	}
	log.Reset()
	w := call(e, "POST", "/api/ask", `{"question":"breaks at once"}`)
	if !strings.Contains(log.String(), errBroken.Error()) || !strings.Contains(log.String(), w.Header().Get("X-Request-Id")) {
		t.Errorf("log lacks the cause or the request's id: %s", log.String())
	}
	if strings.Contains(w.Body.String(), "secret/path") {
		t.Errorf("reply shows the cause: %s", w.Body)
	}
}

// TestLogOfAPage checks that a page logs one line, and its files none unless missing.
func TestLogOfAPage(t *testing.T) {
	var logged bytes.Buffer
	e := newHandler(t, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelInfo}))
	})
	for _, path := range []string{"/", "/static/app.js", "/static/app.css", "/static/none.js"} {
		call(e, "GET", path, "")
	}
	said := logged.String()
	if strings.Count(said, "msg=request") != 2 || !strings.Contains(said, "route=/ status=200") ||
		!strings.Contains(said, "route=/static/* status=404") {
		t.Errorf("log =\n%s", said)
	}
}

func TestReadiness(t *testing.T) {
	ready, away := false, error(nil)
	var logged bytes.Buffer
	e := newHandler(t, func(o *Options) {
		o.Indexing = func() Indexing { return Indexing{3, 20, ready} }
		o.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelInfo}))
		o.Reachable = func(ctx context.Context) error {
			if limit, ok := ctx.Deadline(); !ok || time.Until(limit) > storeTimeout {
				t.Errorf("deadline of the store = %v, want at most storeTimeout", limit)
			}
			return away
		}
	})
	errs := map[string]error{"unreachable": errors.New("no route to db.internal"), "index": retrieve.ErrIndexUnavailable,
		"replaced": &retrieve.BuildingError{Done: 34, Total: 779, Earlier: true}, "building": &retrieve.BuildingError{Done: 34, Total: 779},
		"space": &retrieve.SpaceError{Stored: "a", Wanted: "b"}, "full": syscall.ENOSPC}
	for _, want := range datatest.Table[struct {
		Ready  bool
		Away   string
		Status int
		Rest   string
	}](t, "testdata/rows/tables.txt", "readiness") {
		ready, away = want.Ready, errs[want.Away]
		body := strings.ReplaceAll(fmt.Sprintf(`{"done":3,"total":20,"ready":%t,%s}`, want.Status == 200, want.Rest), ",}", "}")
		w := call(e, "GET", "/readyz", "")
		if w.Code != want.Status || strings.TrimSpace(w.Body.String()) != body ||
			(w.Header().Get("Retry-After") != "") != (want.Status == 503) {
			t.Errorf("/readyz: %d %s, want %d %s", w.Code, w.Body, want.Status, body)
		}
		if w := call(e, "GET", "/healthz", ""); w.Code != 200 {
			t.Errorf("/healthz: status = %d, want 200", w.Code)
		}
	}
	if said := logged.String(); strings.Count(said, "db.internal") != 1 || strings.Count(said, "is reachable again") != 1 {
		t.Errorf("log = %s", said)
	}
}

// TestModelDetail checks that /readyz reports a model that failed on the last answer, and
// chunks that are not encoded.
func TestModelDetail(t *testing.T) {
	var events []answer.Event
	encoded, tested := 5000, ""
	e := newHandler(t, func(o *Options) {
		o.SelfTest = func(context.Context) string { return tested }
		o.Encoded = func() (int, int) { return encoded, 5000 }
		o.Asker = asker(func(_ context.Context, yield func(answer.Event, error) bool) {
			for _, e := range events {
				yield(e, nil)
			}
		})
	})
	for _, tt := range []struct {
		events []answer.Event
		detail string
	}{
		{[]answer.Event{answer.Fallback{Reason: "model_rejected"}, answer.Text{Text: "Quoted."}},
			"(model_rejected): sentences are quoted instead; its server rejected the key, the model's name or the request"},
		{[]answer.Event{answer.Text{Text: "Written."}, answer.Stepped{Changed: true}}, ""},
		{[]answer.Event{answer.Fallback{Reason: "model_down"}, answer.Text{Text: "Quoted."}}, "instead; 4210 of 5000 chunks encoded"},
	} {
		events = tt.events
		if strings.Contains(tt.detail, "encoded") {
			encoded = 4210
		}
		call(e, "POST", "/api/ask", `{"question":"mooring"}`)
		var r readiness
		if err := json.Unmarshal(call(e, "GET", "/readyz", "").Body.Bytes(), &r); err != nil || !strings.Contains(r.Detail, tt.detail) ||
			(r.Detail == "") != (tt.detail == "") {
			t.Errorf("after %T: detail = %+v, %v", tt.events[0], r, err)
		}
	}
	tested = "the model did not pass its self-test"
	if got := call(e, "GET", "/readyz", "").Body.String(); !strings.Contains(got, tested) ||
		!strings.Contains(got, "4210 of 5000") {
		t.Errorf("detail = %s, want the failed self-test and the encoded chunks", got)
	}
}

// FuzzRequest sends arbitrary requests: no reply is a server error, and each is JSON or a
// page.
func FuzzRequest(f *testing.F) {
	f.Add("POST", "/api/ask", `{"question":"pizza","history":[{"role":"user","content":"x"}],"top_k":3,"filter":{"root":"a"}}`,
		"text/event-stream")
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
		r := &http.Request{Method: method, URL: u, RequestURI: target, Host: "localhost", Header: http.Header{"Accept": {accept}},
			Body: io.NopCloser(strings.NewReader(body))}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("%s %s: status = %d: %s", method, target, w.Code, w.Body)
		}
		if strings.Contains(w.Header().Get("Content-Type"), "json") && w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s %s: body is not JSON: %s", method, target, w.Body)
		}
		if w.Header().Get("Content-Security-Policy") != contentSecurityPolicy {
			t.Fatalf("%s %s: no Content-Security-Policy", method, target)
		}
	})
}

// TestDocumentPages lists several pages of documents: each document once, in order.
func TestDocumentPages(t *testing.T) {
	var many shelf
	for i := range 2*pageOfDocuments + 7 {
		many = append(many, &ingest.Document{ID: fmt.Sprintf("club/%04d & more.md", i), Title: fmt.Sprintf("Title-%04d", i)})
	}
	e := newHandler(t, func(o *Options) { o.Library = many })
	seen, pages := "", 0
	for next := "/documents?format="; next != ""; pages++ {
		w := call(e, "GET", next, "")
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
		t.Errorf("%d pages list %s, want 3 and %s", pages, seen, want)
	}
}

// TestFoundPlaces opens a place found in a document. The page still shows the words and all
// places.
func TestFoundPlaces(t *testing.T) {
	h, place := newHandler(t, nil), regexp.MustCompile(`<li><a href="([^"]*)"`)
	page := call(h, "GET", "/documents/club/handbook/mooring.md?find=fee", "").Body.String()
	first := place.FindStringSubmatch(page)
	if first == nil {
		t.Fatalf("no place in the page %s", page)
	}
	opened := call(h, "GET", html.UnescapeString(strings.TrimSuffix(first[1], "#quote")), "").Body.String()
	if !strings.Contains(opened, `value="fee"`) || !strings.Contains(opened, `<mark id="quote">`) ||
		len(place.FindAllString(opened, -1)) != len(place.FindAllString(page, -1)) {
		t.Errorf("%s opens a page without the words or places: %s", first[1], opened)
	}
}
