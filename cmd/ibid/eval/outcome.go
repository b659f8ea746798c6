package eval

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// An Outcome is the result of asking one question: all that figures are computed
// from, and the trace in which a person sees what went wrong.
type Outcome struct {
	// Question names documents as the store does, if the store has them.
	Question Question `json:"question"`
	Status   Status   `json:"status"`
	Cause    Cause    `json:"cause,omitempty"` // of a failure
	// Missing are the documents of the question that are not in the store.
	Missing []string `json:"missing,omitempty"`
	// Why describes the failure, the cause first.
	Why []string `json:"why"`

	Retrieved []Passage `json:"retrieved"` // best first
	Answered  bool      `json:"answered"`
	// Incomplete means that the text ends before the answer did.
	Incomplete bool     `json:"incomplete,omitempty"`
	Reason     string   `json:"reason,omitempty"` // of a refusal or an incomplete answer
	Text       string   `json:"text"`
	Closest    []string `json:"closest,omitempty"` // texts that were shown instead of an answer
	// Best are the sentences that most likely answer, without a model, and Confidence
	// is the chance that the first does.
	Best        []string   `json:"best,omitempty"`
	Confidence  *float64   `json:"confidence,omitempty"`
	Sources     []Source   `json:"sources"`
	Citations   []Citation `json:"citations"`
	Unsupported []Sentence `json:"unsupported"`
	// Error is why there is no answer; empty if there is one.
	Error   string  `json:"error,omitempty"`
	Cost    Cost    `json:"cost"`
	Seconds float64 `json:"seconds"` // from the question to the end of the stream
}

// A Status says whether an outcome is right.
type Status string

const (
	Passed Status = "passed"
	Failed Status = "failed"
	Open   Status = "open" // too little is known of the right answer to say
)

// A Cause is the first stage at which a question failed.
type Cause string

// The causes, in the order of an answer's stages.
const (
	Retrieval  Cause = "retrieval"
	Gate       Cause = "gate"
	Generation Cause = "generation"
	Citations  Cause = "citation"
	Refusal    Cause = "refusal"
	Trouble    Cause = "error"
)

var causes = [...]Cause{Retrieval, Gate, Generation, Citations, Refusal, Trouble}

// A Passage is a retrieved passage with the gate's decision.
type Passage struct {
	ID       string  `json:"id"`
	Document string  `json:"document"`
	Title    string  `json:"title"`
	Heading  string  `json:"heading,omitempty"`
	Page     int     `json:"page,omitempty"` // where it begins; 0 without pages
	Score    float64 `json:"score"`
	Dense    float64 `json:"dense"`
	BM25     float64 `json:"bm25"`
	// Rerank is the score of a reranker, on its own scale; nil without one.
	Rerank  *float64 `json:"rerank,omitempty"`
	Chance  float64  `json:"chance"`            // of being on topic, by the gate
	Verdict string   `json:"verdict,omitempty"` // empty if the gate did not judge it
	By      string   `json:"by,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Kept    bool     `json:"kept"`
	// Right means that it contains one of the question's quotes or, if there are
	// none, that it is from one of its documents.
	Right bool   `json:"right"`
	Text  string `json:"text"` // in a report the beginning
}

// A Source is a numbered source of an answer.
type Source struct {
	Number   int    `json:"number"`
	Document string `json:"document"`
	Title    string `json:"title"`
}

// A Citation is one place where an answer cites.
type Citation struct {
	Number   int     `json:"number"`
	Document string  `json:"document"`
	Page     int     `json:"page,omitempty"`
	Quote    string  `json:"quote"`
	Support  float64 `json:"support"`
	Verdict  string  `json:"verdict"` // "quoted", "supported" or "weak"
	// Start and End are byte offsets of the sentence in the answer.
	Start int `json:"start"`
	End   int `json:"end"`
}

// weak is the verdict on a citation that does not support its sentence.
const weak = "weak"

// A Sentence is a statement of the answer that nothing cited supports.
type Sentence struct {
	Start  int    `json:"start"`
	End    int    `json:"end"`
	Reason string `json:"reason"` // "uncited" or "weak"
}

// A Cost is an answer's use of models.
type Cost struct {
	Calls            int `json:"calls"`
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
}

func (c *Cost) add(other Cost) {
	c.Calls += other.Calls
	c.PromptTokens += other.PromptTokens
	c.CompletionTokens += other.CompletionTokens
}

// excerptLength is the length of a passage in a report, in characters.
const excerptLength = 600

// Check compares the outcome with the known facts of the question, and sets
// Status, Cause and Why. The passages must have their whole texts, which Check
// shortens.
func (o *Outcome) Check() {
	o.markRight()
	o.Status, o.Cause, o.Why = Passed, "", []string{}
	for _, f := range o.faults() {
		o.Status, o.Cause = Failed, cmp.Or(o.Cause, f.cause)
		o.Why = append(o.Why, f.why)
	}
	_, known := o.wrongWords()
	if q := o.Question; o.Status == Passed && !q.Unanswerable && (!o.Answered || !known && !q.placed()) {
		o.Status = Open
	}
	for i := range o.Retrieved {
		o.Retrieved[i].Text = excerpt(o.Retrieved[i].Text, excerptLength)
	}
}

type fault struct {
	cause Cause
	why   string
}

// faults returns what is wrong, in the order of the stages.
func (o *Outcome) faults() (all []fault) {
	q := o.Question
	switch {
	case o.Error != "":
		return []fault{{Trouble, o.Error}}
	case q.Unanswerable && o.Answered:
		return []fault{{Refusal, "answered, although there is no answer"}}
	case q.Unanswerable, !o.Answered && q.Open():
		return nil
	case !o.Answered:
		all = []fault{{Refusal, fmt.Sprintf("refused (%s), although there is an answer", o.Reason)}}
	default:
		all = o.answerFaults()
	}
	_, known := o.wrongWords()
	if stage, lost := o.lostEvidence(); stage != "" && (len(all) > 0 || !known) {
		all = slices.Insert(all, 0, fault{stage, lost})
	}
	return all
}

func (o *Outcome) answerFaults() (all []fault) {
	if wrong, _ := o.wrongWords(); wrong != "" {
		all = append(all, fault{Generation, wrong})
	}
	if o.Incomplete {
		all = append(all, fault{Generation, "the answer is incomplete: " + o.Reason})
	}
	switch documents := o.Question.Documents; {
	case len(o.Sources) == 0:
		all = append(all, fault{Citations, "no source is cited"})
	case len(documents) > 0 && !o.citesRight():
		var cited []string
		for _, s := range o.Sources {
			cited = append(cited, s.Document)
		}
		all = append(all, fault{Citations, "no right document (" + strings.Join(documents, ", ") + ") is cited, but " +
			strings.Join(slices.Compact(cited), ", ")})
	}
	for _, s := range o.Unsupported {
		why := "no citation for “%s”"
		if s.Reason == weak {
			why = "nothing cited supports “%s”"
		}
		all = append(all, fault{Citations, fmt.Sprintf(why, excerpt(o.Text[s.Start:s.End], 160))})
	}
	return all
}

func (q Question) placed() bool { return len(q.Documents)+len(q.Quotes) > 0 }

var citationMark = regexp.MustCompile(` ?\[\d+\]`)

// wrongWords names the words that the answer lacks, if any; known reports
// whether the question has the words of a right answer.
func (o *Outcome) wrongWords() (why string, known bool) {
	if !o.Answered {
		return o.wrongIn("")
	}
	return o.wrongIn(citationMark.ReplaceAllString(o.Text, ""))
}

func (o *Outcome) wrongIn(text string) (why string, known bool) {
	q := o.Question
	holds := func(s string) bool { return Holds(text, s) }
	if len(q.Answers) > 0 && !slices.ContainsFunc(q.Answers, func(s string) bool { return holds(s) || resembles(text, s) }) {
		return "the answer contains none of " + quoted(q.Answers), true
	}
	if gone := slices.DeleteFunc(slices.Clone(q.Words), holds); len(gone) > 0 {
		return "the answer does not contain " + quoted(gone), true
	}
	return "", len(q.Answers)+len(q.Words) > 0
}

func (o *Outcome) citesRight() bool {
	return slices.ContainsFunc(o.Sources, func(s Source) bool { return slices.Contains(o.Question.Documents, s.Document) })
}

func (o *Outcome) markRight() {
	q := o.Question
	for i := range o.Retrieved {
		p := &o.Retrieved[i]
		if len(q.Quotes) > 0 {
			p.Right = slices.ContainsFunc(q.Quotes, func(quote string) bool { return Holds(p.Text, quote) })
		} else {
			p.Right = slices.Contains(q.Documents, p.Document)
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
	}
	why := fmt.Sprintf("none of the %s %s", counted(len(o.Retrieved), "retrieved passage"), where)
	if len(o.Missing) > 0 {
		why += "; not in the store: " + strings.Join(o.Missing, ", ")
	}
	return Retrieval, why
}
