package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// An access says who may use a route where keys guard the server.
type access int

const (
	// public routes show nothing of the library, and take no key.
	public access = iota + 1
	// readers hold a key that may read, or one that may write.
	readers
	// writers hold a key that may write: they change what others read.
	writers
)

// accesses is the one table of who may use which route, by method and pattern;
// HEAD goes with GET. A route that is not in it is served to nobody.
func accesses() map[string]access {
	return map[string]access{
		"GET /static/*": public,
		"GET /healthz":  public,
		"GET /readyz":   public,

		"GET /":            readers,
		"GET /documents":   readers,
		"GET /documents/*": readers,

		"POST /api/ask":           readers,
		"POST /api/search":        readers,
		"POST /api/summarize":     readers,
		"GET /api/documents":      readers,
		"GET /api/documents/*":    readers,
		"POST /api/documents":     writers,
		"POST /api/documents/*":   writers,
		"DELETE /api/documents/*": writers,
	}
}

// accessTo gives who may use the route that a request has come to; ok is false
// where that is nobody.
func (s *server) accessTo(c echo.Context) (a access, ok bool) {
	return s.accessOf(c.Request().Method, c.Path())
}

func (s *server) accessOf(method, pattern string) (a access, ok bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	a, ok = s.access[method+" "+pattern]
	return a, ok
}

// listed serves only the routes of the table.
func (s *server) listed(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		// Where only the method is wrong, the router's own reply names the right ones.
		if _, ok := s.accessTo(c); !ok && c.Get(echo.ContextKeyHeaderAllow) == nil {
			return echo.ErrNotFound
		}
		return next(c)
	}
}
