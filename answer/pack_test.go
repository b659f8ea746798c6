package answer

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"ibid/data/datatest"
)

// longText returns a text of about n tokens that ends in a fact.
func longText(n int, fact string) string {
	return strings.Repeat("Filler words stand here before the fact is told to anyone at all. ", n/14) + fact
}

// TestStepsHaveWholePassages checks that a short step has whole passages, at least one.
func TestStepsHaveWholePassages(t *testing.T) {
	texts := []string{longText(300, "The fee is 771 marks."), longText(150, "The fee is 772 marks."), longText(150, "The fee is 773 marks.")}
	sentence := regexp.MustCompile(`The fee is 77\d marks\.`)
	for _, test := range []struct {
		step int
		want string
	}{{1, "1|2|3"}, {100, "1|2|3"}, {450, "1|2 3"}, {2000, "1 2 3"}} {
		for _, strategy := range []string{"refine", "map-reduce", "map-rerank", "summarize refine", "summarize map-reduce"} {
			m := &script{reply: func(p Prompt) (string, error) {
				return fmt.Sprintf("From call of %d bytes.%s\nScore: 1", len(p.User), anyLabel.FindString(p.User)), nil
			}}
			a := &Answerer{Retriever: passages(texts...), Model: m, Gate: GateOff, StepTokens: test.step, Parallel: 1}
			got := run(t, a, strategy)
			var steps []string
			for _, p := range m.calls {
				if facts := sentence.FindAllString(p.User, -1); len(facts) > 0 {
					step := ""
					for _, f := range facts {
						step += " " + f[13:14]
					}
					steps = append(steps, step[1:])
				}
			}
			want := test.want
			if strategy == "map-rerank" {
				want = "1|2|3"
			}
			if strings.Join(steps, "|") != want || got.err != nil || strings.Contains(got.String(), "\nincomplete") ||
				strings.Contains(got.String(), "left out") {
				t.Errorf("%s with steps of %d tokens: %q, want %q\n%s", strategy, test.step, steps, want, got)
			}
		}
	}
}

// TestPassageLongerThanTheWindow checks that a passage longer than the context window is
// cut, with a warning.
func TestPassageLongerThanTheWindow(t *testing.T) {
	text := longText(3000, "The fee is 777 marks.")
	for _, strategy := range []string{"refine", "map-reduce", "map-rerank", "summarize refine", "summarize map-reduce"} {
		m := &script{reply: func(p Prompt) (string, error) { return "It is told.[1]\nScore: 1", nil }}
		a := &Answerer{Retriever: passages(text, three[0].Text), Model: m, Gate: GateOff, ContextTokens: 2048}
		got := run(t, a, strategy)
		if got.err != nil || strings.Count(got.String(),
			"warning {Message:passages longer than the model's context window were cut off at the end (1 in all)") != 1 {
			t.Errorf("%s: no warning:\n%s", strategy, got)
		}
		if strings.Contains(got.String(), "\nincomplete ") != strings.HasPrefix(strategy, "summarize ") {
			t.Errorf("%s: got\n%s", strategy, got)
		}
	}
}

// TestBudgetOfCalls checks that, however small the model's window turns out to be, a
// question never needs more calls than its budget, and that unread passages are reported.
func TestBudgetOfCalls(t *testing.T) {
	var texts []string
	for i := range 12 {
		texts = append(texts, strings.Repeat(fmt.Sprintf("Passage %d says thing %d about the fee. ", i, i*7), 40))
	}
	type limits struct {
		strategy              string
		budget, window, words int // window: number of calls that find the window too small
	}
	var all []limits
	for _, strategy := range writingStrategies() {
		for _, budget := range []int{1, 2, 6} {
			for _, window := range []int{0, 1, 100} {
				all = append(all, limits{strategy, budget, window, 5}, limits{strategy, budget, window, 400})
			}
		}
	}
	for _, l := range datatest.Pick(t, all) {
		m := &script{}
		m.reply = func(p Prompt) (string, error) {
			if len(m.calls) <= l.window {
				return "", fmt.Errorf("400: %w", ErrContextLength)
			}
			return strings.Repeat(fmt.Sprintf("Words number %d are here. ", len(m.calls)), l.words/5) + anyLabel.FindString(p.User), nil
		}
		a := &Answerer{
			Retriever: passages(texts...), Model: m, Gate: GateOff, StepTokens: 500, AnswerCalls: l.budget, Parallel: 1, ContextTokens: 4096,
		}
		got := read(a.Ask(t.Context(), Question{Text: "What is the fee?", Strategy: l.strategy}))
		if len(m.calls) > l.budget {
			t.Errorf("%+v: %d calls, want at most the budget", l, len(m.calls))
		}
		if none := l.window >= len(m.calls); none != (got.err != nil) || none != (got.text == "") {
			t.Errorf("%+v: events\n%s", l, got)
		}
		said := got.String()
		left := strings.Contains(said, "changed=false "+noRoom) || strings.Contains(said, "changed=false "+noCalls)
		if got.err == nil && !strings.Contains(said, "kept 12") && !left {
			t.Errorf("%+v: unread passages are not reported:\n%s", l, got)
		}
	}
}
