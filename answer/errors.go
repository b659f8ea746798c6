package answer

import "time"

// A QuestionError says why a question cannot be asked at all. It is the
// asker's to mend: a web server would answer 400, a command exit with 2.
type QuestionError struct {
	Code string // "empty", "too_long", "strategy", "history" or "top_k"; of a summary "model" or "max_words" too
	Msg  string // for people, with the next step
}

func (e *QuestionError) Error() string { return e.Msg }

// MaxQuestionBytes is the longest question, in bytes.
const MaxQuestionBytes = 16 << 10

// An unusable error is one that says, by a method Unusable, that the model as
// a whole cannot be used: its server is not there, or it refuses the key. No
// further call is made after one.
type unusable interface{ Unusable() bool }

// A limited error says, by a method Limit, which of the time limits of a call
// passed; empty when it was the time for the whole answer.
type limited interface{ Limit() string }

// A delayed error says, by a method RetryIn, how long to wait before the same
// call is made again; less than 0 says that it is of no use.
type delayed interface{ RetryIn() time.Duration }
