package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"
)

// origins are those of other sites whose pages may ask here, such as
// "https://example.org".
type origins []string

// CheckOrigin returns an error unless a text is an origin as browsers send it.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return fmt.Errorf("%q is no origin: give it as https://example.org, without a path", origin)
	}
	return nil
}

// listed reports whether a request comes from a page of these origins.
func (o origins) listed(c echo.Context) bool {
	return slices.Contains(o, c.Request().Header.Get("Origin"))
}

// admitOrigins lets pages of these origins use the routes for visitors. They send a key, if
// keys are in use: what a browser sends by itself, or a proxy adds, does not count.
// Requests from elsewhere go on to guard.
func (g *keyGuard) admitOrigins(guard echo.MiddlewareFunc) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		guarded := guard(next)
		return func(c echo.Context) error {
			r, h := c.Request(), c.Response().Header()
			if a, _ := g.access.of(http.MethodPost, r.URL.Path); a != visitors || !g.origins.listed(c) {
				return guarded(c)
			}
			h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
			h.Add("Vary", "Origin")
			if r.Method == http.MethodOptions {
				h.Set("Access-Control-Allow-Methods", http.MethodPost)
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
				h.Set("Access-Control-Max-Age", "600")
				return c.NoContent(http.StatusNoContent)
			}
			h.Set("Access-Control-Expose-Headers", "Retry-After, X-Request-Id")
			r.Header.Del("Cookie")
			if g.people != nil {
				r.Header.Del(g.people.User)
			}
			return next(c)
		}
	}
}
