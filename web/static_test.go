package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"
)

// TestStaticPacked checks that clients that accept gzip get the same file packed.
func TestStaticPacked(t *testing.T) {
	h := newHandler(t, nil)
	get := func(headers ...string) *httptest.ResponseRecorder {
		return call(h, "GET", "/static/app.css", "", headers...)
	}
	plain := get()
	for accepted, packed := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "br": false, "": false} {
		w := get("Accept-Encoding", accepted)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("%q: packed is %v", accepted, got)
			continue
		}
		body := io.Reader(w.Body)
		if packed {
			z, err := gzip.NewReader(w.Body)
			must(t, err)
			body = z
		}
		if text, err := io.ReadAll(body); err != nil || string(text) != plain.Body.String() {
			t.Errorf("%q: the file differs (%v)", accepted, err)
		}
		if again := get("Accept-Encoding", accepted, "If-None-Match", w.Header().Get("ETag")); again.Code != 304 {
			t.Errorf("%q: requested again: %d", accepted, again.Code)
		}
	}
}

// TestModules checks that each script is short, and that the home page preloads all
// modules that it imports.
func TestModules(t *testing.T) {
	scripts, err := fs.Glob(embedded, "static/*.js")
	must(t, err)
	for _, name := range scripts {
		text, err := embedded.ReadFile(name)
		must(t, err)
		if n := bytes.Count(text, []byte("\n")); n >= 300 {
			t.Errorf("%s has %d lines: fewer than 300", name, n)
		}
	}
	imports := regexp.MustCompile(`(?m)^import .* from "\./([a-z]+\.js)";$`)
	var want []string
	var follow func(name string)
	follow = func(name string) {
		text, err := embedded.ReadFile("static/" + name)
		must(t, err)
		for _, m := range imports.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(want, m[1]) {
				want = append(want, m[1])
				follow(m[1])
			}
		}
	}
	follow("app.js")
	slices.Sort(want)
	w := call(newHandler(t, nil), "GET", "/", "")
	var got []string
	for _, m := range regexp.MustCompile(`rel="modulepreload" href="/static/([a-z.]+)"`).FindAllStringSubmatch(w.Body.String(), -1) {
		got = append(got, m[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page preloads %q and imports %q", got, want)
	}
}
