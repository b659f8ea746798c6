package main

import (
	"context"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
	"ibid/answer/trial"
)

// A chatty model says the same to all prompts.
type chatty struct{ called func() }

func (m chatty) Complete(context.Context, answer.Prompt) iter.Seq2[answer.Piece, error] {
	return func(yield func(answer.Piece, error) bool) {
		m.called()
		if yield(answer.Piece{Text: "Perhaps."}, nil) {
			yield(answer.Piece{Finish: "stop"}, nil)
		}
	}
}

// A model is tried after the first question, while none is being answered, and then
// believed as far as it deserves.
func TestSelfTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var test *selfTest
		calls := 0
		var kept []trial.Result
		test = &selfTest{
			models: answer.Answerer{Model: chatty{func() {
				if calls++; test.active > 0 {
					t.Error("the model was tried while a question was being answered")
				}
			}}},
			logger: slog.New(slog.DiscardHandler),
			keep:   func(_ context.Context, r trial.Result) error { kept = append(kept, r); return nil },
		}
		go test.run(t.Context())
		time.Sleep(time.Hour)
		if calls != 0 {
			t.Errorf("%d calls before the first question", calls)
		}
		trust, end := test.question()
		if trust != (answer.Trust{}) {
			t.Errorf("%+v before the test", trust)
		}
		end()
		_, end = test.question()
		time.Sleep(time.Hour)
		if calls != 0 {
			t.Errorf("%d calls during a question", calls)
		}
		end()
		time.Sleep(time.Hour)
		synctest.Wait()
		if trust, _ = test.question(); !trust.NoJudge || !strings.Contains(trust.Distrust, "0 of 4") || len(kept) != 1 {
			t.Errorf("%+v after %d calls; kept %+v", trust, calls, kept)
		}
	})
}
