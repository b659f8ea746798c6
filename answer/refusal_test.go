package answer

import (
	"strings"
	"testing"

	"ibid/data/datatest"
)

// A refusal is in the language of the question, and its reason is the same in all.
func TestRefusalLanguage(t *testing.T) {
	seen := map[string]string{}
	for _, row := range datatest.Rows(t, "testdata/replies.txt", "refusals") {
		question, want := row[0], row[1]
		m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"NO ANSWER"}})}
		got := read((&Answerer{Retriever: three, Model: m, Gate: GateOff}).Ask(t.Context(), Question{Text: question}))
		if all := got.String(); !strings.Contains(all, want) || !strings.Contains(all, "no_answer") {
			t.Errorf("%s: want %q, got\n%s", question, want, all)
		}
		for _, reason := range []string{nothingFound, nothingRelevant, noAnswer} {
			text := refusal(reason, question)
			if before := seen[text]; before != "" && before != want+reason {
				t.Errorf("%q is said for two reasons or in two languages", text)
			}
			seen[text] = want + reason
		}
	}
}
