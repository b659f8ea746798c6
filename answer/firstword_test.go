package answer_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

// TestCallsBeforeFirstWord counts the requests to the model's server before the first text
// of an answer: one writes the answer, and another goes to a judge unless code clears the
// first statement.
func TestCallsBeforeFirstWord(t *testing.T) {
	for _, test := range datatest.Table[struct {
		Name, Reply   string
		Gate          answer.GateKind
		Before, Total int32
	}](t, "testdata/tables.txt", "first words") {
		synctest.Test(t, func(t *testing.T) {
			calls, before := atomic.Int32{}, int32(0)
			h := &openaitest.Handler{PerToken: 50 * time.Millisecond, Reply: func(r openaitest.Request) openaitest.Reply {
				calls.Add(1)
				if r.Role == "verify" {
					return openaitest.Reply{Text: "yes"}
				}
				return openaitest.Reply{Text: test.Reply}
			}}
			a := &answer.Answerer{Retriever: twelvePassages(), Model: piped(t, h, -1), Gate: test.Gate, Unproved: answer.UnprovedDrop}
			for e, err := range a.Ask(t.Context(), answer.Question{Text: "What is the mooring fee of jetty 1?"}) {
				must(t, err)
				if _, is := e.(answer.Text); is && before == 0 {
					before = calls.Load()
				}
			}
			if before != test.Before || calls.Load() != test.Total {
				t.Errorf("%s: %d calls before the first word and %d in all, want %d and %d", test.Name, before, calls.Load(), test.Before, test.Total)
			}
		})
	}
}
