package web

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"ibid/answer"
	"ibid/retrieve"
)

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
