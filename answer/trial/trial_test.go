package trial_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"ibid/answer"
	"ibid/answer/trial"
)

// A model that knows the bundled questions and makes given mistakes.
type model struct {
	verdict func(n int, right bool) string
	cites   bool
	reply   string // replaces its own words
	answers int
	fails   error
	asked   int
	tokens  int // tokens of each prompt
}

func (m *model) Complete(_ context.Context, p answer.Prompt) iter.Seq2[answer.Piece, error] {
	return func(yield func(answer.Piece, error) bool) {
		if m.asked++; m.fails != nil && m.asked > 3 {
			yield(answer.Piece{}, m.fails)
			return
		}
		if yield(answer.Piece{Text: m.say(p)}, nil) {
			yield(answer.Piece{Finish: "stop", Usage: answer.Tokens{Prompt: m.tokens, Reported: true, Requests: 1}}, nil)
		}
	}
}

func (m *model) say(p answer.Prompt) string {
	for _, q := range trial.Questions() {
		if !strings.Contains(p.User, q.Text) {
			continue
		}
		if p.Role == answer.RoleVerify {
			_, statement, _ := strings.Cut(p.User, "Statement: ")
			statement, _, _ = strings.Cut(statement, "\n")
			return m.verdict(m.asked, strings.Contains(statement, q.Answer))
		}
		at := strings.Index(p.User, q.Answer)
		if m.reply != "" || at < 0 {
			return m.reply + map[bool]string{true: "NO ANSWER"}[m.reply == ""]
		}
		if m.answers--; m.answers < 0 {
			return "Perhaps."
		}
		if !m.cites {
			return q.Answer + "."
		}
		_, label, _ := strings.Cut(p.User[strings.LastIndex(p.User[:at], "<evidence"):], "\n")
		return q.Answer + "." + label[:3]
	}
	return "no"
}

func right(_ int, right bool) string { return map[bool]string{true: "yes", false: "no"}[right] }

// TestRun checks that the findings about a model decide how far it is trusted.
func TestRun(t *testing.T) {
	coin := func(n int, _ bool) string { return []string{"yes", "yes", "no", "no"}[n%4] }
	for _, test := range []struct {
		name                  string
		model                 model
		auroc                 float64
		right, cited, refused int
		noJudge               bool
		distrust, err         string
		verdicts              int
	}{
		{"knows all", model{verdict: right, cites: true, answers: 4}, 1, 4, 4, 2, false, "", "", 48},
		{"cites nothing", model{verdict: right, answers: 4}, 1, 4, 0, 2, false, "", "", 48},
		{"tosses a coin", model{verdict: coin, cites: true, answers: 4}, .5, 4, 4, 2, true, "", "", 48},
		{"always says yes", model{verdict: func(int, bool) string { return "yes" }, cites: true, answers: 4}, .5, 4, 4, 2, true, "", "", 48},
		{"answers badly", model{verdict: right, cites: true, answers: 2}, 1, 2, 2, 2, false, "2 of 4", "", 48},
		{"says the same", model{verdict: coin, reply: "nine, not seven, 15, boulangère, 五点"}, .5, 4, 0, 0, true, "all 2", "", 48},
		{"breaks down", model{verdict: right, cites: true, answers: 4, fails: errors.New("gone")}, 0, 0, 0, 0, false, "", "gone", 0},
		{"reads the first passage", model{verdict: func(n int, isRight bool) string { return right(n, isRight && (n-7)%3 != 1) }, cites: true,
			answers: 4},
			.75, 4, 4, 2, false, "", "", 48},
		{"thinks long", model{verdict: right, cites: true, answers: 4, tokens: 700}, 1, 4, 4, 2, false, "", "", 15},
	} {
		turns := 0
		got, err := trial.Run(t.Context(), &answer.Answerer{Model: &test.model}, func(context.Context) error { turns++; return nil })
		w, trust := got.Writer, got.Trust()
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: err = %v, want %q", test.name, err, test.err)
		}
		if got.Tokens > 15_000 || test.verdicts < 48 && test.err == "" && got.Tokens < 13_000 {
			t.Errorf("%s: the test used %d tokens", test.name, got.Tokens)
		}
		if got.Judge.AUROC != test.auroc || got.Judge.Verdicts != test.verdicts ||
			w.Right != test.right || w.Cited != test.cited || w.Refused != test.refused {
			t.Errorf("%s: result = %+v", test.name, got)
		}
		if stays := test.right > 0 && test.model.reply == ""; (w.Stayed == 1) != stays || w.Contrary != min(w.Answerable, 1) {
			t.Errorf("%s: statements within the passages: %+v", test.name, w)
		}
		if trust.NoJudge != test.noJudge || !strings.Contains(trust.Distrust, test.distrust) || (trust.Distrust == "") != (test.distrust == "") {
			t.Errorf("%s: trust = %+v for %+v", test.name, trust, got)
		}
		if turns < test.model.asked || trust.OnePassage != (test.name == "reads the first passage") {
			t.Errorf("%s: %d calls in %d turns; trust = %+v", test.name, test.model.asked, turns, trust)
		}
	}
}

// TestQuestions checks against the table alone that a right statement gives the answer and
// a wrong one does not.
func TestQuestions(t *testing.T) {
	if all := trial.Questions(); len(all) != 16 {
		t.Fatalf("%d questions, want 16", len(all))
	}
	errGone := errors.New("no turn")
	got, err := trial.Run(t.Context(), &answer.Answerer{Model: &model{}}, func(context.Context) error { return errGone })
	if !errors.Is(err, errGone) || got != (trial.Result{}) {
		t.Errorf("Run of an unreachable model = %+v, %v; want errGone", got, err)
	}
}
