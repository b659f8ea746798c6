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
	// Complete streams the reply: pieces of text, then one last piece that
	// carries the finish reason and the usage. The sequence is lazy and
	// single-use. An error ends it; a reply that ended without a finish
	// reason is an error. Breaking out of the range closes the call at once.
	// The piece that comes with an error has no text, but the usage so far.
	Complete(ctx context.Context, p Prompt) iter.Seq2[Piece, error]
}

// A Role names what a call is for; it is sent upstream in the header Ibid-Role.
type Role string

// The roles.
const (
	RoleJudge    Role = "judge"
	RoleAnswer   Role = "answer"
	RoleRefine   Role = "refine"
	RoleVerify   Role = "verify"
	RoleMap      Role = "map"
	RoleCollapse Role = "collapse"
	RoleCombine  Role = "combine"
	RoleRerank   Role = "rerank"
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
	// MaxTokens bounds the reply; 0 leaves it to the server. Thoughts do not
	// count: for a server that counts them, a Model makes sure that a reply
	// comes, unless Hard is set.
	MaxTokens int
	// Verdict says that a yes or no is asked for, and nothing else: a Model gets the
	// odds of the two, or restricts the reply, as far as its server can.
	Verdict bool
	// Hard lets MaxTokens bound thoughts too, even if no reply is left then.
	Hard bool
}

// A Piece is the next part of a model's reply.
type Piece struct {
	Text string
	// Yes is the chance of a yes against a no, above 0 and below 1, on the pieces of
	// a verdict; 0 where it is not known.
	Yes float64
	// Finish is "stop" or "length" on the last piece, else empty.
	Finish string
	// Usage is what the call cost: in all on the last piece and with an error;
	// on the pieces before without the prompt and the text of the reply, which
	// leaves thoughts and failed requests.
	Usage Tokens
}

// Tokens counts the tokens of one call. Reported is false when the server
// sent no usage and the counts are Ibid's own.
type Tokens struct {
	Prompt, Completion, Reasoning int
	Reported                      bool
	// Requests is how many requests the call took, repetitions included; 0
	// when it was refused before the first.
	Requests int
}
