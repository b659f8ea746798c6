package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestBrowserHistory opens, exports and deletes a conversation that another browser had
// with the same key.
func TestBrowserHistory(t *testing.T) {
	t.Parallel()
	ring := newRing()
	key, other := ring.make(t, "the desk", nil), ring.make(t, "the pier", nil)
	s := newScene(t, func(o *Options) { o.Keys, o.KeepAnswers = ring, time.Hour })
	s.open()
	b := s.newTabAt(t, 1440, "light", "/", "#key")
	b.do(chromedp.SendKeys(chromedp.CSS("#key"), key+"\r"), chromedp.WaitVisible(chromedp.CSS("#question")))
	for n, question := range []string{"May I sail alone?", "How do I make pizza?"} {
		b.ask(question)
		b.waitFor(fmt.Sprintf(`document.querySelectorAll(".turn").length === %d && `, n+1) + ended)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`localStorage.clear()`), chromedp.Navigate(s.URL+"/?another"), chromedp.WaitVisible(chromedp.CSS("#past-button")))
	b.do(chromedp.Click(chromedp.CSS("#past-button")), chromedp.WaitVisible(chromedp.CSS(".past-open")))
	b.is("May I sail alone?", `document.querySelector(".past-question").textContent`)
	b.is("true", `String(document.querySelector(".past-open .facts").textContent.endsWith("2 questions"))`)
	b.look("7-history-of-key")
	// The words of its answers are found, and exported, though only the server has them.
	search := func(words, shown string) {
		t.Helper()
		b.do(chromedp.Evaluate[chromedp.Void](`(() => { const s = document.querySelector("#past input"); s.value = "` + words + `"; s.dispatchEvent(new Event("input")); })()`))
		b.waitFor(`String([...document.querySelectorAll("#past .past > li")].filter((e) => !e.hidden).length) === "` + shown + `"`)
	}
	search("nowhere at all", "0")
	search("end of april", "1")
	b.do(chromedp.Evaluate[chromedp.Void](`URL.createObjectURL = (blob) => { blob.text().then((text) => window.exported = text); return "#"; };
		[...document.querySelectorAll("#past button")].find((e) => e.textContent === "Export as JSON").click()`))
	b.waitFor(`window.exported !== undefined`)
	b.is("How do I make pizza?", `JSON.parse(window.exported)[0].runs[1].question`)
	search("", "1")
	b.do(chromedp.Click(chromedp.CSS("#past [aria-label^=Rename]")), chromedp.WaitVisible(chromedp.CSS(".rename input")),
		chromedp.Evaluate[chromedp.Void](`document.querySelector(".rename input").value = "Sailing"; document.querySelector(".rename").requestSubmit()`))
	b.waitFor(`document.querySelector(".past-question")?.textContent === "Sailing"`)
	b.do(chromedp.Click(chromedp.CSS(".past-open")))
	b.waitFor(`document.querySelectorAll(".turn").length === 2 && ` + ended)
	b.is("How do I make pizza?", `document.querySelector(".turn:last-child .asked").textContent`)
	// A link to one of its answers opens all of it, and makes no second entry.
	b.do(chromedp.Navigate(s.URL + "/?run=" + b.js(`JSON.parse(Object.entries(localStorage).find(([key]) => key.startsWith("ibid.history."))[1])[0].turns[1].run`)))
	b.do(chromedp.Evaluate[chromedp.Void](`localStorage.clear()`), chromedp.Reload())
	b.waitFor(`document.querySelectorAll(".turn").length === 2 && ` + ended)
	b.do(chromedp.Click(chromedp.CSS("#past-button")), chromedp.WaitVisible(chromedp.CSS(".past-open")))
	b.waitFor(`document.querySelectorAll(".past-open").length === 1`)
	// All of it is shared with one link.
	b.do(chromedp.Click(chromedp.CSS(".past [aria-label^=Share]")))
	b.waitFor(`["Link to this conversation copied.", "Copying was blocked"].includes(document.querySelector("#past [role=status]").textContent)`)
	b.press("Escape", "", 27)
	// Who signs in with another key in this browser does not see it.
	b.do(chromedp.Navigate(s.URL+"/key"), chromedp.Click(chromedp.CSS(`form[action="/key/leave"] button`)), chromedp.WaitVisible(chromedp.CSS("#key")))
	b.do(chromedp.SendKeys(chromedp.CSS("#key"), other+"\r"))
	b.waitFor(`document.title.startsWith("Signed in") || document.getElementById("question") !== null || document.querySelector("form[action='/key/leave']") !== null`)
	b.do(chromedp.Navigate(s.URL), chromedp.WaitVisible(chromedp.CSS("#past-button")), chromedp.Click(chromedp.CSS("#past-button")))
	b.waitFor(`document.querySelector("#past").textContent.includes("Your questions will appear here.")`)
	b.do(chromedp.Navigate(s.URL+"/key"), chromedp.Click(chromedp.CSS(`form[action="/key/leave"] button`)), chromedp.WaitVisible(chromedp.CSS("#key")))
	b.do(chromedp.SendKeys(chromedp.CSS("#key"), key+"\r"))
	b.waitFor(`document.querySelector("form[action='/key/leave']") !== null || document.getElementById("question") !== null`)
	b.do(chromedp.Navigate(s.URL), chromedp.WaitVisible(chromedp.CSS("#past-button")), chromedp.Click(chromedp.CSS("#past-button")),
		chromedp.WaitVisible(chromedp.CSS(".past-open")), chromedp.Click(chromedp.CSS(".past-open")))
	// It is continued, and deleted on the server too.
	b.waitFor(`document.querySelectorAll(".turn").length === 2`)
	b.ask("May I sail alone?")
	b.waitFor(`document.querySelectorAll(".turn").length === 3 && ` + ended)
	b.do(chromedp.Click(chromedp.CSS("#past-button")), chromedp.WaitVisible(chromedp.CSS(".past-open")))
	b.is("true", `String(document.querySelector(".past-open .facts").textContent.endsWith("3 questions"))`)
	b.do(chromedp.Click(chromedp.CSS(".past [aria-label^=Delete]")))
	b.waitFor(`fetch("/api/conversations").then((r) => r.json()).then((l) => window.left = l.conversations.length) && window.left === 0`)
	b.expectProblem("401") // before the key
}

// TestBrowserKey signs in, follows a link from another site, and signs out.
func TestBrowserKey(t *testing.T) {
	t.Parallel()
	ring := newRing()
	key := ring.make(t, "the desk", writer)
	s := newScene(t, func(o *Options) { o.Keys = ring })
	b := s.newTabAt(t, 1440, "light", "/documents?limit=2", "#key")
	visible := func(what string) {
		t.Helper()
		b.waitFor(fmt.Sprintf(`document.querySelector(%q) !== null`, what))
	}

	b.look("9-key")
	b.do(chromedp.SendKeys(chromedp.CSS("#key"), key[:30]+"x"+"\r"))
	visible(`[role="alert"]`)
	b.is("key", `document.activeElement.id`)
	b.look("9-key-wrong")
	b.do(chromedp.SendKeys(chromedp.CSS("#key"), key+"\r"))
	b.waitFor(`document.readyState === "complete" && document.title.startsWith("Documents")`)
	b.is("/documents?limit=2", `location.pathname + location.search`)
	b.is("", `document.cookie`)

	// The browser sends the cookie only after the page redirects to itself.
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<title>Elsewhere</title><a id="cited" href="%s/documents/club/handbook/members.pdf?start=1&end=9">Members</a>
			<form method="post" action="%[1]s/key/leave"><button id="leave">Win</button></form>`, s.URL)
	}))
	t.Cleanup(foreign.Close)
	elsewhere := strings.Replace(foreign.URL, "127.0.0.1", "localhost", 1) // another site for browsers
	b.do(chromedp.Navigate(elsewhere))
	b.do(chromedp.Click(chromedp.CSS("#leave")))
	b.waitFor(`document.readyState === "complete" && document.title.startsWith("Forbidden")`)
	b.do(chromedp.Navigate(elsewhere))
	b.do(chromedp.Click(chromedp.CSS("#cited")))
	visible("mark#quote")
	b.is("/documents/club/handbook/members.pdf?start=1&end=9", `location.pathname + location.search`)

	b.do(chromedp.Navigate(s.URL + "/key"))
	visible(`form[action="/key/leave"] button`)
	b.look("9-key-in")
	b.do(chromedp.Click(chromedp.CSS(`form[action="/key/leave"] button`)))
	visible("#key")
	b.do(chromedp.Navigate(s.URL + "/documents"))
	visible("#key")

	// When the session ends while the page is open, an error leads to the form.
	b.do(chromedp.SendKeys(chromedp.CSS("#key"), key+"\r"))
	b.waitFor(`document.readyState === "complete" && document.title.startsWith("Documents")`)
	b.do(chromedp.Navigate(s.URL + "/"))
	visible("#question")
	must(t, ring.Revoke(t.Context(), "the desk"))
	// Leaving makes the server read the keys again.
	r, err := http.NewRequest("POST", s.URL+"/key/leave", nil)
	must(t, err)
	r.Header.Set("Cookie", "ibid_session=any")
	res, err := http.DefaultTransport.RoundTrip(r)
	must(t, err)
	res.Body.Close()
	b.ask("May I sail alone?")
	b.waitFor(`[...document.querySelectorAll(".turn a")].some((a) => a.textContent === "Sign in")`)
	b.do(chromedp.Navigate(b.js(`[...document.querySelectorAll(".turn a")].find((a) => a.textContent === "Sign in").href`)))
	visible("#key")

	b.expectProblem("401")
	b.expectProblem("403")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.foreign = nil // the test opened the other site
}
