package answer

import (
	"fmt"
	"strings"
	"testing"

	"ibid/retrieve"
)

func TestRepeats(t *testing.T) {
	clauses := ""
	for i := range 14 {
		clauses += fmt.Sprintf("Clause number %c of the rental agreement tells tenants about matter %c in plain words. ", 'a'+i, 'k'+i)
	}
	passage := func(title, heading, text string) retrieve.Passage {
		p := retrieve.Passage{Title: title}
		p.Heading, p.Text = heading, text
		return p
	}
	text := clauses + "The notice period is 30 days. Dogs are not allowed at -5 degrees."
	for _, test := range []struct {
		name    string
		p, seen retrieve.Passage
		want    bool
	}{
		{"the same", passage("Rules", "", text), passage("Old rules", "Notice", text), true},
		{"dressed up", passage("Rules", "", strings.ToUpper(text)), passage("Rules", "", "* "+strings.ReplaceAll(text, " ", "\n")), true},
		{"a part of it", passage("Rules", "", clauses), passage("Rules", "", text), true},
		{"more than it", passage("Rules", "", text), passage("Rules", "", clauses), false},
		{"another number", passage("Rules", "", strings.Replace(text, "30", "60", 1)), passage("Rules", "", text), false},
		{"two numbers change places", passage("Rules", "", clauses+"It is 30 at first and 60 then."), passage("Rules", "", clauses+"It is 60 at first and 30 then."), false},
		{"without the negation", passage("Rules", "", strings.Replace(text, "not ", "", 1)), passage("Rules", "", text), false},
		{"another name", passage("Rules", "", strings.Replace(text, "Dogs", "Cats", 1)), passage("Rules", "", text), false},
		{"another sign", passage("Rules", "", strings.Replace(text, "-5", "5", 1)), passage("Rules", "", text), false},
		{"of another year", passage("Rules 2024", "", text), passage("Rules 2023", "", text), false},
		{"short, under another heading", passage("Rules", "Mooring", "It costs 120 marks."), passage("Rules", "Winter store", "It costs 120 marks."), false},
		{"short, under the same heading", passage("Rules", "Mooring", "It costs 120 marks."), passage("Copy of rules", "Mooring", "It costs **120** marks"), true},
		{"empty", passage("Rules", "", ""), passage("Rules", "", ""), false},
	} {
		if got := wordingOf(test.p).repeats(wordingOf(test.seen)); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}

// A passage that repeats another one is in no prompt, and that is reported.
func TestDuplicates(t *testing.T) {
	rule := wordy(40, "The mooring fee is 120 marks.")
	texts := []string{rule, "The fee is due on the first of April and is not refunded.", rule + "!", strings.ToUpper(rule)}
	library := passages(texts...)
	for i := range library {
		library[i].Title = "Rules of the harbour"
	}
	for _, strategy := range []string{"refine", "map-reduce", "map-rerank"} {
		m := &script{reply: func(p Prompt) (string, error) { return "120 marks.[1]\nScore: 9", nil }}
		a := &Answerer{Retriever: library, Model: m, Gate: GateOff}
		got := read(a.Ask(t.Context(), Question{Text: "What is the fee?", Strategy: strategy}))
		for _, p := range m.calls {
			if n := strings.Count(strings.ToUpper(p.User), strings.ToUpper(rule)); n > 1 {
				t.Errorf("%s: a prompt shows it %d times", strategy, n)
			}
		}
		if got.err != nil || strings.Count(got.String(), "near_duplicate") != 1 {
			t.Errorf("%s: got\n%s", strategy, got)
		}
	}
}
