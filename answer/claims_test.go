package answer

import (
	"strings"
	"testing"

	"ibid/data/datatest"
)

const rules = "9.1 Session sheets are kept for three years and incident reports for ten years. The chairman signs each report on 4 May. " +
	"No boat leaves the harbour after sunset. Guests pay 12.5 marks a night. They are free in winter.\n\n" +
	"- moorings: 120 marks\n- dogs on a lead\n\n" +
	"| Crane | 30 marks |\n| Slip | 4 marks |\n"

// asked returns how often a judge that always says no was asked about the statements of an
// answer from rules, and the event of its verdicts.
func asked(t *testing.T, question, answer string) (calls int, got transcript) {
	library := passages(rules)
	library[0].Scores.Lexical, library[0].Scores.Dense = .1, .1
	m := byRole(map[Role][]string{RoleAnswer: {answer}, RoleJudge: {"yes"}, RoleVerify: {"no"}})
	s := &script{reply: func(p Prompt) (string, error) {
		if p.Role == RoleVerify {
			calls++
		}
		return m(p)
	}}
	got = read((&Answerer{Retriever: library, Model: s, Unproved: UnprovedMark, Parallel: 1}).Ask(t.Context(), Question{Text: question}))
	if got.err != nil {
		t.Errorf("answering with the reply %q: %v", answer, got.err)
	}
	return calls, got
}

// TestClearedByCode checks that code clears a statement only if a passage has all of it and
// the sentence has nothing else. The judge is asked about every other statement.
func TestClearedByCode(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/claims.txt", "statements") {
		asks, statement := row[0] == "asked", row[1]
		calls, got := asked(t, "What are the rules for reports, boats, guests and the crane?", statement)
		if calls > 0 != asks || asks && !strings.Contains(got.String(), "Verdict:marked") {
			t.Errorf("%q: the judge was asked %d times\n%s", statement, calls, got)
		}
		if !asks && !strings.Contains(got.String(), "Verdict:cleared By:code") {
			t.Errorf("%q: not reported as cleared by code\n%s", statement, got)
		}
	}
}

// TestStatesSomething checks that a lead-in, question, heading, short sentence or code is
// proved if it states something that the question does not.
func TestStatesSomething(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/claims.txt", "leads") {
		text := row[1]
		calls, got := asked(t, "How long are incident reports kept, and what do guests pay? 客人 ค่าธรรมเนียม", text)
		how := "passed"
		switch {
		case strings.Count(got.String(), "verified {") > 1:
			how = "asked"
		case calls > 0:
			how = "together"
		}
		if how != row[0] || unlabelled(got.text) != unlabelled(text) {
			t.Errorf("%q: handled as %s, want %s; events\n%s", text, how, row[0], got)
		}
	}
}

func unlabelled(text string) string { return strings.ReplaceAll(text, "[1]", "") }
