package eval

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with a file in testdata, or rewrites it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs; -update rewrites it. It is now:\n%s", name, got)
	}
}

// outcomes are five questions, of which each figure can be counted by hand.
func outcomes() []Outcome {
	right := *answered(Question{ID: "q1", Text: "When is tea served?", Kind: "single", Answers: []string{"at four"},
		Expected: "Tea is served at four", Documents: []string{"tea.md"}},
		"Tea is served at four [1]. It is free [1].", "tea.md", passage("tea.md", true, "Tea is served at four."),
		passage("boats.md", false, ""), passage("tea.md", false, "Milk."))
	right.Citations = []Citation{{1, "tea.md", 0, "served at four", .9, "quoted", 0, 26}, {1, "tea.md", 0, "Milk", .1, "weak", 27, 42}}
	right.Unsupported = []Sentence{{27, 42, "weak"}}
	right.Cost, right.Seconds = Cost{4, 1000, 50}, 1
	wrong := *answered(Question{ID: "q2", Text: "Where do the boats stand?", Kind: "single", Answers: []string{"slipway"},
		Documents: []string{"boats.md", "harbour.md"}},
		"In the hall [1][2].", "tea.md", passage("tea.md", true, ""), passage("boats.md", true, ""))
	wrong.Sources = append(wrong.Sources, Source{2, "boats.md", "Boats"})
	wrong.Cost, wrong.Seconds = Cost{2, 500, 10}, 2
	refused := Outcome{Question: Question{ID: "q3", Text: "Who mends the sails?", Answers: []string{"the sailmaker"},
		Documents: []string{"sails.md"}}, Reason: "nothing_relevant", Text: "Not said.",
		Retrieved: []Passage{passage("sails.md", false, ""), passage("tea.md", false, "")}, Seconds: .3}
	rightly := Outcome{Question: Question{ID: "q4", Text: "What does gold cost?", Kind: "off-topic", Unanswerable: true},
		Reason: "nothing_relevant", Text: "Not said.",
		Retrieved: []Passage{passage("tea.md", false, ""), passage("boats.md", false, ""), passage("sails.md", true, "")},
		Seconds:   .2}
	open := *answered(Question{ID: "q5", Text: "And the weather?"}, "It rains [1].", "weather.md", passage("weather.md", true, ""))
	open.Cost, open.Seconds = Cost{1, 100, 20}, .6
	all := []Outcome{right, wrong, refused, rightly, open}
	for i := range all {
		all[i].Check()
	}
	return all
}

func sampleReport(t *testing.T) *Report {
	r := &Report{Made: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Version: "ibid test", Folder: "club", File: "questions.jsonl",
		Documents: 5, Chunks: 9,
		Settings: []Setting{{"gate", "auto"}, {"model", "m"}, {"rerank-model", ""}},
		Unread:   []string{"club/scan.pdf: it has no text"}, Outcomes: outcomes()}
	r.Measure()
	return r
}

// Every figure, counted by hand from the five outcomes.
func TestFigures(t *testing.T) {
	r := sampleReport(t)
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

func TestReportText(t *testing.T) {
	golden(t, "report.txt", []byte(sampleReport(t).Text()))
}
