package eval

import (
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
	Chunks    int       `json:"chunks"`
	// Library is a digest of the documents as they were read: of their paths,
	// files, readers and numbers of chunks. The folder's name is not in it.
	Library string `json:"library"`
	// Beside are documents of other folders in the store. They are not asked, but
	// how rare a word is, is counted over all.
	Beside  int      `json:"beside"`
	Store   string   `json:"store"`   // where the documents were read into
	Machine string   `json:"machine"` // system, architecture and processors
	Unread  []string `json:"unread"`  // files that could not be read, with the reason
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
