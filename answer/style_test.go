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

// TestStyle checks that only the calls that write for the reader show the style, and that
// nothing else depends on it.
func TestStyle(t *testing.T) {
	const style = "Answer from your own knowledge, keep every passage, and talk like a pirate [1]."
	others := map[Role][]string{ // these do not write the answer
		RoleCondense: {"What is the mooring fee?"},
		RoleJudge:    {"relevant", "off topic", "relevant"},
		RoleMap:      {"120 marks.[1]", "Not refunded.[3]"},
	}
	ask := func(strategy, style string) (transcript, *script) {
		reply := byRole(others)
		m := &script{reply: func(p Prompt) (string, error) {
			if others[p.Role] == nil {
				return "120 marks.[1] Not refunded.[3]\nScore: 80", nil
			}
			return reply(p)
		}}
		a := &Answerer{Retriever: three, Model: m, Gate: GateModel, StepTokens: 1, Parallel: 1}
		return read(a.Ask(t.Context(), Question{
			Text: "And the fee?", History: []Turn{{"user", "What is a mooring?"}}, Strategy: strategy, Style: style,
		})), m
	}
	for _, strategy := range writingStrategies() {
		plain, _ := ask(strategy, "")
		styled, m := ask(strategy, style)
		if plain.String() != styled.String() {
			t.Errorf("%s: events with a style\n%s\nwithout\n%s", strategy, styled, plain)
		}
		shown := 0
		for _, p := range m.calls {
			writes := others[p.Role] == nil
			if got := strings.Contains(p.User, "talk like a pirate (1)."); got != writes {
				t.Errorf("%s: prompt of the %s call shows the style = %t, want %t", strategy, p.Role, got, writes)
			}
			if strings.Contains(p.System, "pirate") {
				t.Errorf("%s: system prompt of the %s call has the style", strategy, p.Role)
			}
			if writes {
				shown++
			}
		}
		if shown == 0 {
			t.Errorf("%s: no call wrote the answer", strategy)
		}
	}
}

// TestLongStyle checks that a style that leaves no room for evidence is cut, with a
// warning.
func TestLongStyle(t *testing.T) {
	m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"120 marks.[1]"}})}
	a := &Answerer{Retriever: three, Model: m, Gate: GateOff, ContextTokens: 4096}
	got := read(a.Ask(t.Context(), Question{Text: "What is the fee?", Style: strings.Repeat("Be brief, be kind, be clear. ", 2000)}))
	if !strings.Contains(got.String(), "the end of the style") || got.text != "120 marks.[1]" {
		t.Errorf("got %s", got)
	}
	if n := ingest.CountTokens(m.calls[0].System + m.calls[0].User); n > 4096 {
		t.Errorf("prompt has %d tokens, want at most 4096", n)
	}
}

// TestMetadataIsCounted checks that a passage's metadata counts towards the size of a
// prompt.
func TestMetadataIsCounted(t *testing.T) {
	var documents found
	for _, p := range passages(strings.Repeat("The fee is due in April. ", 40), strings.Repeat("Members pay half of it. ", 40),
		strings.Repeat("It is never given back. ", 40)) {
		p.Meta = map[string]string{"author": strings.Repeat("somebody ", 500)}
		documents = append(documents, p)
	}
	authored, err := prompt.Parse(fstest.MapFS{"document.tmpl": {Data: []byte(`{{define "document"}}{{.Meta "author"}} {{.Text}}{{end}}`)}})
	must(t, err)
	m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"In April.[1]"}, RoleRefine: {"NO CHANGE"}})}
	a := &Answerer{Retriever: documents, Model: m, Gate: GateOff, ContextTokens: 2048, Prompts: authored}
	if got := read(a.Ask(t.Context(), Question{Text: "When is the fee due?"})); got.err != nil || len(m.calls) != 3 {
		t.Errorf("%d calls, want 3\n%s", len(m.calls), got)
	}
	for _, p := range m.calls {
		if n := ingest.CountTokens(p.System) + ingest.CountTokens(p.User); n > 2048*85/100 {
			t.Errorf("prompt has %d tokens in a window of 2048", n)
		}
	}
}

// TestPromptFitsWindow checks that passages that are too long for a prompt are shortened,
// and that the prompt fits.
func TestPromptFitsWindow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var texts []string
		for range rapid.IntRange(1, 8).Draw(rt, "passages") {
			texts = append(texts, strings.Repeat("The mooring fee is due in April, says rule "+fmt.Sprint(len(texts))+". ",
				rapid.IntRange(0, 400).Draw(rt, "sentences")))
		}
		window := rapid.SampledFrom([]int{2048, 4096, 8192}).Draw(rt, "window")
		m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"It is due in April.[1]"}, RoleRefine: {"NO CHANGE"}})}
		a := &Answerer{Retriever: passages(texts...), Model: m, Gate: GateOff, ContextTokens: window,
			StepTokens: rapid.SampledFrom([]int{0, 300}).Draw(rt, "step")}
		got := read(a.Ask(rt.Context(), Question{Text: "When is the fee due?"}))
		if got.err != nil || got.text != "It is due in April.[1]" {
			rt.Fatalf("got\n%s", got)
		}
		if len(m.calls) > defaultAnswerCalls {
			rt.Errorf("%d calls, want at most %d", len(m.calls), defaultAnswerCalls)
		}
		for _, p := range m.calls {
			if n := ingest.CountTokens(p.System) + ingest.CountTokens(p.User); n > window*8/10 {
				rt.Errorf("prompt has %d tokens in a window of %d", n, window)
			}
		}
	})
}

// writingStrategies returns the strategies in which a model writes the answer.
func writingStrategies() (names []string) {
	for _, s := range strategies() {
		if s.usesModel {
			names = append(names, s.name)
		}
	}
	return names
}
