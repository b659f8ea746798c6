package answer

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"ibid/answer/prompt"
	"ibid/ingest"
)

// A passage's metadata counts against the room of a prompt.
func TestMetadataIsCounted(t *testing.T) {
	var documents found
	for _, p := range passages(strings.Repeat("The fee is due in April. ", 40), strings.Repeat("Members pay half of it. ", 40), strings.Repeat("It is never given back. ", 40)) {
		p.Meta = map[string]string{"author": strings.Repeat("somebody ", 500)}
		documents = append(documents, p)
	}
	authored, err := prompt.Parse(fstest.MapFS{"document.tmpl": {Data: []byte(`{{define "document"}}{{.Meta "author"}} {{.Text}}{{end}}`)}})
	must(t, err)
	m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"In April.[1]"}, RoleRefine: {"NO CHANGE"}})}
	a := &Answerer{Retriever: documents, Model: m, Gate: GateOff, ContextTokens: 2048, Prompts: authored}
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
