package answer_test

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

// chatFaults are faults of the scripted server, of every kind.
var chatFaults = []openaitest.Fault{
	"", openaitest.RateLimit, openaitest.RateLimitLong, openaitest.Quota, openaitest.ServerError, openaitest.Overloaded, openaitest.BadRequest,
	openaitest.ContextLength, openaitest.ContentFilter, openaitest.Unauthorized, openaitest.NoModel, openaitest.NoStreamOptions, openaitest.Redirect,
	openaitest.HeaderStall, openaitest.HangUp, openaitest.NotHTTP, openaitest.HugeHeader, openaitest.HTML, openaitest.ErrorString, openaitest.Empty,
	openaitest.HugeBody, openaitest.ShortBody, openaitest.LongBody, openaitest.FirstTokenStall, openaitest.KeepAliveForever, openaitest.MiddleStall,
	openaitest.Reset, openaitest.ResetFirst, openaitest.NoFinish, openaitest.NoUsage, openaitest.PlainJSON, openaitest.HugeLine, openaitest.HugeText,
}

// Bad replies that are no fault of a server.
const (
	cutByLength openaitest.Fault = "cut by its length"
	wordless    openaitest.Fault = "nothing but thoughts"
	filtered    openaitest.Fault = "finish_reason content_filter"
)

// broken makes a bad reply.
func broken(r openaitest.Reply, fault openaitest.Fault) openaitest.Reply {
	switch fault {
	case cutByLength:
		r.Text, r.Finish = r.Text[:len(r.Text)/2], "length"
	case wordless:
		r.Text, r.Reasoning, r.Finish = "", "Let me think about the fee.", "length"
	case filtered:
		r.Text, r.Finish = r.Text[:len(r.Text)/2], "content_filter"
	default:
		r.Fault = fault
	}
	return r
}

// wholeReplies are the good replies.
var wholeReplies = map[string]string{
	"answer":   "The mooring fee of jetty one is 100 marks a season, as the paper says.",
	"refine":   "The fee is 100 marks a season, and all boats that lie there have to pay it.",
	"map":      "This part of the papers says that the fee is 100 marks a season.",
	"collapse": "The parts say that the fee is 100 marks a season.",
	"combine":  "Taken together, the papers say that the fee is 100 marks a season.",
	"rerank":   "One paper alone says that the fee is 100 marks a season.",
}

// TestEveryFaultInEveryStrategy plays the faults of a model's server, and other
// bad replies, to every strategy: at each call, at the first, and at the last.
// The result is a whole answer, the beginning of one that says so, or an error of
// a known kind in place of an answer. Nothing follows the end, and nothing is
// left running.
func TestEveryFaultInEveryStrategy(t *testing.T) {
	fellBack := false
	label := regexp.MustCompile(`\[\d+\](\(id=\d*\))?`)
	for _, strategy := range []string{"refine", "stuff", "map-reduce", "map-rerank", "summarize refine", "summarize map-reduce"} {
		ask := func(t *testing.T, fault openaitest.Fault, at func(call int) bool) (calls int, problem string) {
			h := &openaitest.Handler{Huge: 8 << 20}
			h.Reply = func(r openaitest.Request) openaitest.Reply {
				text := wholeReplies[r.Role] + "[1]"
				if r.Role == "rerank" {
					text += "\nScore: 70"
				}
				reply := openaitest.Reply{Text: text, Location: "http://elsewhere.test/v1"}
				if at(r.N) {
					return broken(reply, fault)
				}
				return reply
			}
			client, err := openai.New(openai.Options{BaseURL: openaitest.PipeURL, Transport: openaitest.Pipe(t, h), Model: "test-model", Retries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			fellBack = false
			a := &answer.Answerer{Retriever: twelve()[:2], Model: client, Gate: answer.GateOff, StepPassages: 1, Parallel: 1}
			var events iter.Seq2[answer.Event, error]
			if way, ok := strings.CutPrefix(strategy, "summarize "); ok {
				events = a.Summarize(t.Context(), answer.Summary{Passages: twelve()[:2], Strategy: way})
			} else {
				events = a.Ask(t.Context(), answer.Question{Text: "What is the mooring fee?", Strategy: strategy})
			}
			watched := func(yield func(answer.Event, error) bool) {
				for e, err := range events {
					if f, ok := e.(answer.Fallback); ok {
						fellBack = f.Reason != "" && !strings.HasPrefix(strategy, "summarize ")
					}
					if !yield(e, err) {
						return
					}
				}
			}
			problem = judgeStream(watched, func(text string) bool {
				if fellBack { // to quotes
					return text != ""
				}
				text = strings.TrimSpace(label.ReplaceAllString(text, ""))
				return slices.ContainsFunc([]string{"answer", "refine", "combine", "rerank"}, func(role string) bool { return text == wholeReplies[role] })
			})
			return len(h.Exchanges()), problem
		}
		calls := 0
		synctest.Test(t, func(t *testing.T) { calls, _ = ask(t, "", func(int) bool { return false }) })
		if calls == 0 {
			t.Fatalf("%s makes no call", strategy)
		}
		for _, fault := range datatest.Pick(t, append(slices.Clone(chatFaults), cutByLength, wordless, filtered)) {
			for _, where := range []struct {
				name string
				at   func(int) bool
			}{
				{"at every call", func(int) bool { return true }},
				{"at the first call", func(n int) bool { return n == 1 }},
				{"at the last call", func(n int) bool { return n == calls }},
			} {
				if calls == 1 && where.name != "at every call" {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					if _, problem := ask(t, fault, where.at); problem != "" {
						t.Errorf("%s, fault %q %s: %s", strategy, fault, where.name, problem)
					}
				})
			}
		}
	}
}

// judgeStream reads a stream to its end and describes what is wrong with it, if
// anything. whole reports whether a text is a whole answer.
func judgeStream(events iter.Seq2[answer.Event, error], whole func(string) bool) (problem string) {
	text, incomplete, ended := "", "", false
	for e, err := range events {
		if ended {
			return fmt.Sprintf("%v, %v after the end", e, err)
		}
		if err != nil {
			ended = true
			if known := (*openai.Error)(nil); !errors.As(err, &known) && !strings.Contains(err.Error(), "before a word of it was said") && !strings.Contains(err.Error(), "content filter") {
				return fmt.Sprintf("an error of no known kind: %v", err)
			}
			if text != "" {
				return fmt.Sprintf("an error after the text %q: %v", text, err)
			}
			continue
		}
		switch e := e.(type) {
		case answer.Text:
			if incomplete != "" {
				return fmt.Sprintf("the text %q after the end of the answer", e.Text)
			}
			text += e.Text
		case answer.Incomplete:
			if incomplete != "" {
				return "it is said twice that the answer is incomplete"
			}
			if incomplete = e.Reason; incomplete == "" {
				return "nothing says why the answer is incomplete"
			}
		case answer.Unanswered:
			return "it is said that there is no answer, which no model said"
		case answer.Usage:
			ended = true
			if incomplete == "" && !whole(text) {
				return fmt.Sprintf("shown as complete: %q", text)
			}
		}
	}
	if !ended {
		return "it has no end"
	}
	return ""
}
