package web

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/data/datatest"
	"ibid/retrieve"
)

// concrete returns a path that matches a route's pattern.
func concrete(pattern string) string {
	if pattern == "/static/*" {
		return "/static/app.css"
	}
	return strings.NewReplacer("*", "club/guide.pdf", ":id", "abcdefghijklmnop").Replace(pattern)
}

// secretWords occur only in the documents, including their names and titles.
var secretWords = []string{"240 crowns", "Storage costs", "harbour office", "Harbour guide", "mooring.md", "scan.pdf"}

// request parses a raw request and gives it a client address by its number.
func request(t *testing.T, number int, method, path, body string, headers ...string) *http.Request {
	t.Helper()
	raw := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: %d\r\n%s\r\n%s", method, path, len(body),
		strings.Join(append(headers, ""), "\r\n"), body)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		t.Fatalf("parsing the request %q: %v", raw, err)
	}
	r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1234", number>>16&255, number>>8&255, number&255)
	if peer := r.Header.Get("Peer"); peer != "" {
		r.RemoteAddr = peer
		r.Header.Del("Peer")
	}
	return r
}

// A keyed server has keys and sessions of every kind.
type keyed struct {
	*echo.Echo
	ring                            *ring
	read, write, revoked, expired   string // keys
	session, ended, old, keyRevoked string // tokens
	second                          string // a valid token that is sent with a wrong key
	cookie                          string // name
	number                          int    // requests sent
}

func newKeyed(t *testing.T, change func(*Options)) *keyed {
	t.Helper()
	k := &keyed{ring: newRing(), cookie: "ibid_session"}
	k.read, k.write = k.ring.make(t, "reader", nil), k.ring.make(t, "writer", writer)
	k.expired = k.ring.make(t, "expired", func(k *retrieve.Key) { k.Write, k.Expires = true, time.Now().Add(-time.Minute) })
	k.revoked = k.ring.make(t, "revoked", writer)
	k.Echo = newHandler(t, func(o *Options) {
		everyRoute(o)
		o.Keys = k.ring
		if change != nil {
			change(o)
		}
	})
	for _, token := range []*string{&k.session, &k.second, &k.ended, &k.old} {
		*token = k.enter(t, k.write)
	}
	k.keyRevoked = k.enter(t, k.revoked)
	for digest, s := range k.ring.sessions {
		if digest == digestOf(k.old) {
			s.Started = s.Started.Add(-retrieve.MaxSessionAge)
			k.ring.sessions[digest] = s
		}
	}
	must(t, k.ring.EndSession(t.Context(), digestOf(k.ended)))
	must(t, k.ring.Revoke(t.Context(), "revoked"))
	// Leaving makes the server read the keys again.
	k.send(t, "POST", "/key/leave", "", "Cookie: "+k.cookie+"="+k.ended)
	return k
}

// send sends a request from a new address.
func (k *keyed) send(t *testing.T, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	k.number++
	w := httptest.NewRecorder()
	k.ServeHTTP(w, request(t, k.number, method, path, body, headers...))
	return w
}

// enter submits a key to the form and returns the token of the new session.
func (k *keyed) enter(t *testing.T, key string) string {
	t.Helper()
	w := k.send(t, "POST", "/key", url.Values{"key": {key}}.Encode(), "Content-Type: application/x-www-form-urlencoded")
	for _, c := range w.Result().Cookies() {
		if c.Name == k.cookie && c.Value != "" {
			return c.Value
		}
	}
	t.Fatalf("no session began: %d %v", w.Code, w.Header())
	return ""
}

// wrongCredentials are ways to send no valid key.
func (k *keyed) wrongCredentials(t *testing.T) map[string][]string {
	unknown, _ := NewKey()
	fill := strings.NewReplacer("WRITE", k.write, "UNKNOWN", unknown, "KEYREVOKED", k.keyRevoked, "REVOKED", k.revoked, "EXPIRED", k.expired,
		"SESSION", k.session, "ENDED", k.ended, "OLD", k.old, "SECOND", k.second, "COOKIE", k.cookie, "CUT", k.write[:len(k.write)-1],
		"UPPER", strings.ToUpper(k.write), "LOWER", strings.ToLower(k.write), "TAIL", k.write[1:],
		"DIGEST", fmt.Sprintf("%x", digestOf(k.write)), "BASIC", base64.StdEncoding.EncodeToString([]byte(":"+k.write)))
	ways := map[string][]string{}
	for _, way := range datatest.Lines[struct {
		Name    string
		Headers []string
	}](t, "testdata/rows/credentials.jsonl") {
		for i, header := range way.Headers {
			way.Headers[i] = fill.Replace(header)
		}
		ways[way.Name] = way.Headers
	}
	return ways
}

// rightCredentials are ways to send a valid key.
func (k *keyed) rightCredentials() map[string][]string {
	return map[string][]string{
		"key":               {"Authorization: Bearer " + k.write},
		"lower-case scheme": {"authorization: bearer " + k.write},
		"upper-case scheme": {"AUTHORIZATION: BEARER " + k.write},
		"two spaces":        {"Authorization: Bearer  " + k.write},
		"session":           {"Cookie: theme=dark; " + k.cookie + "=" + k.session},
	}
}

// openRoutes lists the routes that need no key, with their status.
func openRoutes() map[string]int {
	return map[string]int{
		"GET /static/*": 200, "HEAD /static/*": 200, "GET /healthz": 200, "HEAD /healthz": 200, "GET /readyz": 200, "HEAD /readyz": 200,
		"GET /openapi.json": 200, "HEAD /openapi.json": 200,
		"GET " + resourceMetadata: 200, "HEAD " + resourceMetadata: 200,
		"GET /key": 200, "HEAD /key": 200, "POST /key": 401, "POST /key/leave": 303,
	}
}

// TestKeysOnEveryRoute sends every variant of a key to every route: without a
// valid one only the open routes reply with content.
func TestKeysOnEveryRoute(t *testing.T) {
	t.Parallel()
	k := newKeyed(t, nil)
	open := openRoutes()
	requests := 0
	check := func(r *echo.Route, variant string, w *httptest.ResponseRecorder) {
		t.Helper()
		requests++
		route := r.Method + " " + r.Path
		if want, ok := open[route]; ok {
			if w.Code != want && !(r.Path == "/key/leave" && w.Code < 400) {
				t.Errorf("%s, %s: status = %d, want %d", route, variant, w.Code, want)
			}
		} else if w.Code != http.StatusUnauthorized && w.Code != http.StatusNotFound {
			t.Errorf("%s, %s: status = %d, want 401 or 404: %s", route, variant, w.Code, w.Body)
		} else if w.Code == http.StatusUnauthorized {
			h := w.Header().Get("WWW-Authenticate")
			if !strings.HasPrefix(h, "Bearer") || strings.Contains(h, resourceMetadata) != (r.Path == "/mcp") {
				t.Errorf("%s, %s: WWW-Authenticate = %q", route, variant, h)
			}
		}
		reply := fmt.Sprint(w.Header()) + w.Body.String()
		for _, word := range append(secretWords, k.write, k.read, k.revoked, k.session) {
			if strings.Contains(reply, word) {
				t.Errorf("%s, %s: reply contains %q", route, variant, word)
			}
		}
	}
	routes := k.Routes()
	for _, r := range routes {
		path := concrete(r.Path)
		wrong := k.wrongCredentials(t)
		variants := slices.Sorted(maps.Keys(wrong))
		if _, ok := open[r.Method+" "+r.Path]; ok {
			variants = datatest.Pick(t, variants)
		}
		for _, variant := range variants {
			headers := wrong[variant]
			check(r, variant, k.send(t, r.Method, path, `{"question":"mooring"}`, headers...))
			check(r, variant+", as a browser", k.send(t, r.Method, path, `{"question":"mooring"}`, append(headers, "Accept: text/html")...))
		}
		for _, name := range []string{"key", "api_key", "access_token", "token", "authorization"} {
			check(r, "query "+name, k.send(t, r.Method, path+"?"+name+"="+k.write, `{"question":"mooring"}`))
			check(r, "form "+name, k.send(t, r.Method, path, "x="+k.write, "Content-Type: application/x-www-form-urlencoded"))
		}
		if _, ok := open[r.Method+" "+r.Path]; ok {
			delete(open, r.Method+" "+r.Path)
			continue
		}
		for variant, headers := range k.rightCredentials() {
			if w := k.send(t, r.Method, path, `{}`, headers...); w.Code == http.StatusUnauthorized || w.Code >= 400 &&
				strings.Contains(w.Body.String(), `"key_`) {
				t.Errorf("%s %s, %s: status = %d: %s", r.Method, r.Path, variant, w.Code, w.Body)
			}
		}
	}
	for route := range open {
		t.Errorf("%s is listed as an open route, but is not a route", route)
	}
	t.Logf("%d routes, %d requests without a valid key", len(routes), requests)
}

// TestKeysOnOddPaths checks that no other spelling of a path bypasses the keys.
func TestKeysOnOddPaths(t *testing.T) {
	t.Parallel()
	k := newKeyed(t, nil)
	for _, r := range k.Routes() {
		if _, open := openRoutes()[r.Method+" "+r.Path]; open {
			continue
		}
		path := concrete(r.Path)
		for _, odd := range []string{
			"/" + path, "/." + path, "/x/.." + path, "/static/.." + path, "/static/..%2f" + path[1:], "/healthz/.." + path, path + "/", path + "//",
			path + "%00", path + "%00.css", path + ";x=1", path + "?", path + "%3f", path + "%20", path + "%2e", "/%2e" + path,
			"/" + strings.ReplaceAll(path[1:], "/", "%2F"), "/" + strings.ReplaceAll(path[1:], "/", "%2f"),
			"/" + strings.ReplaceAll(path[1:], "/", "//"),
			"/" + strings.ReplaceAll(path[1:], "/", "/./"), "/" + strings.ReplaceAll(path[1:], "/", "%5c"), "/" + strings.ToUpper(path[1:]),
			"/" + strings.ReplaceAll(path[1:], "a", "%61"), "http://localhost:8080" + path, "http://localhost:8080/" + path,
		} {
			for _, method := range []string{r.Method, "OPTIONS", "HEAD", "TRACE", "PATCH", "PROPFIND", "get"} {
				w := k.send(t, method, odd, `{"question":"mooring"}`, "X-Http-Method-Override: GET")
				if !slices.Contains([]int{204, 401, 404, 405}, w.Code) {
					t.Errorf("%s %s: status = %d: %s", method, odd, w.Code, w.Body)
				}
				for _, word := range secretWords {
					if strings.Contains(w.Body.String(), word) {
						t.Errorf("%s %s: reply contains %q", method, odd, word)
					}
				}
			}
		}
	}
}

// TestKeyScope checks that a read-only key cannot change anything.
func TestKeyScope(t *testing.T) {
	t.Parallel()
	k := newKeyed(t, nil)
	settings := k.ring.make(t, "one collection", func(k *retrieve.Key) { k.Write, k.Settings, k.Collections = true, true, []string{"club"} })
	for _, r := range k.Routes() {
		w := k.send(t, r.Method, concrete(r.Path), `{}`, "Authorization: Bearer "+k.read)
		if (accessOf(r) >= writers) != (w.Code == http.StatusForbidden) {
			t.Errorf("%s %s with a read-only key: status = %d", r.Method, r.Path, w.Code)
		}
		for _, key := range []string{k.write, settings} {
			w := k.send(t, r.Method, concrete(r.Path), `{}`, "Authorization: Bearer "+key)
			if accessOf(r) == administrators && w.Code != http.StatusForbidden {
				t.Errorf("%s %s with a key without settings: status = %d, want 403", r.Method, r.Path, w.Code)
			}
		}
	}
}
