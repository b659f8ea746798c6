package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"maps"
	"math"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"ibid/data/datatest"
)

// TestStaticPacked checks that clients that accept gzip get the same file compressed.
func TestStaticPacked(t *testing.T) {
	h := newHandler(t, nil)
	get := func(headers ...string) *httptest.ResponseRecorder {
		return call(h, "GET", "/static/app.css", "", headers...)
	}
	plain := get()
	for accepted, packed := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "br": false, "": false} {
		w := get("Accept-Encoding", accepted)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("Accept-Encoding %q: compressed = %v, want %v", accepted, got, packed)
			continue
		}
		body := io.Reader(w.Body)
		if packed {
			z, err := gzip.NewReader(w.Body)
			must(t, err)
			body = z
		}
		if text, err := io.ReadAll(body); err != nil || string(text) != plain.Body.String() {
			t.Errorf("Accept-Encoding %q: file differs (%v)", accepted, err)
		}
		if again := get("Accept-Encoding", accepted, "If-None-Match", w.Header().Get("ETag")); again.Code != 304 {
			t.Errorf("Accept-Encoding %q: status with the ETag = %d, want 304", accepted, again.Code)
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
		if n := bytes.Count(text, []byte("\n")); n >= 320 {
			t.Errorf("%s has %d lines, want fewer than 320", name, n)
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
		t.Errorf("page preloads %q, but imports %q", got, want)
	}
}

// TestContrast computes the contrast of each pair of colours on the page in both
// themes: WCAG 2.2 AA requires 4.5 for text (1.4.3) and 3 for the edges of
// controls (1.4.11).
func TestContrast(t *testing.T) {
	css, err := embedded.ReadFile("static/app.css")
	must(t, err)
	blocks := regexp.MustCompile(`(?s):root[^{]*\{(.*?)\}`).FindAllSubmatch(css, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of colours, want 3: light, dark by choice, dark by system", len(blocks))
	}
	var themes []map[string]string
	for _, b := range blocks {
		colours := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllSubmatch(b[1], -1) {
			colours[string(m[1])] = string(m[2])
		}
		themes = append(themes, colours)
	}
	if !maps.Equal(themes[1], themes[2]) {
		t.Error("dark by choice and dark by system differ")
	}
	pairs := datatest.Table[struct {
		On, Over string
		Least    float64
	}](t, "testdata/rows/tables.txt", "colours")
	for i, theme := range themes[:2] {
		for _, p := range pairs {
			if theme[p.On] == "" || theme[p.Over] == "" {
				t.Errorf("theme %d lacks %s or %s", i, p.On, p.Over)
				continue
			}
			if got := contrast(t, theme[p.On], theme[p.Over]); got < p.Least {
				t.Errorf("theme %d: %s on %s has a contrast of %.2f, want %.1f", i, p.On, p.Over, got, p.Least)
			}
		}
	}
}

// contrast returns the contrast ratio of WCAG 2.2.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	luminance := func(hex string) float64 {
		n, err := strconv.ParseUint(hex[1:], 16, 32)
		must(t, err)
		sum := 0.0
		for i, weight := range []float64{.2126, .7152, .0722} {
			v := float64(n>>(16-8*i)&0xff) / 255
			if v <= .04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+.055)/1.055, 2.4)
			}
			sum += weight * v
		}
		return sum
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}
