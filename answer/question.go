package answer

import "ibid/retrieve"

// A Question is what a person asks.
type Question struct {
	Text string
	// History holds the turns before it, oldest first.
	History []Turn
	// Strategy is how evidence becomes an answer; an unknown one is an error.
	//
	//   - "auto" or empty: extract without a model; with one, one call if
	//     everything fits it, else refine
	//   - "refine": a draft from the first passages, refined with the others
	//   - "stuff": one call with as many passages as fit it
	//   - "map-reduce": an answer from each part alone, then one from those
	//   - "map-rerank": the best answer from one passage, by the model's score
	//   - "extract": quoted sentences, without a model
	Strategy string
	// TopK is how many passages to look at; 0 means retrieve.DefaultK.
	TopK int
	// Diversity is that of [retrieve.Query], 0 to below 1.
	Diversity float64
	Filter    retrieve.Filter
	// Style says how the reply should sound and look: its tone, length, form or
	// language, in anybody's words. It is shown where the answer is written, and
	// nowhere else: no verdict, and not what is searched, hangs on it. Of one
	// that takes more than an eighth of the context window the rest is left
	// out, and a Warning tells of it. Without a model it does nothing.
	Style string
	// Run makes the question one that can be taken up again after a crash;
	// nil for one that cannot.
	Run *Run
}

// A Turn is one earlier message of a conversation.
type Turn struct {
	Role    string `json:"role"` // "user" or "assistant"
	Content string `json:"content"`
}
