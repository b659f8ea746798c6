package answer

import (
	"ibid/answer/replies"
	"ibid/cite/support"
	"ibid/retrieve"
)

// An Event is one thing that happened while a question was answered. Events
// are small values, safe to keep; Kind is the name on the wire.
//
// A stream has Retrieved, then Judged for each passage, then Kept, then Draft,
// Stepped, Revision and Text, or Unanswered, and Usage last. If the first passages
// hold no answer, Retrieved, Judged and Kept may come again after Stepped; the new
// labels replace the old ones, which have not been shown. Warning may come
// anywhere. After the first Text, text is only appended. A stream that fails after
// its first Text ends with Incomplete and Usage.
type Event interface{ Kind() string }

// Retrieved lists the passages that were found, best first.
type Retrieved struct {
	// Question is the standalone question that was searched for. Reworded reports
	// whether it differs from the original.
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
	By       string          `json:"by"` // "score", "model" or "unjudged" (the score decides, for lack of budget, time or a usable judge)
	Reason   string          `json:"reason"`
	Chance   float64         `json:"chance"` // estimated probability of being on topic, 0 to 1
	Scores   retrieve.Scores `json:"scores"`
	Calls    int             `json:"calls"` // requests to a model, including retries
	Tokens   int             `json:"tokens"`
	// Wider says that the passage was read, whatever its chance, because the first
	// passages held no answer.
	Wider bool `json:"wider,omitempty"`
}

// A Decision is a gate's decision on a passage.
type Decision string

// The decisions. Only Irrelevant skips a passage.
const (
	Relevant   Decision = "relevant"
	Irrelevant Decision = "irrelevant"
	Unparsable Decision = "unparsable" // the judge's reply could not be read, twice; the passage is kept
	Errored    Decision = "error"      // the judge's call failed, twice; the passage is kept
)

// Kept fixes the labels: Passages[i] is evidence [i+1] in every prompt and in
// every Draft and Text of this answer. It is for package cite and is not sent to
// clients.
type Kept struct {
	Passages []retrieve.Passage
}

// Draft is a piece of a draft, a version of the answer that a later step may still
// improve. The last step's version comes as Revision, and as Text once it is complete.
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

// Revision is the next piece of the last step's version of the answer, already proved.
// Once complete, the version comes as Text too; if it is cut, the last draft is the answer.
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
	// Plain is set on all pieces of an answer or on none. It says that they are quoted
	// from documents; their only Markdown is the "- " and "1. " of list items and
	// fenced code.
	Plain bool `json:"plain,omitempty"`
}

// Stepped says how a step, one call to the model, ended, or why kept passages were
// not used in any step.
type Stepped struct {
	Step int  `json:"step"` // 1-based; 0 for passages that went into no step
	Role Role `json:"role,omitempty"`
	// Passages are the ids of the chunks that the step used, or that were not used.
	// Labels are their labels, if they have any.
	Passages []string `json:"passages"`
	Labels   []int    `json:"labels"`
	// From are the steps whose results this one used.
	From []int `json:"from,omitempty"`
	// Changed reports whether the step changed the answer or, if each step makes a
	// part of the answer, whether it made one.
	Changed bool `json:"changed"`
	// Reason says why Changed is false: "model_error", "empty_reply", "meta_remark"
	// (the model said that nothing changes), "same", "no_answer", "unproved" (no
	// statement of the reply is proved and has a source) or "cut" (the reply was cut
	// off, and a complete answer existed). For passages without a step it is
	// "answer_too_long", "budget" (of tokens, or the context window), "calls" (no
	// calls were left) or "deferred" (they are read only if the first passages hold
	// no answer).
	Reason string `json:"reason,omitempty"`
	// Invented are labels that the reply cites although the model was never shown
	// them. They are listed even if the reply was not used.
	Invented []int `json:"invented"`
	// Lost are labels of the previous answer, or of the parts, that the result no
	// longer cites. It is empty if the step changed nothing.
	Lost []int `json:"lost"`
}

// Verified says how the proof of a statement ended. It comes before the statement's Text.
type Verified struct {
	Statement string  `json:"statement"` // without labels
	Verdict   Outcome `json:"verdict"`
	// By is "code", "model", or "unjudged" (without budget, time or a usable judge).
	By string `json:"by"`
	// Found is the label added to a statement that cites nothing: its passage
	// supports the statement, according to code or to the judge. Idle are labels
	// that were removed because their passages added no support.
	Found  int   `json:"found,omitempty"`
	Idle   []int `json:"idle,omitempty"`
	Calls  int   `json:"calls"` // requests to a model, including retries
	Tokens int   `json:"tokens"`
	// Quotes are the quotes from the cited passages, Found included, by label.
	Quotes map[int]support.Quote `json:"-"`
	// Plain marks a statement that is shown unchanged because no judge is set. Package
	// cite uses its quotes and does not pass the event on.
	Plain bool `json:"-"`
}

// An Outcome is the verdict on a statement.
type Outcome string

// The outcomes.
const (
	Cleared Outcome = "cleared"
	Marked  Outcome = "marked"  // the judge said no twice: it is shown as doubtful
	Dropped Outcome = "dropped" // the judge said no twice: it is not shown
)

// Unanswered says that the documents do not answer the question, or may not.
type Unanswered struct {
	// Reason is "nothing_found", "nothing_relevant", "no_answer" (passages were
	// kept, but none has the answer) or "small_talk" (the text asks nothing, so
	// nothing was searched).
	Reason string `json:"reason"`
	// Text is the sentence to show, in the language of the question if it is
	// one of about sixteen, else in English.
	Text string `json:"text"`
	// Nearest are the nearest passages, best first, three at most.
	Nearest []retrieve.Passage `json:"nearest"`
	// Closest are the verbatim parts of the kept passages that are nearest to the
	// question, best first, three at most; empty if no passage was kept.
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
	// Marks are the ranges of the best words of the nearest sentence in Text.
	Marks []Mark `json:"marks"`
	// Passage is the passage that the part is from.
	Passage retrieve.Passage `json:"-"`
}

// A Mark is the range of bytes [Start, End) of a text.
type Mark struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Fallback says that the model gave no answer, so sentences are quoted instead.
// Judged and Kept come again after it.
type Fallback struct {
	// Reason is "model_unreachable", "model_timeout" (before the first word),
	// "model_rejected" (the server refuses the key, the model's name or the request),
	// "model_window" (the prompt is longer than the model's context window),
	// "model_failed" (it replies with an error, or with something that is not a reply) or
	// "model_untrusted" (it did not pass its self-test).
	Reason string `json:"reason"`
	Err    error  `json:"-"` // the model's error, for the log
}

// Incomplete says that the text ends before the answer did.
type Incomplete struct {
	Reason string `json:"reason"`
}

// Warning reports a problem that did not stop the answer.
type Warning struct {
	Message string `json:"message"`
}

// Usage is the cost of the answer.
type Usage struct {
	Calls            int   `json:"calls"` // requests to models, including retries
	JudgeCalls       int   `json:"judge_calls"`
	PromptTokens     int   `json:"prompt_tokens"`
	CompletionTokens int   `json:"completion_tokens"`
	ReasoningTokens  int   `json:"reasoning_tokens,omitempty"`
	Looked           int   `json:"looked"`  // passages considered
	Used             int   `json:"used"`    // passages in the prompts for the answer
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
