package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"ibid/data/datatest"
	"ibid/ingest"
)

const ended = `document.querySelector(".turn:last-child").getAttribute("aria-busy") === "false"`

// twoCited is JavaScript for an answer that waits at the first gate.
const twoCited = `document.querySelectorAll(".turn .text:not(.draft) .cite").length === 2`

const focused = `document.activeElement.className || document.activeElement.id`

// A play is a script in testdata/page. A line is a command with its argument; the indented
// lines after it are its text. {{NAME}} is replaced by a value.
type play struct {
	script string // the play's name if empty
	names  map[string]string
	change func(*Options)
	calls  map[string]func(*tab) // for "go NAME"
}

// commands act in a tab, with an argument and a text
var commands = map[string]func(s *scene, b *tab, on, text string){
	"ask":    func(_ *scene, b *tab, on, _ string) { b.ask(on) },
	"asked":  func(s *scene, b *tab, _, text string) { s.checkAsked(b.t, text) },
	"axe":    func(_ *scene, b *tab, on, _ string) { b.axe(on) },
	"click":  func(_ *scene, b *tab, on, _ string) { b.do(chromedp.Click(chromedp.CSS(on))) },
	"expect": func(_ *scene, b *tab, on, _ string) { b.expectProblem(on) },
	"find": func(_ *scene, b *tab, on, _ string) {
		b.waitFor(fmt.Sprintf(`document.querySelector(%q) !== null`, on))
	},
	"focus":   func(_ *scene, b *tab, on, _ string) { b.do(chromedp.Focus(chromedp.CSS(on))) },
	"gone":    func(_ *scene, b *tab, on, _ string) { b.do(chromedp.WaitNotVisible(chromedp.CSS(on))) },
	"is":      func(_ *scene, b *tab, on, text string) { b.is(text, on) },
	"look":    func(_ *scene, b *tab, on, _ string) { b.look(on) },
	"new":     func(_ *scene, b *tab, _, _ string) { b.newConversation() },
	"picture": func(_ *scene, b *tab, on, _ string) { b.picture(on) },
	"reload":  func(_ *scene, b *tab, _, _ string) { b.do(chromedp.Reload()) },
	"run":     func(_ *scene, b *tab, on, _ string) { b.do(chromedp.Evaluate[chromedp.Void](on)) },
	"see":     func(_ *scene, b *tab, on, _ string) { b.do(chromedp.WaitVisible(chromedp.CSS(on))) },
	"tabto":   func(_ *scene, b *tab, on, _ string) { b.tabTo(on) },
	"wait":    func(_ *scene, b *tab, on, _ string) { b.waitFor(on) },
	"type": func(_ *scene, b *tab, on, text string) {
		b.do(chromedp.SendKeys(chromedp.CSS(on), strings.ReplaceAll(text, "⏎", "\r")))
	},
	"press": func(_ *scene, b *tab, on, _ string) {
		key := map[string]struct {
			name, text string
			code       int64
		}{"Enter": {"Enter", "\r", 13}, "Tab": {"Tab", "", 9}, "Escape": {"Escape", "", 27}, "Space": {" ", " ", 32}}[on]
		b.press(key.name, key.text, key.code)
	},
	"open": func(s *scene, b *tab, on, _ string) {
		if strings.HasPrefix(on, "/") {
			on = s.URL + on
		}
		b.do(chromedp.Navigate(on))
	},
	"foreign": func(_ *scene, b *tab, _, _ string) { // another site was opened
		b.mu.Lock()
		defer b.mu.Unlock()
		b.foreign = nil
	},
	"print": func(_ *scene, b *tab, _, _ string) {
		_, err := chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		must(b.t, err)
	},
	"speak": func(_ *scene, b *tab, on, _ string) {
		_, err := chromedp.Call(b.Context, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{
			Headers: network.Headers{"Accept-Language": on}})
		must(b.t, err)
	},
	"pass":       func(s *scene, _ *tab, on, _ string) { s.pass(strings.Fields(on)...) },
	"flow":       func(s *scene, _ *tab, _, _ string) { s.open() },
	"disconnect": func(s *scene, _ *tab, _, _ string) { s.CloseClientConnections() },
	"close":      func(s *scene, _ *tab, _, _ string) { s.Close() },
}

// perform runs the script of a play.
func (p play) perform(t *testing.T, name string) {
	script, err := os.ReadFile("testdata/page/" + cmp.Or(p.script, name) + ".txt")
	must(t, err)
	names := []string{"{{ended}}", ended, "{{twoCited}}", twoCited, "{{focused}}", focused}
	for name, value := range p.names {
		names = append(names, "{{"+name+"}}", value)
	}
	s := newScene(t, p.change)
	var b, other *tab
	for step := range strings.SplitSeq(strings.TrimSuffix(strings.ReplaceAll(string(script), "\n\t", "\v"), "\n"), "\n") {
		line, text, _ := strings.Cut(step, "\v")
		command, on, _ := strings.Cut(line, " ")
		first, rest, _ := strings.Cut(on, " ")
		fill := strings.NewReplacer(names...).Replace
		switch command {
		case "#":
		case "tab": // WIDTH THEME PATH SELECTOR
			var width int64
			var theme, path string
			_, err := fmt.Sscan(fill(on), &width, &theme, &path)
			must(t, err)
			other, b = b, s.newTabAt(t, width, theme, path, strings.SplitN(on, " ", 4)[3])
		case "swap": // switch to the other tab
			b, other = other, b
		case "let":
			names = append(names, "{{"+first+"}}", fill(rest))
		case "save":
			names = append(names, "{{"+first+"}}", b.js(fill(rest)))
		case "go":
			p.calls[on](b)
		default:
			do := commands[command]
			if do == nil {
				t.Fatalf("unknown command %q", line)
			}
			do(s, b, fill(on), fill(strings.ReplaceAll(text, "\v", "\n")))
		}
		if t.Failed() {
			t.Fatalf("failed at %s", line)
		}
	}
}

// checkAsked checks the filter and the history of the last question.
func (s *scene) checkAsked(t *testing.T, want string) {
	t.Helper()
	q := s.asked.Load()
	got := string(mustEncode(q.Filter))
	for _, turn := range q.History {
		got += fmt.Sprintf("\n%s: %.38s", turn.Role, turn.Content)
	}
	if got != want {
		t.Errorf("asked with %s, want %s", got, want)
	}
}

// TestBrowser runs the plays in Chromium, each with its own server.
func TestBrowser(t *testing.T) {
	t.Parallel()
	at := func(width, theme string) map[string]string { return map[string]string{"width": width, "theme": theme} }
	start := strings.Index(handbook().Text, "Nobody sails")
	plays := map[string]play{
		"narrow": {script: "asked", names: at("360", "dark")}, "wide": {script: "asked", names: at("1440", "light")},
		"aswritten": {}, "moments": {}, "sheet": {},
		"answers":  {change: func(o *Options) { o.Model = func(context.Context) string { return "m" } }},
		"indexing": {change: func(o *Options) { o.Indexing = func() Indexing { return Indexing{12, 40, false} } }},
		"nothing":  {change: func(o *Options) { o.Library = shelf{} }},
		"notebook": {change: func(o *Options) {
			library := &growing{}
			o.Library, o.UploadFolders = library, oneFolder{Uploads: library}
			o.Sample = fstest.MapFS{"guide.md": {Data: []byte("# Guide")}, "fees/fees.md": {Data: []byte("# Fees")}}
			o.Asker = newScript(append(newShelf(), handbook()))
		}},
		"shared": {change: func(o *Options) {
			o.KeepAnswers = time.Hour
			library := append(newShelf(), handbook())
			for _, d := range library {
				if strings.HasPrefix(d.Path, "handbook") {
					d.Meta = map[string]string{"collection": "handbook"}
				}
			}
			o.Library = library
		}},
		"viewer": {names: map[string]string{"quote": fmt.Sprintf("/documents/club/handbook/members.pdf?start=%d&end=%d", start, start+43)}},
		"drawn": {change: func(o *Options) {
			o.Drawer, o.Originals = printed{}, files{"club/handbook/members.pdf": "%PDF-1.4"}
		}},
		"settings": {change: func(o *Options) {
			o.SettingsCode = "ABCDEFGHJK"
			o.Settings = &panel{using: Choices{BaseURL: "https://api.openai.com/v1", Style: "auto", Confidence: new(float64)},
				found: []ModelServer{{Name: "Ollama", BaseURL: "http://127.0.0.1:11434/v1", Models: []string{"llama3.2", "qwen3"}}},
				part: Part{Name: "english", Model: "all-MiniLM-L6-v2", Licence: "Apache-2.0", Languages: 1, Bytes: 83e6,
					State: "missing"}}
		}},
		"german": {script: "language", names: map[string]string{"language": "de", "side": "ltr",
			"summary": "4 Textstellen geprüft, 3 verwendet", "shown": "behandelt sails, alone, April"}},
		"arabic": {script: "language", names: map[string]string{"language": "ar", "side": "rtl",
			"summary": "فُحصت 4 مقاطع، استُخدم 3", "shown": "يتناول sails، alone، April"}},
		"documents": documentsPlay(t), "history": historyPlay(t), "key": keyPlay(t),
	}
	for name, p := range plays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.perform(t, name)
		})
	}
}

// documentsPlay tests the page of documents: files are chosen, and a folder is dropped.
func documentsPlay(t *testing.T) play {
	library := &growing{shelf: newShelf()}
	library.shelf[1].Meta = map[string]string{"date": "2024-03-01", ingest.ModifiedKey: "2026-01-01T00:00:00Z"}
	library.shelf[0].Meta = map[string]string{ingest.ModifiedKey: "2025-07-09T10:00:00Z",
		ingest.UnreadKey: "page 2 of 2: no readable text, install tesseract to read scans"}
	into := recordedInto{oneFolder: oneFolder{Uploads: library}, names: make(chan string, 9)}
	folder := t.TempDir()
	files := []string{filepath.Join(folder, "tides.txt"), filepath.Join(folder, "tool.exe")}
	must(t, os.MkdirAll(filepath.Join(folder, "pier", "deep"), 0o700))
	for _, name := range append(files, filepath.Join(folder, "pier/deep/rowing.txt"), filepath.Join(folder, "pier/.DS_Store")) {
		must(t, os.WriteFile(name, []byte("High water at noon."), 0o600))
	}
	return play{
		change: func(o *Options) { o.Library, o.UploadFolders, o.Troubles = library, into, library.troubles },
		calls: map[string]func(*tab){
			"upload": func(b *tab) { b.do(chromedp.SetUploadFiles(chromedp.CSS("#upload input"), files)) },
			"named": func(b *tab) {
				for range files {
					if got := <-into.names; got != "winter 2026" {
						b.t.Errorf("file was added to the collection %q, want winter 2026", got)
					}
				}
			},
			"drop": func(b *tab) {
				for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter,
					input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop} {
					_, err := chromedp.Call(b, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: 300, Y: 300,
						Data: &input.DragData{Items: []*input.DragDataItem{}, Files: []string{filepath.Join(folder, "pier")},
							DragOperationsMask: 1}})
					must(b.t, err)
				}
			},
		}}
}

func historyPlay(t *testing.T) play {
	ring := newRing()
	return play{names: map[string]string{"key": ring.make(t, "the desk", nil), "other": ring.make(t, "the pier", nil)},
		change: func(o *Options) { o.Keys, o.KeepAnswers = ring, time.Hour }}
}

// keyPlay enters a key, which is finally revoked. Another site links to the server.
func keyPlay(t *testing.T) play {
	ring := newRing()
	key := ring.make(t, "the desk", writer)
	var at string
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<title>Elsewhere</title><a id="cited" href="%s/documents/club/handbook/members.pdf?start=1&end=9">Members</a>
			<form method="post" action="%[1]s/key/leave"><button id="leave">Win</button></form>`, at)
	}))
	t.Cleanup(foreign.Close)
	return play{
		names: map[string]string{"key": key, "wrong": key[:30] + "x",
			"elsewhere": strings.Replace(foreign.URL, "127.0.0.1", "localhost", 1)}, // another site for browsers
		change: func(o *Options) { o.Keys = ring },
		calls: map[string]func(*tab){
			"link": func(b *tab) { at = b.origin },
			"revoke": func(b *tab) {
				must(b.t, ring.Revoke(b.t.Context(), "the desk"))
				// Leaving makes the server read the keys again.
				r, err := http.NewRequest("POST", b.origin+"/key/leave", nil)
				must(b.t, err)
				r.Header.Set("Cookie", "ibid_session=any")
				res, err := http.DefaultTransport.RoundTrip(r)
				must(b.t, err)
				res.Body.Close()
			}}}
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
			t.Errorf("%s: page shows %q, want %q (%v)", c.Now, got, c.Want, err)
		}
	}
}

// TestBrowserFailures checks that each failure of the model reports the fallback and the next
// step, and names key, model and options only to callers that may change settings.
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
				t.Errorf("%s, settings %t: page shows %q (%v)", reason, may, got, err)
			}
		}
	}
}
