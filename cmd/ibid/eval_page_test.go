package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"ibid/answer/openai/openaitest"
)

// hostileFile is a document that would like to be more than text.
const hostileFile = `# Tea <script>document.title = "taken"</script>

Black tea is served in the galley at four "><img src=https://evil.example/x onerror="document.title='taken'"> </details></main><style>body{display:none}</style>
`

// A report of hostile documents, questions and replies is opened as a page: it
// runs nothing, asks nothing, hides nothing, and can be read by everyone.
func TestEvalReportInABrowser(t *testing.T) {
	chromium := chromiumPath(t)
	dir := t.TempDir()
	writeFiles(t, dir, club)
	writeFiles(t, dir, map[string]string{
		"club/evil.md": hostileFile,
		"evil.jsonl": clubQuestions + `{"id": "<b onclick=alert(1)>", "question": "Is black tea <script>document.title = 'taken'</script> served in the galley, \u202eat four\u202c?", "answers": ["</style><script>document.title='taken'</script>"], "documents": ["evil.md"], "kind": "<svg onload=alert(1)>"}
{"id": "not there", "question": "Where do the dinghies stand in winter, and who says so?", "answers": ["slipway"], "documents": ["<iframe src=https://evil.example/>.md"], "pages": 3, "kind": "single"}
`})
	upstream := &openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "yes\n<script>document.title = 'taken'</script>"}},
		openaitest.Rule{Prompt: regexp.MustCompile(`Question: Where do`), Reply: openaitest.Reply{Text: "The dinghies stand on the slipway in winter [1]. Nine old sailors juggle burning lemons [1]."}},
		openaitest.Rule{Reply: openaitest.Reply{Text: "Black tea is served in the galley at four [1]. <img src=https://evil.example/y onerror=alert(1)> ![x](https://evil.example/z) </p></details><style>*{display:none}</style>"}},
	)}
	folder, page := filepath.Join(dir, "club"), filepath.Join(dir, "page.html")
	out, errs, code := ibid(t, t.TempDir(), "eval", "report", "--json", folder, filepath.Join(dir, "evil.jsonl"))
	if code != 0 {
		t.Fatal(out, errs)
	}
	writeFiles(t, dir, map[string]string{"before.json": out})
	if out, errs, code := ibid(t, t.TempDir(), "eval", "report", folder, filepath.Join(dir, "evil.jsonl"), "--html", page, "--compare", filepath.Join(dir, "before.json"),
		"--model", "<i>m</i>", "--base-url", openaitest.Start(t, upstream), "--gate", "model", "--price-in", "2", "--max", "false_answers=0"); code != exitDamage {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}

	ctx := openBrowser(t, chromium)
	do := func(steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, steps...); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want, expression string) {
		t.Helper()
		if got, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression)); err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", expression, got, want, err)
		}
	}
	address := (&url.URL{Scheme: "file", Path: page}).String()
	var mu sync.Mutex
	var foreign, problems []string
	if err := chromedp.Listen(ctx, func(ev any) {
		if e, ok := ev.(*network.EventRequestWillBeSent); ok && e.Request.URL != address {
			mu.Lock()
			defer mu.Unlock()
			foreign = append(foreign, e.Request.URL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	console := chromedp.Console(ctx)
	go func() {
		for m, err := range console {
			if err != nil {
				return // the browser is closed
			}
			mu.Lock()
			problems = append(problems, fmt.Sprint(m.Type, ": ", m.Text))
			mu.Unlock()
		}
	}()
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	do(chromedp.Navigate(address), chromedp.WaitVisible(chromedp.CSS("h1")))

	is("club: 5 questions", `document.title`)
	is("0", `String(document.querySelectorAll("script, img, iframe, object, embed, form, [onclick], [onerror], [onload], [style], a:not([href^='#'])").length)`)
	is("1 1", `document.querySelectorAll("style").length + " " + document.querySelectorAll("main").length`)
	// The style is let in by the policy, and is the page's alone.
	is("rgb(251, 250, 247) block", `getComputedStyle(document.body).backgroundColor + " " + getComputedStyle(document.body).display`)
	is("Thresholds missed:", `document.querySelector(".notice p").textContent`)
	// Every failed question has its trace, which opens by keyboard and holds what
	// was retrieved, said of it, answered and quoted.
	is("true", `String(document.querySelectorAll("details.trace").length > 2)`)
	is("0", `String(document.querySelectorAll("details[open]").length)`)
	do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details").forEach((d) => { d.open = true })`))
	for _, want := range []string{"the gate", "Retrieved passages and the gate’s decisions", "kept (relevant, by model)", "Nine old sailors juggle burning lemons", "nothing cited supports this", "⟨U+202E⟩at four⟨U+202C⟩?", `Is black tea <script>document.title = 'taken'</script> served`, "Thresholds missed"} {
		is("true", fmt.Sprintf("String(document.body.textContent.toLowerCase().includes(%s.toLowerCase()))", quoteJS(t, want)))
	}
	is("The dinghies stand on the slipway in winter [1].", `document.body.textContent.match(/The dinghies stand on the slipway in winter \[1\]\./)[0]`)

	axe := os.Getenv("IBID_AXE")
	if axe != "" {
		script, err := os.ReadFile(axe)
		if err != nil {
			t.Fatal(err)
		}
		do(chromedp.Evaluate[chromedp.Void](string(script) + "\n;0")) // by the browser's own tools, which no policy holds back
	} else {
		t.Log("IBID_AXE does not name the script axe.min.js of the npm package axe-core: the page is not held against WCAG")
	}
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{320, 800, 1024, 1440} {
			if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
			}); err != nil {
				t.Fatal(err)
			}
			do(chromedp.EmulateViewport(width, 900))
			is("false", `String(document.documentElement.scrollWidth > innerWidth)`)
			if width >= 1024 { // the verdicts at the end of a row are seen without scrolling
				is("", `[...document.querySelectorAll(".scroll")].filter((s) => s.scrollWidth > s.clientWidth).map((s) => s.ariaLabel).join()`)
			}
			if axe != "" {
				found, err := chromedp.Run(ctx, chromedp.Evaluate[string](`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}).then((r) =>
					JSON.stringify(r.violations.map((v) => v.id + ": " + v.help + " " + v.nodes.slice(0, 5).map((n) => n.html + " " + n.failureSummary).join("\n"))) + (r.passes.length > 10 ? "" : " looked at nothing"))`, chromedp.EvalAwaitPromise))
				if err != nil || found != "[]" {
					t.Errorf("%s at %d: %s (%v)", theme, width, found, err)
				}
			}
			shoot(t, ctx, fmt.Sprintf("report-%d-%s", width, theme))
		}
	}
	is("rgb(22, 23, 21)", `getComputedStyle(document.body).backgroundColor`)
	mu.Lock()
	defer mu.Unlock()
	if len(foreign)+len(problems) > 0 {
		t.Errorf("the page asked %s; on the console: %s", foreign, strings.Join(problems, "\n"))
	}
}

// quoteJS writes a text as JavaScript does.
func quoteJS(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
