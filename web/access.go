package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

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
		"GET /static/*":     public,
		"GET /openapi.json": public,
		"GET /docs":         public,
		"GET /healthz":      public,
		"GET /readyz":       public,
		"GET /key":          public,
		"POST /key":         public,
		"POST /key/leave":   public,

		"GET /":            readers,
		"GET /documents":   readers,
		"GET /documents/*": readers,

		"GET /metrics": readers,

		"POST /mcp":   readers,
		"DELETE /mcp": readers,

		"POST /api/ask":               readers,
		"POST /api/search":            readers,
		"POST /api/summarize":         readers,
		"POST /api/runs":              readers,
		"GET /api/runs":               readers,
		"GET /api/runs/:id":           readers,
		"DELETE /api/runs/:id":        readers,
		"PUT /api/runs/:id/shared":    readers,
		"DELETE /api/runs/:id/shared": readers,
		"POST /api/feedback":          readers,
		"GET /api/feedback":           writers,
		"GET /api/collections":        readers,
		"GET /api/documents":          readers,
		"GET /api/documents/*":        readers,
		"POST /api/documents":         writers,
		"POST /api/documents/*":       writers,
		"DELETE /api/documents/*":     writers,

		"POST /v1/chat/completions": readers,
		"POST /v1/responses":        readers,
		"POST /v1/embeddings":       readers,
		"GET /v1/models":            readers,
		"GET /v1/models/*":          readers,
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

// admit lets only those in who may use the route, before anything of the
// request but its head is read. What it lets through goes on only as long as
// the key does.
func (s *server) admit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		a, listed := s.accessTo(c)
		if s.keys == nil || !listed || a == public {
			return next(c)
		}
		who, err := s.identify(c)
		if err != nil {
			return refuse(c, err)
		}
		if a == writers && !who.key.Write {
			return refuse(c, &Problem{Status: http.StatusForbidden, Code: "key_only_reads",
				Detail: "this key may read and not change anything: use one made with 'ibid keys make NAME --scope write'"})
		}
		r := c.Request()
		s.keys.used(r.Context(), who.key)
		ctx, release := s.keys.while(context.WithValue(r.Context(), holderOf{}, who))
		defer release()
		c.SetRequest(r.WithContext(ctx))
		return next(c)
	}
}

// refuse has the server read no more of a request that it refuses. It would
// read on in a body without a length, for the next request.
func refuse(c echo.Context, err error) error {
	if c.Request().ContentLength == 0 {
		return err
	}
	ended := http.NewResponseController(c.Response()).SetReadDeadline(time.Now())
	if ended != nil && !errors.Is(ended, http.ErrNotSupported) {
		return errors.Join(err, ended)
	}
	// A body over its limit is what has the server close the connection in a way
	// that leaves the client time to read why.
	w := c.Response().Writer
	for u, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok; u, ok = w.(interface{ Unwrap() http.ResponseWriter }) {
		w = u.Unwrap()
	}
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("-")), 0).Read(make([]byte, 1))
	return err
}

// identify gives who sent a request: a key in its Authorization header, or the
// session in its cookie, and nothing else, lets one in.
func (s *server) identify(c echo.Context) (*holder, error) {
	shown, cookie, err := s.shown(c.Request())
	if err != nil {
		return nil, err
	}
	if shown == "" {
		return nil, unauthorized("no_key", "this server answers only with a key: send it as 'Authorization: Bearer KEY', or give it to the page; 'ibid keys make' makes one")
	}
	return s.known(c, shown, cookie)
}

// shown gives the key or, from a cookie, the token that a request shows; both
// are empty if it shows none.
func (s *server) shown(r *http.Request) (shown string, cookie bool, err error) {
	sent, ok := r.Header[echo.HeaderAuthorization]
	if ok {
		scheme, key, _ := strings.Cut(sent[0], " ")
		key = strings.TrimLeft(key, " ")
		if len(sent) > 1 || !strings.EqualFold(scheme, "Bearer") || key == "" {
			// It is no key; that it is none is told where wrong keys are counted.
			return "-", false, nil
		}
		return key, false, nil
	}
	if c, err := r.Cookie(s.cookieName()); err == nil && c.Value != "" {
		return c.Value, true, nil
	}
	return "", false, nil
}

// known gives who shows a key or, from a cookie, a session's token. It is the
// one way in for both. Wrong ones are counted by address; from one that has
// shown too many, only keys are looked at that were right from there before.
func (s *server) known(c echo.Context, shown string, cookie bool) (*holder, error) {
	ctx, address, now := c.Request().Context(), c.RealIP(), time.Now()
	if err := s.keys.refresh(ctx, freshFor); err != nil {
		return nil, err
	}
	find := s.keys.byKey
	if cookie {
		find = s.keys.bySession
	}
	who, err := find(shown)
	wait := s.tries.wait(address, now)
	if who == nil && wait == 0 {
		// It may have been made since the ring was read.
		if err := s.keys.refresh(ctx, 0); err != nil {
			return nil, err
		}
		who, err = find(shown)
	}
	switch {
	case wait > 0 && (who == nil || !who.key.knows(address)):
		return nil, tooMany(c, "too_many_tries", wait, "%d wrong keys came from this address: try again after the time in Retry-After", MaxTries)
	case who == nil && cookie:
		s.tries.wrong(address, now)
		s.forget(c)
		return nil, unauthorized("session_ended", "this session has ended: give the key again")
	case who == nil:
		s.tries.wrong(address, now)
		if wrong := checkKey(shown); wrong != nil {
			return nil, unauthorized("bad_key", "what was sent is no key: %v", wrong)
		}
		return nil, unauthorized("bad_key", "this key is not known here: it was revoked, or made for another server")
	case err != nil:
		if cookie {
			s.forget(c)
		}
		return nil, err
	}
	who.key.shownFrom(address)
	return who, nil
}
