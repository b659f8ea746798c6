package web

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/retrieve"
)

// A browser gives its key once, in a form, and gets a session for it: a random
// token in a cookie that no script can read and that goes out with no other
// site's requests.

// keyPage is the form that takes a key.
type keyPage struct {
	frame
	Problem *Problem // why the form is shown; nil for who came to see it
	Holder  string   // name of the key that is in use; empty if none is
	Next    string   // where to go on, a path as the browser sees it
	// Again is where the browser is to come again by itself, empty for not at
	// all: one that follows a link from another site sends its cookie only then.
	Again string
}

// secure says whether people reach the server by HTTPS.
func (s *server) secure() bool { return s.public != nil && s.public.Scheme == "https" }

// cookieName is that of the session's cookie. The prefixes have browsers refuse
// one that another site of the same domain has set.
func (s *server) cookieName() string {
	switch {
	case s.secure() && s.prefix() == "":
		return "__Host-ibid"
	case s.secure():
		return "__Secure-ibid"
	default:
		return "ibid_session"
	}
}

func (s *server) setCookie(c echo.Context, token string, age time.Duration) {
	path := s.prefix()
	if path == "" {
		path = "/"
	}
	seconds := int(age.Seconds())
	if seconds <= 0 {
		seconds = -1 // removes it
	}
	c.SetCookie(&http.Cookie{Name: s.cookieName(), Value: token, Path: path, MaxAge: seconds,
		HttpOnly: true, Secure: s.secure(), SameSite: http.SameSiteStrictMode})
}

// forget has the browser forget its session.
func (s *server) forget(c echo.Context) { s.setCookie(c, "", 0) }

// addKeyRoutes adds the form, where keys guard the server.
func (s *server) addKeyRoutes(e *echo.Echo) {
	if s.keys == nil {
		return
	}
	e.GET("/key", s.keyForm)
	e.HEAD("/key", s.keyForm)
	e.POST("/key", s.enter)
	e.POST("/key/leave", s.leave)
}

// keyForm shows the form, or goes on to where the one who has a session was going.
func (s *server) keyForm(c echo.Context) error {
	next := s.localPath(c.QueryParam("next"))
	p := keyPage{frame: s.frame("Key"), Next: next}
	if _, err := c.Request().Cookie(s.cookieName()); err == nil {
		who, err := s.identify(c)
		switch {
		case err == nil && c.QueryParam("next") != "":
			return c.Redirect(http.StatusSeeOther, next)
		case err == nil:
			p.Holder = who.key.Name
		default:
			p.Problem = problemOf(c, err)
		}
	}
	return s.page(c, http.StatusOK, "key", p)
}

// maxForm is the largest form with a key, in bytes.
const maxForm = 8 << 10

// enter takes a key and begins a session.
func (s *server) enter(c echo.Context) error {
	form, err := s.form(c)
	if err != nil {
		return refuse(c, err)
	}
	next := s.localPath(form.Get("next"))
	key := strings.TrimSpace(form.Get("key"))
	if len(form["key"]) != 1 || key == "" {
		key = "-" // no key, and counted as a wrong one
	}
	who, err := s.known(c, key, false)
	if err != nil {
		return refuse(c, err)
	}
	token := rand.Text() + rand.Text()
	session := retrieve.Session{Digest: sha256.Sum256([]byte(token)), Key: who.key.ID, Started: time.Now()}
	err = s.keys.store.Begin(c.Request().Context(), session)
	if errors.Is(err, retrieve.ErrNotFound) {
		return refuse(c, unauthorized("bad_key", "this key was revoked a moment ago"))
	}
	if err != nil {
		return fmt.Errorf("beginning a session: %w", err)
	}
	s.keys.used(c.Request().Context(), who.key)
	// The next request is to find it.
	if err := s.keys.refresh(c.Request().Context(), 0); err != nil {
		return err
	}
	age := retrieve.MaxSessionAge
	if !who.until.IsZero() {
		age = min(age, time.Until(who.until))
	}
	s.setCookie(c, token, age)
	return c.Redirect(http.StatusSeeOther, next)
}

// leave ends the browser's session.
func (s *server) leave(c echo.Context) error {
	if cookie, err := c.Request().Cookie(s.cookieName()); err == nil {
		if err := s.keys.store.End(c.Request().Context(), sha256.Sum256([]byte(cookie.Value))); err != nil {
			return fmt.Errorf("ending the session: %w", err)
		}
		if err := s.keys.refresh(c.Request().Context(), 0); err != nil {
			return err
		}
	}
	s.forget(c)
	return c.Redirect(http.StatusSeeOther, s.prefix()+"/key")
}

// form reads a small form.
func (s *server) form(c echo.Context) (url.Values, error) {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), &patient{ReadCloser: r.Body, control: http.NewResponseController(c.Response())}, maxForm)
	if err := r.ParseForm(); err != nil {
		p := invalid("bad_form", "the form cannot be read: send it again")
		p.cause = err
		return nil, p
	}
	return r.PostForm, nil
}

// localPath gives a path of this server as a browser sees it, the home page's
// for what is none: nobody is sent elsewhere by an address that another site made.
func (s *server) localPath(next string) string {
	home := s.prefix() + "/"
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, home) ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\t\r\n") {
		return home
	}
	return u.String()
}

// keyFirst shows the form in place of a page that needs a key.
func (s *server) keyFirst(c echo.Context, p *Problem) error {
	r := c.Request()
	page := keyPage{frame: s.frame("Key"), Problem: p, Next: s.localPath("")}
	switch r.Method {
	case http.MethodGet:
		page.Next = s.localPath(s.prefix() + r.URL.RequestURI())
		if p.Code == "no_key" && r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
			page.Again = s.prefix() + "/key?" + url.Values{"next": {page.Next}}.Encode()
		}
	case http.MethodPost:
		page.Next = s.localPath(r.PostForm.Get("next"))
	}
	return s.page(c, p.Status, "key", page)
}
