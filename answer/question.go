package answer

import "ibid/retrieve"

// A Question is what a person asks.
type Question struct {
	Text string
	// History holds the turns before it, oldest first.
	History []Turn
	// Strategy is how evidence becomes an answer: "auto" (or empty),
	// "refine", "extract" …; an unknown one is an error.
	Strategy string
	// TopK is how many passages to look at; 0 means retrieve.DefaultK.
	TopK   int
	Filter retrieve.Filter
}

// A Turn is one earlier message of a conversation.
type Turn struct {
	Role    string `json:"role"` // "user" or "assistant"
	Content string `json:"content"`
}
