package web

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"ibid/answer"
	"ibid/cite"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

// hostileScript is a model that sends a text in pieces in every place where models write.
func hostileScript(lib shelf, evidence retrieve.Passage, text string, pieces []string) []any {
	events := []any{
		answer.Retrieved{Question: text, Passages: []retrieve.Passage{evidence}},
		lib.judged(evidence, answer.Relevant, text),
		answer.Kept{Passages: []retrieve.Passage{evidence, evidence}},
		answer.Warning{Message: text},
	}
	for i, p := range pieces {
		events = append(events, answer.Draft{Step: 1, Text: p, Final: i == len(pieces)-1})
	}
	for _, p := range pieces {
		events = append(events, answer.Text{Text: p})
	}
	return append(events, answer.Incomplete{Reason: text}, answer.Usage{})
}

// hostileShelf returns a library with one document, whose name, title and text
// are the hostile text, and its passage.
func hostileShelf(text string) (shelf, retrieve.Passage) {
	lib := shelf{{ID: "club/" + strings.ReplaceAll(text, "/", "∕"), Root: "club", Path: strings.ReplaceAll(text, "/", "∕"), Title: text,
		Format: "markdown",
		Digest: strings.Repeat("ab", 32), Text: text, Meta: map[string]string{"url": "javascript:alert(1)"},
		Sections: []ingest.Section{{Heading: text, Level: 1, End: len(text)}}}}
	p := lib.passage(lib[0].ID, text)
	p.Meta = lib[0].Meta
	return lib, p
}

// TestInjectionAtEverySplit makes a model send every hostile text as the answer,
// as a draft and everywhere else that it can write, whole, in characters, in
// bytes and in two pieces (a campaign cuts at every byte). Copies contain only words
// and Ibid's own links, and the HTML for the page only the page's own elements.
func TestInjectionAtEverySplit(t *testing.T) {
	t.Parallel()
	random := datatest.Rand(t)
	texts := datatest.HostileTexts(t)
	var all shelf
	script, cutsOf := script{}, make([][][]string, len(texts))
	for i, h := range texts {
		lib, evidence := hostileShelf(h.Text)
		all = append(all, lib...)
		cuts := [][]string{{h.Text}, strings.Split(h.Text, "")}
		var single []string
		for at := range len(h.Text) {
			single = append(single, h.Text[at:at+1])
			if at > 0 && (datatest.Campaign() || random.IntN(20) == 0) {
				cuts = append(cuts, []string{h.Text[:at], h.Text[at:]})
			}
		}
		if cutsOf[i] = cuts; datatest.Campaign() || random.IntN(20) == 0 {
			cutsOf[i] = append(cuts, single)
		}
		for n, pieces := range cutsOf[i] {
			script[fmt.Sprintf("%d %d", i, n)] = hostileScript(lib, evidence, h.Text, pieces)
		}
	}
	handler := newHandler(t, func(o *Options) { o.Library, o.Asker = all, script })
	streams, seen := 0, map[string]bool{}
	for i, h := range texts {
		whole := ""
		for n, pieces := range cutsOf[i] {
			question := fmt.Sprintf("%d %d", i, n)
			path := "/api/ask"
			if n < 2 {
				path += "?html=1&markdown=1"
			}
			streams++
			for _, e := range eventsOf(t, call(handler, "POST", path, `{"question":"`+question+`"}`, asEvents...).Body.Bytes()) {
				if e.kind == "block" || e.kind == "marked" {
					var b blockEvent
					must(t, json.Unmarshal(e.data, &b))
					if what := pageElementIn(b.HTML); what != "" {
						t.Errorf("%s: block has %s: %s", h.Name, what, b.HTML)
					}
					for what, re := range hidden {
						if at := re.FindString(b.HTML); at != "" {
							t.Errorf("%s: block has %s (%q): %s", h.Name, what, at, b.HTML)
						}
					}
					continue
				}
				if e.kind == "markdown" {
					var copied markdownEvent
					must(t, json.Unmarshal(e.data, &copied))
					seen[copied.Markdown] = true
					if what := liveIn(copied.Markdown); what != "" {
						t.Errorf("%s: copy has %s: %q", h.Name, what, copied.Markdown)
					}
				}
				if e.kind == "done" {
					if whole = cmp.Or(whole, string(e.data)); whole != string(e.data) {
						t.Errorf("%s, in %d pieces: answer differs from that in one piece", h.Name, len(pieces))
					}
				}
			}
		}
	}
	t.Logf("figure: hostile texts in %d streams: %d different copies, 0 with a link, image, element or control character",
		streams, len(seen))
}

// honestTexts are worth copying exactly.
var honestTexts = []string{
	"Write to help@example.com, or see https://get.example.com/install.sh?x=1&y=2#z.", "curl -fsSL https://get.example.com/install.sh | sh",
	"git clone git@github.com:acme/build.git", "postgres://user:pw@db.example.com:5432/app?sslmode=disable", "#include <stdio.h>",
	"<config xmlns=\"http://example.com/ns\"><item id=\"1\">a &amp; b</item><!-- c --></config>", "`[x](y)` and ![alt](a.png)",
	"[text](https://example.com) &lt; \\(a_[1]\\)", "x\u200b\u202ey\a z\r\n\u00a0-", "می\u200cخواهم ❤\ufe0f\u200d🔥",
	"a < b && c > d; w = [1, 2]",
}

// TestTextIsVerbatim checks that no byte of an answer's text changes, however it is cut.
func TestTextIsVerbatim(t *testing.T) {
	t.Parallel()
	lib, evidence := hostileShelf("x")
	script := script{}
	for i, text := range honestTexts {
		for n, pieces := range [][]string{{text}, strings.Split(text, "")} {
			script[fmt.Sprintf("%d %d", i, n)] = hostileScript(lib, evidence, "x", pieces)
		}
	}
	handler := newHandler(t, func(o *Options) { o.Library, o.Asker = lib, script })
	for question := range script {
		var i int
		fmt.Sscan(question, &i)
		for _, accept := range [][]string{asEvents, nil} {
			got := ""
			w := call(handler, "POST", "/api/ask", `{"question":"`+question+`"}`, accept...)
			if accept == nil {
				got = into[cite.Answer](t, w, 200).Text
			} else {
				for _, e := range eventsOf(t, w.Body.Bytes()) {
					var piece struct{ Text string }
					if err := json.Unmarshal(e.data, &piece); err == nil && e.kind == "text" {
						got += piece.Text
					}
				}
			}
			if got != honestTexts[i] {
				t.Errorf("%s: text = %q, want %q", question, got, honestTexts[i])
			}
		}
	}
}

// pageElementIn returns the first element in a block of the answer that the page does not
// use, or an attribute that links or runs.
func pageElementIn(block string) string {
	return elementIn(block, append(slices.Clone(plainElements), "a", "div", "span"),
		"class", "start", "align", "data-number", "data-at", "tabindex", "role", "aria-label")
}

// TestInjectionOnThePage asks on the page for every hostile text, as the answer
// and as name, title, heading, text and metadata of the document that it cites:
// no dialog opens, no request leaves, and the page contains only its own
// elements. A campaign gives each text an answer of its own.
func TestInjectionOnThePage(t *testing.T) {
	t.Parallel()
	texts, size := datatest.HostileTexts(t), 1000
	if datatest.Campaign() {
		size = 1
	}
	for i, group := range slices.Collect(slices.Chunk(texts, size)) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			var said []string
			var lib shelf
			for _, h := range group {
				said = append(said, h.Text)
				one, _ := hostileShelf(h.Text)
				lib = append(lib, one[0])
			}
			text := strings.Join(said, "\n\n")
			slices.SortFunc(lib, func(a, b *ingest.Document) int { return strings.Compare(a.ID, b.ID) })
			var evidence []retrieve.Passage
			for _, d := range lib {
				p := lib.passage(d.ID, d.Text)
				p.Meta = d.Meta
				evidence = append(evidence, p)
			}
			events := []any{answer.Retrieved{Question: text, Passages: evidence}}
			cited := "\n\nThe pier is closed."
			for n, p := range evidence {
				events = append(events, lib.judged(p, answer.Relevant, p.Text))
				cited += fmt.Sprintf(" [%d]", n+1)
			}
			events = append(events, answer.Kept{Passages: evidence}, answer.Warning{Message: text},
				answer.Draft{Step: 1, Text: text, Final: true}, answer.Text{Text: text + cited}, answer.Incomplete{Reason: text},
				answer.Usage{Looked: 1, Used: 1})
			refused := []any{answer.Retrieved{Passages: evidence}, answer.Kept{},
				answer.Unanswered{Reason: "no_answer", Text: text, Nearest: evidence[:min(3, len(evidence))]}, answer.Usage{}}
			s := newScene(t, func(o *Options) {
				o.Library = lib
				o.Asker = script{"hostile": events, "refused": refused}
			})
			b := s.newTab(t, 1280, "light")
			var dialogs atomic.Int64
			if err := chromedp.Listen(b, func(ev any) {
				switch ev.(type) {
				case *page.EventJavascriptDialogOpening, page.EventJavascriptDialogOpening:
					dialogs.Add(1)
				}
			}); err != nil {
				t.Fatal(err)
			}
			look := func(where string) {
				t.Helper()
				if found := b.js(strangeElements); found != "" {
					t.Errorf("%s to %s, %s: page has %s", group[0].Name, group[len(group)-1].Name, where, found)
				}
			}
			b.ask("hostile")
			b.waitFor(`document.querySelector(".turn:last-child")?.getAttribute("aria-busy") === "false"`)
			look("answered")
			b.js(`document.querySelectorAll("details").forEach((d) => { d.open = true }); ""`)
			look("opened")
			if b.js(`String(document.querySelector(".turn .text:not(.draft) .cite") !== null)`) == "true" {
				b.js(`document.querySelector(".turn .text:not(.draft) .cite").click(); ""`)
				b.do(chromedp.WaitVisible(chromedp.CSS("#source")))
				look("source panel")
			}
			b.ask("refused")
			b.waitFor(`document.querySelector(".turn:last-child .refusal") !== null`)
			look("refused")
			for _, d := range datatest.Pick(t, lib) {
				b.do(chromedp.Navigate(s.URL + Link("", d.ID, 0, len(d.Text))))
				look("the viewer of " + d.ID)
			}
			b.do(chromedp.Navigate(s.URL + "/documents"))
			look("documents")
			if n := dialogs.Load(); n > 0 {
				t.Errorf("%d dialogs opened, want none", n)
			}
		})
	}
}

// strangeElements is JavaScript that names the first elements of a page that
// load, run or link to something and are not the page's own.
//
//go:embed testdata/strange.js
var strangeElements string
