package eval

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// enough is the share of the words of an expected answer in prose of which a
// right answer must contain more. It is a rough measure: a right answer in other
// words contains fewer, and a wrong one on the same subject may contain as many.
const enough = .5

// excerptLength is the length of a passage in a report, in characters.
const excerptLength = 600

// Check compares the outcome with what is known of the question, and sets
// Status, Cause and Why. The passages must have their whole texts, which Check
// shortens.
func (o *Outcome) Check() {
	q := o.Question
	o.markRight()
	o.Status, o.Cause, o.Why = Passed, "", []string{}
	fail := func(cause Cause, format string, args ...any) {
		if o.Status != Failed {
			o.Status, o.Cause = Failed, cause
		}
		o.Why = append(o.Why, fmt.Sprintf(format, args...))
	}
	wrong, known := o.wrongWords()
	stage, lost := o.lostEvidence()
	bad := wrong != "" || o.Incomplete || o.wrongSources() != "" || len(o.Unsupported) > 0
	switch {
	case o.Error != "":
		fail(Trouble, "%s", o.Error)
	case q.Unanswerable && o.Answered:
		fail(Refusal, "answered, although there is no answer")
	case q.Unanswerable:
	case !o.Answered && q.Open():
		o.Status = Open
	case stage != "" && (!o.Answered || bad || !known):
		fail(stage, "%s", lost)
	case o.Answered && !bad && !known && !q.placed():
		o.Status = Open
	}
	if o.Error == "" && !q.Unanswerable && o.Status != Open {
		o.checkAnswer(wrong, fail)
	}
	for i := range o.Retrieved {
		o.Retrieved[i].Text = excerpt(o.Retrieved[i].Text, excerptLength)
	}
}

// checkAnswer reports what is wrong with the answer itself.
func (o *Outcome) checkAnswer(wrong string, fail func(cause Cause, format string, args ...any)) {
	if !o.Answered {
		fail(Refusal, "refused (%s), although there is an answer", o.Reason)
		return
	}
	if wrong != "" {
		fail(Generation, "%s", wrong)
	}
	if o.Incomplete {
		fail(Generation, "the answer is incomplete: %s", o.Reason)
	}
	if why := o.wrongSources(); why != "" {
		fail(Citations, "%s", why)
	}
	for _, s := range o.Unsupported {
		why := "no citation for “%s”"
		if s.Reason == weak {
			why = "nothing cited supports “%s”"
		}
		fail(Citations, why, excerpt(slice(o.Text, s.Start, s.End), 160))
	}
}

// placed reports whether the question says where its answer is.
func (q Question) placed() bool { return len(q.Documents)+len(q.Quotes) > 0 }

var citationMark = regexp.MustCompile(` ?\[\d+\]`)

// Unmarked returns a text without citation numbers.
func Unmarked(text string) string { return citationMark.ReplaceAllString(text, "") }

// answerText is the text that is compared with right answers.
func (o *Outcome) answerText() string {
	if !o.Answered {
		return ""
	}
	return Unmarked(o.Text)
}

// wrongWords says what the answer lacks, if anything; known reports whether the
// question says what a right answer contains.
func (o *Outcome) wrongWords() (why string, known bool) {
	q, text := o.Question, o.answerText()
	holds := func(s string) bool { return Holds(text, s) }
	if len(q.Answers) > 0 && !slices.ContainsFunc(q.Answers, holds) {
		return "the answer contains none of " + quoted(q.Answers), true
	}
	if gone := slices.DeleteFunc(slices.Clone(q.Words), holds); len(gone) > 0 {
		return "the answer does not contain " + quoted(gone), true
	}
	if len(q.Answers)+len(q.Words) > 0 || q.Expected == "" {
		return "", len(q.Answers)+len(q.Words) > 0
	}
	if recall := WordRecall(text, []string{q.Expected}); recall <= enough {
		return fmt.Sprintf("the answer contains %.0f %% of the words of the expected one, “%s”; it needs more than %.0f %%",
			100*recall, q.Expected, 100*enough), true
	}
	return "", true
}

// wrongSources says what is wrong with the sources, if anything.
func (o *Outcome) wrongSources() string {
	if len(o.Sources) == 0 {
		return "no source is cited"
	}
	if len(o.Question.Documents) == 0 || o.rightSources() > 0 {
		return ""
	}
	var cited []string
	for _, s := range o.Sources {
		cited = append(cited, s.Document)
	}
	return "no right document (" + strings.Join(o.Question.Documents, ", ") + ") is cited, but " + strings.Join(slices.Compact(cited), ", ")
}

func (o *Outcome) rightSources() int {
	n := 0
	for _, s := range o.Sources {
		if slices.Contains(o.Question.Documents, s.Document) {
			n++
		}
	}
	return n
}

// onPage reports whether a passage is at least partly on a page of a document.
func (p Passage) onPage(document string, page int) bool {
	return p.Document == document && p.Page <= page && page <= max(p.LastPage, p.Page)
}

// markRight sets Right of the passages.
func (o *Outcome) markRight() {
	q := o.Question
	for i := range o.Retrieved {
		p := &o.Retrieved[i]
		p.Right = slices.ContainsFunc(q.Quotes, func(quote string) bool { return Holds(p.Text, quote) })
		if len(q.Quotes) > 0 {
			continue
		}
		for j, document := range q.Documents {
			anyPage := q.Pages == nil || q.Pages[j] == nil
			p.Right = p.Right || p.Document == document &&
				(anyPage || slices.ContainsFunc(q.Pages[j], func(n int) bool { return p.onPage(document, n) }))
		}
	}
}

// lostEvidence returns the stage at which all right passages were lost, if any,
// and what happened there.
func (o *Outcome) lostEvidence() (Cause, string) {
	q := o.Question
	if !q.placed() {
		return "", ""
	}
	var right []string
	for _, p := range o.Retrieved {
		if p.Right && p.Kept {
			return "", ""
		}
		if p.Right {
			right = append(right, p.ID)
		}
	}
	if right != nil {
		return Gate, "the gate skipped every right passage: " + strings.Join(right, ", ")
	}
	where := "is from a right document (" + strings.Join(q.Documents, ", ") + ")"
	if len(q.Quotes) > 0 {
		where = "contains " + quoted(q.Quotes)
	} else if q.Pages != nil {
		where = "is on a right page (" + q.PageNames() + ")"
	}
	why := fmt.Sprintf("none of the %s %s", counted(len(o.Retrieved), "retrieved passage"), where)
	if len(o.Missing) > 0 {
		why += "; not in the store: " + strings.Join(o.Missing, ", ")
	}
	return Retrieval, why
}

// PageNames names the right pages.
func (q Question) PageNames() string {
	var names []string
	for i, pages := range q.Pages {
		for _, n := range pages {
			names = append(names, fmt.Sprintf("%s, page %d", q.Documents[i], n))
		}
	}
	return strings.Join(names, "; ")
}
