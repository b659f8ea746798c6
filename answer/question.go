package answer

import (
	"ibid/answer/replay"
	"ibid/retrieve"
)

// A Question is what a person asks.
type Question struct {
	Text string
	// History holds the turns before it, oldest first.
	History []Turn
	// CitedUnder is the heading path that the last answer cited first; empty if it is
	// not known. A follow-up to a question of few words is searched with its words too.
	CitedUnder string
	// Strategy names one of [Strategies]; an unknown name is an error. "auto" or empty is
	// refine with a model and extract without one.
	Strategy string
	// TopK is how many passages to search for; 0 means retrieve.DefaultK. The strategy
	// refine reads those that most likely answer, and the others, and passages further
	// down, when the model finds no answer in them.
	TopK   int
	Filter retrieve.Filter
	// Style says how the reply should sound and look: its tone, length, form or
	// language, in free words. Only prompts for what the reader sees show it: no
	// verdict and no search depends on it. At most an eighth of the context
	// window is used, and a Warning says if more was cut off. It has no effect
	// without a model.
	Style string
	// Recorder makes the question one that can be resumed after a crash; nil
	// for one that cannot.
	Recorder *replay.Recorder
}

// A Turn is one earlier message of a conversation.
type Turn struct {
	Role    string `json:"role"` // "user" or "assistant"
	Content string `json:"content"`
}
