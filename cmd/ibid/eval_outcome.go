package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/support"
	"ibid/cmd/ibid/eval"
	"ibid/retrieve"
)

// An outcome is the result of asking one question: the inputs of all figures, and the trace
// that shows what went wrong.
type outcome struct {
	// Question has the store's ids of documents that are in the store.
	Question eval.Question `json:"question"`
	Status   status        `json:"status"`
	// Missing are the documents of the question that are not in the store.
	Missing []string `json:"missing,omitempty"`
	// Why describes what went wrong, first stage first.
	Why []string `json:"why"`

	Retrieved   []tracedPassage `json:"retrieved"` // best first
	cite.Answer                 // not answered after an error
	// Best are the sentences most likely to answer, chosen without a model, and Confidence
	// is the probability that the first does.
	Best       []string `json:"best,omitempty"`
	Confidence *float64 `json:"confidence,omitempty"`
	// Error is why there is no answer, or "".
	Error   string  `json:"error,omitempty"`
	Seconds float64 `json:"seconds"` // from the question to the end of the stream
}

// A status says whether an outcome is right.
type status string

const (
	passedStatus status = "passed"
	failedStatus status = "failed"
	openStatus   status = "open" // too few facts about the right answer are known
)

// A tracedPassage is a retrieved passage with the gate's decision.
type tracedPassage struct {
	retrieve.Passage                 // with the beginning of its text
	Chance           float64         `json:"chance"`            // of being on topic, by the gate
	Verdict          answer.Decision `json:"verdict,omitempty"` // empty if the gate did not judge it
	By               string          `json:"by,omitempty"`
	Reason           string          `json:"reason,omitempty"`
	Kept             bool            `json:"kept"`
	// Right reports whether it contains one of the question's quotes or, without quotes, is
	// from one of its documents.
	Right bool `json:"right"`
}

// bestSentences is the number of sentences checked for an answer.
const bestSentences = 3

// trace asks one question. It returns errors of the context or the store; an error of the
// answer is part of the outcome.
func (c *corpus) trace(ctx context.Context, answerer *answer.Answerer, asked answer.Question, q eval.Question) (*outcome, error) {
	t := &tracer{}
	out := &outcome{Question: q}
	begun := time.Now()
	var failed error
	out.Answer, failed = cite.Collect(cite.Number(t.record(answerer.Ask(ctx, asked)), cite.Options{}))
	out.Seconds = time.Since(begun).Seconds()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out.Question.Documents = slices.Clone(q.Documents)
	for i, d := range q.Documents {
		if stored, ok := c.stored[d]; ok {
			out.Question.Documents[i] = stored
		} else {
			out.Missing = append(out.Missing, d)
		}
	}
	if failed != nil {
		out.Answered, out.Error = false, failed.Error()
	}
	var read []retrieve.Passage
	for _, p := range t.passages {
		var j answer.Judged
		at := slices.IndexFunc(out.Judged, func(j answer.Judged) bool { return j.Passage == p.ID })
		if at >= 0 {
			j = out.Judged[at]
		}
		kept := t.kept[p.ID] || at >= 0 && j.Decision != answer.Irrelevant // without a gate no passage is judged
		out.Retrieved = append(out.Retrieved, tracedPassage{p, j.Chance, j.Decision, j.By, j.Reason, kept, false})
		if kept {
			read = append(read, p)
		}
	}
	if answerer.Model == nil && failed == nil {
		best, chance, err := answerer.Best(ctx, q.Text, read, bestSentences)
		if err != nil {
			return nil, err
		}
		out.Best, out.Confidence = best, &chance
	}
	out.check()
	return out, nil
}

// excerptLength is the length of a passage in a report, in characters.
const excerptLength = 600

// check compares the outcome with the known facts of the question, and sets Status and Why. The
// passages must have their whole texts; check shortens them.
func (o *outcome) check() {
	o.markRight()
	_, known := o.wrongWords()
	o.Why = append([]string{}, o.faults()...)
	switch q := o.Question; {
	case len(o.Why) > 0:
		o.Status = failedStatus
	case q.Unanswerable || o.Answered && (known || q.HasPlace()):
		o.Status = passedStatus
	default:
		o.Status = openStatus
	}
	for i := range o.Retrieved {
		o.Retrieved[i].Text = oneLine(o.Retrieved[i].Text, excerptLength)
	}
}

// faults describes the faults, earliest stage first.
func (o *outcome) faults() (all []string) {
	q := o.Question
	switch {
	case o.Error != "":
		return []string{o.Error}
	case q.Unanswerable && o.Answered:
		return []string{"answered, but there is no answer"}
	case q.Unanswerable, !o.Answered && q.Open():
		return nil
	case !o.Answered:
		all = []string{fmt.Sprintf("refused (%s), but there is an answer", o.Reason)}
	default:
		all = o.answerFaults()
	}
	_, known := o.wrongWords()
	if lost := o.lostEvidence(); lost != "" && (len(all) > 0 || !known) {
		all = slices.Insert(all, 0, lost)
	}
	return all
}

func (o *outcome) answerFaults() (all []string) {
	if wrong, _ := o.wrongWords(); wrong != "" {
		all = append(all, wrong)
	}
	if o.Incomplete {
		all = append(all, "the answer is incomplete: "+o.Reason)
	}
	switch documents := o.Question.Documents; {
	case len(o.Sources) == 0:
		all = append(all, "no source is cited")
	case len(documents) > 0 && !o.citesRight():
		var cited []string
		for _, s := range o.Sources {
			cited = append(cited, s.Document)
		}
		all = append(all, "no right document ("+strings.Join(documents, ", ")+") is cited, but "+strings.Join(slices.Compact(cited), ", "))
	}
	for _, s := range o.Unsupported {
		why := "no citation for “%s”"
		if s.Reason == string(support.Weak) {
			why = "no cited passage supports “%s”"
		}
		all = append(all, fmt.Sprintf(why, oneLine(o.Text[s.TextStart:s.TextEnd], 160)))
	}
	return all
}

var citationMark = regexp.MustCompile(` ?\[\d+\]`)

// wrongWords says which words the answer lacks, if any. known reports whether the question has
// the words of a right answer.
func (o *outcome) wrongWords() (why string, known bool) {
	if !o.Answered {
		return o.wrongIn("")
	}
	return o.wrongIn(citationMark.ReplaceAllString(o.Text, ""))
}

func (o *outcome) wrongIn(text string) (why string, known bool) {
	q := o.Question
	holds := func(s string) bool { return eval.Holds(text, s) }
	if len(q.Answers) > 0 && !slices.ContainsFunc(q.Answers, func(s string) bool { return holds(s) || eval.Resembles(text, s) }) {
		return "the answer contains none of " + quoteTexts(q.Answers), true
	}
	if gone := slices.DeleteFunc(slices.Clone(q.Words), holds); len(gone) > 0 {
		return "the answer does not contain " + quoteTexts(gone), true
	}
	return "", len(q.Answers)+len(q.Words) > 0
}

func (o *outcome) citesRight() bool {
	return slices.ContainsFunc(o.Sources, func(s cite.Source) bool { return slices.Contains(o.Question.Documents, s.Document) })
}

func (o *outcome) markRight() {
	q := o.Question
	for i := range o.Retrieved {
		p := &o.Retrieved[i]
		if len(q.Quotes) > 0 {
			p.Right = slices.ContainsFunc(q.Quotes, func(quote string) bool { return eval.Holds(p.Text, quote) })
		} else {
			p.Right = slices.Contains(q.Documents, p.Document)
		}
	}
}

// lostEvidence describes how all right passages were lost, if they were.
func (o *outcome) lostEvidence() string {
	q := o.Question
	if !q.HasPlace() {
		return ""
	}
	var right []string
	for _, p := range o.Retrieved {
		if p.Right && p.Kept {
			return ""
		}
		if p.Right {
			right = append(right, p.ID)
		}
	}
	if right != nil {
		return "the gate skipped every right passage: " + strings.Join(right, ", ")
	}
	where := "is from a right document (" + strings.Join(q.Documents, ", ") + ")"
	if len(q.Quotes) > 0 {
		where = "contains " + quoteTexts(q.Quotes)
	}
	why := fmt.Sprintf("none of the %s %s", countOf(len(o.Retrieved), "retrieved passage"), where)
	if len(o.Missing) > 0 {
		why += "; not in the store: " + strings.Join(o.Missing, ", ")
	}
	return why
}

func quoteTexts(texts []string) string { return "“" + strings.Join(texts, "”, “") + "”" }
