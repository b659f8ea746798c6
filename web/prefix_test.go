package web

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"ibid/answer"
	"ibid/retrieve"
)

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
			// The transports are this test's own: every test server that closes also
			// closes idle connections of the default one.
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
					early = true // the answer waits for the reader
					close(seen)
				}
				whole = whole || strings.HasPrefix(line, "event: done")
			}
			if !linked || !early || !whole {
				t.Errorf("linked to the public address: %v, streamed: %v, complete: %v", linked, early, whole)
			}
		})
	}
}
