package answer

import (
	"ibid/answer/replay"
	"ibid/retrieve"
)

// A Question is a question and the options to answer it.
type Question struct {
	Text string
	// History holds the earlier turns, oldest first.
	History []Turn
	// CitedUnder is the heading path that the last answer cited first, or empty if
	// unknown. If the last question is short, a follow-up is searched with the path's
	// words too.
	CitedUnder string
	// Strategy names one of [Strategies]; an unknown name is an error. "auto" or empty is
	// refine if a model is set, else extract.
	Strategy string
	// TopK is how many passages to search for; 0 means retrieve.DefaultK. The strategy
	// refine first reads the passages that most likely answer the question. If the
	// model finds no answer there, it reads the remaining ones and more from a wider
	// search.
	TopK   int
	Filter retrieve.Filter
	// Style says how the reply should sound and look: its tone, length, form or
	// language, in free words. Only prompts whose reply the reader sees show it; no
	// verdict and no search depends on it. It may use an eighth of the context window;
	// if it is longer, it is cut with a Warning. It has no effect without a model.
	Style string
	// Recorder, if not nil, makes the question resumable after a crash.
	Recorder *replay.Recorder
}

// A Turn is one earlier message of a conversation.
type Turn struct {
	Role    string `json:"role"` // "user" or "assistant"
	Content string `json:"content"`
}
