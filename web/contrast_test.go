package web

import (
	"maps"
	"math"
	"regexp"
	"strconv"
	"testing"
)

// TestContrast computes the contrast of each pair of colours on the page in both
// themes: WCAG 2.2 AA requires 4.5 for text (1.4.3) and 3 for the edges of
// controls (1.4.11).
func TestContrast(t *testing.T) {
	css, err := embedded.ReadFile("static/app.css")
	must(t, err)
	blocks := regexp.MustCompile(`(?s):root[^{]*\{(.*?)\}`).FindAllSubmatch(css, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of colours, want light, dark as chosen, dark by the system", len(blocks))
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
		t.Error("dark as chosen and dark by the system differ")
	}
	pairs := []struct {
		on, over string
		least    float64
	}{
		{"ink", "paper", 7}, {"ink", "raised", 7}, {"soft", "paper", 4.5}, {"soft", "raised", 4.5},
		{"accent", "paper", 4.5}, {"accent", "raised", 4.5}, {"accent", "accent-wash", 4.5}, {"accent-ink", "accent", 4.5},
		{"ink", "accent-wash", 4.5}, {"mark-ink", "mark", 7}, {"warn", "paper", 4.5}, {"ink", "warn-wash", 4.5},
		{"paper", "soft", 4.5}, {"edge", "paper", 3}, {"edge", "raised", 3}, {"warn", "warn-wash", 3},
	}
	for i, theme := range themes[:2] {
		for _, p := range pairs {
			if theme[p.on] == "" || theme[p.over] == "" {
				t.Errorf("theme %d has no %s or %s", i, p.on, p.over)
				continue
			}
			if got := contrast(t, theme[p.on], theme[p.over]); got < p.least {
				t.Errorf("theme %d: %s on %s has a contrast of %.2f, want %.1f", i, p.on, p.over, got, p.least)
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
