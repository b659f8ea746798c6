package answer

import (
	"errors"
	"time"
)

// A QuestionError says why a question is not valid. The client must change it: a
// web server would reply 400, a command exit with 2.
type QuestionError struct {
	Code string // "empty", "too_long", "strategy", "history" or "top_k"; of a summary "model" or "max_words" too
	Msg  string // for people, with the next step
}

func (e *QuestionError) Error() string { return e.Msg }

// MaxQuestionBytes is the longest question, in bytes.
const MaxQuestionBytes = 16 << 10

// A failure is the error of a model, for programs.
type failure interface {
	// Unusable reports that the model cannot be used at all: its server is unreachable,
	// or refuses the key. No further call is made.
	Unusable() bool
	// Fallback names why sentences are quoted in place of the model's answer; empty
	// where they are not.
	Fallback() string
	// Limit says which time limit of a call passed; empty for the time of the whole
	// answer.
	Limit() string
	// RetryIn is how long to wait before the call is repeated; less than 0 means that
	// repeating it is of no use.
	RetryIn() time.Duration
}

func isUnusable(err error) bool    { return failureValue(err, failure.Unusable) }
func passedLimit(err error) string { return failureValue(err, failure.Limit) }

func fallbackReason(err error) string {
	if isWordless(err) {
		return "model_failed"
	}
	return failureValue(err, failure.Fallback)
}

// failureValue returns what a model's error says; nothing for any other error.
func failureValue[T any](err error, by func(failure) T) (nothing T) {
	if f := failure(nil); errors.As(err, &f) {
		return by(f)
	}
	return nothing
}
