package web

import (
	"net/http"
	"strings"
	"testing"

	"ibid/retrieve"
)

func TestCheckOrigin(t *testing.T) {
	for origin, want := range map[string]bool{
		"https://example.org": true, "http://localhost:3000": true, "https://example.org/": false, "https://example.org/docs": false,
		"example.org": false, "*": false, "null": false, "": false, "ftp://example.org": false, "https://u@example.org": false,
	} {
		if err := CheckOrigin(origin); (err == nil) != want {
			t.Errorf("%q: %v", origin, err)
		}
	}
}

// A public key asks and searches from pages of listed origins, and does nothing else.
// Other keys can be used there too, but no cookie, and from other origins none.
func TestOrigins(t *testing.T) {
	const site = "https://shop.example"
	k := newKeyed(t, func(o *Options) { o.Origins = []string{site} })
	visitor := k.ring.make(t, "site", func(k *retrieve.Key) { k.Public, k.Collections = true, []string{"default"} })
	k.send(t, "POST", "/key/leave", "", "Cookie: "+k.cookie+"="+k.ended) // reads the keys
	from := func(origin string) []string {
		return []string{"Origin: " + origin, "Sec-Fetch-Site: cross-site", "Content-Type: application/json"}
	}
	bearer := func(key string, headers ...string) []string { return append(headers, "Authorization: Bearer "+key) }
	const question = `{"question":"What is the mooring fee?"}`
	for name, test := range map[string]struct {
		path    string
		headers []string
		want    int
	}{
		"public, ask":                 {"/api/ask", bearer(visitor, from(site)...), 200},
		"public, search":              {"/api/search", bearer(visitor, from(site)...), 200},
		"public, not from a page":     {"/api/ask", bearer(visitor, "Content-Type: application/json"), 403},
		"public, another site":        {"/api/ask", bearer(visitor, from("https://evil.example")...), 403},
		"public, a site with its end": {"/api/ask", bearer(visitor, from("https://x.shop.example")...), 403},
		"reader, listed":              {"/api/ask", bearer(k.read, from(site)...), 200},
		"reader, another site":        {"/api/ask", bearer(k.read, from("https://evil.example")...), 403},
		"no key":                      {"/api/ask", from(site), 401},
		"a cookie":                    {"/api/ask", append(from(site), "Cookie: "+k.cookie+"="+k.session), 401},
		"reader, another route":       {"/api/runs", bearer(k.read, from(site)...), 403},
	} {
		w := k.send(t, "POST", test.path, question, test.headers...)
		if w.Code != test.want {
			t.Errorf("%s: status %d, want %d: %s", name, w.Code, test.want, w.Body)
		}
		allowed := w.Header().Get("Access-Control-Allow-Origin")
		listed := strings.Contains(strings.Join(test.headers, " "), "Origin: "+site)
		if (allowed == site) != (listed && test.path != "/api/runs") {
			t.Errorf("%s: the reply allows the origin %q", name, allowed)
		}
		if w.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: the reply allows cookies", name)
		}
	}
	for r, a := range accesses() {
		method, pattern, _ := strings.Cut(r, " ")
		if a == public {
			continue
		}
		w := k.send(t, method, concrete(pattern), "{}", bearer(visitor, from(site)...)...)
		if a != visitors && w.Code != http.StatusForbidden {
			t.Errorf("a public key gets %d for %s", w.Code, r)
		}
	}
	asks := []string{"Origin: " + site, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization"}
	preflight := k.send(t, "OPTIONS", "/api/ask", "", asks...)
	if preflight.Code != http.StatusNoContent || preflight.Header().Get("Access-Control-Allow-Headers") != "Authorization, Content-Type" {
		t.Errorf("preflight: %d %v", preflight.Code, preflight.Header())
	}
	if w := k.send(t, "OPTIONS", "/api/documents", "", asks...); w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Error("other routes allow the origin")
	}
}
