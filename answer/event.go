package answer

import (
	"ibid/answer/replies"
	"ibid/cite/support"
	"ibid/retrieve"
)

// An Event is one thing that happened while a question was answered. Events
// are small values, safe to keep; Kind is the name on the wire.
//
// The order of a stream: Retrieved, then Judged for each passage looked at,
// then Kept, then Draft, Stepped, Revision and Text, or Unanswered; Usage last. A wider look
// comes after Stepped: Judged and Kept again, which replaces the labels, none of
// which has been shown. Warning may come anywhere. After the first Text, text is only ever appended. A stream that
// fails after its first Text ends with Incomplete and Usage.
type Event interface{ Kind() string }

// Retrieved lists the passages that were found, best first.
type Retrieved struct {
	// Question is the standalone question that was searched for. Reworded says that it
	// is not the one that was asked.
	Question string             `json:"question"`
	Reworded bool               `json:"reworded,omitempty"`
	Passages []retrieve.Passage `json:"passages"`
}

// Judged is the gate's verdict on one passage.
type Judged struct {
	Passage  string          `json:"passage"` // chunk id
	Document string          `json:"document"`
	Title    string          `json:"title"`
	Heading  string          `json:"heading,omitempty"`
	Page     int             `json:"page,omitempty"`
	Decision Decision        `json:"verdict"`
	By       string          `json:"by"` // "score", "model" or "unjudged" (without budget, time or a usable judge the score decides)
	Reason   string          `json:"reason"`
	Chance   float64         `json:"chance"` // estimated probability of being on topic, 0 to 1
	Scores   retrieve.Scores `json:"scores"`
	Calls    int             `json:"calls"` // requests to a model spent on it, repeated ones included
	Tokens   int             `json:"tokens"`
	// Wider says that the passage was read in a wider look, after no answer was
	// found in the others: whatever its chance is.
	Wider bool `json:"wider,omitempty"`
}

// A Decision is what a gate decided on a passage.
type Decision string

// The decisions. Only Irrelevant skips a passage.
const (
	Relevant   Decision = "relevant"
	Irrelevant Decision = "irrelevant"
	Unparsable Decision = "unparsable" // the judge's reply could not be read, twice: kept
	Errored    Decision = "error"      // the judge's call failed, twice: kept
)

// Kept fixes the labels: Passages[i] is evidence [i+1] in every prompt and in
// every Draft and Text of this answer. It is for the citation filter and for
// those who show the text; clients get no such event.
type Kept struct {
	Passages []retrieve.Passage
}

// Draft is a version of the answer that a later step may still improve. What the last
// step makes of it comes as Revision, and as Text when it is whole.
type Draft struct {
	Step int `json:"step"` // 1-based
	// Text is the next piece of the draft, with the labels as the model wrote them.
	Text string `json:"text"`
	// Labels are the labels cited by the whole draft, in order of first use;
	// set on the last piece.
	Labels []int `json:"labels,omitempty"`
	// Final is set on the last piece of a step's draft.
	Final bool `json:"final,omitempty"`
}

// Revision is the next piece of what the last step makes of the draft, proved, while it
// is written. Whole, it comes as Text too; if it is cut, the draft before it is the answer.
type Revision struct {
	Step int `json:"step"`
	// Text is the next piece, as in Text.
	Text string `json:"text"`
	// Cut is set on the last piece if the revision is not the answer.
	Cut bool `json:"cut,omitempty"`
}

// Text is the next piece of the answer, with labels: "[1]" or the seed form
// "[1](id=1)" cite Kept.Passages[0].
type Text struct {
	Text string `json:"text"`
	// Plain is set on all pieces of an answer or on none. It says that they are words
	// of documents, in which nothing is Markdown but the "- " and "1. " of list items and
	// fenced code.
	Plain bool `json:"plain,omitempty"`
}

// Stepped says how a step, one call to the model, ended, or why kept passages
// went into none.
type Stepped struct {
	Step int  `json:"step"` // 1-based; 0 for passages that went into no step
	Role Role `json:"role,omitempty"`
	// Passages are the ids of the chunks that the step used, or that went into
	// none; Labels are the labels of those that have one.
	Passages []string `json:"passages"`
	Labels   []int    `json:"labels"`
	// From are the steps whose results this one used.
	From []int `json:"from,omitempty"`
	// Changed reports whether the step changed the answer or, where each step
	// makes a part of the answer, whether it made one.
	Changed bool `json:"changed"`
	// Reason says why not: "model_error", "empty_reply", "meta_remark" (the
	// model said that nothing changes), "same", "no_answer", "unproved" (no statement
	// of the reply has a source and is proved) or "cut" (the
	// reply was cut off, and a whole answer existed); for passages without a
	// step "answer_too_long", "budget" (of tokens, or the context window), "calls" (a question
	// has only so many) or "deferred" (it is read if the others hold no answer).
	Reason string `json:"reason,omitempty"`
	// Invented are labels that the reply cites and that the model was never
	// shown, even if the reply was not used.
	Invented []int `json:"invented"`
	// Lost are labels of the answer before, or of the parts, that the result no
	// longer cites; none where the step changed nothing.
	Lost []int `json:"lost"`
}

// Verified says how the proof of a statement ended. It comes before the statement's Text.
type Verified struct {
	Statement string  `json:"statement"` // without labels
	Verdict   Outcome `json:"verdict"`
	// By is "code", "model", or "unjudged" (without budget, time or a usable judge).
	By string `json:"by"`
	// Found is the label of the passage that bears out a statement which cited
	// none, by code or by the judge's yes: it was added. Idle are labels that were removed, since their passages
	// add nothing to those of the others.
	Found  int   `json:"found,omitempty"`
	Idle   []int `json:"idle,omitempty"`
	Calls  int   `json:"calls"` // requests to a model spent on it, repeated ones included
	Tokens int   `json:"tokens"`
	// Quotes are those of the passages that it cites, the one that was found too, by label.
	Quotes map[int]support.Quote `json:"-"`
	// Plain marks a statement that is shown as it is, where no judge is asked. Package cite
	// uses its quotes and does not pass the event on.
	Plain bool `json:"-"`
}

// An Outcome is the verdict on a statement.
type Outcome string

// The outcomes.
const (
	Cleared Outcome = "cleared"
	Marked  Outcome = "marked"  // the judge said no twice: it is shown as doubtful
	Dropped Outcome = "dropped" // … it is not shown
)

// Unanswered says that the documents do not answer the question, or may not.
type Unanswered struct {
	// Reason is "nothing_found", "nothing_relevant", "no_answer" (passages were
	// kept, and none has the answer) or "small_talk" (nothing was asked, and nothing
	// searched).
	Reason string `json:"reason"`
	// Text is the sentence to show, in the language of the question if it is
	// one of some sixteen, else in English.
	Text string `json:"text"`
	// Nearest are the nearest misses, best first, three at most.
	Nearest []retrieve.Passage `json:"nearest"`
	// Closest are the parts of the kept passages that are nearest to the question,
	// word for word, best first, three at most; none where nothing was kept.
	Closest []Closest `json:"closest"`
}

// Closest is a part of a passage: a paragraph, a list, a row of a table.
type Closest struct {
	Document string `json:"document"`
	Title    string `json:"title"`
	// Link leads to the part; empty if there is no link.
	Link    string `json:"link,omitempty"`
	Heading string `json:"heading,omitempty"`
	Page    int    `json:"page,omitempty"`
	Start   int    `json:"start"` // in bytes of the document's text
	End     int    `json:"end"`
	Text    string `json:"text"`
	// Marks are the best words of the nearest sentence, in bytes of Text.
	Marks []Mark `json:"marks"`
	// Passage is the one that the part is from.
	Passage retrieve.Passage `json:"-"`
}

// A Mark is the range of bytes [Start, End) of a text.
type Mark struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Fallback says that the model gave no answer, and that sentences are quoted as
// without one. Judged and Kept come again after it.
type Fallback struct {
	// Reason is "model_unreachable", "model_timeout" (before the first word),
	// "model_rejected" (the server refuses the key, the model's name or the request),
	// "model_window" (the prompt is longer than the model's context window),
	// "model_failed" (it replies with an error, or with something that is not a reply) or
	// "model_untrusted" (it did not pass its self-test).
	Reason string `json:"reason"`
	Err    error  `json:"-"` // of the model, for a log
}

// Incomplete says that the text ends before the answer did.
type Incomplete struct {
	Reason string `json:"reason"`
}

// Warning is trouble that did not stop the answer.
type Warning struct {
	Message string `json:"message"`
}

// Usage is what the answer cost.
type Usage struct {
	Calls            int   `json:"calls"` // requests to models, repeated ones included
	JudgeCalls       int   `json:"judge_calls"`
	PromptTokens     int   `json:"prompt_tokens"`
	CompletionTokens int   `json:"completion_tokens"`
	ReasoningTokens  int   `json:"reasoning_tokens,omitempty"`
	Looked           int   `json:"looked"`  // passages looked at
	Used             int   `json:"used"`    // passages that went into the answer
	Took             int64 `json:"took_ms"` // milliseconds
}

// Values of Stepped.Reason that several strategies use.
const (
	modelError = "model_error"
	emptyReply = "empty_reply"
	metaRemark = replies.MetaRemark
	sameText   = "same"
	unproved   = "unproved"
	noRoom     = "budget"
	noCalls    = "calls"
	deferred   = "deferred"
)

func (Retrieved) Kind() string  { return "retrieved" }
func (Judged) Kind() string     { return "judged" }
func (Kept) Kind() string       { return "kept" }
func (Draft) Kind() string      { return "draft" }
func (Revision) Kind() string   { return "revision" }
func (Text) Kind() string       { return "text" }
func (Stepped) Kind() string    { return "stepped" }
func (Verified) Kind() string   { return "verified" }
func (Unanswered) Kind() string { return "unanswered" }
func (Fallback) Kind() string   { return "fallback" }
func (Incomplete) Kind() string { return "incomplete" }
func (Warning) Kind() string    { return "warning" }
func (Usage) Kind() string      { return "usage" }
