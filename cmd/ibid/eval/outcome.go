package eval

// An Outcome is what became of one question: all that figures are computed
// from, and the trace by which a person sees what went wrong.
type Outcome struct {
	// Question names documents as the store does where it has them.
	Question Question `json:"question"`
	Status   Status   `json:"status"`
	Cause    Cause    `json:"cause,omitempty"` // of what failed
	// Missing are documents that the question names and the store does not have.
	Missing []string `json:"missing,omitempty"`
	// Why says in sentences what was found wrong, the cause first.
	Why []string `json:"why"`

	Retrieved []Passage `json:"retrieved"` // best first
	Answered  bool      `json:"answered"`
	// Incomplete says that the text ends before the answer did.
	Incomplete  bool       `json:"incomplete,omitempty"`
	Reason      string     `json:"reason,omitempty"` // of a refusal, or why it is incomplete
	Text        string     `json:"text"`
	Sources     []Source   `json:"sources"`
	Citations   []Citation `json:"citations"`
	Unsupported []Sentence `json:"unsupported"`
	Drafts      []Draft    `json:"drafts"`
	Steps       []Step     `json:"steps"`
	Warnings    []string   `json:"warnings"`
	// Error says why there is no answer at all; empty when there is.
	Error   string  `json:"error,omitempty"`
	Cost    Cost    `json:"cost"`
	Seconds Seconds `json:"seconds"`
}

// A Status is how a question came out.
type Status string

// The ways a question comes out.
const (
	Passed Status = "passed"
	Failed Status = "failed"
	Open   Status = "open" // too little is known of the right answer to say
)

// A Cause is the stage at which a question failed: the first at which what was
// right got lost.
type Cause string

// The causes, in the order of an answer's life.
const (
	Retrieval  Cause = "retrieval"
	Gate       Cause = "gate"
	Generation Cause = "generation"
	Citations  Cause = "citation"
	Refusal    Cause = "refusal"
	Trouble    Cause = "error"
)

// causes are all of them, in the order in which they are shown.
var causes = [...]Cause{Retrieval, Gate, Generation, Citations, Refusal, Trouble}

// A Passage is one that was retrieved, with the word of the gate on it.
type Passage struct {
	ID       string  `json:"id"`
	Document string  `json:"document"`
	Title    string  `json:"title"`
	Heading  string  `json:"heading,omitempty"`
	Page     int     `json:"page,omitempty"`      // on which it begins; 0 without pages
	LastPage int     `json:"last_page,omitempty"` // on which it ends
	Score    float64 `json:"score"`
	Dense    float64 `json:"dense"`
	BM25     float64 `json:"bm25"`
	// Rerank is what a reranker gave, on its own scale; nil without one.
	Rerank  *float64 `json:"rerank,omitempty"`
	Chance  float64  `json:"chance"`            // of being on topic, by the gate
	Verdict string   `json:"verdict,omitempty"` // empty where the gate did not come to it
	By      string   `json:"by,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Kept    bool     `json:"kept"`
	// Right says that it holds what the question says is right: one of its
	// quotes, else one of its pages, else one of its documents.
	Right  bool  `json:"right"`
	Quotes []int `json:"quotes,omitempty"` // the quotes that stand in it, from 0
	// Text is what it says; in a report its beginning.
	Text string `json:"text"`
}

// A Source is one of the numbered sources of an answer.
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
	// Start and End are the bytes of the sentence, in the text of the answer.
	Start int `json:"start"`
	End   int `json:"end"`
}

// weak is the verdict on a citation that does not bear its sentence out.
const weak = "weak"

// A Sentence of the answer states something that nothing cited bears out.
type Sentence struct {
	Start  int    `json:"start"`
	End    int    `json:"end"`
	Reason string `json:"reason"` // "uncited" or "weak"
}

// A Draft is a version of the answer before the last.
type Draft struct {
	Step int    `json:"step"`
	Text string `json:"text"`
}

// A Step is one call for the answer.
type Step struct {
	Step     int    `json:"step"`
	Role     string `json:"role,omitempty"`
	Passages int    `json:"passages"`
	Changed  bool   `json:"changed"`
	Reason   string `json:"reason,omitempty"` // why it changed nothing
	Invented []int  `json:"invented"`         // labels cited and never shown, which were taken out
	Lost     []int  `json:"lost"`             // labels of the answer before that it no longer cites
}

// A Cost is what an answer took of a model.
type Cost struct {
	Calls            int `json:"calls"`
	JudgeCalls       int `json:"judge_calls"`
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
}

// Seconds are how long an answer took. Whole is from the question to the end of
// the stream; the others are parts of it, 0 where it did not come to them.
type Seconds struct {
	Search float64 `json:"search"`      // until the passages were found
	Gate   float64 `json:"gate"`        // from there until the last was judged
	Write  float64 `json:"write"`       // from there to the end
	First  float64 `json:"first_token"` // from the question to the first text of an answer
	Whole  float64 `json:"whole"`
}
