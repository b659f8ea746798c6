package web

import (
	"cmp"
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

// A browser sends its key once, in a form, and gets a session: a random token in a cookie
// that scripts cannot read and that requests from other sites do not include.

// keyForm serves the form for a key, and begins and ends sessions.
type keyForm struct {
	guard *keyGuard
	pages *pages
}

type keyPage struct {
	frame
	Problem *Problem // why the form is shown; nil if the user opened it
	Holder  string   // name of the key in use, or ""
	Next    string   // path to go to afterwards, with the proxy's prefix
	// Again is an address that the browser reloads by itself, or "". After a link from
	// another site it sends its cookie only on the second request.
	Again string
}

// cookieName returns the name of the session's cookie. Its prefix makes browsers reject a
// cookie set by another host of the same domain.
func (g *keyGuard) cookieName() string {
	switch {
	case g.address.secure() && g.address.prefix() == "":
		return "__Host-ibid"
	case g.address.secure():
		return "__Secure-ibid"
	default:
		return "ibid_session"
	}
}

// setCookie sets the session's cookie, or removes it if age is 0.
func (g *keyGuard) setCookie(c echo.Context, token string, age time.Duration) {
	seconds := int(age.Seconds())
	if seconds <= 0 {
		seconds = -1 // removes it
	}
	c.SetCookie(&http.Cookie{Name: g.cookieName(), Value: token, Path: cmp.Or(g.address.prefix(), "/"), MaxAge: seconds,
		HttpOnly: true, Secure: g.address.secure(), SameSite: http.SameSiteStrictMode})
}

// show shows the form, or redirects a caller with a session to the page that it came from.
func (f *keyForm) show(c echo.Context) error {
	next := f.guard.address.localPath(c.QueryParam("next"))
	p := keyPage{frame: f.pages.frame("Key"), Next: next}
	if _, err := c.Request().Cookie(f.guard.cookieName()); err == nil {
		caller, err := f.guard.identify(c)
		switch {
		case err == nil && c.QueryParam("next") != "":
			return c.Redirect(http.StatusSeeOther, next)
		case err == nil:
			p.Holder = caller.key.Name
		default:
			p.Problem = problemOf(c, err)
		}
	}
	return f.pages.send(c, http.StatusOK, "key", p)
}

// maxForm is the largest form with a key, in bytes.
const maxForm = 8 << 10

func (f *keyForm) beginSession(c echo.Context) error {
	ctx := c.Request().Context()
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return refuse(c, invalid("bad_form", "the form cannot be read: send it again").withCause(err))
	}
	form := r.PostForm
	next := f.guard.address.localPath(form.Get("next"))
	key := strings.TrimSpace(form.Get("key"))
	if len(form["key"]) != 1 || key == "" {
		key = notAKey
	}
	caller, err := f.guard.verify(c, key, false)
	if err != nil {
		return refuse(c, err)
	}
	token := rand.Text() + rand.Text()
	session := retrieve.Session{Digest: sha256.Sum256([]byte(token)), Key: caller.key.ID, Started: time.Now()}
	err = f.guard.keys.store.BeginSession(ctx, session)
	if errors.Is(err, retrieve.ErrNotFound) {
		return refuse(c, unauthorized("bad_key", "this key has just been revoked: use another one"))
	}
	if err != nil {
		return fmt.Errorf("beginning a session: %w", err)
	}
	f.guard.keys.recordUse(ctx, caller.key)
	if err := f.guard.keys.refresh(ctx, 0); err != nil { // so that the next request finds the session
		return err
	}
	age := retrieve.MaxSessionAge
	if !caller.expires.IsZero() {
		age = min(age, time.Until(caller.expires))
	}
	f.guard.setCookie(c, token, age)
	return c.Redirect(http.StatusSeeOther, next)
}

func (f *keyForm) endSession(c echo.Context) error {
	ctx := c.Request().Context()
	if cookie, err := c.Request().Cookie(f.guard.cookieName()); err == nil {
		if err := f.guard.keys.store.EndSession(ctx, sha256.Sum256([]byte(cookie.Value))); err != nil {
			return fmt.Errorf("ending the session: %w", err)
		}
		if err := f.guard.keys.refresh(ctx, 0); err != nil {
			return err
		}
	}
	f.guard.setCookie(c, "", 0)
	return c.Redirect(http.StatusSeeOther, f.guard.address.prefix()+"/key")
}

// localPath returns next if it is a path of this server as a browser sees it, else the home
// page's path, so that no address redirects to another site.
func (a address) localPath(next string) string {
	home := a.prefix() + "/"
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, home) ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\t\r\n") {
		return home
	}
	return u.String()
}

// requireKey shows the form instead of a page that needs a key.
func (f *keyForm) requireKey(c echo.Context, p *Problem) error {
	r := c.Request()
	page := keyPage{frame: f.pages.frame("Key"), Problem: p, Next: f.guard.address.localPath("")}
	switch r.Method {
	case http.MethodGet:
		page.Next = f.guard.address.localPath(f.guard.address.prefix() + r.URL.RequestURI())
		if p.Code == "no_key" && r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
			page.Again = f.guard.address.prefix() + "/key?" + url.Values{"next": {page.Next}}.Encode()
		}
	case http.MethodPost:
		page.Next = f.guard.address.localPath(r.PostForm.Get("next"))
	}
	return f.pages.send(c, p.Status, "key", page)
}
