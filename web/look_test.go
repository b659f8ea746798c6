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

// look checks that nothing overflows the screen, and that axe finds no violation of WCAG
// 2.2 AA. With IBID_AXE or IBID_SCREENSHOTS it checks more widths and both themes, and
// writes a picture of each to the folder that IBID_SCREENSHOTS names. States are numbered
// like the stories in README.md. At 320 by 256 pixels a page of 1280 by 1024 is magnified
// four times.
func (b *tab) look(state string) {
	b.t.Helper()
	themes, sizes := []string{"light", "dark"}, [][2]int64{{320, 256}, {320, 900}, {390, 900}, {1280, 900}}
	if os.Getenv("IBID_AXE") == "" && os.Getenv("IBID_SCREENSHOTS") == "" {
		themes, sizes = themes[:1], [][2]int64{{320, 900}, {1280, 900}}
	}
	for _, size := range sizes {
		for _, theme := range themes {
			b.emulate(size[0], size[1], theme)
			b.is("false", `String(document.documentElement.scrollWidth > innerWidth)`)
			b.axe(fmt.Sprintf("%s at %d by %d in %s", state, size[0], size[1], theme))
			if size[1] > 256 {
				b.js(`(document.querySelector(":target")?.scrollIntoView({ block: "center" }), "")`)
				b.picture(fmt.Sprintf("%s-%d-%s", state, size[0], theme))
			}
		}
	}
	b.emulate(b.width, 900, b.theme)
}

// emulate sets the size of the window and the theme of the system.
func (b *tab) emulate(width, height int64, theme string) {
	b.t.Helper()
	if _, err := chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	}); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(width, height))
	// After two frames the layout has the new width.
	if _, err := chromedp.Run(b, chromedp.Evaluate[chromedp.Void](`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`, chromedp.EvalAwaitPromise)); err != nil {
		b.t.Fatal(err)
	}
}

// picture writes a screenshot into the folder that IBID_SCREENSHOTS names.
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
	must(b.t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644))
}

// axe checks the page against WCAG 2.2 AA and axe's best practices, if IBID_AXE names the
// script axe.min.js of the npm package axe-core. A tooltip belongs to its link, so it needs
// no region.
func (b *tab) axe(where string) {
	b.t.Helper()
	path := os.Getenv("IBID_AXE")
	if path == "" {
		return // TestAxe reports the missing script
	}
	script, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.js(`typeof axe`) == "undefined" {
		// The page's policy would block the script.
		b.do(chromedp.Evaluate[chromedp.Void](string(script) + "\n;0"))
	}
	found, err := chromedp.Run(b, chromedp.Evaluate[string](`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then((r) =>
		JSON.stringify({passes: r.passes.length, violations: r.violations.filter((v) => v.id !== "region" || v.nodes.some((n) => n.target[0] !== "#peek")).map((v) => v.id + ": " + v.help + "\n" + v.nodes.map((n) => n.html + " " + n.failureSummary).join("\n"))}))`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	var result struct {
		Passes     int
		Violations []string
	}
	must(b.t, json.Unmarshal([]byte(found), &result))
	if result.Passes == 0 {
		b.t.Errorf("%s: axe ran no checks", where)
	}
	if len(result.Violations) > 0 {
		b.t.Errorf("%s: axe found\n%s", where, strings.Join(result.Violations, "\n"))
	}
}

// TestAxe checks that axe runs and finds a fault, and skips if the script is missing.
func TestAxe(t *testing.T) {
	if os.Getenv("IBID_AXE") == "" {
		t.Skip("IBID_AXE is not set to axe.min.js of the npm package axe-core: WCAG is not checked")
	}
	b := newScene(t, nil).newTab(t, 800, "light")
	b.look("1-empty")
	b.do(chromedp.Evaluate[chromedp.Void](`document.documentElement.removeAttribute("lang")`))
	found, err := chromedp.Run(b, chromedp.Evaluate[string](`axe.run(document, {runOnly: ["wcag2a"]}).then((r) => r.violations.map((v) => v.id).join(" "))`, chromedp.EvalAwaitPromise))
	if err != nil || found == "" {
		t.Errorf("axe finds no fault in a page without a language (%v)", err)
	}
}
