package eval

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with a file in testdata, or rewrites it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs; -update rewrites it. It is now:\n%s", name, got)
	}
}

func metricsOf(t *testing.T, names ...string) []Metric {
	t.Helper()
	var metrics []Metric
	for _, name := range names {
		m, err := ParseMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		metrics = append(metrics, m)
	}
	return metrics
}

// outcomes are five questions, of which each figure can be counted by hand.
func outcomes() []Outcome {
	judged := func(document string, kept bool, text string) Passage { return passage(document, 0, kept, text) }
	right := *answered(Question{ID: "q1", Text: "When is tea served?", Kind: "single", Answers: []string{"at four"},
		Expected: "Tea is served at four", Documents: []string{"tea.md"}},
		"Tea is served at four [1]. It is free [1].", "tea.md", judged("tea.md", true, "Tea is served at four."), judged("boats.md", false, ""),
		judged("tea.md", false, "Milk."))
	right.Citations = []Citation{{1, "tea.md", 0, "served at four", .9, "quoted", 0, 26}, {1, "tea.md", 0, "Milk", .1, "weak", 27, 42}}
	right.Unsupported = []Sentence{{27, 42, "weak"}}
	right.Steps = []Step{{Step: 1, Invented: []int{7, 9}}, {Step: 2, Lost: []int{2}}}
	right.Cost, right.Seconds = Cost{4, 3, 1000, 50}, Seconds{.1, .2, .7, .4, 1}
	wrong := *answered(Question{ID: "q2", Text: "Where do the boats stand?", Kind: "single", Answers: []string{"slipway"},
		Documents: []string{"boats.md", "harbour.md"}},
		"In the hall [1][2].", "tea.md", judged("tea.md", true, ""), judged("boats.md", true, ""))
	wrong.Sources = append(wrong.Sources, Source{2, "boats.md", "Boats"})
	wrong.Cost, wrong.Seconds = Cost{2, 0, 500, 10}, Seconds{.1, .1, 1.8, .5, 2}
	refused := Outcome{Question: Question{ID: "q3", Text: "Who mends the sails?", Answers: []string{"the sailmaker"},
		Documents: []string{"sails.md"}}, Reason: "nothing_relevant", Text: "Not said.",
		Retrieved: []Passage{judged("sails.md", false, ""), judged("tea.md", false, "")}, Seconds: Seconds{.1, .2, 0, 0, .3}}
	rightly := Outcome{Question: Question{ID: "q4", Text: "What does gold cost?", Kind: "off-topic", Unanswerable: true},
		Reason: "nothing_relevant", Text: "Not said.",
		Retrieved: []Passage{judged("tea.md", false, ""), judged("boats.md", false, ""), judged("sails.md", true, "")},
		Seconds:   Seconds{.1, .1, 0, 0, .2}}
	open := *answered(Question{ID: "q5", Text: "And the weather?"}, "It rains [1].", "weather.md", judged("weather.md", true, ""))
	open.Cost, open.Seconds = Cost{1, 0, 100, 20}, Seconds{.1, .1, .4, .2, .6}
	all := []Outcome{right, wrong, refused, rightly, open}
	for i := range all {
		all[i].Check()
	}
	return all
}

func sampleReport(t *testing.T) *Report {
	r := &Report{Made: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Version: "ibid test", Folder: "club", File: "questions.jsonl",
		Documents: 5, Chunks: 9, Library: "0a1b", Store: "data directory", Machine: "linux/amd64, 2 processors", Wanted: 5,
		Price: &Price{In: 2, Out: 8}, Settings: []Setting{{"gate", "auto"}, {"model", "m"}, {"rerank-model", ""}},
		Unread: []string{"club/scan.pdf: it has no text"}, Outcomes: outcomes()}
	r.Measure(metricsOf(t, "hit@1", "recall@2", "mrr@10"))
	return r
}

// Every figure, counted by hand from the five outcomes.
func TestFigures(t *testing.T) {
	r := sampleReport(t)
	want := map[string]float64{
		"passed": 1 / 4., // q4; q5 is open
		// q1 finds tea.md first; q2 one of its two documents, second; q3 its own first.
		"right_found": 1, "hit@1": 2 / 3., "recall@2": (1 + .5 + 1) / 3, "mrr@10": (1 + .5 + 1) / 3,
		// q1 has two right passages, of which one is kept; q2 one, kept; q3 one, skipped.
		"right_kept": 2 / 4., "gate_lost": 1 / 3., "off_skipped": 2 / 3., "kept": (1 + 2 + 0 + 1 + 1) / 5.,
		"answered": 2 / 3., "right": 1 / 3.,
		"word_recall":    (1 + 0 + 0) / 3.,
		"false_refusals": 1 / 3., "closest": 0, "false_answers": 0,
		// q1, q2 and q5 are answered, with 2, 1 and 1 citations, of which 1 is weak.
		"cited": 1, "supported": 3 / 4., "unsupported": 1 / 4., "right_cited": 1, "right_sources": 2 / 3.,
		"invented": 2 / 3., "lost": 1 / 3.,
		"p50": .6, "p95": 2, "first_p50": .4, "first_p95": .5, "search_p50": .1, "search_p95": .1, "gate_p50": .1, "gate_p95": .2,
		"write_p50": .7, "write_p95": 1.8,
		"calls": 7 / 5., "judge_calls": 3 / 5., "prompt_tokens": 1600 / 5., "completion_tokens": 80 / 5.,
		"cost": (1600*2 + 80*8) / 1e6 / 5,
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
	if r.Passed != 1 || r.Failed != 3 || r.Open != 1 || !strings.HasSuffix(r.Spent(), "price 0.003840") {
		t.Errorf("%d passed, %d failed, %d open; %s", r.Passed, r.Failed, r.Open, r.Spent())
	}
}

// A right page is one of the right document; where none is given, any is.
func TestPageCited(t *testing.T) {
	q := Question{Text: "?", Documents: []string{"a.pdf", "b.pdf", "c.md"}, Pages: [][]int{{3, 4}, {7}, nil}}
	for _, test := range []struct {
		document string
		page     int
		want     part
	}{{"a.pdf", 3, part{1, 1}}, {"a.pdf", 7, part{0, 1}}, {"b.pdf", 7, part{1, 1}}, {"b.pdf", 3, part{0, 1}}, {"c.md", 0, part{1, 1}},
		{"d.pdf", 3, part{0, 1}}} {
		o := answered(q, "It is so [1].", test.document)
		o.Citations[0].Page = test.page
		for _, m := range citationMeasures() {
			if m.Name == "page_cited" && m.part(o) != test.want {
				t.Errorf("page %d of %s: %v", test.page, test.document, m.part(o))
			}
		}
	}
}

// Of many failed questions the text names the first.
func TestManyFailed(t *testing.T) {
	for n, want := range map[int]string{maxListed: "", maxListed + 3: "and 3 more: --html and --json have all of them"} {
		r := &Report{}
		for i := range n {
			r.Outcomes = append(r.Outcomes, Outcome{Question: Question{ID: fmt.Sprintf("q%d", i), Text: "?", Kind: "a\nb", HasAnswer: true}})
			r.Outcomes[i].Check()
		}
		r.Measure(nil)
		var b strings.Builder
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); strings.Count(got, "(refusal)") != maxListed || strings.Contains(got, " more: ") != (want != "") ||
			!strings.Contains(got, want) || !strings.Contains(got, "\na b  ") {
			t.Errorf("%d failed:\n%s", n, got)
		}
	}
}

// changed is the report of a run that did better on q2 and worse on q4, and
// asked another question in place of q5.
func changed(t *testing.T) *Report {
	r := sampleReport(t)
	o := outcomes()
	o[1].Text, o[1].Seconds.Whole = "On the slipway [1].", 1.5
	o[1].Sources = []Source{{1, "boats.md", "Boats"}}
	o[3].Answered, o[3].Text, o[3].Sources = true, "Much [1].", []Source{{1, "tea.md", "Tea"}}
	o[4].Question.ID, o[4].Question.Text = "q6", "And the wind?"
	for i := range o {
		o[i].Check()
	}
	now := &Report{Made: r.Made.AddDate(0, 0, 1), Version: r.Version, Folder: "shed", File: r.File, Documents: 5, Chunks: 8, Library: "2c3d",
		Store: r.Store, Machine: r.Machine, Wanted: 7, Interrupted: true,
		Settings: []Setting{{"gate", "off"}, {"model", "m"}, {"rerank-model", "r"}}, Outcomes: o, Missed: []string{"p95 is 2.00 s, above 1s"}}
	now.Measure(metricsOf(t, "hit@1", "recall@2"))
	return now
}

func TestCompareReports(t *testing.T) {
	var written bytes.Buffer
	if err := json.NewEncoder(&written).Encode(sampleReport(t)); err != nil {
		t.Fatal(err)
	}
	earlier, err := ReadReport(&written)
	if err != nil {
		t.Fatal(err)
	}
	now := changed(t)
	if err := now.Compare(earlier, "before.json"); err != nil {
		t.Fatal(err)
	}
	c := now.Compared
	if c.Questions != 4 || c.OnlyNow != 1 || c.OnlyThen != 1 || len(c.Moved) != 2 || c.Moved[0].ID != "q2" || c.Moved[1].ID != "q4" {
		t.Errorf("%+v", c)
	}
	for _, d := range c.Differences {
		switch d.Name {
		case "passed": // q2 now, q4 no longer
			if d.Then != .25 || d.Now != .25 || d.Better != 1 || d.Worse != 1 || d.Questions != 4 || d.P != 1 {
				t.Errorf("%+v", d)
			}
		case "right":
			if math.Abs(d.Value-1/3.) > 1e-9 || d.Better != 1 || d.Worse != 0 || d.Verdict != "" {
				t.Errorf("%+v", d)
			}
		case "false_answers":
			if d.Value != 1 || d.Worse != 1 || d.Better != 0 {
				t.Errorf("%+v", d)
			}
		case "p95":
			if d.Value != -.5 || d.Better != 1 {
				t.Errorf("%+v", d)
			}
		}
	}
	other := &Report{Format: Format, Outcomes: []Outcome{{Question: Question{Text: "Something else?"}}}}
	if err := sampleReport(t).Compare(other, "x"); err == nil || !strings.Contains(err.Error(), "none of the questions of this run") {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"":                                    "not a report in JSON",
		"{}":                                  "its format is \"\"",
		`{"format": "ibid eval report 1"}`:    "it has no questions",
		`{"format": "ibid eval report 1000"}`: "not a report of this version",
		`{"format": "ibid eval report 1", "questions": [{"question": {"documents": ["a"], "pages": [[1], [2]]}}]}`: "its question 1 has pages " +
			"of 2 documents but names 1",
	} {
		if _, err := ReadReport(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// What makes reports incomparable is named, and nothing else.
func TestDoubts(t *testing.T) {
	for name, test := range map[string]struct {
		change     func(*Report)
		doubts     []string
		conditions []Changed
	}{
		"nothing": {func(*Report) {}, nil, nil},
		"another name": {func(r *Report) { r.Folder, r.File = "shed", "q.jsonl" }, nil,
			[]Changed{{"folder", "club", "shed"}, {"questions", "questions.jsonl", "q.jsonl"}}},
		"another build": {func(r *Report) { r.Version = "ibid 2" }, nil, []Changed{{"version", "ibid test", "ibid 2"}}},
		"another store": {func(r *Report) { r.Store = "postgres://h/d" }, nil, []Changed{{"store", "data directory", "postgres://h/d"}}},
		"the same file": {func(r *Report) { r.Library, r.Chunks = "ff", 10 }, []string{"other documents"},
			[]Changed{{"chunks", "9", "10"}, {"library", "0a1b", "ff"}}},
		"more documents": {func(r *Report) { r.Library, r.Documents = "ff", 6 }, []string{"other documents"},
			[]Changed{{"documents", "5", "6"}, {"library", "0a1b", "ff"}}},
		"another folder": {func(r *Report) { r.OtherDocuments = 2 }, []string{"other folders in the store"},
			[]Changed{{"other documents in the store", "0", "2"}}},
		"a fast machine": {func(r *Report) { r.Machine = "linux/arm64, 64 processors" }, []string{"another machine"},
			[]Changed{{"machine", "linux/amd64, 2 processors", "linux/arm64, 64 processors"}}},
		"fewer questions": {func(r *Report) { r.Outcomes = r.Outcomes[1:] }, []string{"other questions: 0 only now and 1 only then"}, nil},
		"other questions": {func(r *Report) { r.Outcomes[0].Question.Text = "When is milk served?" },
			[]string{"other questions: 1 only now and 1 only then"}, nil},
		"another answer": {func(r *Report) { r.Outcomes[0].Question.Answers = []string{"at five"} },
			[]string{"other right answers: 1 of the questions"}, nil},
		"other documents": {func(r *Report) { r.Outcomes[1].Question.Documents[1] = "club/sails.md" },
			[]string{"other right answers: 1 of the questions"}, nil},
		"other names for all": {func(r *Report) {
			r.Outcomes[0].Question.ID, r.Outcomes[0].Question.Kind, r.Outcomes[0].Question.Documents = "line 1", "table", []string{"club/tea.md"}
			r.Outcomes[1].Question.Documents = []string{"boats", "harbour"}
		}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			now := sampleReport(t)
			test.change(now)
			if err := now.Compare(sampleReport(t), "before.json"); err != nil {
				t.Fatal(err)
			}
			c := now.Compared
			if len(c.Doubts) != len(test.doubts) || len(c.Conditions) != len(test.conditions) || len(c.Settings) != 0 {
				t.Fatalf("%q, %v, %v", c.Doubts, c.Conditions, c.Settings)
			}
			for i, want := range test.doubts {
				if !strings.HasPrefix(c.Doubts[i], want) {
					t.Errorf("%q, want %s", c.Doubts[i], want)
				}
			}
			for i, want := range test.conditions {
				if c.Conditions[i] != want {
					t.Errorf("%v, want %v", c.Conditions[i], want)
				}
			}
		})
	}
}

// A verdict needs an interval on one side of 0, and enough questions.
func TestVerdict(t *testing.T) {
	runs := func(then, now string) Difference {
		of := func(s string) (all []*Outcome) {
			for _, c := range s {
				all = append(all, &Outcome{Status: map[rune]Status{'+': Passed, '-': Failed, '?': Open}[c]})
			}
			return all
		}
		return Measures(nil, nil)[0].difference(of(then), of(now))
	}
	for _, test := range []struct {
		then, now, verdict string
		questions          int
	}{
		{"----------", "++++++----", "better", 10},
		{"++++++----", "----------", "worse", 10},
		{"----------", "+++++-----", "", 10},             // too few
		{"-----+++++++----", "+++++--+++++----", "", 16}, // both ways
		{"?---------?", "+++++++++++", "better", 9},      // open in one says nothing
		{"++++++++++", "++++++++++", "", 10}, {"????", "++++", "", 0},
	} {
		if d := runs(test.then, test.now); d.Verdict != test.verdict || d.Questions != test.questions {
			t.Errorf("%s to %s: %+v", test.then, test.now, d)
		}
	}
	// Of costs, less is better.
	m := Measures(nil, &Price{In: 1})
	cost := m[len(m)-1]
	var then, now []*Outcome
	for i := range 8 {
		then, now = append(then, &Outcome{Cost: Cost{PromptTokens: 1000 + i}}), append(now, &Outcome{Cost: Cost{PromptTokens: 500}})
	}
	if d := cost.difference(then, now); d.Verdict != "better" || d.Better != 8 || cost.Name != "cost" {
		t.Errorf("%s: %+v", cost.Name, d)
	}
}

func TestReportText(t *testing.T) {
	for name, r := range map[string]*Report{"report.txt": sampleReport(t), "compared.txt": compared(t)} {
		var b bytes.Buffer
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}

func compared(t *testing.T) *Report {
	r := changed(t)
	if err := r.Compare(sampleReport(t), "before.json"); err != nil {
		t.Fatal(err)
	}
	return r
}
