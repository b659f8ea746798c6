package eval

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Format is what a report in JSON says it is.
const Format = "ibid eval report 1"

// A Report is what asking a folder its questions came to.
type Report struct {
	Format    string    `json:"format"`
	Made      time.Time `json:"made"`
	Version   string    `json:"version"`
	Folder    string    `json:"folder"`
	File      string    `json:"file"` // of the questions
	Documents int       `json:"documents"`
	Unread    []string  `json:"unread"` // files that could not be read, with the reason
	// Settings are those that decide on the answers, in the order in which
	// they are shown.
	Settings []Setting `json:"settings"`
	Seed     uint64    `json:"seed"` // of the intervals
	Price    *Price    `json:"price,omitempty"`
	// Wanted is how many questions there are; Interrupted that only the
	// outcomes here were waited for.
	Wanted      int              `json:"wanted"`
	Interrupted bool             `json:"interrupted"`
	Passed      int              `json:"passed"`
	Failed      int              `json:"failed"`
	Open        int              `json:"open"`
	Causes      []CauseCount     `json:"causes"` // of what failed, in the order of an answer's life
	Kinds       []KindCount      `json:"kinds"`
	Figures     []MeasuredFigure `json:"figures"`
	Total       Cost             `json:"total"` // of all questions
	Compared    *Compared        `json:"compared,omitempty"`
	Missed      []string         `json:"missed"` // thresholds, in words
	Outcomes    []Outcome        `json:"questions"`

	measures []Measure
}

// A Setting is one that decides on the answers.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A CauseCount says how many questions failed for one cause.
type CauseCount struct {
	Cause Cause `json:"cause"`
	Count int   `json:"count"`
}

// A KindCount counts one kind of question.
type KindCount struct {
	Kind      string `json:"kind"`
	Questions int    `json:"questions"`
	Passed    int    `json:"passed"`
	Failed    int    `json:"failed"`
	Open      int    `json:"open"`
}

// A MeasuredFigure is a figure of a report.
type MeasuredFigure struct {
	Name string `json:"name"`
	Unit Unit   `json:"unit"`
	Estimate
	group, says string
}

// Measure counts the outcomes and computes the figures.
func (r *Report) Measure(metrics []PlaceMetric) {
	r.Format, r.measures = Format, Measures(metrics, r.Price)
	for _, list := range []*[]string{&r.Unread, &r.Missed} {
		if *list == nil {
			*list = []string{}
		}
	}
	failed := make(map[Cause]int)
	for _, o := range r.Outcomes {
		at := slices.IndexFunc(r.Kinds, func(k KindCount) bool { return k.Kind == o.Question.Kind })
		if at < 0 {
			at = len(r.Kinds)
			r.Kinds = append(r.Kinds, KindCount{Kind: o.Question.Kind})
		}
		kind := &r.Kinds[at]
		kind.Questions++
		switch o.Status {
		case Passed:
			r.Passed++
			kind.Passed++
		case Failed:
			r.Failed++
			kind.Failed++
			failed[o.Cause]++
		default:
			r.Open++
			kind.Open++
		}
		r.Total.Calls += o.Cost.Calls
		r.Total.JudgeCalls += o.Cost.JudgeCalls
		r.Total.PromptTokens += o.Cost.PromptTokens
		r.Total.CompletionTokens += o.Cost.CompletionTokens
	}
	r.Causes = []CauseCount{}
	for _, c := range causes {
		if failed[c] > 0 {
			r.Causes = append(r.Causes, CauseCount{c, failed[c]})
		}
	}
	if len(r.Kinds) == 1 && r.Kinds[0].Kind == "" {
		r.Kinds = []KindCount{} // no question says its kind
	}
	for _, m := range r.measures {
		if e := m.estimate(m.parts(r.Outcomes), r.Seed); e.Questions > 0 {
			r.Figures = append(r.Figures, MeasuredFigure{m.Name, m.Unit, e, m.Group, m.Says})
		}
	}
}

func (m Measure) parts(outcomes []Outcome) []Part {
	parts := make([]Part, len(outcomes))
	for i := range outcomes {
		parts[i] = m.part(&outcomes[i])
	}
	return parts
}

// shown are the figures that are shown: without a model nothing is spent.
func (r *Report) shown() []MeasuredFigure {
	if r.Total.Calls > 0 {
		return r.Figures
	}
	return slices.DeleteFunc(slices.Clone(r.Figures), func(f MeasuredFigure) bool { return f.group == costGroup })
}

// Figure gives a figure by its name; false where no question tells of it.
func (r *Report) Figure(name string) (MeasuredFigure, bool) {
	i := slices.IndexFunc(r.Figures, func(f MeasuredFigure) bool { return f.Name == name })
	if i < 0 {
		return MeasuredFigure{}, false
	}
	return r.Figures[i], true
}

// Money is what all questions cost together.
func (r *Report) Money() float64 {
	if r.Price == nil {
		return 0
	}
	return r.Price.Of(r.Total)
}

// ReadReport reads a report in JSON.
func ReadReport(in io.Reader) (*Report, error) {
	var r Report
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return nil, fmt.Errorf("it is no report in JSON: %w", err)
	}
	switch {
	case r.Format != Format:
		return nil, fmt.Errorf("it is no report of this version: its format is %q, not %q", clip(r.Format), Format)
	case len(r.Outcomes) == 0:
		return nil, errors.New("there is no question in it")
	}
	for i, o := range r.Outcomes {
		if o.Question.Pages != nil && len(o.Question.Pages) != len(o.Question.Documents) {
			return nil, fmt.Errorf("its question %d has pages of %d documents and names %d", i+1, len(o.Question.Pages), len(o.Question.Documents))
		}
	}
	return &r, nil
}

// Compared says how a report differs from an earlier one, over the questions
// that both asked.
type Compared struct {
	With      string    `json:"with"` // the file
	Made      time.Time `json:"made"`
	Questions int       `json:"questions"` // in both
	OnlyNow   int       `json:"only_now"`
	OnlyThen  int       `json:"only_then"`
	// Settings are those that differ.
	Settings    []Changed    `json:"settings"`
	Differences []Difference `json:"differences"`
	// Moved are the questions that came out in another way.
	Moved []Moved `json:"moved"`
}

// Changed is a setting that is another one now.
type Changed struct {
	Name string `json:"name"`
	Then string `json:"then"`
	Now  string `json:"now"`
}

// A Difference is that of one figure, over the questions that tell of it in
// both reports.
type Difference struct {
	Name string  `json:"name"`
	Unit Unit    `json:"unit"`
	Then float64 `json:"then"`
	Now  float64 `json:"now"`
	// The Estimate is of Now - Then, question by question.
	Estimate
	// Better and Worse count the questions whose own figure is so now; more
	// and less take their place where neither is better.
	Better int `json:"better"`
	Worse  int `json:"worse"`
	// Verdict is "better", "worse" or, where it may be chance or neither is
	// better, empty.
	Verdict string `json:"verdict,omitempty"`
	neutral bool   // neither more nor less is better
}

// same says whether no question's figure is another one.
func (d Difference) same() bool { return d.Better+d.Worse == 0 }

// Note says what the difference comes to.
func (d Difference) Note() string {
	switch {
	case d.Verdict != "":
		return d.Verdict
	case d.neutral:
		return ""
	}
	return "may be chance"
}

// Moved is a question that came out in another way.
type Moved struct {
	ID        string `json:"id"`
	Text      string `json:"question"`
	Then      Status `json:"then"`
	ThenCause Cause  `json:"then_cause,omitempty"`
	Now       Status `json:"now"`
	NowCause  Cause  `json:"now_cause,omitempty"`
}

// fewest is how many questions must differ for a difference to be called one:
// of five, all are on one side by chance in 1 of 16 cases, of six in 1 of 32.
const fewest = 6

// Compare says how the report, which has been measured, differs from an
// earlier one. Questions are the same when their words are; it is an error when
// none are.
func (r *Report) Compare(earlier *Report, file string) error {
	c := &Compared{With: file, Made: earlier.Made, Settings: []Changed{}, Moved: []Moved{}}
	then := make(map[string][]Outcome)
	for _, o := range earlier.Outcomes {
		key := fold(o.Question.Text)
		then[key] = append(then[key], o)
	}
	var before, now []Outcome
	for _, o := range r.Outcomes {
		key := fold(o.Question.Text)
		if len(then[key]) == 0 {
			c.OnlyNow++
			continue
		}
		b := then[key][0]
		then[key] = then[key][1:]
		before, now = append(before, b), append(now, o)
		if b.Status != o.Status || b.Cause != o.Cause {
			c.Moved = append(c.Moved, Moved{o.Question.ID, o.Question.Text, b.Status, b.Cause, o.Status, o.Cause})
		}
	}
	if c.Questions = len(now); c.Questions == 0 {
		return errors.New("it has no question of this run: the same words make the same question")
	}
	c.OnlyThen = len(earlier.Outcomes) - c.Questions
	for _, s := range r.Settings {
		i := slices.IndexFunc(earlier.Settings, func(e Setting) bool { return e.Name == s.Name })
		if i >= 0 && earlier.Settings[i].Value != s.Value {
			c.Settings = append(c.Settings, Changed{s.Name, earlier.Settings[i].Value, s.Value})
		}
	}
	for _, m := range r.measures {
		if _, shown := r.Figure(m.Name); !shown {
			continue
		}
		if d := m.difference(before, now, r.Seed); d.Questions > 0 {
			c.Differences = append(c.Differences, d)
		}
	}
	r.Compared = c
	return nil
}

// difference compares the outcomes of the same questions: the interval is the
// bootstrap's over the questions, each drawn with both of its outcomes.
func (m Measure) difference(before, now []Outcome, seed uint64) Difference {
	d := Difference{Name: m.Name, Unit: m.Unit, neutral: m.Better == 0}
	var a, b []Part
	for i := range now {
		was, is := m.part(&before[i]), m.part(&now[i])
		if was.Den == 0 || is.Den == 0 {
			continue
		}
		a, b = append(a, was), append(b, is)
		switch change := cmp.Compare(is.Num/is.Den, was.Num/was.Den) * cmp.Or(m.Better, 1); {
		case change > 0:
			d.Better++
		case change < 0:
			d.Worse++
		}
	}
	all := make([]int, len(a))
	for i := range all {
		all[i] = i
	}
	if d.Questions = len(a); d.Questions == 0 {
		return d
	}
	d.Then, d.Now = m.of(a, all), m.of(b, all)
	d.Value = d.Now - d.Then
	if d.Better+d.Worse > 0 {
		d.Low, d.High = Bootstrap(len(a), seed, func(drawn []int) float64 { return m.of(b, drawn) - m.of(a, drawn) })
	}
	if sure := d.Low > 0 || d.High < 0; sure && d.Better+d.Worse >= fewest && m.Better != 0 {
		d.Verdict = "worse"
		if d.Value*float64(m.Better) > 0 {
			d.Verdict = "better"
		}
	}
	return d
}
