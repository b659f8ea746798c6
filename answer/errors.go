package answer

import (
	"errors"
	"time"
)

// A QuestionError says why a question is not valid. The client must change it: a
// web server would reply 400, a command exit with 2.
type QuestionError struct {
	Code string // "empty", "too_long", "strategy", "history" or "top_k"; for summaries also "model" or "max_words"
	Msg  string // for people, with the next step
}

func (e *QuestionError) Error() string { return e.Msg }

// MaxQuestionBytes is the longest question, in bytes.
const MaxQuestionBytes = 16 << 10

// A failure is an error of a model. Its methods say how to react.
type failure interface {
	// Unusable reports that the model cannot be used, since its server is unreachable
	// or refuses the key. No further call is made.
	Unusable() bool
	// Fallback is the [Fallback.Reason] for quoting sentences in place of the model's
	// answer, or "" if sentences are not quoted.
	Fallback() string
	// Limit says which time limit of the call expired, or is "".
	Limit() string
	// RetryIn is how long to wait before a retry; less than 0 means that a retry
	// would fail too.
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

// failureValue returns the result of a method of a model's error, or the zero value
// for any other error.
func failureValue[T any](err error, by func(failure) T) (nothing T) {
	if f := failure(nil); errors.As(err, &f) {
		return by(f)
	}
	return nothing
}
