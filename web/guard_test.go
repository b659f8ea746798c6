package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"ibid/data/datatest"
)

// TestHeaders checks the headers of every route, and of addresses without a route.
func TestHeaders(t *testing.T) {
	e := newHandler(t, nil)
	want := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action " +
			"'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options": "nosniff",
		"Referrer-Policy":        "no-referrer",
	}
	requests := [][2]string{{"GET", "/nowhere"}, {"DELETE", "/"}, {"POST", "/documents"}, {"OPTIONS", "/api/ask"},
		{"GET", "/%zz"}, {"GET", "//"}}
	for _, r := range e.Routes() {
		requests = append(requests, [2]string{r.Method, strings.ReplaceAll(r.Path, "*", "app.css")})
	}
	if len(requests) < 20 {
		t.Fatalf("only %d requests, want at least 20", len(requests))
	}
	for _, r := range requests {
		for _, host := range []string{"localhost:8080", "evil.example"} {
			req := &http.Request{Method: r[0], URL: &url.URL{Path: r[1]}, Host: host, Header: http.Header{},
				Body: io.NopCloser(strings.NewReader(`{"question":"panics"}`))}
			w := httptest.NewRecorder()
			e.ServeHTTP(w, req)
			for name, value := range want {
				if got := w.Header().Values(name); len(got) != 1 || got[0] != value {
					t.Errorf("%s %s as %s: %s = %q", r[0], r[1], host, name, got)
				}
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s allows other origins", r[0], r[1])
			}
			if host == "evil.example" && w.Code != http.StatusForbidden {
				t.Errorf("%s %s as %s: status = %d, want 403", r[0], r[1], host, w.Code)
			}
		}
	}
}

func TestHosts(t *testing.T) {
	for _, tt := range datatest.Lines[struct {
		Addr, Public, Host string
		Allow              []string
		Want               bool
	}](t, "testdata/rows/hosts.jsonl") {
		e := newHandler(t, func(o *Options) { o.Addr, o.PublicURL, o.AllowHosts = tt.Addr, tt.Public, tt.Allow })
		w := call(e, "GET", "/healthz", "", "Host", tt.Host)
		if got := w.Code == http.StatusOK; got != tt.Want {
			t.Errorf("listening on %s, public %q, requested as %q: status = %d", tt.Addr, tt.Public, tt.Host, w.Code)
		}
	}
}

func TestCrossOrigin(t *testing.T) {
	e := newHandler(t, func(o *Options) { o.PublicURL = "https://docs.example.org/ibid" })
	for _, tt := range datatest.Lines[struct {
		Origin, Site string
		Want         bool
	}](t, "testdata/rows/origins.jsonl") {
		w := call(e, "POST", "/api/search", `{"question":"mooring"}`, "Origin", tt.Origin, "Sec-Fetch-Site", tt.Site)
		if got := w.Code == http.StatusOK; got != tt.Want {
			t.Errorf("origin %q, site %q: status = %d", tt.Origin, tt.Site, w.Code)
		}
	}
}

// TestPrefix checks a server whose proxy removes the path prefix of its public URL, or keeps it.
func TestPrefix(t *testing.T) {
	e := newHandler(t, func(o *Options) { o.PublicURL = "https://docs.example.org/ibid/" })
	for path, want := range datatest.Lines[map[string]string](t, "testdata/rows/prefix.json")[0] {
		if body := call(e, "GET", path, "", "Host", "docs.example.org").Body.String(); !strings.Contains(body, want) {
			t.Errorf("%s lacks %s:\n%s", path, want, body)
		}
	}
	w := call(e, "POST", "/api/ask", `{"question":"What is the mooring fee?"}`, "Host", "docs.example.org")
	if want := `"link":"https://docs.example.org/ibid/documents/club/handbook/mooring.md?start=10\u0026end=49\u0026digest=abababababab\u0026quote=57d6ebfcedbcc2e0#quote"`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("answer has no link to the public URL: %s", w.Body)
	}
}

func TestBadOptions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no scheme": func(o *Options) { o.PublicURL = "docs.example.org" },
		"script":    func(o *Options) { o.PublicURL = "javascript:alert(1)" },
		"file":      func(o *Options) { o.PublicURL = "file:///etc" },
	} {
		o := newOptions()
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("New with %s: no error", name)
		}
	}
}

// TestStatic checks that the static files are served with tags, and no other files.
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
		t.Errorf("/static/app.js: %d %v", first.Code, first.Header())
	}
	if again := get("/static/app.js", first.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("with the ETag: status = %d, want 304", again.Code)
	}
	for _, path := range []string{"/static/", "/static/../web.go", "/static/%2e%2e/web.go", "/static/..%2fweb.go", "/static/app.js/",
		"/static//app.js", "/static/templates/home.html"} {
		if w := get(path, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: status = %d, want 404", path, w.Code)
		}
	}
}
