package eval

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// marks are the citations in a text.
var marks = regexp.MustCompile(` ?\[\d+\]`)

// Unmarked is a text without the numbers that cite.
func Unmarked(text string) string { return marks.ReplaceAllString(text, "") }

// said is the text in which a right answer is looked for.
func (o *Outcome) said() string {
	if !o.Answered {
		return ""
	}
	return Unmarked(o.Text)
}

// enough is the share of the words of an expected answer of which more must
// stand in a text for it to count as right. It is a rough measure: a right answer in other
// words has fewer, a wrong one about the same matter may have as many.
const enough = .5

// lacking says what a right answer holds and the text does not; known is
// whether anything is said about right answers.
func (o *Outcome) lacking() (lacking string, known bool) {
	q, text := o.Question, o.said()
	if len(q.Answers) > 0 && !slices.ContainsFunc(q.Answers, func(a string) bool { return Holds(text, a) }) {
		return "the answer holds none of " + quoted(q.Answers), true
	}
	var gone []string
	for _, w := range q.Words {
		if !Holds(text, w) {
			gone = append(gone, w)
		}
	}
	if gone != nil {
		return "the answer does not hold " + quoted(gone), true
	}
	if len(q.Answers)+len(q.Words) > 0 {
		return "", true
	}
	if q.Expected == "" {
		return "", false
	}
	if recall := WordRecall(text, []string{q.Expected}); recall <= enough {
		return "of the words of the expected answer, " + quoted([]string{q.Expected}) + ", " + percent(recall) + " stand in the answer, and more than " + percent(enough) + " are asked for", true
	}
	return "", true
}

// levels are how closely a question says where its answer stands.
const (
	documentLevel = ""
	pageLevel     = "page"
	quoteLevel    = "quote"
)

// level is the closest at which the question says where its answer stands.
func (q Question) level() (level string, known bool) {
	switch {
	case len(q.Quotes) > 0:
		return quoteLevel, true
	case q.Pages != nil:
		return pageLevel, true
	}
	return documentLevel, len(q.Documents) > 0
}

// onPage says whether a passage stands on the page of the document, in part at least.
func (p Passage) onPage(document string, page int) bool {
	return p.Document == document && p.Page <= page && page <= max(p.LastPage, p.Page)
}

// mark says of each passage what of the right evidence it holds. The texts of
// the passages must be whole.
func (o *Outcome) mark() {
	q := o.Question
	level, known := q.level()
	for i := range o.Retrieved {
		p := &o.Retrieved[i]
		p.Quotes = nil
		for j, quote := range q.Quotes {
			if Holds(p.Text, quote) {
				p.Quotes = append(p.Quotes, j)
			}
		}
		switch {
		case !known:
		case level == quoteLevel:
			p.Right = p.Quotes != nil
		default:
			for j, document := range q.Documents {
				var pages []int
				if q.Pages != nil {
					pages = q.Pages[j]
				}
				p.Right = p.Right || p.Document == document &&
					(pages == nil || slices.ContainsFunc(pages, func(n int) bool { return p.onPage(document, n) }))
			}
		}
	}
}

// lost says at which stage all of the right evidence got lost, if it did.
func (o *Outcome) lost() (Cause, string) {
	q := o.Question
	level, known := q.level()
	if !known {
		return "", ""
	}
	right, kept := 0, 0
	var skipped []string
	for _, p := range o.Retrieved {
		if !p.Right {
			continue
		}
		right++
		if p.Kept {
			kept++
		} else {
			skipped = append(skipped, p.ID)
		}
	}
	switch {
	case right == 0:
		what := "none of the right documents (" + strings.Join(q.Documents, ", ") + ")"
		switch level {
		case quoteLevel:
			what = "none that holds " + quoted(q.Quotes)
		case pageLevel:
			what = "none on the right pages (" + q.pageNames() + ")"
		}
		why := "of the " + counted(len(o.Retrieved), "passage") + " retrieved, " + what
		if len(o.Missing) > 0 {
			why += "; not in the store: " + strings.Join(o.Missing, ", ")
		}
		return Retrieval, why
	case kept == 0 && o.Error == "":
		return Gate, "the gate skipped every right passage: " + strings.Join(skipped, ", ")
	}
	return "", ""
}

// Diagnose says how the question came out, and why. The texts of the passages
// must be whole; they are shortened.
func (o *Outcome) Diagnose() {
	o.mark()
	o.Status, o.Cause, o.Why = Passed, "", []string{}
	fail := func(cause Cause, why string) {
		if o.Status != Failed {
			o.Status, o.Cause = Failed, cause
		}
		o.Why = append(o.Why, why)
	}
	q := o.Question
	symptom := func(cause Cause, why string) { // of what may have gone wrong earlier
		if stage, how := o.lost(); stage != "" {
			if !slices.Contains(o.Why, how) {
				fail(stage, how)
			}
		}
		fail(cause, why)
	}
	lacking, known := o.lacking()
	switch {
	case o.Error != "":
		fail(Trouble, o.Error)
	case q.Unanswerable && o.Answered:
		fail(Refusal, "it was answered, and there is no answer")
	case q.Unanswerable:
	case !o.Answered && q.Open():
		o.Status = Open
	case !o.Answered:
		symptom(Refusal, "it was refused ("+o.Reason+"), and there is an answer")
	default:
		if lacking != "" {
			symptom(Generation, lacking)
		}
		if o.Incomplete {
			fail(Generation, "the answer broke off: "+o.Reason)
		}
		o.diagnoseCitations(symptom, fail)
		if known || o.Status == Failed {
			break
		}
		// Nothing tells a right text: the evidence has to.
		if _, placed := q.level(); !placed {
			o.Status = Open
		} else if stage, how := o.lost(); stage != "" {
			fail(stage, how)
		}
	}
	for i := range o.Retrieved {
		o.Retrieved[i].Text = excerpt(o.Retrieved[i].Text, 600)
	}
}

// Deeper adds to the reasons of a question that failed at the search where, in
// a longer ranking, the first right passage stands. The texts of the passages
// must be whole.
func (o *Outcome) Deeper(passages []Passage) {
	long := Outcome{Question: o.Question, Retrieved: passages}
	long.mark()
	why := "nor is it among the first " + counted(len(passages), "passage") + ": other words, another format or a text that was not read?"
	if i := slices.IndexFunc(passages, func(p Passage) bool { return p.Right }); i >= 0 {
		why = fmt.Sprintf("deeper down it is found, at rank %d of %d: see whether a larger top-k helps", i+1, len(passages))
	}
	o.Why = slices.Insert(o.Why, 1, why)
}

func (o *Outcome) diagnoseCitations(symptom, fail func(Cause, string)) {
	q := o.Question
	switch {
	case len(o.Sources) == 0:
		fail(Citations, "nothing is cited")
	case len(q.Documents) > 0 && !slices.ContainsFunc(o.Sources, func(s Source) bool { return slices.Contains(q.Documents, s.Document) }):
		var cited []string
		for _, s := range o.Sources {
			cited = append(cited, s.Document)
		}
		symptom(Citations, "none of the right documents ("+strings.Join(q.Documents, ", ")+") is cited, but "+strings.Join(slices.Compact(cited), ", "))
	}
	for _, s := range o.Unsupported {
		why := "nothing is cited for "
		if s.Reason == weak {
			why = "nothing cited bears out "
		}
		fail(Citations, why+quoted([]string{excerpt(cut(o.Text, s.Start, s.End), 160)}))
	}
}

// statements counts the sentences of the answer that cite or should.
func (o *Outcome) statements() int {
	ranges := make(map[[2]int]bool)
	for _, c := range o.Citations {
		ranges[[2]int{c.Start, c.End}] = true
	}
	for _, s := range o.Unsupported {
		ranges[[2]int{s.Start, s.End}] = true
	}
	return len(ranges)
}

// ranking gives the documents in the order of their best passages.
func (o *Outcome) ranking() []string {
	var documents []string
	for _, p := range o.Retrieved {
		if !slices.Contains(documents, p.Document) {
			documents = append(documents, p.Document)
		}
	}
	return documents
}

// places gives, for each passage, which of the n right pages or quotes it holds.
func (o *Outcome) places(level string) (held [][]int, n int) {
	q := o.Question
	type page struct {
		document string
		number   int
	}
	var pages []page
	for i, numbers := range q.Pages {
		for _, number := range numbers {
			pages = append(pages, page{q.Documents[i], number})
		}
	}
	for _, p := range o.Retrieved {
		if level == quoteLevel {
			held = append(held, p.Quotes)
			continue
		}
		var on []int
		for i, at := range pages {
			if p.onPage(at.document, at.number) {
				on = append(on, i)
			}
		}
		held = append(held, on)
	}
	if level == quoteLevel {
		return held, len(q.Quotes)
	}
	return held, len(pages)
}
