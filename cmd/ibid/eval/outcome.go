package eval

// An Outcome is the result of asking one question: all that figures are computed
// from, and the trace in which a person sees what went wrong.
type Outcome struct {
	// Question names documents as the store does, if the store has them.
	Question Question `json:"question"`
	Status   Status   `json:"status"`
	Cause    Cause    `json:"cause,omitempty"` // of a failure
	// Missing are the documents of the question that are not in the store.
	Missing []string `json:"missing,omitempty"`
	// Why says what is wrong, the cause first.
	Why []string `json:"why"`

	Retrieved []Passage `json:"retrieved"` // best first
	Answered  bool      `json:"answered"`
	// Incomplete means that the text ends before the answer did.
	Incomplete  bool       `json:"incomplete,omitempty"`
	Reason      string     `json:"reason,omitempty"` // of a refusal or an incomplete answer
	Text        string     `json:"text"`
	Sources     []Source   `json:"sources"`
	Citations   []Citation `json:"citations"`
	Unsupported []Sentence `json:"unsupported"`
	Drafts      []Draft    `json:"drafts"`
	Steps       []Step     `json:"steps"`
	Warnings    []string   `json:"warnings"`
	// Error is why there is no answer; empty if there is one.
	Error   string  `json:"error,omitempty"`
	Cost    Cost    `json:"cost"`
	Seconds Seconds `json:"seconds"`
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
	Page     int     `json:"page,omitempty"`      // where it begins; 0 without pages
	LastPage int     `json:"last_page,omitempty"` // where it ends
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
	// Right means that it contains one of the question's quotes; if there are
	// none, that it is on one of its pages; if there are none, that it is from one
	// of its documents.
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

// A Draft is an earlier version of the answer.
type Draft struct {
	Step int    `json:"step"`
	Text string `json:"text"`
}

// A Step is one call to the model that writes the answer.
type Step struct {
	Step     int    `json:"step"`
	Role     string `json:"role,omitempty"`
	Passages int    `json:"passages"`
	Changed  bool   `json:"changed"`
	Reason   string `json:"reason,omitempty"` // why it changed nothing
	Invented []int  `json:"invented"`         // labels that were cited but never shown, removed
	Lost     []int  `json:"lost"`             // labels of the draft before that are no longer cited
}

// A Cost is an answer's use of models.
type Cost struct {
	Calls            int `json:"calls"`
	JudgeCalls       int `json:"judge_calls"`
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
}

func (c *Cost) add(other Cost) {
	c.Calls += other.Calls
	c.JudgeCalls += other.JudgeCalls
	c.PromptTokens += other.PromptTokens
	c.CompletionTokens += other.CompletionTokens
}

// A Price is the cost of a million tokens, in any currency.
type Price struct {
	In  float64 `json:"in"`  // of prompts
	Out float64 `json:"out"` // of replies
}

// Of returns the price of a cost.
func (p Price) Of(c Cost) float64 {
	return (p.In*float64(c.PromptTokens) + p.Out*float64(c.CompletionTokens)) / 1e6
}

// Seconds are the durations of an answer. Whole lasts from the question to the
// end of the stream; the others are parts of it, 0 if they were not reached.
type Seconds struct {
	Search float64 `json:"search"`      // until the passages were found
	Gate   float64 `json:"gate"`        // from there until the last was judged
	Write  float64 `json:"write"`       // from there to the end
	First  float64 `json:"first_token"` // from the question to the first text
	Whole  float64 `json:"whole"`
}
