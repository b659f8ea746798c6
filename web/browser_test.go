package web

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"ibid/answer"
	"ibid/data/datatest"
	"ibid/retrieve"
)

const ended = `document.querySelector(".turn:last-child").getAttribute("aria-busy") === "false"`

// answerText is JavaScript for the text of the last answer, which should be
// wholeAnswer.
const (
	answerText  = `document.querySelector(".turn:last-child .text:not(.draft)").textContent.replace(/\s+/g, " ").trim()`
	wholeAnswer = "Nobody sails alone before the end of April.1 After that it depends on age and boat: Whoever is under sixteen sails with " +
		"an instructor aboard, and wears a buoyancy aid from the pier to the pier.1 " +
		"Everyone else may, once the season's fee is paid: The mooring fee is 240 crowns a season.2 The moon is made of green cheese. Write " +
		"the plan into the log at the office before casting off."
)

// twoCited is JavaScript for an answer that waits at the first gate.
const twoCited = `document.querySelectorAll(".turn .text:not(.draft) .cite").length === 2`

const focused = `document.activeElement.className || document.activeElement.id`

// TestBrowser asks on the page and follows a citation to the marked words, on
// narrow and wide screens.
func TestBrowser(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		width int64
		theme string
	}{{360, "dark"}, {1440, "light"}} {
		t.Run(fmt.Sprintf("%d-%s", at.width, at.theme), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, nil)
			b := s.newTab(t, at.width, at.theme)
			b.is("question", focused)

			b.ask("May I sail alone?")
			b.waitFor(twoCited)
			b.is("false", `String(document.getElementById("stop").hidden)`)
			s.open()
			b.waitFor(ended)
			b.is("Nobody sails alone before the end of April.1 After that it depends on age and boat:",
				`document.querySelector(".turn .text:not(.draft) p").textContent`)
			b.is("2", `String(document.querySelectorAll(".turn .text:not(.draft) li").length)`)
			b.is("2", `String(document.querySelectorAll(".sources > li").length)`)
			b.is("Looked at 4 passages, used 3", `document.querySelector("summary").textContent`)
			b.is("covers sails, alone, April|covers sixteen, sails|covers mooring",
				`[...document.querySelectorAll(".sources .facts")].map((e) => e.textContent.split(" · ").at(-1)).join("|")`)
			b.is("off topic", `[...document.querySelectorAll(".card .verdict")].map((e) => e.textContent).join("|")`)
			b.is("The moon is made of green cheese.",
				`[...document.querySelectorAll(".turn .doubt")].map((e) => e.textContent).find((t) => t.includes("moon"))`)

			// By keyboard, focus shows the quote and Enter opens the source.
			b.do(chromedp.Focus(chromedp.CSS("#theme")))
			for range 20 {
				if b.js(focused) == "cite" {
					break
				}
				b.press("Tab", "", 9)
			}
			b.is("cite", focused)
			b.do(chromedp.WaitVisible(chromedp.CSS("#peek")))
			b.is("Nobody sails alone before the end of April.", `document.querySelector("#peek blockquote").textContent`)
			b.press("Enter", "\r", 13)
			b.do(chromedp.WaitVisible(chromedp.CSS("#source mark#quote")))
			b.is("Nobody sails alone before the end of April.", `document.getElementById("quote").textContent`)
			b.is("true", `(() => { const m = document.getElementById("quote").getBoundingClientRect(); const p = document.querySelector(".source-body").getBoundingClientRect();
				return String(m.top >= p.top && m.bottom <= p.bottom) })()`)
			b.is("source", focused)
			b.press("Escape", "", 27)
			b.do(chromedp.WaitNotVisible(chromedp.CSS("#source")))
			b.is("cite", focused)

			// The link of a citation leads to the viewer.
			b.do(chromedp.Navigate(b.js(`document.querySelector(".turn .cite").href`)), chromedp.WaitVisible(chromedp.CSS("mark#quote")))
			b.is("Nobody sails alone before the end of April.", `document.getElementById("quote").textContent`)
			b.is("true", `(() => { const m = document.getElementById("quote").getBoundingClientRect(); return String(m.top >= 0 && m.bottom <= innerHeight) })()`)
		})
	}
}

// TestBrowserSearchesAsWritten asks a follow-up again without the question before it.
func TestBrowserSearchesAsWritten(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	b := s.newTab(t, 800, "light")
	s.open()
	b.ask("May I sail alone?")
	b.waitFor(ended)
	b.js(`(() => { const f = fetch; window.fetch = (to, with_) => { if (with_?.body) window.sent = with_.body; return f(to, with_); }; return ""; })()`)
	b.ask("And with a dog?")
	b.waitFor(`document.querySelectorAll(".turn[aria-busy=false]").length === 2`)
	b.is("true", `String("history" in JSON.parse(sent))`)
	b.is("Searched for: And with a dog? sail Search it as written", `document.querySelector(".turn:last-child .notes .facts").textContent`)
	b.do(chromedp.Click(chromedp.CSS(".turn:last-child .notes .facts button")))
	b.waitFor(`!("history" in JSON.parse(sent)) && document.querySelectorAll(".turn[aria-busy=false]").length === 2`)
}

// TestBrowserDraftsAreReplaced checks what is shown while a text replaces an earlier draft.
func TestBrowserDraftsAreReplaced(t *testing.T) {
	t.Parallel()
	b := newScene(t, nil).newTab(t, 800, "light")
	for _, c := range datatest.Lines[struct{ Now, Want string }](t, "testdata/rows/drafts.jsonl") {
		got, err := chromedp.Run(b, chromedp.Evaluate[string](fmt.Sprintf(`import("/static/blocks.js").then(({ Blocks }) => {
			const box = document.createElement("div"), blocks = new Blocks(box);
			for (const texts of [["<p>Boats sail. Dogs stay ashore.", "<p>Come early."], [%q]]) {
				blocks.begin(true);
				texts.forEach((html, i) => blocks.put(i, html));
				blocks.draw();
			}
			return [...box.querySelectorAll("p")].map((p) => p.textContent.trim()).join(" ").replace(/\s+/g, " ");
		})`, c.Now), chromedp.EvalAwaitPromise))
		if err != nil || got != c.Want {
			t.Errorf("%s: the page shows %q, want %q (%v)", c.Now, got, c.Want, err)
		}
	}
}

// TestBrowserStates checks the page in every state.
func TestBrowserStates(t *testing.T) {
	t.Parallel()
	// These answers stop on the way, and share a tab.
	t.Run("moments", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, nil)
		b := s.newTab(t, 1280, "light")
		const paper = `getComputedStyle(document.body).backgroundColor`
		light := b.js(paper)
		b.do(chromedp.Click(chromedp.CSS("#theme")))
		dark := b.js(paper)
		if dark == light {
			t.Errorf("the theme is still %s", light)
		}
		b.do(chromedp.Navigate(s.URL+"/documents"), chromedp.WaitVisible(chromedp.CSS("table")))
		b.is(dark, paper)
		b.is("Switch to light theme", `document.getElementById("theme").getAttribute("aria-label")`)
		b.do(chromedp.Click(chromedp.CSS("#theme")))
		b.is(light, paper)
		b.is("Use the theme of the system", `document.getElementById("theme").getAttribute("aria-label")`)
		b.do(chromedp.Click(chromedp.CSS("#theme"))) // the pictures have the theme of the system
		b.is("system undefined", `localStorage.getItem("ibid.theme") + " " + document.documentElement.dataset.theme`)
		b.do(chromedp.Navigate(s.URL), chromedp.WaitVisible(chromedp.CSS("#library")))

		b.ask("asking")
		b.waitFor(`document.querySelector(".progress").textContent.startsWith("Checked 1")`)
		b.look("2-asking")
		b.do(chromedp.Click(chromedp.CSS("#stop")))
		b.waitFor(`document.querySelector(".notes").textContent === "Stopped."`)
		b.is("question", focused)

		askAlone := func() {
			t.Helper()
			b.newConversation()
			b.ask("May I sail alone?")
			b.waitFor(twoCited)
		}
		askAlone()
		b.do(chromedp.Click(chromedp.CSS("#stop")))
		b.waitFor(`document.querySelector(".notes").textContent === "Stopped."`)
		b.look("3-stopped")

		b.newConversation()
		b.ask("drafted")
		const sentences = `document.querySelector(".turn .text").textContent.replace(/\s+/g, " ").trim()`
		b.waitFor(`document.querySelector(".progress").textContent === "Writing draft 2…"`)
		b.is("Nobody sails alone before the end of April. Dogs stay ashore. The fee is due.", sentences)
		b.look("3-draft")
		// The refined answer replaces the draft sentence by sentence. Half of one does not push the draft down.
		s.pass("first")
		b.waitFor(`document.querySelector(".progress").textContent === "Writing the answer…"`)
		b.is("Nobody sails alone before the end of April. Dogs stay ashore. The fee is due.", sentences)
		b.is("1", `String(document.querySelectorAll(".turn .text p").length)`)
		s.pass("second")
		b.is("The mooring fee is 240 crowns a season.• Nobody sails alone before the end of April. Dogs stay ashore. The fee is due.", sentences)
		b.is("Moorings", `document.querySelector(".turn .text .cite").getAttribute("aria-label")`)
		b.look("3-revising")
		// One that is cut is taken back. It had no numbers, which would now be those of other sources.
		s.pass("first")
		b.is("Nobody sails alone before the end of April. Dogs stay ashore. The fee is due.", sentences)
		b.is("0", `String([...CSS.highlights.get("changed")].length)`)
		s.pass("first")
		// Numbers that cannot change any more are shown at once.
		const refining = "Nobody sails alone before the end of April.1 The mooring fee is 240 crowns a season.2 " +
			"Dogs stay ashore. The fee is due."
		b.is(refining, sentences)
		b.is("Source 2: Moorings", `[...document.querySelectorAll(".turn .text .cite")].at(-1).getAttribute("aria-label")`)
		s.pass("second") // now it is the text
		b.waitFor(`document.querySelectorAll(".turn .sources li[value]").length === 2`)
		b.is(refining, sentences)
		b.is("Source 2: Moorings", `[...document.querySelectorAll(".turn .text .cite")].at(-1).getAttribute("aria-label")`)
		b.is("Dogs stay ashore. The fee is due.", `document.querySelector(".turn .text span.draft").textContent.trim()`)
		const highlighted = `[...CSS.highlights.get("changed")].map(String).join("|")`
		b.is("The mooring fee is 240 crowns a season.", highlighted)
		b.look("3-refining")
		s.pass("first")
		b.waitFor(ended)
		b.is("Nobody sails alone before the end of April.1 The mooring fee is 240 crowns a season.2 Dogs stay ashore.", sentences)
		b.is("The mooring fee is 240 crowns a season.", highlighted)
		b.is("Nobody sails alone before the end of April. Dogs stay ashore. The fee is due.", `[...document.querySelectorAll(".evidence .drafts li")].map((e) => e.textContent.replace(/\s*1/, "").trim()).join("|")`)
		b.look("3-refined")

		// What is drawn does not move, and is not replaced, while the rest arrives.
		askAlone()
		b.look("3-streaming")
		const places = `JSON.stringify([...document.querySelectorAll(".turn h2, .turn .text:not(.draft) p, .turn .text:not(.draft) li:first-child, .dock")]` +
			`.map((e) => [e.tagName, Math.round(e.getBoundingClientRect().top), Math.round(e.getBoundingClientRect().left)]).slice(0, 3))`
		before := b.js(places)
		b.do(chromedp.Evaluate[chromedp.Void](`window.drawn = [...document.querySelectorAll(".turn .text:not(.draft) .cite")]`))
		s.pass("first")
		b.waitFor(`document.querySelectorAll(".turn .text:not(.draft) .cite").length === 3`)
		b.is(before, places)
		s.pass("second")
		b.waitFor(ended)
		b.is(before, places)
		b.is("true", `String(window.drawn.every((e) => e.isConnected))`)
		b.look("2-answered")
		b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("details").open = true; document.querySelector("details").scrollIntoView()`))
		b.look("2-evidence")

		// A reload, or a lost connection, does not interrupt an answer.
		askAlone()
		b.do(chromedp.Reload())
		b.waitFor(twoCited)
		b.is("true", `document.querySelector(".turn").getAttribute("aria-busy")`)
		b.is("Stop", `[...document.querySelectorAll("#send, #stop")].filter((x) => !x.hidden).map((x) => x.textContent.trim()).join()`)
		s.pass("first", "second")
		b.waitFor(ended)
		b.is(wholeAnswer, answerText)
		askAlone()
		s.CloseClientConnections()
		b.waitFor(`document.querySelector(".progress").textContent === "Connection lost, reconnecting…"`)
		s.pass("first", "second")
		b.waitFor(ended)
		b.is(wholeAnswer, answerText)
		b.is("true", `String(document.getElementById("offline").hidden)`)
		b.expectProblem("net::ERR_")

		// The page's policy blocks inline styles.
		b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("main").insertAdjacentHTML("beforeend", "<p style='color: red'>red</p>")`))
		b.waitFor(`getComputedStyle(document.querySelector("main > p:last-child")).color !== "rgb(255, 0, 0)"`)
		b.expectProblem("Content Security Policy")

		b.newConversation()
		s.Close()
		b.ask("How do I make pizza?")
		b.do(chromedp.WaitVisible(chromedp.CSS(".turn .trouble button")))
		b.is("Can't reach the server. Your conversation stays here, and you can ask again once the connection is back.",
			`[...document.querySelectorAll(".trouble p, #offline")].filter((e) => e.checkVisibility()).map((e) => e.innerText).join("|")`)
		b.look("4-offline")
		b.waitFor(`document.getElementById("send").hidden === false`)
		b.expectProblem("ERR_CONNECTION_REFUSED")
	})
	// Answers that do not stop share a tab, each in a new conversation.
	t.Run("answers", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, func(o *Options) { o.Model = func(context.Context) string { return "m" } })
		s.open()
		b := s.newTab(t, 1280, "light")

		b.ask("May I sail alone?")
		b.waitFor(ended)
		b.ask("How do I make pizza?")
		b.waitFor(`document.querySelectorAll(".turn").length === 2 && ` + ended)
		b.is("2 0", `[...document.querySelectorAll(".turn")].map((t) => t.querySelectorAll(".sources > li").length).join(" ")`)
		b.is(`May I sail alone?`, `JSON.parse(localStorage["ibid.history"])[0].turns[0].question`)
		b.look("7-conversation")

		// A reload restores it.
		const drawn = `[...document.querySelectorAll(".turn")].map((t) => t.textContent).join("|")`
		before := b.js(drawn)
		b.do(chromedp.Reload())
		b.waitFor(`document.querySelectorAll(".turn").length === 2 && document.readyState === "complete"`)
		b.is(before, drawn)

		// A new one is empty; the old one is in the history.
		b.do(chromedp.Click(chromedp.CSS("#new")))
		b.waitFor(`document.querySelectorAll(".turn").length === 0`)
		b.is("question", focused)
		b.do(chromedp.Click(chromedp.CSS("#past-button")), chromedp.WaitVisible(chromedp.CSS(".past-open")))
		b.look("7-history")
		b.do(chromedp.SendKeys(chromedp.CSS("#past input"), "nowhere"))
		b.is("No conversation has these words.", `document.querySelector("#past [role=status]").textContent`)
		b.do(chromedp.Evaluate[chromedp.Void](`(() => { const s = document.querySelector("#past input"); s.value = "pizza"; s.dispatchEvent(new Event("input")); })()`),
			chromedp.Click(chromedp.CSS("#past [aria-label^=Rename]")), chromedp.WaitVisible(chromedp.CSS(".rename input")))
		b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".rename input").value = "Sailing"; document.querySelector(".rename").requestSubmit()`))
		b.is("Sailing", `document.querySelector(".past-question").textContent`)
		b.do(chromedp.Click(chromedp.CSS(".past-open")))
		b.waitFor(`document.querySelectorAll(".turn").length === 2`)
		b.is(before, drawn)
		b.do(chromedp.Click(chromedp.CSS("#past-button")), chromedp.WaitVisible(chromedp.CSS(".past-open")),
			chromedp.Click(chromedp.CSS(".past [aria-label^=Delete]")))
		b.waitFor(`document.querySelectorAll(".turn").length === 0`)
		b.is("true", `String(localStorage["ibid.history"] === undefined)`)
		b.press("Escape", "", 27)

		b.ask("How do I make pizza?")
		b.do(chromedp.WaitVisible(chromedp.CSS(".refusal")))
		b.is("0", `String(document.querySelectorAll(".sources > li").length)`)
		b.look("2-refused")
		b.do(chromedp.Click(chromedp.CSS(".nearest a")), chromedp.WaitVisible(chromedp.CSS("#source mark")))
		b.is("Dogs are welcome on the pier.", `document.getElementById("quote").textContent`)

		b.newConversation()
		b.ask("breaks")
		b.do(chromedp.WaitVisible(chromedp.CSS(".trouble button")))
		b.look("4-error")
		b.is("Nobody sails alone before the end of April.1 After that it", `document.querySelector(".turn .text:not(.draft) p").textContent`)

		b.newConversation()
		b.ask("cut")
		b.do(chromedp.WaitVisible(chromedp.CSS(".turn .trouble")))
		b.look("4-incomplete")
		// A failure is one sentence, without words of the model's server. They are details.
		b.waitFor(ended)
		b.is("The answer is incomplete: the reply of m broke off before its end. What there is of it is shown; ask again for the rest.|Details",
			`document.querySelector(".turn .notes").innerText.trim().replace(/\n+/g, "|")`)
		b.newConversation()
		b.ask("falls back")
		b.waitFor(ended)
		b.is("The model failed, so your documents are quoted instead. Ask again in a moment.|Details",
			`document.querySelector(".turn .notes").innerText.trim().replace(/\n+/g, "|")`)
		b.is("2 false", `document.querySelectorAll(".turn .notes .details .note").length + " " + document.querySelector(".turn .board").textContent.includes("10.1.2.3")`)
		b.look("4-fallback")
		// Until the model replies again, or another one is chosen, the page says that answers are quoted.
		const failing, writes = "Answers are quoted until m replies again", "m writes the answers"
		writer := func(want string) {
			t.Helper()
			b.is(want, `document.getElementById("writer").textContent`)
		}
		writer(failing)
		b.do(chromedp.Reload())
		b.waitFor(`document.querySelectorAll(".turn").length === 1`)
		writer(failing)
		b.ask("May I sail alone?")
		b.waitFor(ended)
		writer(writes)
		if w := settingsCall(s.Config.Handler, "PUT", "/api/settings", `{"model":"m"}`); strings.Contains(w.Body.String(), "failing") {
			t.Errorf("another model is failing: %s", w.Body)
		}
		b.do(chromedp.Reload())
		b.waitFor(`document.querySelectorAll(".turn").length === 2`)
		writer(writes)

		b.newConversation()
		b.ask("evil")
		b.waitFor(ended)
		b.is("true", `String(document.querySelector(".turn .text:not(.draft)").textContent.includes("<img src=http://evil.example/z>"))`)
		b.is("0", `String(document.querySelectorAll(".turn img, .turn script, .turn a[href*=evil]").length)`)
		b.look("9-hostile")

		b.newConversation()
		b.ask("rich")
		b.waitFor(ended)
		b.is("1 1 2 1 1 1", `["h4", "table", "ol:not(.sources) > li", "ol ul", "blockquote", "pre"].map((q) => document.querySelectorAll(".turn .text:not(.draft) " + q).length).join(" ")`)
		b.look("9-rich")

		b.newConversation()
		b.ask("May I sail alone?")
		b.waitFor(ended)
		b.do(chromedp.Click(chromedp.CSS(".turn .cite")), chromedp.WaitVisible(chromedp.CSS("#source mark#quote")))
		b.look("2-source")
		b.press("Escape", "", 27)
		b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".turn .cite").focus({focusVisible: true})`),
			chromedp.WaitVisible(chromedp.CSS("#peek")))
		b.picture("2-peek")
		b.axe("2-peek")
		b.press("Escape", "", 27)
		b.do(chromedp.WaitNotVisible(chromedp.CSS("#peek")))
		if _, err := chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}); err != nil {
			t.Fatal(err)
		}
		b.is("none none none block", `[".dock", ".bar", ".actions", ".board"].map((q) => getComputedStyle(document.querySelector(q)).display).join(" ")`)
		b.picture("9-printed")
	})
	// The sheet of narrow screens keeps the focus until it is closed.
	t.Run("sheet", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, nil)
		b := s.newTab(t, 390, "light")
		b.ask("How do I make pizza?")
		b.do(chromedp.WaitVisible(chromedp.CSS(".nearest a")), chromedp.Click(chromedp.CSS(".nearest a")),
			chromedp.WaitVisible(chromedp.CSS("#source mark")))
		for range 8 {
			b.press("Tab", "", 9)
			b.is("true", `String(document.getElementById("source").contains(document.activeElement))`)
		}
		b.do(chromedp.Click(chromedp.CSS(".close")), chromedp.WaitNotVisible(chromedp.CSS("#source")))
		b.is("source-title", focused)
	})
	t.Run("indexing", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, func(o *Options) {
			o.Indexing = func() (int, int, bool) { return 12, 40, false }
		})
		b := s.newTab(t, 1280, "dark")
		b.is("Indexing your documents: 12 of 40 files", `document.querySelector("#library p").textContent`)
		b.look("1-indexing")
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, func(o *Options) { o.Library = shelf{} })
		b := s.newTab(t, 390, "light")
		b.is("No documents yet. Start the server with a folder: ibid serve FOLDER", `document.querySelector("#library p").textContent`)
		b.look("1-nothing")
	})
}

// TestBrowserNotebook adds the sample library and a text to an empty server with the
// keyboard alone, asks a suggested question, and then one of two documents only.
func TestBrowserNotebook(t *testing.T) {
	t.Parallel()
	library := &growing{}
	asked := make(chan answer.Question, 10)
	s := newScene(t, func(o *Options) {
		o.Library, o.UploadFolders = library, oneFolder{Uploads: library}
		o.Sample = fstest.MapFS{"guide.md": {Data: []byte("# Guide")}, "fees/fees.md": {Data: []byte("# Fees")}}
		lib := newShelf()
		o.Asker = noting{newScript(append(lib, handbook())), asked}
	})
	b := s.newTab(t, 1280, "light")
	b.is("Add your documents", `document.getElementById("welcome").textContent`)
	b.is("true", `String(document.getElementById("dock").hidden)`)
	b.look("1-empty")
	b.tabTo("sample")
	b.press("Enter", "\r", 13)
	b.is("2", `String(document.querySelectorAll("#shelf li").length)`)
	b.is("question", focused)

	b.tabTo("paste")
	b.press("Enter", "\r", 13)
	b.waitFor(`document.getElementById("pasted").open`)
	b.look("1-pasting")
	b.do(chromedp.SendKeys(chromedp.CSS("#pasted-text"), "High water at noon."))
	b.press("Tab", "", 9)
	b.press("Enter", "\r", 13)
	b.is("3", `String(document.querySelectorAll("#shelf li").length)`)
	b.is("1", `String(document.querySelectorAll(".uploads .done").length)`)

	b.do(chromedp.Evaluate[chromedp.Void](`dispatchEvent(new DragEvent("dragenter", {dataTransfer: (() => { const d = new DataTransfer(); d.items.add(new File(["x"], "x.txt")); return d })()}))`))
	b.waitFor(`getComputedStyle(document.querySelector(".dropzone")).position === "fixed"`)
	b.look("1-dropping")
	b.do(chromedp.Evaluate[chromedp.Void](`dispatchEvent(new DragEvent("dragleave", {dataTransfer: (() => { const d = new DataTransfer(); d.items.add(new File(["x"], "x.txt")); return d })()}))`))

	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#shelf input")[0].click(); document.querySelectorAll("#shelf input")[2].click()`))
	b.is("Asking only: Notes.md, sample/guide.md", `document.getElementById("only-words").textContent`)
	b.look("1-notebook")
	b.ask("What is the mooring fee?")
	b.waitFor(ended)
	if q := <-asked; !slices.Equal(q.Filter.Documents, []string{"uploads/Notes.md", "uploads/sample/guide.md"}) {
		t.Errorf("asked %q", q.Filter.Documents)
	}
}

// noting is an Asker that sends its questions, except tried suggestions, to a channel.
type noting struct {
	Asker
	asked chan answer.Question
}

func (n noting) Ask(ctx context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
	if q.Strategy != "extract" {
		n.asked <- q
	}
	return n.Asker.Ask(ctx, q)
}

// TestBrowserShared rates and shares an answer, and opens it by its address.
func TestBrowserShared(t *testing.T) {
	t.Parallel()
	ledger := newLedger()
	asked := make(chan answer.Question, 10)
	s := newScene(t, func(o *Options) {
		o.Ledger, o.KeepAnswers = ledger, time.Hour
		library := append(newShelf(), handbook())
		for _, d := range library {
			if strings.HasPrefix(d.Path, "handbook") {
				d.Meta = map[string]string{"collection": "handbook"}
			}
		}
		o.Library = library
		o.Asker = noting{o.Asker, asked}
	})
	s.open()
	b := s.newTab(t, 1440, "light")
	b.do(chromedp.WaitVisible(chromedp.CSS("#collections")))
	b.look("1-collections")
	b.do(chromedp.Evaluate[chromedp.Void](`(() => { const s = document.getElementById("collection"); s.value = "handbook"; s.dispatchEvent(new Event("change")); })()`))
	b.ask("May I sail alone?")
	b.waitFor(ended)
	if q := <-asked; q.Filter.Collection != "handbook" || len(q.History) != 0 {
		t.Errorf("asked in %q, after %v", q.Filter.Collection, q.History)
	}
	b.look("7-kept")
	b.do(chromedp.Click(chromedp.CSS(`[data-rating="1"]`)))
	b.waitFor(`document.querySelector('[data-rating="1"]').getAttribute("aria-pressed") === "true"`)
	if given, err := ledger.Feedback(t.Context(), 0, 10); err != nil || len(given) != 1 || given[0].Rating != 1 {
		t.Errorf("the ledger has %v, %v", given, err)
	}
	run := b.js(`JSON.parse(localStorage["ibid.history"])[0].turns[0].run`)

	b.do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll(".turn button")].find((x) => x.textContent === "Share").click()`))
	b.waitFor(`[...document.querySelectorAll(".turn button")].some((x) => ["Link copied", "Copying was blocked"].includes(x.textContent))`)
	if list, err := ledger.Records(t.Context(), "", retrieve.Record{}, 1); err != nil || len(list) != 1 || !list[0].Shared {
		t.Errorf("the ledger has %+v, %v", list, err)
	}

	// A follow-up is sent with its history.
	b.ask("How do I make pizza?")
	b.waitFor(`document.querySelectorAll(".turn").length === 2 && ` + ended)
	if q := <-asked; len(q.History) != 2 || q.History[0].Content != "May I sail alone?" || q.History[1].Role != "assistant" {
		t.Errorf("the follow-up came after %v", q.History)
	}

	other := s.newTabAt(t, 800, "light", "/?run="+run, ".turn .board")
	other.waitFor(ended)
	const drawn = `document.querySelector(".turn .text:not(.draft)").innerHTML.replace(/http:\/\/[^/]*/g, "")`
	other.is(b.js(drawn), drawn)
	other.is("true", `String(document.body.classList.contains("asked"))`)

	// Where it was asked, the link opens the conversation, which stays one entry.
	b.do(chromedp.Navigate(s.URL + "/?run=" + run))
	b.waitFor(`document.querySelectorAll(".turn").length === 2 && ` + ended)
	b.is("1", `String(JSON.parse(localStorage["ibid.history"]).length)`)

	// The list of documents is narrowed to a collection, also after a reload.
	const listed = `document.getElementById("collection").value + " " + document.querySelectorAll("#rows tr").length`
	b.do(chromedp.Navigate(s.URL+"/documents"), chromedp.WaitVisible(chromedp.CSS("#collections")))
	b.is(" 5", listed)
	b.do(chromedp.Evaluate[chromedp.Void](`(() => { const s = document.getElementById("collection"); s.value = "handbook"; s.dispatchEvent(new Event("change")); })()`))
	b.is("handbook 2", listed)
	b.do(chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS("#collections")))
	b.is("handbook 2", listed)

	other.do(chromedp.Navigate(s.URL+"/?run=gone"), chromedp.WaitVisible(chromedp.CSS("#missing")))
	other.is("This answer is no longer available.", `document.getElementById("missing").textContent`)
	other.axe("missing")
	other.expectProblem("404")
}

// TestBrowserFailures checks that each failure of the model says what is shown instead, if
// anything is, and what to do, and names key, model and options only to who may choose settings.
func TestBrowserFailures(t *testing.T) {
	t.Parallel()
	b := newScene(t, nil).newTab(t, 800, "light")
	for _, may := range []bool{false, true} {
		for reason, want := range map[string]struct{ remedy, code string }{"unreachable": {"Check that its server", "down"},
			"timeout": {"faster model", "timeout"}, "rejected": {"name and key", "auth"}, "untrusted": {"--no-self-test", "untrusted"},
			"failed": {"Ask again in a moment", "cut"}, "window": {"Set --context-tokens", "context_length"}} {
			got, err := chromedp.Run(b, chromedp.Evaluate[string](fmt.Sprintf(`(() => {
				document.getElementById("settings-button")?.remove();
				if (%t) document.body.append(Object.assign(document.createElement("i"), { id: "settings-button" }));
				return import("/static/dom.js?%[1]t")
					.then(({ fallback, refusal }) => [fallback("model_%[2]s"), refusal("model_%[3]s"), fallback("model_%[2]s", false)].join("|"));
			})()`, may, reason, want.code), chromedp.EvalAwaitPromise))
			quoted, rest, _ := strings.Cut(got, "|")
			refused, without, _ := strings.Cut(rest, "|")
			if err != nil || !strings.Contains(quoted, ", so your documents are quoted instead. ") ||
				refused != strings.Replace(quoted, "your documents are quoted instead", "there is no answer", 1) ||
				without != strings.Replace(quoted, "so your documents are quoted instead", "and nothing in your documents can be quoted instead", 1) ||
				strings.Contains(quoted, want.remedy) != (may || reason == "timeout" || reason == "failed") ||
				strings.Contains(quoted, "Tell whoever") != (reason == "window" && !may) {
				t.Errorf("%s, settings %t: %q (%v)", reason, may, got, err)
			}
		}
	}
}
