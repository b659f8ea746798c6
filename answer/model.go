package answer

import (
	"context"
	"errors"
	"iter"
)

// ErrContextLength is wrapped by a model's error about a prompt that is longer
// than its context window: a shorter one may succeed.
var ErrContextLength = errors.New("the prompt is longer than the model's context window")

// A Model answers prompts.
type Model interface {
	// Complete streams the reply: pieces of text, then a last piece with the
	// finish reason and the usage. The sequence is lazy and single-use. An error
	// ends it; a reply without a finish reason is an error. The piece that comes
	// with an error has the usage so far, and no text. Breaking out of the range
	// closes the call at once.
	Complete(ctx context.Context, p Prompt) iter.Seq2[Piece, error]
}

// A Role names the purpose of a call; it is sent to the server in the header Ibid-Role.
type Role string

// The roles that several files use. A role that only one strategy uses is in the
// strategy's file.
const (
	RoleJudge    Role = "judge"
	RoleAnswer   Role = "answer"
	RoleRefine   Role = "refine"
	RoleVerify   Role = "verify"
	RoleMap      Role = "map"
	RoleCollapse Role = "collapse"
	RoleCombine  Role = "combine"
	RoleCondense Role = "condense"
	RoleChat     Role = "chat"
	// RoleTranslate is for a question in another language than the documents.
	RoleTranslate Role = "translate"
	RoleSuggest   Role = "suggest"
)

// A Prompt is one request to a model.
type Prompt struct {
	Role   Role
	System string
	User   string
	// MaxTokens limits the reply; 0 leaves it to the server. Thoughts do not
	// count: for a server that counts them, a Model leaves room for the reply,
	// unless Hard is set.
	MaxTokens int
	// Verdict says that the reply must be a yes or no. A Model asks the server for
	// the odds of the two, or restricts the reply, if the server can do that.
	Verdict bool
	// Hard makes MaxTokens limit thoughts too, although the reply may then be empty.
	Hard bool
}

// A Piece is the next part of a model's reply.
type Piece struct {
	Text string
	// Yes is the chance of a yes against a no, between 0 and 1, on the pieces of a
	// verdict; 0 if it is unknown.
	Yes float64
	// Finish is "stop" or "length" on the last piece, else empty.
	Finish string
	// Usage is the cost of the call on the last piece and with an error. On earlier
	// pieces it has only the cost of thoughts and failed requests.
	Usage Tokens
}

// Tokens counts the tokens of one call. Reported is false if the server sent no
// usage and the counts are Ibid's own.
type Tokens struct {
	Prompt, Completion, Reasoning int
	Reported                      bool
	// Requests is how many requests the call took, including retries; 0 if the
	// call was refused before the first one.
	Requests int
}
