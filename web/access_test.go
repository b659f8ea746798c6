package web

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/ingest"
)

// TestAccess checks that the table of accesses lists every route and nothing
// else, so that a new route fails until its access is chosen.
func TestAccess(t *testing.T) {
	s := &server{access: accesses()}
	stale := accesses()
	for _, r := range newHandler(t, everyRoute).Routes() {
		if _, ok := s.accessOf(r.Method, r.Path); !ok {
			t.Errorf("the route %s %s is not in the table of accesses", r.Method, r.Path)
		}
		delete(stale, r.Method+" "+r.Path)
	}
	for route := range stale {
		t.Errorf("the table of accesses lists %s, which is not a route", route)
	}
}

// everyRoute sets the options without which some routes do not exist.
func everyRoute(o *Options) {
	o.Summarizer = digest{new(answer.Summary)}
	o.Uploads = &ingest.Uploads{}
	o.Keys = newRing()
	o.Ledger = newLedger()
	o.Embedder = counts{}
}

// TestUnlisted checks that a route outside the table of accesses is not served.
func TestUnlisted(t *testing.T) {
	e := newHandler(t, nil)
	e.GET("/forgotten", func(c echo.Context) error { return c.String(http.StatusOK, "the books") })
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/forgotten", 404}, {"GET", "/nowhere", 404}, {"POST", "/healthz", 405}, {"OPTIONS", "/api/ask", 204}, {"HEAD", "/healthz", 200},
	} {
		if w := call(e, tt.method, tt.path, ""); w.Code != tt.want {
			t.Errorf("%s %s: status %d, want %d", tt.method, tt.path, w.Code, tt.want)
		}
	}
}
