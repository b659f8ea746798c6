package web

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// look shows the page as it stands at three widths and in both themes: nothing
// runs out of the screen, axe finds nothing against WCAG 2.2 AA, and a picture
// is taken into the folder that IBID_SCREENSHOTS names.
func (b *tab) look(state string) {
	b.t.Helper()
	themes := []string{"light", "dark"}
	if os.Getenv("IBID_AXE") == "" && os.Getenv("IBID_SCREENSHOTS") == "" {
		themes = themes[:1] // they do not differ in what is left to see
	}
	for _, width := range []int64{360, 800, 1440} {
		for _, theme := range themes {
			b.emulate(width, theme)
			if width == 360 {
				b.emulate(320, theme)
				b.is("false", `String(document.documentElement.scrollWidth > innerWidth)`)
				b.emulate(width, theme)
			}
			b.is("false", `String(document.documentElement.scrollWidth > innerWidth)`)
			b.axe(fmt.Sprintf("%s at %d in %s", state, width, theme))
			b.picture(fmt.Sprintf("%s-%d-%s", state, width, theme))
		}
	}
	b.emulate(b.width, b.theme)
}

// emulate sets the width of the window and the theme of the system.
func (b *tab) emulate(width int64, theme string) {
	b.t.Helper()
	if _, err := chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	}); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(width, 900))
	// Two frames: what depends on the width has been laid out.
	if _, err := chromedp.Run(b, chromedp.Evaluate[chromedp.Void](`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`, chromedp.EvalAwaitPromise)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("IBID_SCREENSHOTS")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(b, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// axe holds the page against WCAG 2.2 AA, if IBID_AXE names the script axe.min.js
// of the package axe-core.
func (b *tab) axe(where string) {
	b.t.Helper()
	path := os.Getenv("IBID_AXE")
	if path == "" {
		return // TestAxe says that it was left out
	}
	script, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.js(`typeof axe`) == "undefined" {
		// Evaluated by the browser's own tools, which no policy of the page holds back.
		b.do(chromedp.Evaluate[chromedp.Void](string(script) + "\n;0"))
	}
	found, err := chromedp.Run(b, chromedp.Evaluate[string](`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}).then((r) =>
		JSON.stringify({passes: r.passes.length, violations: r.violations.map((v) => v.id + ": " + v.help + "\n" + v.nodes.map((n) => n.html + " " + n.failureSummary).join("\n"))}))`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	var result struct {
		Passes     int
		Violations []string
	}
	if err := json.Unmarshal([]byte(found), &result); err != nil {
		b.t.Fatal(err)
	}
	if result.Passes == 0 {
		b.t.Errorf("%s: axe looked at nothing", where)
	}
	if len(result.Violations) > 0 {
		b.t.Errorf("%s: %s", where, strings.Join(result.Violations, "\n"))
	}
}

// TestAxe says whether the tests of the page hold it against WCAG.
func TestAxe(t *testing.T) {
	if os.Getenv("IBID_AXE") == "" {
		t.Skip("IBID_AXE does not name the script axe.min.js of the npm package axe-core: the page is not held against WCAG")
	}
	s := newScene(t, nil)
	b := s.newTab(t, 800, "light")
	b.look("empty")
	// It would find a fault.
	b.do(chromedp.Evaluate[chromedp.Void](`document.documentElement.removeAttribute("lang")`))
	found, err := chromedp.Run(b, chromedp.Evaluate[string](`axe.run(document, {runOnly: ["wcag2a"]}).then((r) => r.violations.map((v) => v.id).join(" "))`, chromedp.EvalAwaitPromise))
	if err != nil || found == "" {
		t.Errorf("axe finds nothing wrong with a page without a language (%v)", err)
	}
}
