package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/ingest"
)

// TestAccess: every route is in the table of who may use it, and the table has
// no other lines. A new route fails here until it is listed on purpose.
func TestAccess(t *testing.T) {
	s := &server{access: accesses()}
	stale := accesses()
	for _, r := range newHandler(t, everyRoute).Routes() {
		if _, ok := s.accessOf(r.Method, r.Path); !ok {
			t.Errorf("the route %s %s is not in the table of accesses: say who may use it", r.Method, r.Path)
		}
		delete(stale, r.Method+" "+r.Path)
	}
	for route := range stale {
		t.Errorf("the table of accesses lists %s, which is no route", route)
	}
}

// everyRoute gives a server all that it can be made of, so that it has all its
// routes.
func everyRoute(o *Options) {
	o.Summarizer = digest{new(answer.Summary)}
	o.Uploads = &ingest.Uploads{}
	o.Keys = newRing()
	o.Ledger = newLedger()
	o.Embedder = counts{}
}

// TestUnlisted: a route that is not in the table is served to nobody.
func TestUnlisted(t *testing.T) {
	e := newHandler(t, nil)
	e.GET("/forgotten", func(c echo.Context) error { return c.String(http.StatusOK, "the books") })
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/forgotten", 404}, {"GET", "/nowhere", 404}, {"POST", "/healthz", 405}, {"OPTIONS", "/api/ask", 204}, {"HEAD", "/healthz", 200},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(tt.method, tt.path, nil)
		r.Host = "localhost"
		e.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s %s: status %d, want %d", tt.method, tt.path, w.Code, tt.want)
		}
	}
}
