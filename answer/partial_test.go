package answer

import (
	"fmt"
	"strings"
	"testing"

	"ibid/data/datatest"
)

// TestCutReplies checks that a cut reply is never shown as complete, whatever step it
// belongs to.
func TestCutReplies(t *testing.T) {
	for _, test := range datatest.Table[struct {
		Strategy   string
		Role       Role // role whose replies are cut
		Warned     bool
		Incomplete bool
	}](t, "testdata/tables.txt", "replies that are cut") {
		m := &script{}
		m.reply = func(p Prompt) (string, error) {
			m.finish = "stop"
			if p.Role == test.Role {
				m.finish = "length"
			}
			switch {
			case p.Role == RoleCollapse && test.Role == RoleCollapse:
				return "cut collap", nil
			case p.Role == RoleRefine && test.Role == RoleRefine:
				return "It costs 120 marks and", nil // cut in mid-sentence
			case p.Role == RoleRefine:
				return "NO CHANGE", nil
			case p.Role == RoleMap:
				words := 5
				if strings.HasPrefix(test.Strategy, "summarize") {
					words = 60
				}
				return strings.Repeat("Many words about the fee are written here.[1] ", words), nil
			}
			return "It costs 120 marks and members pay", nil
		}
		a := &Answerer{Retriever: story(12), Model: m, Gate: GateOff, ContextTokens: 2048, StepTokens: 300, Parallel: 1}
		got := run(t, a, test.Strategy)
		if got.err != nil || strings.Contains(got.String(), "\nincomplete ") != test.Incomplete ||
			strings.Contains(got.String(), "was cut off at the maximum length") != test.Warned {
			t.Errorf("%s, cut %s: events\n%s", test.Strategy, test.Role, got)
		}
	}
}

// TestCutScore checks that a rating at the end of a cut reply is not used, since it may
// lack a digit.
func TestCutScore(t *testing.T) {
	m := &script{}
	m.reply = func(p Prompt) (string, error) {
		if strings.Contains(p.User, three[0].Text) {
			m.finish = "length"
			return "Cut.[1]\nScore: 9", nil
		}
		m.finish = "stop"
		return "Whole." + "\nScore: 5", nil
	}
	got := read((&Answerer{Retriever: three, Model: m, Gate: GateOff, Parallel: 1}).Ask(t.Context(),
		Question{Text: "What is the fee?", Strategy: "map-rerank"}))
	if got.text != "Whole.[2]" || strings.Contains(got.String(), "\nincomplete ") {
		t.Errorf("got\n%s", got)
	}
}

// TestUnansweredHonestly checks that an answer says that the documents have no answer only
// if the documents were read.
func TestUnansweredHonestly(t *testing.T) {
	long := strings.Repeat("The mooring fee is told here in many words. ", 60)
	for _, strategy := range []string{"refine", "map-reduce", "map-rerank"} {
		ask := func(m *script, texts ...string) transcript {
			a := &Answerer{Retriever: passages(texts...), Model: m, Gate: GateOff, StepTokens: 1, Parallel: 1}
			return read(a.Ask(t.Context(), Question{Text: "What is the mooring fee?", Strategy: strategy}))
		}
		texts := []string{three[0].Text, three[1].Text, three[2].Text}

		// The model uses its whole length for thoughts.
		got := ask(&script{finish: "length", reply: func(Prompt) (string, error) { return "", nil }}, texts...)
		if got.err != nil || got.text == "" || !strings.Contains(got.String(), "fallback {Reason:model_failed") {
			t.Errorf("%s: got\n%s", strategy, got)
		}

		// One call always breaks off, and the others find nothing.
		m := &script{}
		once := false
		m.reply = func(p Prompt) (string, error) {
			if strings.Contains(p.User, three[0].Text) && !(once && len(m.calls) > 1) {
				return "It costs a lot of", errDown
			}
			return "NO ANSWER", nil
		}
		got = ask(m, texts...)
		if got.err != nil || !strings.Contains(got.String(), "unanswered {Reason:no_answer") ||
			!strings.Contains(got.String(), "warning {Message:not everything that was found could be read: ") {
			t.Errorf("%s: got\n%s", strategy, got)
		}

		// A reply that broke off is requested once more if no reader has seen any of it.
		m.calls, once = nil, true
		if got = ask(m, texts...); strategy != "refine" && (len(m.calls) != 4 || strings.Contains(got.String(), "warning")) {
			t.Errorf("%s: %d calls and\n%s", strategy, len(m.calls), got)
		}

		// All calls fail except one.
		m = &script{}
		m.reply = func(p Prompt) (string, error) {
			if len(m.calls) < 3 {
				return "", fmt.Errorf("400: no")
			}
			return "It may be 120 marks.\nScore: 3", nil
		}
		got = ask(m, texts...)
		said := "warning {Message:not everything that was found could be read: "
		if strategy == "map-reduce" {
			said = "incomplete {Reason:2 of 3 parts could not be read: "
		}
		if got.err != nil || got.text == "" || !strings.Contains(got.String(), said) {
			t.Errorf("%s: got\n%s", strategy, got)
		}

		// The server has read only the beginning of the prompt.
		got = ask(&script{usage: Tokens{Prompt: 50, Completion: 3, Reported: true},
			reply: func(Prompt) (string, error) { return "NO ANSWER", nil }}, long)
		if !strings.Contains(got.String(), "so it has cut the prompt") {
			t.Errorf("%s: got\n%s", strategy, got)
		}
	}
}
