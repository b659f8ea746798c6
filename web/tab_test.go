package web

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"ibid/answer"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

// hang is how long a test waits for an event that should come at once. A busy machine may
// need a while; a test that reaches the limit hangs.
const hang = 3 * time.Minute

// A tab shows a page of a scene and collects its requests to other origins and
// the problems on its console.
type tab struct {
	context.Context
	t      *testing.T
	stop   context.CancelCauseFunc
	origin string
	width  int64
	theme  string

	mu       sync.Mutex
	foreign  []string
	problems []string
	expected []string // problems that the test expects, by their words
}

// A scene is a server that answers from a script. The script waits at gates
// until the test opens them.
type scene struct {
	*httptest.Server
	gates map[string]chan struct{}
	asked atomic.Pointer[answer.Question] // the last question asked
	log   serverLog
}

// A serverLog collects what a server logs.
type serverLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *serverLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newScene(t *testing.T, change func(*Options)) *scene {
	s := &scene{gates: map[string]chan struct{}{"first": make(chan struct{}), "second": make(chan struct{})}}
	runs := new(Answers)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // don't wait for runs at a closed gate
		runs.Shutdown(ctx)
	})
	h := newHandler(t, func(o *Options) {
		o.Answers = runs
		o.Logger = slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		shelf := append(newShelf(), handbook())
		slices.SortFunc(shelf, func(a, b *ingest.Document) int { return strings.Compare(a.ID, b.ID) })
		o.Library = shelf
		o.Asker = s.script(shelf)
		if change != nil {
			change(o)
		}
		asker := o.Asker
		o.Asker = askerFunc(func(ctx context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
			if q.Strategy != "extract" { // checking a suggestion
				s.asked.Store(&q)
			}
			return asker.Ask(ctx, q)
		})
	})
	s.Server = httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the server:\n%s", &s.log)
		}
	})
	return s
}

// waitAt waits until a gate opens or the reader disconnects.
func (s *scene) waitAt(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-s.gates[name]:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pass lets the answer through the gates, each once.
func (s *scene) pass(names ...string) {
	for _, name := range names {
		s.gates[name] <- struct{}{}
	}
}

// open opens the gates, so that answers come without waiting.
func (s *scene) open() {
	close(s.gates["first"])
	close(s.gates["second"])
}

// handbook is a document that is long enough to scroll to a quote.
func handbook() *ingest.Document {
	var b strings.Builder
	d := &ingest.Document{ID: "club/handbook/members.pdf", Root: "club", Path: "handbook/members.pdf", Title: "Members' handbook 2025",
		Format: "pdf", Digest: strings.Repeat("cd", 32)}
	for page := range 12 {
		start := b.Len()
		heading := b.Len()
		fmt.Fprintf(&b, "%d. On the water\n", page+1)
		for range 5 {
			b.WriteString("\nEvery member who takes a boat out writes the time, the crew and the plan into the log at the office, and strikes " +
				"the line out again after coming back. A boat that is not back an hour after its time is looked for.\n")
		}
		if page == 8 {
			b.WriteString("\nNobody sails alone before the end of April. Whoever is under sixteen sails with an instructor aboard, and wears a " +
				"buoyancy aid from the pier to the pier.\n")
		}
		d.Sections = append(d.Sections, ingest.Section{Heading: fmt.Sprintf("%d. On the water", page+1),
			Level: 2 + 2*(page%2), Start: heading, End: b.Len()})
		d.Pages = append(d.Pages, ingest.Page{Number: page + 1, Start: start, End: b.Len()})
	}
	d.Text = b.String()
	return d
}

func (s *scene) script(lib shelf) script {
	fee := lib.passage("club/handbook/mooring.md", "The mooring fee is 240 crowns a season.")
	alone := lib.passage("club/handbook/members.pdf", "Nobody sails alone before the end of April.")
	aids := lib.passage("club/handbook/members.pdf",
		"Whoever is under sixteen sails with an instructor aboard, and wears a buoyancy aid from the pier to the pier.")
	dogs := lib.passage("club/guide.pdf", "Dogs are welcome on the pier.")
	kept := []retrieve.Passage{alone, aids, fee}
	begin := []any{
		answer.Retrieved{Passages: []retrieve.Passage{alone, aids, fee, dogs}},
		lib.judged(alone, answer.Relevant, "covers 'sails alone', 'April'"),
		lib.judged(aids, answer.Relevant, "covers 'sixteen', 'sails'"),
		lib.judged(fee, answer.Relevant, "covers 'mooring'"),
		lib.judged(dogs, answer.Irrelevant, "does not mention 'sails alone', 'sixteen'"),
		answer.Kept{Passages: kept},
	}
	usage := answer.Usage{Looked: 4, Used: 4, Took: 1420, Calls: 3, JudgeCalls: 1, PromptTokens: 2210, CompletionTokens: 168}
	answered := []any{
		answer.Text{Text: "Nobody sails alone before the end of April.[1] After that it depends on **age and boat**:\n\n"},
		answer.Text{Text: "- Whoever is under sixteen sails with an instructor aboard, and wears a buoyancy aid from the pier to the " +
			"pier.[2]\n- Everyone"},
		s.waitAt("first"),
		answer.Text{Text: " else may, once the season's fee is paid: The mooring fee is 240 crowns a season.[3]\n\n"},
		s.waitAt("second"),
		answer.Text{Text: "The moon is made of green cheese. Write the plan into the log at the `office` before casting off."},
		usage,
	}
	return script{
		"May I sail alone?": slices.Concat(begin, answered),
		"drafted": slices.Concat(begin, []any{
			answer.Draft{Step: 1, Text: "Nobody sails alone before the end of April.[1] Dogs stay ashore. The fee is due.", Labels: []int{1},
				Final: true},
			answer.Draft{Step: 2, Text: "Nobody sails"}, // the reply breaks off
			s.waitAt("first"),
			answer.Revision{Step: 3, Text: "The mooring fee is"},
			s.waitAt("second"),
			answer.Revision{Step: 3, Text: " 240 crowns a season.[3] Nobody"},
			s.waitAt("first"),
			answer.Revision{Step: 3, Cut: true},
			s.waitAt("first"),
			answer.Revision{Step: 4, Text: "Nobody sails alone before the end of April.[1] The mooring fee is 240 crowns a season.[3] Dogs"},
			s.waitAt("second"),
			answer.Text{Text: "Nobody sails alone before the end of April.[1] The mooring fee is 240 crowns a season.[3] Dogs"},
			s.waitAt("first"),
			answer.Text{Text: " stay ashore."}, usage}),
		"asking": {answer.Retrieved{Passages: []retrieve.Passage{alone, aids, fee, dogs}},
			lib.judged(alone, answer.Relevant, "covers 'sails alone', 'April'"), s.waitAt("first"),
			answer.Unanswered{Reason: "nothing_relevant", Text: "No."}},
		"rich": slices.Concat(begin, []any{answer.Text{Text: richText}, usage}),
		"And with a dog?": slices.Concat([]any{answer.Retrieved{Question: "And with a dog? sail", Reworded: true, Passages: kept}}, begin,
			[]any{answer.Text{Text: "Dogs are welcome on the pier.[4]"}, usage}),
		"How do I make pizza?": {answer.Retrieved{Passages: []retrieve.Passage{dogs, fee}},
			lib.judged(dogs, answer.Irrelevant, "does not mention 'make pizza'"), lib.judged(fee, answer.Irrelevant, "does not cover make, pizza"),
			answer.Unanswered{Reason: "nothing_relevant", Text: "The documents do not say: nothing in them is about this question.",
				Nearest: []retrieve.Passage{dogs, fee}},
			answer.Usage{Looked: 2, Took: 20}},
		"breaks": slices.Concat(begin, []any{answer.Text{Text: "Nobody sails alone before the end of April.[1] After that it "}, errBroken}),
		"cut": slices.Concat(begin, []any{answer.Text{Text: "Nobody sails alone before the end of April.[1] After that it "},
			answer.Incomplete{
				Reason: "asking the model (answer): the reply of m at http://10.1.2.3:8000/v1 ended early: ask again"}, usage}),
		"falls back": {answer.Retrieved{Passages: []retrieve.Passage{fee}},
			answer.Warning{Message: "the question was searched for unchanged: m at http://10.1.2.3:8000/v1 failed"},
			answer.Judged{Passage: fee.ID, Document: fee.Document, Decision: answer.Errored,
				Reason: "the judge could not be asked: m at http://10.1.2.3:8000/v1 failed"},
			answer.Fallback{Reason: "model_failed", Err: errBroken},
			answer.Warning{Message: "the model gave no answer, so sentences of the documents are quoted: m at http://10.1.2.3:8000/v1 failed"},
			answer.Kept{Passages: []retrieve.Passage{fee}}, answer.Text{Text: "The mooring fee is 240 crowns a season.[1]"}, usage},
		"evil": {answer.Retrieved{Passages: []retrieve.Passage{fee}}, lib.judged(fee, answer.Relevant, hostile),
			answer.Kept{Passages: []retrieve.Passage{fee}},
			answer.Text{Text: hostile + "![x](http://evil.example/x.png) [y](http://evil.example/y) <img src=http://evil.example/z> The mooring " +
				"fee is 240 crowns a season.[1]"}, usage},
	}
}

// richText contains every kind of block that an answer can contain.
const richText = "### Fees\n\nThe mooring fee is **240 crowns** a season.[3] It holds for all boats:\n\n" +
	"| Boat | Length | Fee |\n|---|:-:|--:|\n| Dinghy | 4 m | 240 |\n| Cruiser with a long name that goes on | 11 m | 240 |\n\n" +
	"1. Sign the log.[1]\n   - the time\n   - the crew\n2. Cast off.\n\n> Nobody sails alone before the end of April.[1]\n\n" +
	"```\nlog --crew 2 --plan 'to the lighthouse and back before the fog' --until 18:00 --boat cruiser\n```\n\nUse `log` for _every_ trip."

// browser is the Chromium process that all tests of the page share, since starting it is
// slower than opening a tab. Each tab has its own cookies and storage.
var browser struct {
	once  sync.Once
	ctx   context.Context
	err   error
	close func()
}

// testsWithBrowser closes the browser after the tests.
type testsWithBrowser struct{ *testing.M }

func (m testsWithBrowser) Run() int {
	code := m.M.Run()
	if browser.close != nil {
		browser.close()
	}
	return code
}

// sharedBrowser starts the browser if no test has done so yet.
func sharedBrowser(t *testing.T) context.Context {
	t.Helper()
	path := datatest.Chromium(t)
	browser.once.Do(func() {
		dir, err := os.MkdirTemp("", "ibid-browser-")
		if err != nil {
			browser.err = err
			return
		}
		ctx, stop := chromedp.NewExecAllocator(context.Background(), append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(dir),
			chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true))...)
		ctx, closeBrowser := chromedp.NewContext(ctx)
		browser.ctx = ctx
		browser.close = func() {
			closeBrowser()
			stop()
			os.RemoveAll(dir)
		}
		browser.err = chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void]("0"))
	})
	if browser.err != nil {
		t.Fatalf("starting the browser: %v", browser.err)
	}
	return browser.ctx
}

// newTab opens the scene's home page at a width and in a theme.
func (s *scene) newTab(t *testing.T, width int64, theme string) *tab {
	t.Helper()
	return s.newTabAt(t, width, theme, "/", "#library")
}

// newTabAt opens a page and waits until one of its elements is visible.
func (s *scene) newTabAt(t *testing.T, width int64, theme, path, seen string) *tab {
	t.Helper()
	ctx, cancel := context.WithTimeout(sharedBrowser(t), 3*hang) // axe is slow
	t.Cleanup(cancel)
	ctx, stop := context.WithCancelCause(ctx)
	ctx, closeTab := chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	b := &tab{Context: ctx, t: t, stop: stop, origin: s.URL, width: width, theme: theme}
	b.do(chromedp.Evaluate[chromedp.Void]("0")) // opens the tab
	must(t, chromedp.Listen(ctx, b.noteRequest))
	console := chromedp.Console(ctx)
	go func() {
		for m, err := range console {
			if err != nil {
				return // the tab is closed
			}
			if m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning || m.Type == chromedp.ConsoleException {
				b.mu.Lock()
				b.problems = append(b.problems, m.Text)
				b.mu.Unlock()
			}
		}
	}()
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	must(t, err)
	// Only one tab can have the focus; emulation makes each behave as if it had.
	_, err = chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	must(t, err)
	b.emulate(width, 900, theme)
	b.do(chromedp.Navigate(s.URL+path), chromedp.WaitVisible(chromedp.CSS(seen)))
	t.Cleanup(b.reportProblems)
	return b
}

// noteRequest records a request to another origin. A page with a server error fails the
// test.
func (b *tab) noteRequest(ev any) {
	var address string
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		address = ev.Request.URL
	case network.EventRequestWillBeSent:
		address = ev.Request.URL
	case *network.EventResponseReceived:
		if ev.Type == network.ResourceTypeDocument && ev.Response.Status >= 500 {
			b.stop(fmt.Errorf("page %s has the status %d", ev.Response.URL, ev.Response.Status))
		}
		return
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !strings.HasPrefix(address, b.origin+"/") {
		b.foreign = append(b.foreign, address)
	}
}

// reportProblems fails the test for requests to other origins and for errors
// on the console.
func (b *tab) reportProblems() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, address := range b.foreign {
		b.t.Errorf("page requested %s", address)
	}
	for _, p := range b.problems {
		if !slices.ContainsFunc(b.expected, func(words string) bool { return strings.Contains(p, words) }) {
			b.t.Errorf("console: %s", p)
		}
	}
}

// expectProblem waits for a problem on the console that contains the words, and excuses
// every problem that does.
func (b *tab) expectProblem(words string) {
	b.t.Helper()
	for began := time.Now(); time.Since(began) < hang; time.Sleep(5 * time.Millisecond) {
		b.mu.Lock()
		found := slices.ContainsFunc(b.problems, func(p string) bool { return strings.Contains(p, words) })
		if found {
			b.expected = append(b.expected, words)
		}
		b.mu.Unlock()
		if found {
			return
		}
	}
	b.t.Errorf("console has no problem with %q", words)
}

// do runs steps in order. If a page loads or changes after a step has found its node and
// before it uses it, the browser reports a missing node. Nothing has been clicked or typed
// then, and do repeats the step. On a page that is still loading, elements move, and
// a click can miss.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for i, step := range steps {
		if i > 0 {
			b.waitFor("true")
		}
		err := chromedp.Do(b, step)
		for err != nil && b.Err() == nil && strings.Contains(err.Error(), "Could not find node with given id") {
			err = chromedp.Do(b, step)
		}
		if err != nil {
			b.t.Fatalf("doing a step of the script: %v (%v)", err, context.Cause(b))
		}
	}
}

func (b *tab) ask(question string) {
	b.t.Helper()
	b.do(chromedp.SendKeys(chromedp.CSS("#question"), question))
	b.press("Enter", "\r", 13)
}

// newConversation clears the page.
func (b *tab) newConversation() {
	b.t.Helper()
	b.js(`document.getElementById("new").click(); ""`)
	b.is("0", `String(document.querySelectorAll(".turn").length)`)
}

// press presses a key like a keyboard: with its character, so that a page that handles the
// key does not receive the character too.
func (b *tab) press(key, text string, code int64) {
	b.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		p := input.DispatchKeyEventParams{Type: kind, Key: key, Code: key, WindowsVirtualKeyCode: code}
		if kind == input.DispatchKeyEventTypeKeyDown {
			p.Text = text
		}
		_, err := chromedp.Call(b, input.DispatchKeyEvent, p)
		must(b.t, err)
	}
}

// tabTo presses Tab until the element with an id or class has the focus.
func (b *tab) tabTo(id string) {
	b.t.Helper()
	for range 100 {
		if b.js(focused) == id || b.js(`document.activeElement.id`) == id {
			return
		}
		b.press("Tab", "", 9)
	}
	b.t.Fatalf("Tab doesn't reach %s", id)
}

// waitFor waits until a JavaScript expression is true, even while the tab loads a page and
// cannot evaluate.
func (b *tab) waitFor(expression string) {
	b.t.Helper()
	if last, ok := poll(b, `document.readyState === "complete" && (`+expression+")", true); !ok {
		if b.Err() == nil {
			b.picture("failed-" + strings.ReplaceAll(b.t.Name(), "/", "-"))
			b.t.Log(b.js(`document.body.innerText`))
		}
		b.t.Fatalf("waiting for %s: %s", expression, last)
	}
}

// poll evaluates an expression until it equals want, and returns its last value.
func poll[T comparable](b *tab, expression string, want T) (last string, ok bool) {
	deadline := time.After(hang)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := chromedp.Run(b, chromedp.Evaluate[T](expression))
		if err == nil && got == want {
			return "", true
		}
		select {
		case <-tick.C:
		case <-b.Done():
			return context.Cause(b).Error(), false
		case <-deadline:
			return fmt.Sprintf("%#v %v", got, err), false
		}
	}
}

func (b *tab) js(expression string) string {
	b.t.Helper()
	s, err := chromedp.Run(b, chromedp.Evaluate[string](expression))
	if err != nil {
		b.t.Fatalf("evaluating %s: %v", expression, err)
	}
	return s
}

// is waits until an expression equals want: effects after loading, such as moving the
// focus, need a moment.
func (b *tab) is(want, expression string) {
	b.t.Helper()
	if last, ok := poll(b, expression, want); !ok {
		b.t.Errorf("%s = %s, want %q", expression, last, want)
	}
}
