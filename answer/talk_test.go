package answer

import (
	"fmt"
	"strings"
	"testing"

	"ibid/data/datatest"
)

// TestRefusalLanguage checks that a refusal is in the language of the question, and that
// its reason is the same in all languages.
func TestRefusalLanguage(t *testing.T) {
	seen := map[string]string{}
	for _, row := range datatest.Rows(t, "testdata/replies.txt", "refusals") {
		question, want := row[0], row[1]
		m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"NO ANSWER"}})}
		got := read((&Answerer{Retriever: three, Model: m, Gate: GateOff}).Ask(t.Context(), Question{Text: question}))
		if all := got.String(); !strings.Contains(all, want) || !strings.Contains(all, "no_answer") {
			t.Errorf("%s: want %q, got\n%s", question, want, all)
		}
		for _, reason := range []string{nothingFound, nothingRelevant, noAnswer, "closest"} {
			text := refusal(reason, question)
			if before := seen[text]; before != "" && before != want+reason {
				t.Errorf("%q is used for two reasons or in two languages", text)
			}
			seen[text] = want + reason
		}
		if got, want := ClosestWords(refusal(noAnswer, question)), refusal("closest", question); got != want || got == "" {
			t.Errorf("%s: words before the closest passages = %q, want %q", question, got, want)
		}
	}
}

func TestSmallTalk(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/replies.txt", "small talk") {
		text, model, want, calls := row[0], row[1], row[2], row[3]
		m := &script{reply: byRole(map[Role][]string{RoleChat: {model}, RoleAnswer: {model}})}
		a := &Answerer{Retriever: three}
		if model != "" {
			a.Model = m
		}
		got := read(a.Ask(t.Context(), Question{Text: text}))
		talked := strings.Contains(got.String(), "Reason:small_talk")
		if got.err != nil || talked != (want != "") || !strings.Contains(got.String(), want) || fmt.Sprint(len(m.calls)) != calls {
			t.Errorf("%s: want %q after %s calls; got %d calls and\n%s", text, want, calls, len(m.calls), got)
		}
		if talked && strings.Contains(got.String(), "retrieved") {
			t.Errorf("searched for the small talk %q", text)
		}
		if strings.Contains(text, "Hi, what") && !strings.Contains(got.String(), "retrieved \"what is the mooring fee?\"") {
			t.Errorf("%s: the greeting is part of the search\n%s", text, got)
		}
		if talked && got.closest == nil {
			t.Errorf("%s: a list of the event is null in JSON", text)
		}
	}
}

// TestSmallTalkWords checks that small talk is recognized by its words, and that a polite
// question is not small talk.
func TestSmallTalkWords(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/replies.txt", "talk and questions") {
		for i, all := range row[1:] {
			for text := range strings.SplitSeq(all, "|") {
				want := map[int]string{0: row[0]}[i]
				if got, _ := smallTalk(text); got != want {
					t.Errorf("smallTalk(%q) = %q, want %q", text, got, want)
				}
			}
		}
	}
	long := strings.Repeat("thanks ", longestTalk)
	if got, _ := smallTalk(long + "again"); got != "" {
		t.Errorf("smallTalk of a long text = %q, want none", got)
	}
	if _, rest := smallTalk("Hallo zusammen! " + long + "mooring"); rest != long+"mooring" {
		t.Errorf("question left = %q", rest)
	}
}

// TestCourtesies checks that courtesies around a question are not searched for, and that no
// question is cut.
func TestCourtesies(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/replies.txt", "courtesies") {
		for _, q := range libraryQuestions(t) {
			whole := strings.NewReplacer("Q", strings.TrimRight(q.Question, "?")+"?")
			said, want := whole.Replace(row[0]), whole.Replace(row[1])
			if language, rest := smallTalk(said); language != "" || rest != want {
				t.Errorf("question of %q = %q, want %q", said, rest, want)
			}
		}
	}
}
