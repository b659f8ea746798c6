package web

import (
	"compress/gzip"
	"io"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"
)

// TestStaticPacked: who takes gzip gets the same file packed, under another tag.
func TestStaticPacked(t *testing.T) {
	h := newHandler(t, nil)
	get := func(headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "http://127.0.0.1:8080/static/app.css", nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	plain := get()
	for accepted, packed := range map[string]bool{"gzip": true, "br, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "br": false, "": false} {
		w := get("Accept-Encoding", accepted)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("%q: packed is %v", accepted, got)
			continue
		}
		body := io.Reader(w.Body)
		if packed {
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		if text, err := io.ReadAll(body); err != nil || string(text) != plain.Body.String() {
			t.Errorf("%q: another file (%v)", accepted, err)
		}
		if packed == (w.Header().Get("ETag") == plain.Header().Get("ETag")) {
			t.Errorf("%q: the tag is %s, of the plain file %s", accepted, w.Header().Get("ETag"), plain.Header().Get("ETag"))
		}
		if again := get("Accept-Encoding", accepted, "If-None-Match", w.Header().Get("ETag")); again.Code != 304 {
			t.Errorf("%q: asked again: %d", accepted, again.Code)
		}
	}
}

// TestModulesOfHome: the home page names all the modules that it comes to import.
func TestModulesOfHome(t *testing.T) {
	imports := regexp.MustCompile(`(?m)^import .* from "\./([a-z]+\.js)";$`)
	var want []string
	var follow func(name string)
	follow = func(name string) {
		text, err := embedded.ReadFile("static/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range imports.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(want, m[1]) {
				want = append(want, m[1])
				follow(m[1])
			}
		}
	}
	follow("app.js")
	slices.Sort(want)
	r := httptest.NewRequest("GET", "http://127.0.0.1:8080/", nil)
	w := httptest.NewRecorder()
	newHandler(t, nil).ServeHTTP(w, r)
	var got []string
	for _, m := range regexp.MustCompile(`rel="modulepreload" href="/static/([a-z.]+)"`).FindAllStringSubmatch(w.Body.String(), -1) {
		got = append(got, m[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page names %q, and imports %q", got, want)
	}
}
