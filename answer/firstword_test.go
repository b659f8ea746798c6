package answer_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
	"ibid/answer/openai/openaitest"
)

// TestCallsBeforeFirstWord counts the requests that a model's server gets before the first
// text of an answer: the one that writes it, and another to a judge only where code does
// not clear the first statement.
func TestCallsBeforeFirstWord(t *testing.T) {
	const borneOut, judged = "The mooring fee of jetty 1 is 100 marks a season.[1]", "Gulls never pay it, because nobody can catch them.[1]"
	for _, test := range []struct {
		name, reply   string
		gate          answer.GateKind
		before, total int32
	}{
		{"the first statement cleared by code", borneOut + " " + judged, answer.GateAuto, 1, 2},
		{"the first statement left to a judge", judged + " " + borneOut, answer.GateAuto, 2, 2},
		{"no judge", judged + " " + borneOut, answer.GateScore, 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls, before := atomic.Int32{}, int32(0)
			h := &openaitest.Handler{PerToken: 50 * time.Millisecond, Reply: func(r openaitest.Request) openaitest.Reply {
				calls.Add(1)
				if r.Role == "verify" {
					return openaitest.Reply{Text: "yes"}
				}
				return openaitest.Reply{Text: test.reply}
			}}
			a := &answer.Answerer{Retriever: twelve(), Model: piped(t, h, -1), Gate: test.gate, Unproved: answer.UnprovedDrop}
			for e, err := range a.Ask(t.Context(), answer.Question{Text: "What is the mooring fee of jetty 1?"}) {
				must(t, err)
				if _, is := e.(answer.Text); is && before == 0 {
					before = calls.Load()
				}
			}
			if before != test.before || calls.Load() != test.total {
				t.Errorf("%s: %d calls before the first word, %d in all", test.name, before, calls.Load())
			}
		})
	}
}
