package web

import (
	"strings"

	"github.com/labstack/echo/v4"
)

// stripPrefix takes the public URL's path off a request's. Some proxies pass
// it on and some take it off themselves: both work.
func (s *server) stripPrefix(next echo.HandlerFunc) echo.HandlerFunc {
	prefix, escaped := "", s.prefix()
	if s.public != nil {
		prefix = s.public.Path
	}
	if prefix == "" {
		return next
	}
	below := func(path, prefix string) string {
		if rest, ok := strings.CutPrefix(path, prefix); ok && (rest == "" || rest[0] == '/') {
			return "/" + strings.TrimPrefix(rest, "/")
		}
		return path
	}
	return func(c echo.Context) error {
		u := c.Request().URL
		u.Path = below(u.Path, prefix)
		if u.RawPath != "" {
			u.RawPath = below(u.RawPath, escaped)
		}
		return next(c)
	}
}
