package answer

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// A script is a Model that gets its replies from a function and splits them into pieces by
// another. It records its calls.
type script struct {
	reply  func(p Prompt) (text string, err error)
	cut    func(text string) []string // nil: in one piece
	finish string                     // empty: "stop"
	usage  Tokens

	mu    sync.Mutex
	calls []Prompt
	left  int // calls that were canceled
}

func (s *script) Complete(ctx context.Context, p Prompt) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		s.mu.Lock()
		s.calls = append(s.calls, p)
		text, err := s.reply(p)
		s.mu.Unlock()
		pieces := []string{text}
		if s.cut != nil {
			pieces = s.cut(text)
		}
		for _, piece := range pieces {
			if ctx.Err() != nil {
				yield(Piece{}, ctx.Err())
				return
			}
			if piece != "" && !yield(Piece{Text: piece}, nil) {
				s.mu.Lock()
				s.left++
				s.mu.Unlock()
				return
			}
		}
		if err != nil {
			yield(Piece{}, err)
			return
		}
		finish := s.finish
		if finish == "" {
			finish = "stop"
		}
		yield(Piece{Finish: finish, Usage: s.usage}, nil)
	}
}

// made returns the number of calls.
func (s *script) made() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

var errDown = errors.New("cannot reach the model")

type downError struct{}

func (downError) Error() string          { return "cannot reach http://localhost:1" }
func (downError) Unusable() bool         { return true }
func (downError) Fallback() string       { return "" }
func (downError) Limit() string          { return "" }
func (downError) RetryIn() time.Duration { return 0 }
