package answer

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/retrieve"
)

const handbook = "Vouchers are valid for two years. Session sheets are kept for three years.\n\n" +
	"The oven is at 240 °C on Fridays; the bread rests for 27 days. Dogs are not allowed in the hall.\n\n代金券的有效期为两年。\n\n" +
	"| Front desk | 0151 200 |\n| Workshop | 0151 201 |\n\n" +
	"Property: Warranty | Value: 3 years\nProperty: Power consumption | Value: 9 watts\n"

// TestShortReply checks that a few words without a label are an answer if a passage has
// them verbatim or the judge says yes.
func TestShortReply(t *testing.T) {
	for _, c := range datatest.Table[struct {
		Reply, Asked     string
		Unjudged, Judged bool // result of code; result with a judge
	}](t, "testdata/tables.txt", "short replies") {
		for verdict, shown := range map[string]bool{"yes": c.Judged, "no": false, "": c.Unjudged} {
			if verdict == "yes" && !c.Judged && c.Reply != "Good question!" {
				continue // the trust in such a judge
			}
			m := &script{reply: byRole(map[Role][]string{RoleAnswer: {c.Reply}, RoleVerify: {verdict}})}
			a := &Answerer{Retriever: passages(handbook), Model: m, Unproved: UnprovedDrop}
			if verdict == "" {
				a.Gate = GateScore
			}
			got := read(a.Ask(t.Context(), Question{Text: c.Asked}))
			if got.err != nil || (got.text != "") != shown || shown && strings.Count(got.text, "[1]") != 1 {
				t.Errorf("%q, judge %q: want shown = %t with [1]\n%s", c.Reply, verdict, shown, got)
			}
		}
	}
}

// The limits for short replies to the questions of the sample library: how many of 103 are
// answered. The search does not find the passages of the other questions.
const (
	wholeLeast = 97 // with the expected answer and a judge that always says yes
	bareLeast  = 95 // with its shortest words and a judge that says yes if its passage has them
)

// holdsWords reports whether a text has one of the expected words of an answer.
func holdsWords(text string, answers []string) bool {
	return slices.ContainsFunc(answers, func(g string) bool { return strings.Contains(squeezeSpace(text), squeezeSpace(g)) })
}

// askedShort asks a question of a model that writes one reply. It returns the shown answer,
// whether a passage that it cites has the expected words, and whether one that was read
// has.
func askedShort(t *testing.T, a *Answerer, q libraryQuestion) (shown string, right, has bool) {
	t.Helper()
	var kept []retrieve.Passage
	for e, err := range a.Ask(t.Context(), Question{Text: q.Question}) {
		must(t, err)
		switch e := e.(type) {
		case Kept:
			kept = e.Passages
		case Text:
			shown += e.Text
		}
	}
	for i, p := range kept {
		if holdsWords(p.Text, q.Answers) {
			has = true
			right = right || strings.Contains(shown, "["+strconv.Itoa(i+1)+"]")
		}
	}
	return shown, right, has
}

func TestShortReplies(t *testing.T) {
	t.Parallel()
	index, model := openLibrary(t)
	questions := libraryQuestions(t)
	datatest.Rand(t).Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
	questions = questions[:datatest.Cases(t, len(questions))]
	for _, test := range []struct {
		name   string
		reply  func(libraryQuestion) string
		always bool // the judge always says yes
		least  int  // least number of answered questions
		wrong  int  // most answers that cite another passage although one with the words was read
	}{
		{"whole", func(q libraryQuestion) string { return q.Answer }, true, wholeLeast, 3},
		{"bare", func(q libraryQuestion) string { return q.Answers[0] }, false, bareLeast, 1}, // "half" is also in passages about half days
	} {
		asked, answered, wrong, calls := 0, 0, 0, 0
		for _, q := range questions {
			reply := "Forty-one marks."
			if len(q.Answers) > 0 {
				reply = test.reply(q)
			}
			m := &script{reply: func(p Prompt) (string, error) {
				evidence, _, _ := strings.Cut(p.User, "\nQuestion: ")
				switch {
				case p.Role != RoleVerify:
					return reply, nil
				case len(q.Answers) > 0 && (test.always || holdsWords(evidence, q.Answers)):
					return "yes", nil
				}
				return "no", nil
			}}
			a := &Answerer{Retriever: index, Embedder: model, Model: m, Unproved: UnprovedDrop, BudgetTokens: 8000}
			shown, right, has := askedShort(t, a, q)
			if len(q.Answers) == 0 {
				if shown != "" {
					t.Errorf("%s: answer = %q, want none", q.Question, shown)
				}
				continue
			}
			if asked++; shown != "" {
				answered++
				for _, p := range m.calls {
					if p.Role != RoleVerify {
						calls++
					}
				}
			}
			if has && !right {
				wrong++
				t.Logf("%s: answer = %q cites the wrong passage", q.Question, shown)
			}
		}
		t.Logf("%s: answered %d of %d with %d answering calls; %d by another passage", test.name, answered, asked, calls, wrong)
		if answered < test.least*asked/103 || wrong > test.wrong || test.always && calls != answered {
			t.Errorf("want at least %d of 103 answered, at most %d by another passage, and one answering call for each", test.least, test.wrong)
		}
	}
}
