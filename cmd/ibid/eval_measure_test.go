package main

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"ibid/answer"
	"ibid/cite"
	"ibid/cmd/ibid/eval"
)

// sampleReport is about five questions, of which each figure can be counted by hand.
func sampleReport() *evalReport {
	right := answered(eval.Question{ID: "q1", Text: "When is tea served?", Kind: "single", Answers: []string{"at four"},
		Expected: "Tea is served at four", Documents: []string{"tea.md"}},
		"Tea is served at four [1]. It is free [1].", "tea.md", retrieved("tea.md", true, "Tea is served at four."),
		retrieved("boats.md", false, ""), retrieved("tea.md", false, "Milk."))
	right.Citations = []cite.Citation{{Number: 1, Document: "tea.md", Quote: "served at four", Support: .9, Verdict: "quoted", TextEnd: 26},
		{Number: 1, Document: "tea.md", Quote: "Milk", Support: .1, Verdict: "weak", TextStart: 27, TextEnd: 42}}
	right.Unsupported = []cite.Unsupported{{TextStart: 27, TextEnd: 42, Reason: "weak"}}
	wrong := answered(eval.Question{ID: "q2", Text: "Where do the boats stand?", Kind: "single", Answers: []string{"slipway"},
		Documents: []string{"boats.md", "harbour.md"}},
		"In the hall [1][2].", "tea.md", retrieved("tea.md", true, ""), retrieved("boats.md", true, ""))
	wrong.Sources = append(wrong.Sources, cite.Source{Number: 2, Document: "boats.md", Title: "Boats"})
	refused := unanswered(eval.Question{ID: "q3", Text: "Who mends the sails?", Answers: []string{"the sailmaker"},
		Documents: []string{"sails.md"}}, "Not said.", retrieved("sails.md", false, ""), retrieved("tea.md", false, ""))
	rightly := unanswered(eval.Question{ID: "q4", Text: "What does gold cost?", Kind: "off-topic", Unanswerable: true}, "Not said.",
		retrieved("tea.md", false, ""), retrieved("boats.md", false, ""), retrieved("sails.md", true, ""))
	open := answered(eval.Question{ID: "q5", Text: "And the weather?"}, "It rains [1].", "weather.md", retrieved("weather.md", true, ""))
	r := &evalReport{Made: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Version: "ibid test", Folder: "club", File: "questions.jsonl",
		Documents: 5, Chunks: 9, Settings: []setting{{"gate", "auto"}, {"model", "m"}, {"rerank-model", ""}},
		Unread: []string{"club/scan.pdf: it has no text"}}
	for i, o := range []*outcome{right, wrong, refused, rightly, open} {
		o.Seconds = []float64{1, 2, .3, .2, .6}[i]
		o.Usage = []answer.Usage{{Calls: 4, PromptTokens: 1000, CompletionTokens: 50},
			{Calls: 2, PromptTokens: 500, CompletionTokens: 10}, {}, {}, {Calls: 1, PromptTokens: 100, CompletionTokens: 20}}[i]
		o.check()
		r.Outcomes = append(r.Outcomes, *o)
	}
	r.measure()
	return r
}

// Every figure, counted by hand from the five outcomes.
func TestFigures(t *testing.T) {
	r := sampleReport()
	want := map[string]float64{
		"passed": 1 / 4., // q4; q5 is open
		// q1 finds its document, q2 one of two, q3 its own.
		"right_found": 1, "recall@5": (1 + .5 + 1) / 3,
		// q1 has two right passages, of which one is kept; q2 one, kept; q3 one, skipped.
		"gate_lost": 1 / 3.,
		"right":     1 / 3., "false_refusals": 1 / 3., "closest": 0, "false_answers": 0,
		// q1, q2 and q5 are answered, with 2, 1 and 1 citations, of which 1 is weak.
		"cited": 1, "supported": 3 / 4., "unsupported": 1 / 4., "right_cited": 1,
		"p50": .6, "p95": 2,
		"calls": 7 / 5., "prompt_tokens": 1600 / 5., "completion_tokens": 80 / 5.,
	}
	for _, f := range r.Figures {
		w, ok := want[f.Name]
		if !ok {
			t.Errorf("%s is %v, and was not counted", f.Name, f.Value)
		}
		if math.Abs(f.Value-w) > 1e-9 {
			t.Errorf("%s is %v, want %v", f.Name, f.Value, w)
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("not measured: %v", want)
	}
	if r.Passed != 1 || r.Failed != 3 || r.Open != 1 {
		t.Errorf("%d passed, %d failed, %d open", r.Passed, r.Failed, r.Open)
	}
}

func TestReportText(t *testing.T) { checkGolden(t, "testdata/report.txt", sampleReport().text()) }

// The page on measuring documents every cause and figure.
func TestFiguresAreDocumented(t *testing.T) {
	readme, err := os.ReadFile("eval/README.md")
	must(t, err)
	for _, c := range causes {
		if !strings.Contains(string(readme), "| `"+string(c.cause)+"` |") {
			t.Errorf("the cause %s is not documented", c.cause)
		}
	}
	for _, f := range knownFigures() {
		if !strings.Contains(string(readme), "`"+f.Name+"`") {
			t.Errorf("the figure %s is not documented", f.Name)
		}
	}
}
