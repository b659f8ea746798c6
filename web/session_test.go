package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/retrieve"
)

// form submits a form as a browser does.
func (k *keyed) form(t *testing.T, path string, fields url.Values, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return k.send(t, "POST", path, fields.Encode(),
		append(headers, "Content-Type: application/x-www-form-urlencoded", "Accept: text/html")...)
}

// TestSession checks that a browser signs in once, returns to its page, and signs
// out.
func TestSession(t *testing.T) {
	k := newKeyed(t, nil)
	w := k.send(t, "GET", "/documents/club/guide.pdf?start=4&end=9", "", "Accept: text/html")
	if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(),
		`name="next" value="/documents/club/guide.pdf?start=4&amp;end=9"`) {
		t.Errorf("form: %d %s", w.Code, w.Body)
	}
	if strings.Contains(w.Body.String(), "<meta http-equiv") || len(w.Result().Cookies()) != 0 {
		t.Errorf("form: header %v, body %s", w.Header(), w.Body)
	}
	w = k.form(t, "/key", url.Values{"key": {" " + k.read + "\n"}, "next": {"/documents/club/guide.pdf?start=4&end=9"}},
		"Origin: http://localhost:8080", "Sec-Fetch-Site: same-origin")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/documents/club/guide.pdf?start=4&end=9" {
		t.Fatalf("sign-in: %d %v %s", w.Code, w.Header(), w.Body)
	}
	set := w.Result().Cookies()
	if len(set) != 1 || !set[0].HttpOnly || set[0].SameSite != http.SameSiteStrictMode || set[0].Path != "/" || set[0].Secure ||
		set[0].Domain != "" ||
		set[0].MaxAge != int(retrieve.MaxSessionAge.Seconds()) || len(set[0].Value) < 43 || strings.Contains(w.Body.String(), k.read) {
		t.Fatalf("cookie = %v", set)
	}
	cookie := "Cookie: " + set[0].Name + "=" + set[0].Value
	for _, s := range k.ring.sessions {
		if strings.Contains(string(s.Digest[:]), set[0].Value) {
			t.Error("the token itself is stored, not its digest")
		}
	}
	if w := k.send(t, "GET", "/documents/club/guide.pdf", "", cookie, "Accept: text/html"); w.Code != http.StatusOK ||
		!strings.Contains(w.Body.String(), "harbour office") {
		t.Errorf("with the session: status = %d, want 200", w.Code)
	}
	if w := k.send(t, "GET", "/key", "", cookie, "Accept: text/html"); !strings.Contains(w.Body.String(), "reader") ||
		!strings.Contains(w.Body.String(), `action="/key/leave"`) {
		t.Errorf("page of the session: %s", w.Body)
	}
	if w := k.send(t, "GET", "/key?next=/documents", "", cookie, "Accept: text/html"); w.Code != http.StatusSeeOther ||
		w.Header().Get("Location") != "/documents" {
		t.Errorf("redirect: %d %v", w.Code, w.Header())
	}
	w = k.form(t, "/key/leave", nil, cookie)
	if left := w.Result().Cookies(); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/key" || len(left) != 1 ||
		left[0].MaxAge >= 0 {
		t.Errorf("sign-out: %d %v", w.Code, w.Header())
	}
	w = k.send(t, "GET", "/documents", "", cookie, "Accept: text/html")
	if gone := w.Result().Cookies(); w.Code != http.StatusUnauthorized || len(gone) != 1 || gone[0].MaxAge >= 0 ||
		!strings.Contains(w.Body.String(), "session has ended") {
		t.Errorf("after the sign-out: %d %v", w.Code, w.Header())
	}
}

// TestWrongKeyInForm checks that the form names the mistake and does not show the
// key.
func TestWrongKeyInForm(t *testing.T) {
	k := newKeyed(t, nil)
	typo := k.read[:20] + "!" + k.read[21:]
	named := strings.NewReplacer("TYPO", typo, "REVOKED", k.revoked, "EXPIRED", k.expired, "READ", k.read, "SESSION", k.session)
	for _, row := range datatest.Rows(t, "testdata/rows/tables.txt", "wrong keys") {
		fields, err := url.ParseQuery(named.Replace(row[0]))
		must(t, err)
		fields.Set("next", "/documents?limit=1")
		w := k.form(t, "/key", fields)
		body := w.Body.String()
		if w.Code != http.StatusUnauthorized || len(w.Result().Cookies()) != 0 || !strings.Contains(body, row[1]) ||
			!strings.Contains(body, `value="/documents?limit=1"`) {
			t.Errorf("signing in with %s: status = %d, want 401 and %q in %s", row[0], w.Code, row[1], body)
		}
		for _, secret := range []string{typo, k.revoked, k.expired, k.read, k.session} {
			if strings.Contains(body, secret) {
				t.Errorf("%s: page shows the key", row[0])
			}
		}
	}
	if w := k.form(t, "/key?key="+k.read, url.Values{}); w.Code != http.StatusUnauthorized {
		t.Errorf("key in the query: status = %d, want 401", w.Code)
	}
	if w := k.send(t, "POST", "/key", strings.Repeat("key=a&", maxForm),
		"Content-Type: application/x-www-form-urlencoded"); w.Code != http.StatusBadRequest {
		t.Errorf("endless form: status = %d, want 400", w.Code)
	}
	if w := k.send(t, "POST", "/key", `{"key":"`+k.read+`"}`, "Content-Type: application/json"); w.Code != http.StatusUnauthorized {
		t.Errorf("JSON: status = %d, want 401", w.Code)
	}
}

// TestSessionCrossOrigin checks that another site cannot begin, use or end a
// session.
func TestSessionCrossOrigin(t *testing.T) {
	k := newKeyed(t, nil)
	cookie := "Cookie: " + k.cookie + "=" + k.session
	for _, headers := range [][]string{
		{"Origin: https://evil.example"}, {"Origin: null"}, {"Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site"},
		{"Origin: http://localhost:9999"},
		{"Origin: http://localhost:8080", "Sec-Fetch-Site: same-site"},
	} {
		if w := k.form(t, "/key", url.Values{"key": {k.read}}, headers...); w.Code != http.StatusForbidden || len(w.Result().Cookies()) != 0 {
			t.Errorf("sign-in with %v: status = %d, want 403", headers, w.Code)
		}
		for _, r := range k.Routes() {
			if r.Method == "GET" || r.Method == "HEAD" {
				continue
			}
			if w := k.send(t, r.Method, concrete(r.Path), `{"question":"mooring"}`, append(headers, cookie)...); w.Code != http.StatusForbidden {
				t.Errorf("with %v, %s %s: status = %d, want 403", headers, r.Method, r.Path, w.Code)
			}
		}
	}
	if w := k.send(t, "GET", "/api/documents", "", cookie); w.Code != http.StatusOK {
		t.Errorf("session afterwards: status = %d, want 200", w.Code)
	}
}

// TestNext checks that no redirect goes to another site.
func TestNext(t *testing.T) {
	plain, below := address{}, address{public: &url.URL{Scheme: "https", Host: "docs.example.org", Path: "/ibid"}}
	for next, want := range datatest.Lines[map[string]string](t, "testdata/rows/next.json")[0] {
		if got := plain.localPath(next); got != want {
			t.Errorf("localPath(%q) = %q, want %q", next, got, want)
		}
		if got := below.localPath(next); got != "/ibid/" {
			t.Errorf("localPath(%q) = %q, want the prefix", next, got)
		}
		if got := below.localPath("/ibid" + next); want != "/" && got != "/ibid"+want {
			t.Errorf("localPath(%q) = %q", "/ibid"+next, got)
		}
	}
	k := newKeyed(t, nil)
	if w := k.form(t, "/key", url.Values{"key": {k.read}, "next": {"//evil.example/"}}); w.Header().Get("Location") != "/" {
		t.Errorf("redirect to %q, want /", w.Header().Get("Location"))
	}
	if w := k.send(t, "GET", "/key?next=https://evil.example/", "", "Cookie: "+k.cookie+"="+k.session); w.Header().Get("Location") != "/" {
		t.Errorf("redirect to %q, want /", w.Header().Get("Location"))
	}
}

// TestSessionBehindProxy checks that the cookie is only for HTTPS and the public
// path.
func TestSessionBehindProxy(t *testing.T) {
	for public, want := range map[string]struct{ name, path string }{
		"https://docs.example.org":      {"__Host-ibid", "/"},
		"https://docs.example.org/ibid": {"__Secure-ibid", "/ibid"},
	} {
		ring := newRing()
		key := ring.make(t, "reader", func(k *retrieve.Key) { k.Expires = time.Now().Add(time.Hour) })
		k := &keyed{Echo: newHandler(t, func(o *Options) { o.Keys, o.PublicURL = ring, public }), ring: ring}
		path := strings.TrimSuffix(want.path, "/")
		w := k.form(t, "/key", url.Values{"key": {key}, "next": {path + "/documents"}})
		set := w.Result().Cookies()
		if len(set) != 1 || set[0].Name != want.name || set[0].Path != want.path || !set[0].Secure || !set[0].HttpOnly ||
			set[0].SameSite != http.SameSiteStrictMode || set[0].MaxAge > 3600 {
			t.Errorf("%s: the cookie is %v", public, set)
		}
		if at := path + "/documents"; w.Header().Get("Location") != at {
			t.Errorf("%s: sent to %q", public, w.Header().Get("Location"))
		}
		// A browser that follows a link on another site sends its strict cookie
		// only when the page itself requests the address again.
		w = k.send(t, "GET", "/documents/club/guide.pdf?start=1&end=2", "", "Accept: text/html", "Sec-Fetch-Site: cross-site",
			"Sec-Fetch-Mode: navigate")
		next := url.QueryEscape(path + "/documents/club/guide.pdf?start=1&end=2")
		again := `<meta http-equiv="refresh" content="0; url=` + path + `/key?next=` + next + `">`
		if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), again) {
			t.Errorf("%s: by a link on another site: %d %s", public, w.Code, w.Body)
		}
		if len(set) == 1 {
			w = k.send(t, "GET", "/key?next="+next, "", "Accept: text/html", "Cookie: "+set[0].Name+"="+set[0].Value)
			if at := path + "/documents/club/guide.pdf?start=1&end=2"; w.Header().Get("Location") != at {
				t.Errorf("%s: again: %d, sent to %q", public, w.Code, w.Header().Get("Location"))
			}
		}
		if w := k.send(t, "GET", "/key?next=/documents", "", "Accept: text/html"); w.Code != http.StatusOK ||
			strings.Contains(w.Body.String(), "refresh") {
			t.Errorf("%s: again without a session: %d %s", public, w.Code, w.Body)
		}
	}
}
