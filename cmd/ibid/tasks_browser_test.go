package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

// A newUser does tasks on the page with only the keyboard, and finds controls only by the
// words that the page shows.
type newUser struct {
	browserPage
	steps             int    // controls used and texts typed
	folder, downloads string // the chosen option, and the folder of exports
}

// key presses a key.
func (u *newUser) key(name, text string, code int64) {
	u.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		p := input.DispatchKeyEventParams{Type: kind, Key: name, Code: name, WindowsVirtualKeyCode: code}
		if kind == input.DispatchKeyEventTypeKeyDown {
			p.Text = text
		}
		_, err := chromedp.Call(u, input.DispatchKeyEvent, p)
		must(u.t, err)
	}
}

// reach presses Tab until the named control has the focus.
func (u *newUser) reach(name string) {
	u.t.Helper()
	u.steps++
	const named = `(() => { const e = document.activeElement;
		return (e.labels?.[0]?.innerText || e.getAttribute("aria-label") || e.innerText || "").trim(); })()`
	// Some controls appear only after a while.
	for began := time.Now(); time.Since(began) < 5*time.Minute; {
		for range 40 {
			if got := u.js(named); got == name || strings.HasPrefix(got, name+":") {
				return
			}
			u.key("Tab", "", 9)
		}
	}
	u.t.Fatalf("Tab doesn't reach %q in\n%s", name, u.js(`document.body.innerText`))
}

func (u *newUser) press(name string) {
	u.t.Helper()
	u.reach(name)
	u.key("Enter", "\r", 13)
}

func (u *newUser) tick(name string) {
	u.t.Helper()
	u.reach(name)
	u.key(" ", " ", 32)
}

// fill types a text into a field, replacing the field's value.
func (u *newUser) fill(name, text string) {
	u.t.Helper()
	u.reach(name)
	u.js(`document.activeElement.select(); ""`)
	_, err := chromedp.Call(u, input.InsertText, input.InsertTextParams{Text: text})
	must(u.t, err)
}

func (u *newUser) askFor(question string) {
	u.t.Helper()
	u.fill("Your question", question)
	u.key("Enter", "\r", 13)
	u.waitFor(`document.querySelector(".turn:last-child .asked")?.innerText === ` + strconv.Quote(question) +
		` && document.querySelector(".turn:last-child").getAttribute("aria-busy") === "false"`)
}

// TestTasksInABrowser does the first tasks of a new user, on an empty server of the real
// program, with a model that the user chooses on the page.
func TestTasksInABrowser(t *testing.T) {
	t.Parallel()
	datatest.Chromium(t)
	type screen struct {
		width, height int64
		theme         string
	}
	for _, screen := range datatest.Pick(t, []screen{{1280, 900, "light"}, {390, 844, "dark"}, {320, 640, "light"}}) {
		t.Run(strconv.FormatInt(screen.width, 10), func(t *testing.T) {
			model := openaitest.Start(t, &openaitest.Handler{Model: "scripted", Reply: scriptedWriter})
			url := serve(t, t.TempDir(), "--no-self-test")
			ready(t, url)
			u := &newUser{browserPage: openBrowser(t), folder: filepath.Join(t.TempDir(), "club"), downloads: t.TempDir()}
			writeFiles(t, u.folder, map[string]string{
				"fees.md": "# Fees\n\n## Boats\n\nThe mooring fee is 240 crowns a season. It is paid in March.\n\n## People\n\nMembers pay half.\n",
				"dogs.md": "# Dogs\n\nDogs are welcome on the pier until sunset. They are kept on a lead.\n",
			})
			text, err := os.ReadFile("testdata/tasks.txt")
			must(t, err)
			script := strings.Replace(strings.TrimSpace(string(text)), "ENDPOINT", model, 1)
			_, err = chromedp.Call(u, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{DownloadPath: u.downloads,
				Behavior: browser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: chromedp.FromContext(u).BrowserContextID})
			must(t, err)
			if _, err := chromedp.Call(u, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"},
					{Name: "prefers-color-scheme", Value: screen.theme}},
			}); err != nil {
				t.Fatal(err)
			}
			u.do(chromedp.EmulateViewport(screen.width, screen.height), chromedp.Navigate(url+"/"))
			u.waitFor(`document.querySelector("#welcome")?.innerText === "Add your documents"`)
			for i, task := range strings.Split(strings.ReplaceAll(script, "\n\t", "\v"), "\n") {
				name, steps, _ := strings.Cut(task, "\v")
				u.steps = 0
				began := time.Now()
				for step := range strings.SplitSeq(steps, "\v") {
					u.follow(step)
				}
				shoot(t, u, fmt.Sprintf("task-%02d-%d-%s", i+1, screen.width, screen.theme))
				if u.js(`String(document.documentElement.scrollWidth > innerWidth)`) == "true" {
					t.Errorf("%s: page is wider than the window", name)
				}
				t.Logf("figure: at %d pixels, to %s: %d steps, %.1f s", screen.width, name, u.steps, time.Since(began).Seconds())
			}
		})
	}
}

// scriptedWriter answers from the passage that has the answer.
func scriptedWriter(r openaitest.Request) openaitest.Reply {
	switch r.Role {
	case "judge", "verify":
		return openaitest.Reply{Text: "yes"}
	case "condense":
		return openaitest.Reply{Text: "Where are dogs welcome?"}
	case "suggest":
		return openaitest.Reply{Text: "What is the mooring fee?\n"}
	}
	for _, fact := range []string{"The mooring fee is 240 crowns a season", "Dogs are welcome on the pier"} {
		before, _, found := strings.Cut(r.User, fact)
		if !found || r.Role == "answer" && strings.Contains(r.User, "dogs") != strings.Contains(fact, "Dogs") {
			continue
		}
		label := before[strings.LastIndex(before, "\n[")+2:]
		label, _, _ = strings.Cut(label, "]")
		return openaitest.Reply{Text: fact + ".[" + label + "]"}
	}
	return openaitest.Reply{Text: "read"}
}

// follow does a step of a task in testdata/tasks.txt. A folder is chosen without pressing
// Enter on its control, which would open the system's dialog.
func (u *newUser) follow(step string) {
	u.t.Helper()
	switch verb, what, _ := strings.Cut(step, " "); verb {
	case "reach":
		u.reach(what)
	case "press":
		u.press(what)
	case "tick":
		u.tick(what)
	case "fill":
		name, text, _ := strings.Cut(what, ": ")
		u.fill(name, text)
	case "ask":
		u.askFor(what)
	case "enter":
		u.key("Enter", "\r", 13)
	case "escape":
		u.key("Escape", "", 27)
	case "wait":
		u.waitFor(what)
	case "choose":
		u.do(chromedp.SetUploadFiles(chromedp.CSS(what), []string{u.folder}))
	case "exported":
		eventually(u.t, "the exported conversation", func() bool {
			text, err := os.ReadFile(filepath.Join(u.downloads, what))
			return err == nil && strings.Contains(string(text), "## Which fee is it for a mooring?") &&
				strings.Contains(string(text), "- Boats: [“The mooring fee is 240 crowns a season")
		})
	default:
		u.t.Fatalf("unknown step %q", step)
	}
}

// TestReceiptInABrowser checks the board's reasons for real passages: kept passages share
// words with the question, and only skipped ones are said to lack them.
func TestReceiptInABrowser(t *testing.T) {
	t.Parallel()
	datatest.Chromium(t)
	url := serve(t, t.TempDir(), filepath.Join(moduleRoot(t), "data", "library"))
	ready(t, url)
	u := &newUser{browserPage: openBrowser(t)}
	u.do(chromedp.Navigate(url + "/"))
	u.waitFor(`document.getElementById("library")?.hidden === false`)
	seen := map[string]int{}
	for _, question := range []string{"How much is a private lesson?", "Who repairs the engines?", "How long is the lake?"} {
		u.askFor(question)
		board := u.js(`[...document.querySelectorAll(".turn:last-child :is(.card, .quotes > li)")].map((e) =>
			(e.querySelector(".verdict")?.textContent ?? "cited") + ": " + e.querySelector(":scope > .facts")?.textContent).join("\n")`)
		for _, line := range strings.Split(board, "\n") {
			verdict, facts, _ := strings.Cut(line, ": ")
			seen[verdict]++
			covers, near := strings.Contains(facts, "covers "), strings.Contains(facts, "close to the question, without ")
			if lacks := strings.Contains(facts, "does not mention "); !covers && !near && !lacks || lacks && verdict != "off topic" {
				t.Errorf("%s: board says %s", question, line)
			}
		}
		u.press("New")
	}
	if seen["cited"] == 0 || seen["on topic"] == 0 || seen["off topic"] == 0 {
		t.Errorf("boards show %v", seen)
	}
}

// TestWeightOfThePage checks the size of the home page. It also logs when the page is first
// painted and its processor time until it is complete, in a campaign the best of three.
func TestWeightOfThePage(t *testing.T) {
	datatest.Chromium(t)
	if !datatest.Campaign() {
		t.Parallel()
	}
	url := serve(t, t.TempDir(), filepath.Join(moduleRoot(t), "data", "library"))
	ready(t, url)
	best, work, bytes := 1e9, 1e9, 0
	for range datatest.Cases(t, 3) {
		page := openBrowser(t) // with an empty cache
		ticks := performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}
		_, err := chromedp.Call(page, performance.Enable, ticks)
		must(t, err)
		page.do(chromedp.Navigate(url + "/"))
		page.waitFor(`document.querySelectorAll("#suggested li").length > 0 && performance.getEntriesByName("first-contentful-paint").length > 0`)
		paint, err := strconv.ParseFloat(page.js(`String(performance.getEntriesByName("first-contentful-paint")[0].startTime)`), 64)
		must(t, err)
		best = min(best, paint)
		metrics, err := chromedp.Call(page, performance.GetMetrics, cdp.Empty{})
		must(t, err)
		for _, m := range metrics.Metrics {
			if m.Name == "TaskDuration" {
				work = min(work, 1000*m.Value)
			}
		}
		bytes, err = strconv.Atoi(page.js(`String([...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
			.reduce((sum, e) => sum + e.transferSize, 0))`))
		must(t, err)
	}
	t.Logf("figure: the home page is painted after %.0f ms, takes %.0f ms of processor time, and loads %d kB", best, work, bytes/1000)
	if bytes == 0 || bytes > 120_000 {
		t.Errorf("home page loads %d bytes, want at most 120000", bytes)
	}
}
