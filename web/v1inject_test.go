package web

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"ibid/data/datatest"
)

// ownLinks are the targets of links to the viewer.
var ownLinks = regexp.MustCompile(`\]\(http://127\.0\.0\.1:8080/documents/[^)\s]*\)`)

// foreignInChat says what in a chat's text is more than words and links to the viewer.
func foreignInChat(content string) string {
	doc := chatMarkdown.Parser().Parse(text.NewReader([]byte(content)))
	found := ""
	_ = ast.Walk(doc, func(n ast.Node, _ bool) (ast.WalkStatus, error) {
		if l, ok := n.(*ast.Link); ok && !strings.HasPrefix(string(l.Destination), "http://127.0.0.1:8080/documents/") {
			found = "a link to " + string(l.Destination)
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	if found != "" {
		return found
	}
	return foreignIn(ownLinks.ReplaceAllString(content, "]"))
}

// TestInjectionIntoV1 has a model say every hostile text around a citation, of a
// document that is called by it and holds it, in pieces: clients of the OpenAI
// API get words, and links to the viewer.
func TestInjectionIntoV1(t *testing.T) {
	t.Parallel()
	random := datatest.Rand(t)
	cutsOf := 1
	if datatest.Campaign() {
		cutsOf = 20
	}
	replies, links := 0, 0
	seen := map[string]bool{}
	for _, h := range hostileTexts(t) {
		lib, evidence := hostileShelf(h.text)
		check := func(where, words string) {
			if seen[words] {
				return
			}
			seen[words] = true
			if what := foreignInChat(words); what != "" {
				t.Errorf("%s, %s: %s has %s: %q", h.file, h.name, where, what, words)
			}
		}
		said := h.text + "[1]" + h.text + " [2] " + h.text
		cuts := [][]string{{said}, strings.Split(said, "")}
		for range cutsOf {
			i := random.IntN(len(said))
			cuts = append(cuts, []string{said[:i], said[i:]})
		}
		script := script{}
		for n, pieces := range cuts {
			script[fmt.Sprint(n)] = hostileScript(lib, evidence, h.text, pieces)
		}
		handler := newHandler(t, func(o *Options) { o.Library, o.Asker = lib, script })
		first := ""
		for n := range cuts {
			var content strings.Builder
			var last completion
			body := fmt.Sprintf(`{"model":"ibid","stream":%t,"messages":[{"role":"user","content":"%d"}]}`, n%2 == 0, n)
			w := v1(handler, body)
			replies++
			if n%2 == 0 {
				data, _ := chunks(t, w.Body.String())
				for _, d := range data {
					last = completion{}
					if err := json.Unmarshal([]byte(d), &last); err != nil {
						t.Fatal(err)
					}
					if c := last.Choices[0].Delta.Content; c != nil {
						content.WriteString(*c)
					}
				}
			} else {
				if err := json.Unmarshal(w.Body.Bytes(), &last); err != nil {
					t.Fatal(err)
				}
				content.WriteString(last.Choices[0].Message.Content)
			}
			check("the text", content.String())
			if first == "" {
				first = content.String()
			} else if first != content.String() {
				t.Errorf("%s, %s, cut %d: another text: %q, and in one piece %q", h.file, h.name, n, content.String(), first)
			}
			for _, u := range last.Citations {
				links++
				if !strings.HasPrefix(u, "http://127.0.0.1:8080/documents/") {
					t.Errorf("%s, %s: a source at %s", h.file, h.name, u)
				}
			}
			for _, s := range last.Sources {
				check("a source's name", s.Source.Name)
				for _, quote := range s.Document {
					check("a quote", quote)
				}
			}
		}
	}
	t.Logf("figure: %d replies of the OpenAI API, %d sources: 0 links, addresses, images, elements or controls but those to the viewer", replies, links)
}
