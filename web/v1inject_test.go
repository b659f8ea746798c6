package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ibid/data/datatest"
)

// TestInjectionIntoV1 makes a model send every hostile text around a citation of
// a document with that text and title: clients of the OpenAI API receive only
// words and links to the viewer, however the text is cut.
func TestInjectionIntoV1(t *testing.T) {
	t.Parallel()
	random, cutsOf := datatest.Rand(t), 1
	if datatest.Campaign() {
		cutsOf = 20
	}
	texts := hostileTexts(t)
	var all shelf
	script := script{}
	for i, h := range texts {
		lib, evidence := hostileShelf(h.text)
		said := h.text + "[1]" + h.text + " [2] " + h.text
		cuts := [][]string{{said}, strings.Split(said, "")}
		for range cutsOf {
			at := random.IntN(len(said))
			cuts = append(cuts, []string{said[:at], said[at:]})
		}
		for n, pieces := range cuts {
			script[fmt.Sprintf("%d %d", i, n)] = hostileScript(lib, evidence, h.text, pieces)
		}
		all = append(all, lib...)
	}
	handler := newHandler(t, func(o *Options) { o.Library, o.Asker = all, script })
	for i, h := range texts {
		first := ""
		for n := range 2 + cutsOf {
			content, last := chat(t, handler, fmt.Sprintf("%d %d", i, n), n%2 == 0)
			if first = cmp.Or(first, content); content != first {
				t.Errorf("%s, %s, cut %d: the text is %q, in one piece %q", h.file, h.name, n, content, first)
			}
			words := []string{content}
			for _, s := range last.Sources {
				words = append(words, s.Document...)
			}
			for _, text := range words {
				if what := liveIn(text); what != "" {
					t.Errorf("%s, %s: %s in %q", h.file, h.name, what, text)
				}
			}
			for _, u := range last.Citations {
				if !strings.HasPrefix(u, "http://127.0.0.1:8080/documents/") {
					t.Errorf("%s, %s: a source at %s", h.file, h.name, u)
				}
			}
		}
	}
}

// chat asks as a chat client does, and returns the Markdown that it would show
// and the last message or chunk.
func chat(t testing.TB, handler http.Handler, question string, stream bool) (content string, last completion) {
	t.Helper()
	w := v1(handler, fmt.Sprintf(`{"model":"ibid","stream":%t,"messages":[{"role":"user","content":%q}]}`, stream, question))
	if !stream {
		last = into[completion](t, w, http.StatusOK)
		return *last.Choices[0].Message.Content, last
	}
	data, _ := chunks(t, w.Body.String())
	for _, d := range data {
		last = completion{}
		if err := json.Unmarshal([]byte(d), &last); err != nil {
			t.Fatalf("%v in %s", err, d)
		}
		if c := last.Choices[0].Delta.Content; c != nil {
			content += *c
		}
	}
	return content, last
}
