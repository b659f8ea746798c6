package web

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

const focused = `document.activeElement.className || document.activeElement.id`

// TestBrowser asks on the page and follows a citation to the marked words, at three widths and in both themes.
func TestBrowser(t *testing.T) {
	browser := newBrowser(t)
	for _, at := range []struct {
		width int64
		theme string
	}{{390, "light"}, {390, "dark"}, {820, "light"}, {1280, "light"}, {1280, "dark"}} {
		t.Run(fmt.Sprintf("%d-%s", at.width, at.theme), func(t *testing.T) {
			s := newScene(t, nil)
			b := s.newTab(t, browser, at.width, at.theme)
			b.is("question", focused)
			b.shoot("1-empty")

			b.ask("May I sail alone?")
			b.waitFor(`document.querySelectorAll(".turn .text:not(.draft) .cite").length === 2`)
			b.shoot("2-streaming")
			b.is("false", `String(document.getElementById("stop").hidden)`)
			close(s.gates["first"])
			close(s.gates["second"])
			b.waitFor(`document.querySelector(".turn:last-child").getAttribute("aria-busy") === "false"`)
			b.shoot("3-answered")
			b.is("Nobody sails alone before the end of April.1 After that it depends on age and boat:", `document.querySelector(".turn .text:not(.draft) p").textContent`)
			b.is("2", `String(document.querySelectorAll(".turn .text:not(.draft) li").length)`)
			b.is("2", `String(document.querySelectorAll(".sources > li").length)`)
			b.is("Looked at 4, used 3", `document.querySelector("summary").textContent`)
			b.is("false", `String(document.documentElement.scrollWidth > innerWidth)`)

			// A number by keyboard: focus shows the quote, Enter opens the source.
			b.do(chromedp.Focus(chromedp.CSS("#send")))
			for range 20 {
				if b.js(focused) == "cite" {
					break
				}
				b.press("Tab", "", 9)
			}
			b.is("cite", focused)
			b.do(chromedp.WaitVisible(chromedp.CSS("#peek")))
			b.is("Nobody sails alone before the end of April.", `document.querySelector("#peek blockquote").textContent`)
			b.shoot("4-peek")
			b.press("Enter", "\r", 13)
			b.do(chromedp.WaitVisible(chromedp.CSS("#source mark#quote")))
			b.is("Nobody sails alone before the end of April.", `document.getElementById("quote").textContent`)
			b.is("true", `(() => { const m = document.getElementById("quote").getBoundingClientRect(); const p = document.querySelector(".source-body").getBoundingClientRect();
				return String(m.top >= p.top && m.bottom <= p.bottom) })()`)
			b.is("source", focused)
			b.shoot("5-source")
			b.press("Escape", "", 27)
			b.do(chromedp.WaitNotVisible(chromedp.CSS("#source")))
			b.is("cite", focused)

			// The verdicts.
			b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("details").open = true; document.querySelector("details").scrollIntoView()`))
			b.shoot("6-looked")

			// The link of a citation is the viewer's page.
			b.do(chromedp.Navigate(b.js(`document.querySelector(".turn .cite").href`)), chromedp.WaitVisible(chromedp.CSS("mark#quote")))
			b.is("Nobody sails alone before the end of April.", `document.getElementById("quote").textContent`)
			b.is("true", `(() => { const m = document.getElementById("quote").getBoundingClientRect(); return String(m.top >= 0 && m.bottom <= innerHeight) })()`)
			b.shoot("7-viewer")
			b.do(chromedp.Navigate(s.URL+"/documents"), chromedp.WaitVisible(chromedp.CSS("table")))
			b.is("false", `String(document.documentElement.scrollWidth > innerWidth)`)
			b.shoot("8-documents")
		})
	}
}

// TestBrowserStates shows what is not an answer.
func TestBrowserStates(t *testing.T) {
	browser := newBrowser(t)
	states := map[string]func(t *testing.T, s *scene, b *tab){
		"theme": func(t *testing.T, s *scene, b *tab) {
			const paper = `getComputedStyle(document.body).backgroundColor`
			light := b.js(paper)
			b.do(chromedp.Click(chromedp.CSS("#theme")))
			dark := b.js(paper)
			if dark == light {
				t.Errorf("the theme stays %s", light)
			}
			b.do(chromedp.Navigate(s.URL+"/documents"), chromedp.WaitVisible(chromedp.CSS("table")))
			b.is(dark, paper) // kept
			b.is("Use the light theme", `document.getElementById("theme").getAttribute("aria-label")`)
			b.do(chromedp.Click(chromedp.CSS("#theme")))
			b.is(light, paper)
		},
		"refused": func(t *testing.T, s *scene, b *tab) {
			b.ask("How do I make pizza?")
			b.do(chromedp.WaitVisible(chromedp.CSS(".refusal")))
			b.is("0", `String(document.querySelectorAll(".sources > li").length)`)
			b.shoot("refused")
			b.do(chromedp.Click(chromedp.CSS(".nearest a")), chromedp.WaitVisible(chromedp.CSS("#source mark")))
			b.is("Dogs are welcome on the pier.", `document.getElementById("quote").textContent`)
		},
		"error": func(t *testing.T, s *scene, b *tab) {
			b.ask("breaks")
			b.do(chromedp.WaitVisible(chromedp.CSS(".trouble button")))
			b.shoot("error")
			b.is("Nobody sails alone before the end of April.1 After that it", `document.querySelector(".turn .text:not(.draft) p").textContent`)
		},
		"incomplete": func(t *testing.T, s *scene, b *tab) {
			b.ask("cut")
			b.do(chromedp.WaitVisible(chromedp.CSS(".turn .trouble")))
			b.shoot("incomplete")
		},
		"stopped": func(t *testing.T, s *scene, b *tab) {
			b.ask("May I sail alone?")
			b.waitFor(`document.querySelectorAll(".turn .text:not(.draft) .cite").length === 2`)
			b.do(chromedp.Click(chromedp.CSS("#stop")))
			b.waitFor(`document.querySelector(".notes").textContent === "Stopped."`)
			b.is("question", focused)
		},
		"drafted": func(t *testing.T, s *scene, b *tab) {
			b.ask("drafted")
			b.do(chromedp.WaitVisible(chromedp.CSS(".turn .draft")))
			b.shoot("draft")
			close(s.gates["first"])
			b.do(chromedp.WaitVisible(chromedp.CSS(".turn .text:not(.draft) .cite")), chromedp.WaitNotVisible(chromedp.CSS(".turn > .draft")))
		},
		"offline": func(t *testing.T, s *scene, b *tab) {
			s.Close()
			b.ask("How do I make pizza?")
			b.do(chromedp.WaitVisible(chromedp.CSS("#offline")), chromedp.WaitVisible(chromedp.CSS(".turn .trouble button")))
			b.shoot("offline")
			b.waitFor(`document.getElementById("send").hidden === false`)
			b.expectProblem("ERR_CONNECTION_REFUSED")
		},
		"hostile": func(t *testing.T, s *scene, b *tab) {
			b.ask("evil")
			b.waitFor(`document.querySelector(".turn:last-child").getAttribute("aria-busy") === "false"`)
			b.is("true", `String(document.querySelector(".turn .text:not(.draft)").textContent.includes("< img src=evil.example/z>"))`)
			b.is("0", `String(document.querySelectorAll(".turn img, .turn script, .turn a[href*=evil]").length)`)
			b.shoot("hostile")
		},
	}
	for _, name := range slices.Sorted(maps.Keys(states)) {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, nil)
			states[name](t, s, s.newTab(t, browser, 1280, "light"))
		})
	}
	// The sheet of a phone keeps the focus until it is closed.
	t.Run("sheet", func(t *testing.T) {
		s := newScene(t, nil)
		b := s.newTab(t, browser, 390, "light")
		b.ask("How do I make pizza?")
		b.do(chromedp.WaitVisible(chromedp.CSS(".nearest a")), chromedp.Click(chromedp.CSS(".nearest a")), chromedp.WaitVisible(chromedp.CSS("#source mark")))
		for range 8 {
			b.press("Tab", "", 9)
			b.is("true", `String(document.getElementById("source").contains(document.activeElement))`)
		}
		b.do(chromedp.Click(chromedp.CSS(".close")), chromedp.WaitNotVisible(chromedp.CSS("#source")))
		b.is("source-title", focused)
	})
	t.Run("indexing", func(t *testing.T) {
		s := newScene(t, func(o *Options) {
			o.Indexing = func() (int, int, bool) { return 12, 40, false }
		})
		b := s.newTab(t, browser, 1280, "dark")
		b.is("Reading your documents: 12 of 40 files", `document.querySelector("#library p").textContent`)
		b.shoot("indexing")
	})
	t.Run("nothing", func(t *testing.T) {
		s := newScene(t, func(o *Options) { o.Library = shelf{} })
		b := s.newTab(t, browser, 390, "light")
		b.is("No documents yet.", `document.querySelector("#library p").textContent`)
		b.shoot("nothing")
	})
}
