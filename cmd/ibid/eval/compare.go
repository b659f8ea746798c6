package eval

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Compared is how a report differs from an earlier one, over the questions in
// both.
type Compared struct {
	With      string    `json:"with"` // the file
	Made      time.Time `json:"made"`
	Questions int       `json:"questions"` // in both
	OnlyNow   int       `json:"only_now"`
	OnlyThen  int       `json:"only_then"`
	// Altered is the number of questions in both that now have another right answer.
	Altered int `json:"altered"`
	// Doubts say why the two reports are not comparable.
	Doubts []string `json:"doubts"`
	// Conditions and Settings are those that differ.
	Conditions  []Changed    `json:"conditions"`
	Settings    []Changed    `json:"settings"`
	Differences []Difference `json:"differences"`
	// Moved are the questions with another status or cause.
	Moved []Moved `json:"moved"`
}

// Changed is a setting with another value.
type Changed struct {
	Name string `json:"name"`
	Then string `json:"then"`
	Now  string `json:"now"`
}

// A Difference is that of one figure, over the questions that count for it in
// both reports.
type Difference struct {
	Name      string  `json:"name"`
	Unit      Unit    `json:"unit"`
	Then      float64 `json:"then"`
	Now       float64 `json:"now"`
	Value     float64 `json:"value"` // Now - Then
	Questions int     `json:"questions"`
	// P is that of the paired randomisation test on the questions' own values.
	P float64 `json:"p"`
	// Better and Worse count the questions whose own value is; more and less if
	// neither is better.
	Better int `json:"better"`
	Worse  int `json:"worse"`
	// Verdict is "better", "worse", or empty if the difference may be chance or
	// neither is better.
	Verdict string `json:"verdict,omitempty"`
}

// significant is the p-value below which a difference gets a verdict. At least
// six questions must differ: of five, all are on one side by chance in 1 of 16
// cases.
const significant = .05

// Moved is a question with another status or cause.
type Moved struct {
	ID        string `json:"id"`
	Text      string `json:"question"`
	Then      Status `json:"then"`
	ThenCause Cause  `json:"then_cause,omitempty"`
	Now       Status `json:"now"`
	NowCause  Cause  `json:"now_cause,omitempty"`
}

// String describes the change, as in "passed, was failed (gate)".
func (m Moved) String() string {
	write := func(s Status, c Cause) string { return strings.TrimSuffix(fmt.Sprintf("%s (%s)", s, c), " ()") }
	return write(m.Now, m.NowCause) + ", was " + write(m.Then, m.ThenCause)
}

var errNothingShared = errors.New("it has none of the questions of this run; questions are the same if their words are")

// Shares returns an error if the report has none of the questions.
func (r *Report) Shares(questions []Question) error {
	asked := make(map[string]bool, len(r.Outcomes))
	for _, o := range r.Outcomes {
		asked[fold(o.Question.Text)] = true
	}
	if slices.ContainsFunc(questions, func(q Question) bool { return asked[fold(q.Text)] }) {
		return nil
	}
	return errNothingShared
}

// Compare compares the measured report with an earlier one. Questions are the
// same if their words are; it is an error if the reports share none.
func (r *Report) Compare(earlier *Report, file string) error {
	c := &Compared{With: file, Made: earlier.Made, Differences: []Difference{}, Moved: []Moved{}}
	then := make(map[string][]*Outcome)
	for i, o := range earlier.Outcomes {
		key := fold(o.Question.Text)
		then[key] = append(then[key], &earlier.Outcomes[i])
	}
	var before, now []*Outcome
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		key := fold(o.Question.Text)
		if len(then[key]) == 0 {
			c.OnlyNow++
			continue
		}
		b := then[key][0]
		then[key] = then[key][1:]
		before, now = append(before, b), append(now, o)
		if !sameExpectation(b.Question, o.Question) {
			c.Altered++
		}
		if b.Status != o.Status || b.Cause != o.Cause {
			c.Moved = append(c.Moved, Moved{o.Question.ID, o.Question.Text, b.Status, b.Cause, o.Status, o.Cause})
		}
	}
	if c.Questions = len(now); c.Questions == 0 {
		return errNothingShared
	}
	c.OnlyThen = len(earlier.Outcomes) - c.Questions
	c.Conditions = changes(earlier.Conditions(), r.Conditions())
	c.Settings = changes(earlier.Settings, r.Settings)
	c.Doubts = c.doubts(earlier, r)
	for _, m := range r.measures {
		if d := m.difference(before, now); d.Questions > 0 {
			c.Differences = append(c.Differences, d)
		}
	}
	r.Compared = c
	return nil
}

func changes(then, now []Setting) []Changed {
	changed := []Changed{}
	for _, s := range now {
		i := slices.IndexFunc(then, func(e Setting) bool { return e.Name == s.Name })
		if i >= 0 && then[i].Value != s.Value {
			changed = append(changed, Changed{s.Name, then[i].Value, s.Value})
		}
	}
	return changed
}

// doubts say why differences may not come from the settings.
func (c *Compared) doubts(then, now *Report) []string {
	doubts := []string{}
	add := func(is bool, format string, args ...any) {
		if is {
			doubts = append(doubts, fmt.Sprintf(format, args...))
		}
	}
	add(c.OnlyNow+c.OnlyThen > 0, "other questions: %d only now and %d only then; only the %s in both %s compared",
		c.OnlyNow, c.OnlyThen, counted(c.Questions, "question"), map[bool]string{true: "is", false: "are"}[c.Questions == 1])
	add(c.Altered > 0, "other right answers: %d of the questions in both have another right answer or document now", c.Altered)
	add(then.Library != now.Library, "other documents, or the same documents read in another way")
	add(then.Library == now.Library && then.OtherDocuments != now.OtherDocuments,
		"other folders in the store: they change word frequencies, and with them the scores")
	add(then.Machine != now.Machine, "another machine: times are not comparable")
	return doubts
}

// sameExpectation reports whether two questions have the same right answer. Ids,
// kinds, and the folders and endings of document names do not matter.
func sameExpectation(a, b Question) bool {
	for _, q := range []*Question{&a, &b} {
		q.ID, q.Text, q.Kind, q.Worded, q.Documents = "", "", "", "", slices.Clone(q.Documents)
		for i, d := range q.Documents {
			q.Documents[i] = strings.TrimSuffix(path.Base(d), path.Ext(d))
		}
	}
	return reflect.DeepEqual(a, b)
}

func (m Measure) difference(before, now []*Outcome) Difference {
	d := Difference{Name: m.Name, Unit: m.Unit}
	var a, b []part
	var then, today []float64
	for i := range now {
		was, is := m.part(before[i]), m.part(now[i])
		if was.den == 0 || is.den == 0 {
			continue
		}
		sign := float64(cmp.Or(m.Better, 1))
		a, b = append(a, was), append(b, is)
		then, today = append(then, sign*was.value()), append(today, sign*is.value())
	}
	if d.Questions = len(a); d.Questions == 0 {
		return d
	}
	d.Then, d.Now = m.compute(a), m.compute(b)
	d.Value = d.Now - d.Then
	test := Compare(today, then)
	d.P, d.Better, d.Worse = test.P, test.Better, test.Worse
	better := test.Difference > 0
	agrees := d.Value != 0 && better == (d.Value*float64(m.Better) > 0) // a quantile may move against the mean
	if d.P < significant && m.Better != 0 && agrees {
		d.Verdict = map[bool]string{true: "better", false: "worse"}[better]
	}
	return d
}

// Changes are the conditions and settings that differ.
func (c *Compared) Changes() []Changed {
	all := slices.Concat(c.Conditions, c.Settings)
	for i := range all {
		all[i].Then, all[i].Now = cmp.Or(all[i].Then, "none"), cmp.Or(all[i].Now, "none")
	}
	return all
}

// unchanged reports whether the figure is the same for every question.
func (d Difference) unchanged() bool { return d.Better+d.Worse == 0 }

// Changed are the differences in which a question changed; Same names the other
// figures.
func (c *Compared) Changed() []Difference {
	return slices.DeleteFunc(slices.Clone(c.Differences), Difference.unchanged)
}

func (c *Compared) Same() string {
	var names []string
	for _, d := range c.Differences {
		if d.unchanged() {
			names = append(names, d.Name)
		}
	}
	return strings.Join(names, ", ")
}

// Summary names the compared reports and how many differences may be chance.
func (c *Compared) Summary() string {
	s := counted(c.Questions, "question") + " in both"
	if c.OnlyNow+c.OnlyThen > 0 {
		s += fmt.Sprintf(", %d only now, %d only then", c.OnlyNow, c.OnlyThen)
	}
	sure := 0
	for _, d := range c.Differences {
		if d.Verdict != "" {
			sure++
		}
	}
	return s + fmt.Sprintf("; %d of %s differ with p < %g, where chance alone gives about %.0f",
		sure, counted(len(c.Differences), "figure"), significant, max(1, significant*float64(len(c.Differences))))
}

// PText is the p-value, for a table.
func (d Difference) PText() string {
	if d.P < .0001 {
		return "<0.0001"
	}
	return fmt.Sprintf("%.4f", d.P)
}

func (d Difference) ThenText() string { return d.Unit.Write(d.Then) }
func (d Difference) NowText() string  { return d.Unit.Write(d.Now) }
func (d Difference) Change() string   { return d.Unit.WriteChange(d.Value) }
