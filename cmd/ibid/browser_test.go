package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"ibid/data/datatest"
)

// TestAskInABrowser opens the page of the real program with the sample library, asks, and
// follows a citation to the marked words: in the page, and through the link in a new tab.
func TestAskInABrowser(t *testing.T) {
	t.Parallel()
	datatest.Chromium(t)
	url := serve(t, t.TempDir(), filepath.Join(moduleRoot(t), "data", "library"))
	ready(t, url)

	page := openBrowser(t)
	ctx, do, js, waitFor := page.Context, page.do, page.js, page.waitFor
	var foreign []string
	if err := chromedp.Listen(ctx, func(ev any) {
		if e, ok := ev.(*network.EventRequestWillBeSent); ok && !strings.HasPrefix(e.Request.URL, url+"/") {
			foreign = append(foreign, e.Request.URL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	must(t, err)

	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}, {Name: "prefers-color-scheme", Value: "light"}},
	}); err != nil {
		t.Fatal(err)
	}
	do(chromedp.EmulateViewport(1120, 680), chromedp.Navigate(url+"/"), chromedp.WaitVisible(chromedp.CSS("#question")))
	page.ask("May a child of seven sail, and in which boat?")
	waitFor(`document.querySelector(".turn .text:not(.draft) .cite") !== null`)
	js(`document.querySelector(".turn .text:not(.draft) .cite").click(); ""`)
	do(chromedp.WaitVisible(chromedp.CSS("#source mark#quote")))
	marked := js(`document.getElementById("quote").innerText`)
	answer := js(`document.querySelector(".turn .text:not(.draft)").innerText`)
	t.Logf("marked text: %q", marked)
	if words := strings.Fields(marked); !strings.Contains(strings.Join(strings.Fields(answer), " "),
		strings.Join(words[:min(4, len(words))], " ")) {
		t.Errorf("marked words %q are not in the answer %q", marked, answer)
	}
	for _, theme := range []string{"light", "dark"} {
		shoot(t, ctx, theme)
		js(`document.getElementById("theme").click(); ""`)
	}

	// No citation wraps over two lines.
	for width := int64(320); width <= 1120; width += 25 {
		do(chromedp.EmulateViewport(width, 680))
		if got := js(`String([...document.querySelectorAll(".cite")].every((c) => c.getClientRects().length === 1))`); got != "true" {
			t.Errorf("at %d pixels a citation wraps over two lines", width)
		}
	}

	// The citation's own address marks the same words without the page.
	href := js(`document.querySelector(".turn .text:not(.draft) .cite").href`)
	do(chromedp.Navigate(href), chromedp.WaitVisible(chromedp.CSS("mark#quote")))
	if got := js(`document.querySelector("mark#quote").innerText`); len(got) < 10 {
		t.Errorf("%s marks %q, want at least 10 bytes", href, got)
	}
	// What is left out of a table between two quoted rows does not join two others.
	do(chromedp.Navigate(url+"/"), chromedp.WaitVisible(chromedp.CSS("#question")))
	page.ask("Since when are the principal and the secretary in office?")
	waitFor(`document.querySelector(".turn .quotes mark") !== null`)
	rows := js(`[...document.querySelectorAll(".turn .quotes p")].map((p) => p.textContent).join("\n")`)
	if !strings.Contains(rows, " …\n… ") || regexp.MustCompile(`Bosun.*Penhallick`).MatchString(rows) {
		t.Errorf("around the quoted rows: %s", rows)
	}

	if len(foreign) > 0 {
		t.Errorf("the page requested other hosts: %s", foreign)
	}
	report := url + "/documents/library/minutes/annual-report-2024.pdf"
	for _, page := range []string{href, report, report + "?page=2", report + "?start=900&end=980#quote"} {
		do(chromedp.Navigate(page), chromedp.WaitVisible(chromedp.CSS("h1")))
		if found := axe(t, ctx); found != "" {
			t.Errorf("%s: axe reports %s", page, found)
		}
	}
}

// axe returns axe's findings on a page, or "" unless IBID_AXE names its script.
func axe(t *testing.T, page context.Context) string {
	t.Helper()
	path := os.Getenv("IBID_AXE")
	if path == "" {
		return ""
	}
	script, err := os.ReadFile(path)
	must(t, err)
	_, err = chromedp.Run(page, chromedp.Evaluate[chromedp.Void](string(script)+"\n;0"))
	must(t, err)
	found, err := chromedp.Run(page, chromedp.Evaluate[string](
		`axe.run().then((r) => r.violations.map((v) => v.id + " " + v.nodes.map((n) => n.html)).join("\n"))`, chromedp.EvalAwaitPromise))
	must(t, err)
	return found
}

// TestChangedSourcesInABrowser edits, renames and deletes files after answers quoted them.
// History counts the answers, each source shows its state, the old quote is shown with the
// new text, and regenerating marks what differs.
func TestChangedSourcesInABrowser(t *testing.T) {
	t.Parallel()
	datatest.Chromium(t)
	notes, data := filepath.Join(t.TempDir(), "notes"), t.TempDir()
	writeFiles(t, notes, map[string]string{
		"fees.md":  "# Fees\n\nThe mooring fee is 240 crowns a season. Members pay it at the office in March.\n",
		"boats.md": "# Boats\n\nThe mast of a Corrie reaches 9.10 metres above the water. Its keel weighs 310 kilograms.\n",
		"dogs.md":  "# Dogs\n\nDogs are welcome on the eastern pier until sunset. They are kept on a lead.\n",
		"hours.md": "# Hours\n\nThe harbour office opens at nine in the morning. It is closed on Sundays.\n",
	})
	url := serve(t, data, notes)
	ready(t, url)
	page := openBrowser(t)
	page.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(url+"/"))
	for _, q := range []string{"What is the mooring fee?", "How high above the water does the mast of a Corrie reach?",
		"Until when are dogs welcome on the pier?", "When does the harbour office open?"} {
		page.ask(q)
	}
	shoot(t, page, "states-before")

	writeFiles(t, notes, map[string]string{
		"fees.md": "# Fees\n\nSince May there is a new price list: the mooring fee is 310 crowns a season.\n",
	})
	in := func(name string) string { return filepath.Join(notes, name) }
	must(t, errors.Join(os.Rename(in("boats.md"), in("keelboats.md")), os.Remove(in("dogs.md"))))
	eventually(t, "the changes to be read", func() bool {
		ids := documents(t, url)
		return ids["notes/keelboats.md"] && !ids["notes/boats.md"] && !ids["notes/dogs.md"] &&
			bytes.Contains(fetch(t, http.MethodGet, url+"/api/documents/notes/fees.md", "", "", http.StatusOK), []byte("310"))
	})
	must(t, os.Rename(in("fees.md"), in("prices.md"))) // the renamed file was edited before
	eventually(t, "the second rename to be read", func() bool { return documents(t, url)["notes/prices.md"] })

	page.do(chromedp.Navigate(url + "/"))
	page.js(`document.getElementById("past-button").click(); ""`)
	page.waitFor(`document.querySelector("#past [role=status]")?.innerText.includes("Answers whose sources have changed: 2")`)
	page.waitFor(`document.querySelector("#past .past-open").innerText.includes("The sources have changed since.")`)
	shoot(t, page, "states-history")
	page.js(`document.querySelector("#past .past-open").click(); ""`)
	for turn, want := range []string{"The quoted text has changed since", "Renamed to ", "The quoted text has been removed since"} {
		page.waitFor(fmt.Sprintf(`document.querySelectorAll(".turn")[%d]?.innerText.includes(%q)`, turn, want))
	}
	if got := page.js(`document.querySelectorAll(".turn")[0].innerText`); !strings.Contains(got, "Renamed to notes/prices.md") {
		t.Errorf("turn of the edited and renamed source lacks its new name: %s", got)
	}
	if got := page.js(`document.querySelectorAll(".turn")[3].innerText`); strings.Contains(got, " since ") {
		t.Errorf("turn of the unchanged source says that it changed: %s", got)
	}
	shoot(t, page, "states-answers")
	for turn, want := range map[int]string{0: "240 crowns", 2: "welcome on the eastern pier"} {
		page.js(fmt.Sprintf(`document.querySelectorAll(".turn")[%d].querySelector(".text .cite").click(); ""`, turn))
		page.waitFor(fmt.Sprintf(`document.getElementById("source").innerText.includes(%q)`, want))
		if got := page.js(`document.getElementById("source").innerText`); turn == 0 && !strings.Contains(got, "310 crowns") {
			t.Errorf("panel lacks the current text of the source: %s", got)
		}
		shoot(t, page, fmt.Sprintf("states-panel-%d", turn))
		page.do(chromedp.KeyEvent(kb.Escape))
	}
	page.js(`document.querySelectorAll(".turn")[1].querySelector(".text .cite").click(); ""`)
	page.waitFor(`document.querySelector("#source mark")?.innerText.includes("9.10 metres")`)
	shoot(t, page, "states-panel-1")
	page.do(chromedp.KeyEvent(kb.Escape))

	page.js(`[...document.querySelectorAll(".turn")[0].querySelectorAll("button")].find((b) => b.innerText === "Regenerate and compare").click(); ""`)
	page.waitFor(`document.querySelectorAll(".turn")[0].innerText.includes("Highlighted sentences differ from the earlier answer.")`)
	if got := page.js(`document.querySelectorAll(".turn")[0].querySelector(".text").innerText`); !strings.Contains(got, "310 crowns") {
		t.Errorf("regenerated answer = %q, want the new price", got)
	}
	page.js(`document.querySelector(".turn .earlier summary").click(); ""`)
	if got := page.js(`document.querySelector(".turn .earlier").innerText`); !strings.Contains(got, "240 crowns") {
		t.Errorf("earlier answer = %q, want the old price", got)
	}
	shoot(t, page, "states-compared")
	stdout, _, _ := ibid(t, data, "doctor")
	if !strings.Contains(stdout, "with sources that have changed since") {
		t.Errorf("doctor doesn't count the answers whose sources have changed:\n%s", stdout)
	}
}

// TestWidgetInABrowser opens a page of another site that has the widget, with a public key.
func TestWidgetInABrowser(t *testing.T) {
	t.Parallel()
	datatest.Chromium(t)
	library, data := filepath.Join(moduleRoot(t), "data", "library"), t.TempDir()
	mustRun(t, data, "ingest", library)
	key := strings.TrimSpace(mustRun(t, data, "keys", "make", "site", "--scope", "public", "--collection", "default"))
	var server string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!DOCTYPE html><title>Shop</title><body><h1>Shop</h1>
			<script>
				const attach = Element.prototype.attachShadow;
				Element.prototype.attachShadow = function () { return (window.box = attach.call(this, { mode: "open" })); };
			</script>
			<script src="%s/static/widget.js" data-key="%s" data-title="Ask us" defer></script>`, server, key)
	}))
	t.Cleanup(other.Close)
	server = serve(t, data, "--auth", "on", "--cors-origin", other.URL)
	page := openBrowser(t)
	page.do(chromedp.EmulateViewport(800, 600), chromedp.Navigate(other.URL), chromedp.WaitVisible(chromedp.CSS("h1")))
	page.waitFor(`window.box?.querySelector("summary")?.innerText === "Ask us"`)
	ask := func(question string) {
		page.js(`box.querySelector("details").open = true; box.querySelector("input").value = ` + strconv.Quote(question) + `;
			box.querySelector("form").requestSubmit(); ""`)
	}
	ask("What does a swinging mooring cost in 2025?")
	page.waitFor(`box.querySelector(".text").innerText.includes("530") && box.querySelector("ol blockquote")?.innerText.includes("Swinging")`)
	ask("And in 2024?")
	page.waitFor(`window.box.querySelector(".text").innerText.includes("480")`)
	shoot(t, page, "widget")

	// A page of a site that is not on the list shows nothing.
	stranger := httptest.NewServer(other.Config.Handler)
	t.Cleanup(stranger.Close)
	page.do(chromedp.Navigate(stranger.URL))
	page.waitFor(`window.box?.querySelector("summary")?.innerText === "Ask us"`)
	ask("What does a swinging mooring cost in 2025?")
	page.waitFor(`window.box.querySelector(".text").innerText.length > 1`)
	if got := page.js(`window.box.querySelector(".text").innerText`); strings.Contains(got, "530") {
		t.Errorf("page of an unlisted site shows %q, want nothing", got)
	}
}

// A browserPage is a tab of a browser.
type browserPage struct {
	context.Context
	t *testing.T
}

func (p browserPage) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	must(p.t, chromedp.Do(p, steps...))
}

// js returns the string value of an expression.
func (p browserPage) js(expression string) string {
	p.t.Helper()
	s, err := chromedp.Run(p, chromedp.Evaluate[string](expression))
	if err != nil {
		p.t.Fatalf("evaluating %s: %v", expression, err)
	}
	return s
}

// waitFor waits until an expression is true, even across a page load.
func (p browserPage) waitFor(expression string) {
	p.t.Helper()
	var last error
	for began := time.Now(); time.Since(began) < 5*time.Minute; time.Sleep(20 * time.Millisecond) {
		ok, err := chromedp.Run(p, chromedp.Evaluate[bool](`document.readyState === "complete" && (`+expression+`)`))
		if last = err; err == nil && ok {
			return
		}
	}
	p.t.Fatalf("waiting for %s: %v\n%s", expression, last, p.js(`document.body.innerText`))
}

// ask asks a question on the page and waits for the answer.
func (p browserPage) ask(question string) {
	p.t.Helper()
	p.do(chromedp.WaitVisible(chromedp.CSS("#question")), chromedp.SendKeys(chromedp.CSS("#question"), question))
	p.js(`document.querySelector("#question").form.requestSubmit(); ""`)
	p.waitFor(`document.querySelector(".turn:last-child .asked")?.innerText === ` + strconv.Quote(question) +
		` && document.querySelector(".turn:last-child").getAttribute("aria-busy") === "false"`)
}

// chromiumProcess is the Chromium process that all tests share; the first test starts it.
var chromiumProcess struct {
	sync.Once
	ctx   context.Context
	err   error
	close func()
}

// openBrowser opens an empty tab with its own cookies, storage and cache, for at most ten
// minutes.
func openBrowser(t *testing.T) browserPage {
	t.Helper()
	path := datatest.Chromium(t)
	chromiumProcess.Do(func() {
		var folder string
		if folder, chromiumProcess.err = os.MkdirTemp("", "ibid-browser-"); chromiumProcess.err != nil {
			return
		}
		ctx, stop := chromedp.NewExecAllocator(context.Background(), append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(folder),
			chromedp.Flag("disable-component-update", true))...)
		ctx, closeBrowser := chromedp.NewContext(ctx)
		chromiumProcess.ctx, chromiumProcess.close = ctx, func() {
			closeBrowser()
			stop()
			os.RemoveAll(folder)
		}
		chromiumProcess.err = chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void]("0"))
	})
	must(t, chromiumProcess.err)
	ctx, cancel := context.WithTimeout(chromiumProcess.ctx, 10*time.Minute)
	t.Cleanup(cancel)
	ctx, closeTab := chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	must(t, chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void]("0")))
	// Only one tab can have the focus; emulation makes each behave as if it had.
	_, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	must(t, err)
	return browserPage{ctx, t}
}

// shoot saves a screenshot in the folder named by IBID_SCREENSHOTS, if set.
func shoot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	folder := os.Getenv("IBID_SCREENSHOTS")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "ibid-"+name+".png"), png, 0o644))
}

// TestAddSiteInABrowser pastes the address of a web site into the question box of an empty
// library, follows the progress and the list of skipped pages, asks, and follows the source
// to the quoted words. An address that can't be read shows the reason and can be retried.
func TestAddSiteInABrowser(t *testing.T) {
	t.Parallel()
	datatest.Chromium(t)
	var open atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pages := map[string]string{
			"/docs/": `<p>All about the club. <a href="fees">fees</a> <a href="secret/x">no</a> <a href="a">a</a> <a href="b">b</a>`,
			"/docs/fees": "<h1>Fees</h1>" + strings.Repeat("<p>The harbour is open to boats of members all year.", 99) +
				"<p>The mooring fee is 240 crowns a season.",
			"/docs/a":     "<h1>Keys</h1><p>The spare key hangs in the kitchen of the boathouse.",
			"/docs/b":     "<h1>Dogs</h1><p>Dogs are welcome on the eastern pier until sunset.",
			"/robots.txt": "User-agent: *\nDisallow: /docs/secret/\n",
			"/later":      "<h1>Hours</h1><p>The chart room opens at nine in the morning.",
		}
		text, ok := pages[r.URL.Path]
		if !ok || r.URL.Path == "/later" && !open.Load() {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, text)
	}))
	t.Cleanup(web.Close)
	url := serve(t, t.TempDir(), "--fetch-private", "--max-pages", "3")
	ready(t, url)
	page := openBrowser(t)
	line := func(state, words string) {
		t.Helper()
		page.waitFor(`[...document.querySelectorAll(".uploads .` + state + `")].some((l) => l.textContent.includes(` + strconv.Quote(words) + `))`)
	}
	page.do(chromedp.EmulateViewport(1280, 800), chromedp.Navigate(url+"/"), chromedp.WaitVisible(chromedp.CSS("#site")))
	if got := page.js(`(() => { const d = new DataTransfer(); d.setData("text/plain", ` + strconv.Quote(web.URL+"/docs/") + `);
			const e = new ClipboardEvent("paste", { clipboardData: d, bubbles: true, cancelable: true });
			return document.body.dispatchEvent(e) ? "the browser inserts it too" : document.getElementById("sites-address").value })()`); got != web.URL+"/docs/" {
		t.Errorf("page after pasting the address: %s", got)
	}
	page.do(chromedp.WaitVisible(chromedp.CSS("#sites-address")))
	shoot(t, page, "site-dialog")
	page.do(chromedp.SendKeys(chromedp.CSS("#sites-address"), kb.Enter))
	line("done", "3 pages")
	line("done", "robots.txt")
	line("done", "Not everything was read. Page limit: 3")
	page.do(chromedp.WaitVisible(chromedp.CSS("#question")))
	shoot(t, page, "site-read")

	page.js(`document.getElementById("question").value = "` + web.URL + `/later"; document.getElementById("ask").requestSubmit(); ""`)
	page.do(chromedp.WaitVisible(chromedp.CSS("#sites-address")),
		chromedp.SendKeys(chromedp.CSS("#sites-address"), kb.Enter))
	line("failed", "404")
	open.Store(true)
	page.do(chromedp.Click(chromedp.CSS("#site")), chromedp.SendKeys(chromedp.CSS("#sites-address"), web.URL+"/later"+kb.Enter))
	line("done", "1 page")

	page.ask("What is the mooring fee?")
	page.js(`document.querySelector(".turn .cite").click(); ""`)
	page.waitFor(`document.querySelector("#source .original")?.href.startsWith("` + web.URL + `/docs/fees#:~:text=")`)
	tabs := chromedp.WaitNewTarget(page, func(tab *target.Info) bool { return strings.HasPrefix(tab.URL, web.URL) })
	page.do(chromedp.Click(chromedp.CSS("#source .original")))
	ctx, closeTab := chromedp.NewContext(page, chromedp.WithTargetID(<-tabs))
	t.Cleanup(closeTab)
	site := browserPage{ctx, t}
	site.waitFor(`document.readyState === "complete" && (() => {
		const at = document.querySelector("p:last-child").getBoundingClientRect();
		return scrollY > 0 && at.top >= 0 && at.bottom <= innerHeight; })()`)
	shoot(t, site, "site-quote")
}
