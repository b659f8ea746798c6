package answer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"ibid/answer/prompt"
	"ibid/ingest"
)

// A document template that shows what documents say of themselves.
const authored = `{{define "document"}}{{.Title}}{{if .Has "heading"}} › {{.Heading}}{{end}}, in {{.Path}} ({{.Document}})
By {{.Meta "author"}}{{if .Has "date"}}, {{.Meta "date"}}{{end}}
{{.Text}}{{end}}`

func promptsWith(t *testing.T, name, text string) *prompt.Templates {
	t.Helper()
	p, err := prompt.Parse(fstest.MapFS{name: {Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A slot that a document lacks is an error that names both, in every strategy
// and whichever template shows it, and no model is asked before.
func TestMissingSlot(t *testing.T) {
	inRole := func() string {
		return `{{define "system"}}{{end}}{{define "user"}}{{.Draft}}{{range .Evidence}}{{.Meta "author"}}: {{.Text}}{{end}}{{end}}`
	}
	for _, test := range []struct{ name, file, text, slot string }{
		{"metadata", "document.tmpl", authored, "author"},
		{"heading", "document.tmpl", `{{define "document"}}{{.Heading}}: {{.Text}}{{end}}`, "heading"},
		{"page", "document.tmpl", `{{define "document"}}p. {{.Page}}: {{.Text}}{{end}}`, "page"},
		{"under a condition", "document.tmpl", `{{define "document"}}{{if .Title}}{{.Meta "date"}}{{end}}: {{.Text}}{{end}}`, "date"},
		{"in the fence", "evidence.tmpl", `{{define "evidence"}}{{range .Evidence}}{{.Meta "status"}}: {{.Text}}{{end}}{{end}}`, "status"},
		{"in a role", "refine.tmpl", inRole(), "author"},
	} {
		t.Run(test.name, func(t *testing.T) {
			documents := found{}
			for i, p := range three {
				if p.Meta = map[string]string{"author": "A", "date": "2025", "status": "valid"}; i == 1 {
					p.Meta = map[string]string{test.slot + "s": "x", "Text": "x"}
				} else {
					p.Heading, p.Page = "Fees", 3
				}
				documents = append(documents, p)
			}
			for _, strategy := range []string{"auto", "stuff", "map-reduce", "map-rerank"} {
				for _, gate := range []GateKind{GateModel, GateScore, GateOff} {
					m := &script{reply: byRole(nil)}
					a := &Answerer{Retriever: documents, Model: m, Gate: gate, Prompts: promptsWith(t, test.file, test.text)}
					got := read(a.Ask(t.Context(), Question{Text: "What does a mooring cost?", Strategy: strategy}))
					lacks := (*prompt.SlotError)(nil)
					if !errors.As(got.err, &lacks) || *lacks != (prompt.SlotError{Document: "r/d2.md", Slot: test.slot}) {
						t.Errorf("%s, %s: got %v", strategy, gate, got.err)
					} else if s := lacks.Error(); !strings.Contains(s, `"r/d2.md"`) || !strings.Contains(s, `no "`+test.slot+`"`) {
						t.Errorf("the error names not both: %s", s)
					}
					if len(m.calls) > 0 {
						t.Errorf("%s, %s: %d calls", strategy, gate, len(m.calls))
					}
				}
			}
			if test.name == "in a role" {
				return // a summary has another template in its place
			}
			for _, strategy := range []string{"refine", "map-reduce"} {
				m := &script{reply: byRole(nil)}
				a := &Answerer{Model: m, Prompts: promptsWith(t, test.file, test.text)}
				got := read(a.Summarize(t.Context(), Summary{Passages: documents, Strategy: strategy}))
				if lacks := (*prompt.SlotError)(nil); !errors.As(got.err, &lacks) || lacks.Document != "r/d2.md" || len(m.calls) > 0 {
					t.Errorf("summary by %s: got %v after %d calls", strategy, got.err, len(m.calls))
				}
			}
		})
	}
	// Without a model nothing is shown to one.
	a := &Answerer{Retriever: three, Prompts: promptsWith(t, "document.tmpl", authored)}
	if got := read(a.Ask(t.Context(), Question{Text: "What does a mooring cost?"})); got.err != nil {
		t.Error(got.err)
	}
}

// A passage's metadata counts against the room of a prompt.
func TestMetadataIsCounted(t *testing.T) {
	var documents found
	for _, p := range passages(strings.Repeat("The fee is due in April. ", 40), strings.Repeat("Members pay half of it. ", 40), strings.Repeat("It is never given back. ", 40)) {
		p.Meta = map[string]string{"author": strings.Repeat("somebody ", 500)}
		documents = append(documents, p)
	}
	m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"In April.[1]"}, RoleRefine: {"NO CHANGE"}})}
	a := &Answerer{Retriever: documents, Model: m, Gate: GateOff, ContextTokens: 2048, Prompts: promptsWith(t, "document.tmpl", authored)}
	if got := read(a.Ask(t.Context(), Question{Text: "When is the fee due?"})); got.err != nil || len(m.calls) != 3 {
		t.Errorf("%d calls\n%s", len(m.calls), got)
	}
	for _, p := range m.calls {
		if n := ingest.CountTokens(p.System) + ingest.CountTokens(p.User); n > 2048*85/100 {
			t.Errorf("a prompt of %d tokens for a window of 2048", n)
		}
	}
}

// Passages that are too long for a prompt are shortened, and the prompt fits.
func TestPromptFitsWindow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var texts []string
		for range rapid.IntRange(1, 8).Draw(rt, "passages") {
			texts = append(texts, strings.Repeat("The mooring fee is due in April, says rule "+fmt.Sprint(len(texts))+". ", rapid.IntRange(0, 400).Draw(rt, "sentences")))
		}
		window := rapid.SampledFrom([]int{2048, 4096, 8192}).Draw(rt, "window")
		m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"It is due in April.[1]"}, RoleRefine: {"NO CHANGE"}})}
		a := &Answerer{Retriever: passages(texts...), Model: m, Gate: GateOff, ContextTokens: window, StepTokens: rapid.SampledFrom([]int{0, 300}).Draw(rt, "step")}
		got := read(a.Ask(rt.Context(), Question{Text: "When is the fee due?"}))
		if got.err != nil || got.text != "It is due in April.[1]" {
			rt.Fatalf("got\n%s", got)
		}
		if len(m.calls) > defaultAnswerCalls {
			rt.Errorf("%d calls", len(m.calls))
		}
		for _, p := range m.calls {
			if n := ingest.CountTokens(p.System) + ingest.CountTokens(p.User); n > window*8/10 {
				rt.Errorf("a prompt of %d tokens for a window of %d", n, window)
			}
		}
	})
}
