package eval

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Compared says how a report differs from an earlier one, over the questions
// that both asked.
type Compared struct {
	With      string    `json:"with"` // the file
	Made      time.Time `json:"made"`
	Questions int       `json:"questions"` // in both
	OnlyNow   int       `json:"only_now"`
	OnlyThen  int       `json:"only_then"`
	// Altered are how many of the questions in both are told another right
	// answer now.
	Altered int `json:"altered"`
	// Doubts say in words why the two are not like and like.
	Doubts []string `json:"doubts"`
	// Conditions and Settings are those that differ.
	Conditions  []Changed    `json:"conditions"`
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
	c := &Compared{With: file, Made: earlier.Made, Doubts: []string{}, Conditions: []Changed{}, Settings: []Changed{}, Moved: []Moved{}}
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
	c.Conditions = append(c.Conditions, changedIn(earlier.Conditions(), r.Conditions())...)
	c.Settings = append(c.Settings, changedIn(earlier.Settings, r.Settings)...)
	c.Doubts = append(c.Doubts, c.doubts(earlier, r)...)
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

// errNothingShared says that two runs have no question in common.
var errNothingShared = errors.New("it has no question of this run: the same words make the same question")

// Shares says whether a report asked any of the questions; where it did not, no
// run on these can be compared with it.
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

// Conditions are what beside the settings must be the same for two reports to
// be of like and like. What a report does not tell is empty.
func (r *Report) Conditions() []Setting {
	told := r.Library != "" // reports of older versions have nothing of these
	number := func(n int) string {
		if !told {
			return ""
		}
		return strconv.Itoa(n)
	}
	return []Setting{
		{"folder", r.Folder}, {"questions", r.File}, {"documents", strconv.Itoa(r.Documents)}, {"chunks", number(r.Chunks)}, {"library", r.Library},
		{"other documents in the store", number(r.Beside)}, {"store", r.Store}, {"version", r.Version}, {"machine", r.Machine},
	}
}

// changedIn are the settings of both that are another one now.
func changedIn(then, now []Setting) (changed []Changed) {
	for _, s := range now {
		i := slices.IndexFunc(then, func(e Setting) bool { return e.Name == s.Name })
		if i >= 0 && then[i].Value != s.Value {
			changed = append(changed, Changed{s.Name, then[i].Value, s.Value})
		}
	}
	return changed
}

// doubts say why what differs may come of something else than the settings.
func (c *Compared) doubts(then, now *Report) (doubts []string) {
	if c.OnlyNow+c.OnlyThen > 0 {
		doubts = append(doubts, fmt.Sprintf("other questions: %d only now and %d only then; all that is compared is the %s in both, and the other figures of this report are of others too", c.OnlyNow, c.OnlyThen, counted(c.Questions, "question")))
	}
	if c.Altered > 0 {
		doubts = append(doubts, fmt.Sprintf("other right answers: %d of the questions in both are told another one, or other documents, now", c.Altered))
	}
	switch {
	case then.Library == "":
		doubts = append(doubts, "whether the documents are the same is not known: the other report is of a version that did not tell")
	case then.Library != now.Library:
		doubts = append(doubts, "other documents, or the same read in another way: what differs may come of them, and not of the settings")
	case then.Beside != now.Beside:
		doubts = append(doubts, "other folders are in the store: how rare a word is, is counted over all, so that the scores are others")
	}
	if then.Machine != "" && then.Machine != now.Machine {
		doubts = append(doubts, "another machine: the times say nothing of the settings")
	}
	return doubts
}

// sameExpectation says whether two questions are told the same right answer.
// What they are called, and of what kind they are, does not matter.
func sameExpectation(a, b Question) bool {
	if !slices.EqualFunc(a.Documents, b.Documents, sameDocument) {
		return false
	}
	for _, q := range []*Question{&a, &b} {
		q.ID, q.Text, q.Kind, q.Worded, q.Documents = "", "", "", "", nil
	}
	return reflect.DeepEqual(a, b)
}

// sameDocument says whether two names may be of one document: by its id, its
// path, or that without its ending, in a folder of any name.
func sameDocument(a, b string) bool {
	if a == b {
		return true
	}
	var names [2][2]string // without the ending, and without the first folder
	for i, name := range []string{a, b} {
		name = strings.TrimSuffix(name, path.Ext(name))
		_, inside, _ := strings.Cut(name, "/")
		names[i] = [2]string{name, inside}
	}
	for _, x := range names[0] {
		if x != "" && slices.Contains(names[1][:], x) {
			return true
		}
	}
	return false
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
