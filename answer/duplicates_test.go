package answer

import (
	"fmt"
	"regexp"
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

// A copy of a passage is read only where nothing came of the passage; when
// what is left are copies of what was read the answer is complete.
func TestCopies(t *testing.T) {
	rule := wordy(40, "The mooring fee is 120 marks.")
	texts := []string{rule, "The fee is due on the first of April and is not refunded.", rule + "!", strings.ToUpper(rule)}
	for _, strategy := range []string{"refine", "map-reduce", "map-rerank"} {
		for _, test := range []struct {
			fails string // labels whose calls fail
			read  string // labels that stood in a prompt, in order
			left  string // copies that did not have to be read
			poor  bool   // something was not read
		}{
			{"", "1 2", "[3 4]", false},
			{"[1]", "1 2 3", "[4]", false},
			{"[1] [3]", "1 2 3", "[4]", true},
			{"[2]", "1 2", "[3 4]", true},
		} {
			if strategy == "refine" { // which asks about a copy at once, and goes on until there is none
				switch test.fails {
				case "[1]":
					test.read = "1 3 2"
				case "[1] [3]":
					test.read, test.left, test.poor = "1 3 4 2", "", false
				}
			}
			var order []string
			m := &script{reply: func(p Prompt) (string, error) {
				if p.Role == RoleCombine {
					return "120 marks.[1]", nil
				}
				_, after, _ := strings.Cut(p.User, "<evidence ")
				label := anyLabel.FindString(after)
				order = append(order, strings.Trim(label, "[]"))
				if strings.Contains(test.fails, label) {
					return "", errDown
				}
				return "120 marks." + label + "\nScore: 9", nil
			}}
			library := passages(texts...)
			for i := range library {
				library[i].Title = "Rules of the harbour"
			}
			a := &Answerer{Retriever: library, Model: m, Gate: GateOff, StepPassages: 1, Parallel: 1}
			got := read(a.Ask(t.Context(), Question{Text: "What is the fee?", Strategy: strategy}))
			left := regexp.MustCompile(`stepped 0  (\[.*\]) changed=false near_duplicate`).FindStringSubmatch(got.String())
			if read := strings.Join(order, " "); read != test.read || len(left) > 0 != (test.left != "") || len(left) > 0 && left[1] != test.left || got.err != nil || got.text == "" {
				t.Errorf("%s, %q fail: read %q, left %q, got\n%s", strategy, test.fails, read, left, got)
			}
			if poor := strings.Contains(got.String(), "not everything that was found could be read"); poor != test.poor {
				t.Errorf("%s, %q fail: warned %t, got\n%s", strategy, test.fails, poor, got)
			}
		}
	}
}
