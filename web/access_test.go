package web

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

// accesses returns the access of each route of a server with all routes.
func accesses() accessTable {
	t := accessTable{}
	for _, r := range (&handlers{openAI: &openAI{}}).routes(true, true) {
		t[r.method+" "+r.path] = r.access
	}
	return t
}

func accessOf(r *echo.Route) access {
	return accesses()[strings.Replace(r.Method, "HEAD", "GET", 1)+" "+r.Path]
}

// TestAccess checks that the table has all routes, and that openapi.json agrees.
func TestAccess(t *testing.T) {
	for _, r := range newHandler(t, everyRoute).Routes() {
		if accessOf(r) == 0 {
			t.Errorf("route %s %s is not in the table of routes", r.Method, r.Path)
		}
	}
}

// everyRoute sets the options that some routes need.
func everyRoute(o *Options) {
	o.UploadFolders, o.Sample = oneFolder{Uploads: &ingest.Uploads{}}, fstest.MapFS{}
	o.Keys = newRing()
}

// TestUnlisted checks that a route missing from the table is not served.
func TestUnlisted(t *testing.T) {
	e := newHandler(t, nil)
	e.GET("/forgotten", func(c echo.Context) error { return c.String(http.StatusOK, "the books") })
	for _, row := range datatest.Rows(t, "testdata/rows/tables.txt", "unlisted") {
		if w := call(e, row[0], row[1], ""); strconv.Itoa(w.Code) != row[2] {
			t.Errorf("%s: status = %d, want %s", row, w.Code, row[2])
		}
	}
}

// TestModelServerHidden checks that only a key that may see the settings gets the message and
// the address of the model's server.
func TestModelServerHidden(t *testing.T) {
	const inner = ": cannot reach the model server at http://10.1.2.3:11434/v1: connection refused"
	answers := script{"warned": {answer.Warning{Message: "the question was searched for unchanged" + inner},
		answer.Judged{Passage: "club/guide.pdf#0", Document: "club/guide.pdf", Decision: answer.Errored,
			Reason: "the judge could not be asked" + inner},
		answer.Text{Text: "Yes"},
		answer.Incomplete{Reason: "asking the model (answer): the reply of m at http://10.1.2.3:11434/v1 broke off: EOF"}},
		"store away": {fmt.Errorf("postgres://10.1.2.3:5432/library: %w", retrieve.ErrUnavailable)}}
	says := map[string]string{"warned": "searched for unchanged",
		"store away": "the store that holds the documents is unreachable: ask again"}
	for kind, what := range map[openai.Kind]string{openai.Down: "cannot reach the model server",
		openai.RateLimited: "too many requests to m", openai.Filtered: "the content filter of m",
		openai.ContextLength: "longer than the context window of m",
		openai.Unauthorized:  "the key was rejected for m", openai.NotFound: "there is no m"} {
		says[string(kind)] = what
		answers[string(kind)] = []any{&openai.Error{Kind: kind, Server: "http://10.1.2.3:11434/v1", Model: "m", Detail: "refused by 10.1.2.3"}}
	}
	says["hurried"] = "too many requests to m"
	answers["hurried"] = []any{&openai.Error{Kind: openai.RateLimited, Server: "http://10.1.2.3:11434/v1", Model: "m",
		Detail: "refused by 10.1.2.3", RetryAfter: 2 * time.Second}}
	remedies := map[string][2]string{ // for readers, and for callers that may see the settings
		"down":           {"server: tell whoever runs this server", "check that it is running"},
		"rate_limit":     {"to m: ask again in a minute", "raise the limit of the account"},
		"hurried":        {"to m: ask again in 2s", "wait 2s"},
		"content_filter": {"rejected the prompt: ask in other words", "use another model"},
		"context_length": {"of m: tell whoever runs this server: its model reads too little", "set --context-tokens"},
	}
	k := newKeyed(t, func(o *Options) { o.Asker = answers })
	chief := k.ring.make(t, "chief", func(k *retrieve.Key) { k.Settings = true })
	for question, what := range says {
		for key, settings := range map[string]bool{k.read: false, chief: true} {
			got := k.send(t, "POST", "/api/ask", `{"question":"`+question+`"}`, "Authorization: Bearer "+key).Body.String()
			shown := settings && question != "store away" // the address of the store is only in the log
			if strings.Contains(got, "10.1.2.3") != shown || !strings.Contains(got, what) ||
				question == "warned" && !strings.Contains(got, "the reply of m") {
				t.Errorf("%s, settings %v: body = %s", question, settings, got)
			}
			if r, ok := remedies[question]; ok && (strings.Contains(got, r[0]) == settings || strings.Contains(got, r[1]) != settings) {
				t.Errorf("%s, settings %v: wrong remedy for this key: %s", question, settings, got)
			}
		}
	}
}

func TestCheckOrigin(t *testing.T) {
	for origin, want := range map[string]bool{
		"https://example.org": true, "http://localhost:3000": true, "https://example.org/": false, "https://example.org/docs": false,
		"example.org": false, "*": false, "null": false, "": false, "ftp://example.org": false, "https://u@example.org": false,
	} {
		if err := CheckOrigin(origin); (err == nil) != want {
			t.Errorf("CheckOrigin(%q) = %v, want ok: %t", origin, err, want)
		}
	}
}

// TestPublicKey checks that a public key can only ask and search, and that cookies from
// another site are ignored. The story of origins shows the limits of other keys.
func TestPublicKey(t *testing.T) {
	k := newKeyed(t, func(o *Options) { o.Origins = []string{"https://shop.example"} })
	visitor := k.ring.make(t, "site", func(k *retrieve.Key) { k.Public, k.Collections = true, []string{"default"} })
	k.send(t, "POST", "/key/leave", "", "Cookie: "+k.cookie+"="+k.ended) // makes the server read the keys
	from := []string{"Origin: https://shop.example", "Sec-Fetch-Site: cross-site"}
	w := k.send(t, "POST", "/api/ask", why, append(from, "Cookie: "+k.cookie+"="+k.session)...)
	if w.Code != http.StatusUnauthorized || w.Header().Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("with a cookie: status = %d, header %v; want 401 without credentials", w.Code, w.Header())
	}
	asks := append(from[:1:1], "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization")
	preflight := k.send(t, "OPTIONS", "/api/ask", "", asks...)
	if preflight.Code != http.StatusNoContent || preflight.Header().Get("Access-Control-Allow-Headers") != "Authorization, Content-Type" {
		t.Errorf("preflight: status = %d, header %v", preflight.Code, preflight.Header())
	}
	if w := k.send(t, "OPTIONS", "/api/documents", "", asks...); w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Error("another route allows the origin")
	}
	for r, a := range accesses() {
		method, pattern, _ := strings.Cut(r, " ")
		if a == public || a == visitors {
			continue
		}
		if w := k.send(t, method, concrete(pattern), "{}", append(from, "Authorization: Bearer "+visitor)...); w.Code != http.StatusForbidden {
			t.Errorf("public key: status = %d for %s, want 403", w.Code, r)
		}
	}
}

// TestBehindAProxy checks a server behind a proxy with a path prefix, which the
// proxy removes or passes on: links use the public address, and events arrive as
// they happen.
func TestBehindAProxy(t *testing.T) {
	const public = "https://docs.example.org/library"
	for name, strip := range map[string]bool{"prefix removed": true, "prefix passed on": false} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan struct{})
			s := newShelf()
			fee := s.passage("club/handbook/mooring.md", "The mooring fee is 240 crowns a season.")
			server := httptest.NewServer(newHandler(t, func(o *Options) {
				o.PublicURL = public
				o.Asker = script{"fee": {answer.Retrieved{Question: "fee"}, answer.Kept{Passages: []retrieve.Passage{fee}},
					answer.Text{Text: "The mooring fee is 240 crowns a season.[1] "},
					func(ctx context.Context) error {
						select {
						case <-seen:
							return nil
						case <-ctx.Done():
							return ctx.Err()
						}
					}, answer.Text{Text: "It is due in April."}}}
			}))
			defer server.Close()
			backend, err := url.Parse(server.URL)
			must(t, err)
			// The test has its own transports: closing a test server closes idle connections
			// of the default transport.
			proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: server.Client().Transport, Rewrite: func(r *httputil.ProxyRequest) {
				if strip {
					r.Out.URL.Path, r.Out.URL.RawPath = strings.TrimPrefix(r.In.URL.Path, "/library"), ""
				}
				r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = backend.Scheme, backend.Host, "docs.example.org"
			}})
			defer proxy.Close()
			r, err := http.NewRequestWithContext(t.Context(), "POST", proxy.URL+"/library/api/ask", strings.NewReader(`{"question":"fee"}`))
			must(t, err)
			r.Header.Set("Accept", "text/event-stream")
			r.Header.Set("Origin", "https://docs.example.org")
			resp, err := proxy.Client().Do(r)
			must(t, err)
			defer resp.Body.Close()
			linked, early, whole := false, false, false
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				line := lines.Text()
				linked = linked || strings.Contains(line, `"`+public+`/documents/club/handbook/mooring.md`)
				if strings.HasPrefix(line, "event: text") && !early {
					early = true // the answer waits until the reader has its first event
					close(seen)
				}
				whole = whole || strings.HasPrefix(line, "event: done")
			}
			if !linked || !early || !whole {
				t.Errorf("link has the public address: %v, streamed: %v, complete: %v", linked, early, whole)
			}
		})
	}
}
