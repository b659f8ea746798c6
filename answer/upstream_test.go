package answer_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

var must = datatest.Must

type passages []retrieve.Passage

func (p passages) Search(context.Context, retrieve.Query) ([]retrieve.Passage, error) { return p, nil }

func twelvePassages() passages {
	var out passages
	for i := range 12 {
		text := fmt.Sprintf("Rule %d of the harbour says what to do with the mooring fee.", i+1)
		if i%3 == 0 {
			text = fmt.Sprintf("The mooring fee of jetty %d is %d marks a season.", i+1, 100+i)
		}
		out = append(out, retrieve.Passage{
			Chunk: ingest.Chunk{ID: fmt.Sprintf("r/%d#1", i+1), Document: fmt.Sprintf("r/%d", i+1), Text: text},
			Title: fmt.Sprintf("Paper %d", i+1),
		})
	}
	return out
}

// piped returns a client of the handler over HTTP in memory.
func piped(t *testing.T, h *openaitest.Handler, retries int) *openai.Client {
	t.Helper()
	client, err := openai.New(openai.Options{BaseURL: openaitest.PipeURL, Transport: openaitest.Pipe(t, h), Model: "test-model",
		Retries: retries})
	must(t, err)
	t.Cleanup(client.Close)
	return client
}

// TestAskOverHTTP checks over real HTTP that thoughts are removed, judges are stopped after
// their verdict, drafts and text stream, and tokens are counted.
func TestAskOverHTTP(t *testing.T) {
	h := &openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Prompt: regexp.MustCompile(`marks a season`),
			Reply: openaitest.Reply{Text: "yes\n" + strings.Repeat("because it says so ", 20000)}},
		openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "no\nno amount in it", Reasoning: "Hm, let me see."}},
		openaitest.Rule{Role: "answer", Reply: openaitest.Reply{Text: "100 marks.[1]", Reasoning: "Let me think: [3]."}},
		openaitest.Rule{Role: "refine", Times: 1, Reply: openaitest.Reply{Text: "NO CHANGE"}},
		openaitest.Rule{Role: "refine", Reply: openaitest.Reply{Text: "From 100[1] to 106 marks.[3]"}},
	)}
	client, err := openai.New(openai.Options{BaseURL: openaitest.Start(t, h), Model: "test-model"})
	must(t, err)
	a := &answer.Answerer{Retriever: twelvePassages(), Model: client, Gate: answer.GateModel, StepTokens: 1, AnswerCalls: 3}
	var kinds []string
	var text, drafts strings.Builder
	var usage answer.Usage
	for e, err := range a.Ask(t.Context(), answer.Question{Text: "What is the mooring fee?"}) {
		must(t, err)
		if len(kinds) == 0 || kinds[len(kinds)-1] != e.Kind() {
			kinds = append(kinds, e.Kind())
		}
		switch e := e.(type) {
		case answer.Judged:
			if e.Decision == answer.Irrelevant && e.Reason != "the model says no" {
				t.Errorf("%s: reason = %q", e.Passage, e.Reason)
			}
		case answer.Text:
			text.WriteString(e.Text)
		case answer.Draft:
			drafts.WriteString(e.Text)
		case answer.Usage:
			usage = e
		}
	}
	if got := strings.Join(kinds, " "); got != "retrieved judged kept stepped draft stepped revision text stepped usage" {
		t.Errorf("events = %s", got)
	}
	if text.String() != "From 100[1] to 106 marks.[3]" || drafts.String() != "100 marks.[1]" {
		t.Errorf("text = %q, drafts = %q", text.String(), drafts.String())
	}
	if usage.JudgeCalls != 12 || usage.Calls != 15 || usage.Looked != 12 || usage.Used != 2 || usage.ReasoningTokens == 0 {
		t.Errorf("usage = %+v", usage)
	}
	var judges, sent int
	for _, x := range h.Exchanges() {
		if x.Role == "judge" {
			judges++
			sent += x.Sent
		}
	}
	if judges != 12 || sent > 100000 {
		t.Errorf("%d judges sent %d tokens, want 12 that were stopped", judges, sent)
	}
}

// TestShortReplies checks that calls with short replies ask for short ones, and that a
// model that thinks before its verdict still gives it.
func TestShortReplies(t *testing.T) {
	for _, thoughts := range []string{"", strings.Repeat("Let me see what it says. ", 60)} {
		h := &openaitest.Handler{Reply: openaitest.Rules(
			openaitest.Rule{Role: "condense", Reply: openaitest.Reply{Text: "What is the mooring fee?", Reasoning: thoughts}},
			openaitest.Rule{Role: "judge", Prompt: regexp.MustCompile(`marks a season`), Reply: openaitest.Reply{Text: "yes", Reasoning: thoughts}},
			openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "no\n" + strings.Repeat("rambling", 5000), Reasoning: thoughts}},
			openaitest.Rule{Role: "rerank", Reply: openaitest.Reply{Text: "100 marks.[1]\nScore: 90", Reasoning: thoughts}},
			openaitest.Rule{Reply: openaitest.Reply{Text: "100 marks.[1]", Reasoning: thoughts}},
		)}
		client, err := openai.New(openai.Options{BaseURL: openaitest.Start(t, h), Model: "test-model"})
		must(t, err)
		a := &answer.Answerer{Retriever: twelvePassages(), Model: client, Gate: answer.GateModel}
		for _, strategy := range []string{"refine", "map-rerank"} {
			kept, text := 0, ""
			for e, err := range a.Ask(t.Context(), answer.Question{
				Text: "And what does it cost?", History: []answer.Turn{{Role: "user", Content: "What is a mooring?"}}, Strategy: strategy,
			}) {
				switch e := e.(type) {
				case answer.Retrieved:
					if e.Question != "What is the mooring fee?" {
						t.Errorf("searched for %q, want the question", e.Question)
					}
				case answer.Judged:
					if e.Decision == answer.Relevant {
						kept++
					} else if e.Decision != answer.Irrelevant || e.Calls != 1 {
						t.Errorf("verdict = %+v, want irrelevant after one call", e)
					}
				case answer.Text:
					text += e.Text
				}
				must(t, err)
			}
			if kept != 4 || text != "100 marks.[1]" {
				t.Errorf("%d passages kept, answer = %q; want 4 and the fee", kept, text)
			}
		}
		for _, x := range h.Exchanges() {
			short := x.Role == "judge" || x.Role == "condense" || x.Role == "rerank"
			if thoughts == "" && short != (x.MaxTokens > 0) {
				t.Errorf("%s call has max_tokens = %d", x.Role, x.MaxTokens)
			}
			if x.Role == "judge" && thoughts == "" && x.Sent > 64 {
				t.Errorf("a judge wrote %d tokens, want at most 64", x.Sent)
			}
		}
		client.Close()
	}
}

// TestAskServerDown checks that an unreachable model is an error at the first call that
// needs it, with the server's address, or a reason to quote sentences.
func TestAskServerDown(t *testing.T) {
	for _, gate := range []answer.GateKind{answer.GateModel, answer.GateOff} {
		client, err := openai.New(openai.Options{BaseURL: "http://127.0.0.1:1/v1", Model: "test-model", Retries: -1})
		must(t, err)
		a := &answer.Answerer{Retriever: twelvePassages(), Model: client, Gate: gate, NoFallback: true}
		var last error
		for e, err := range a.Ask(t.Context(), answer.Question{Text: "What is the mooring fee?"}) {
			if last = err; e != nil && (e.Kind() == "text" || e.Kind() == "unanswered") {
				t.Errorf("gate %s: event %s from an unreachable server", gate, e.Kind())
			}
		}
		if last == nil || !strings.Contains(last.Error(), "127.0.0.1:1") {
			t.Errorf("gate %s: err = %v, want it to name the server", gate, last)
		}
		a.NoFallback = false
		var seen []string
		history := []answer.Turn{{Role: "user", Content: "What is a mooring?"}}
		for e, err := range a.Ask(t.Context(), answer.Question{Text: "What is the mooring fee?", History: history}) {
			if err != nil {
				t.Fatalf("gate %s: err = %v", gate, err)
			}
			switch e := e.(type) {
			case answer.Fallback:
				seen = append(seen, e.Reason)
			case answer.Text, answer.Usage:
				seen = append(seen, e.Kind())
			}
		}
		if got := strings.Join(slices.Compact(seen), " "); got != "model_unreachable text usage" {
			t.Errorf("gate %s: events = %s", gate, got)
		}
	}
}

// judging asks a question for which a model must judge n passages, and returns the
// verdicts, the warnings and the requests of judges.
func judging(t *testing.T, h *openaitest.Handler, n int, change func(*answer.Answerer)) (judged []answer.Judged, warnings []string,
	requests []openaitest.Exchange) {
	t.Helper()
	a := &answer.Answerer{Retriever: twelvePassages()[:n], Model: piped(t, h, 0), Gate: answer.GateModel}
	if change != nil {
		change(a)
	}
	for e, err := range a.Ask(t.Context(), answer.Question{Text: "What is the mooring fee?"}) {
		if err != nil {
			break // if the model's answers fail too, there is no text
		}
		switch e := e.(type) {
		case answer.Judged:
			judged = append(judged, e)
		case answer.Warning:
			warnings = append(warnings, e.Message)
		}
	}
	for _, x := range h.Exchanges() {
		if x.Role == "judge" {
			requests = append(requests, x)
		}
	}
	return judged, warnings, requests
}

// TestFailingJudge checks that a failed judge call is repeated once, and that a server that
// fails all of them is soon no longer called.
func TestFailingJudge(t *testing.T) {
	for _, test := range datatest.Table[struct {
		Name               string
		Passages, Parallel int
		Budget             int
		Fault              openaitest.Fault
		Well               int // good replies before the failing ones
		Requests           int
		Unjudged           int
		Spread             int // number of further passages that may be in progress when the third has failed
	}](t, "testdata/tables.txt", "failing judges") {
		t.Run(test.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &openaitest.Handler{Reply: openaitest.Rules(
					openaitest.Rule{Role: "judge", Times: max(test.Well, 1), Func: func(openaitest.Request) openaitest.Reply {
						if test.Well > 0 {
							return openaitest.Reply{Text: "yes"}
						}
						return openaitest.Reply{Fault: test.Fault}
					}},
					openaitest.Rule{Reply: openaitest.Reply{Fault: test.Fault}},
				)}
				judged, warnings, requests := judging(t, h, test.Passages,
					func(a *answer.Answerer) { a.Parallel, a.JudgeCalls = test.Parallel, test.Budget })
				unjudged := 0
				for _, j := range judged {
					if j.By == "unjudged" {
						unjudged++
						if j.Calls != 0 || j.Decision == answer.Errored || j.Reason == "" {
							t.Errorf("unjudged passage = %+v", j)
						}
					}
				}
				more := test.Unjudged - unjudged
				if more < 0 || more > test.Spread || len(requests) != test.Requests+2*more {
					t.Errorf("%d requests and %d unjudged passages, want %d and %d", len(requests), unjudged, test.Requests, test.Unjudged)
				}
				said := 0
				for _, w := range warnings {
					if strings.Contains(w, "the judge cannot be used") {
						said++
					}
				}
				if want := min(1, test.Unjudged); said != want && test.Budget == 0 {
					t.Errorf("warnings = %q, want %d about the judge", warnings, want)
				}
			})
		})
	}
}

// TestJudgeWaitsAsAsked checks that the repetition of a judge call waits as long as the
// server asks.
func TestJudgeWaitsAsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &openaitest.Handler{Reply: openaitest.Rules(
			openaitest.Rule{Role: "judge", Times: 1, Reply: openaitest.Reply{Fault: openaitest.RateLimitSeconds}},
			openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "no"}},
		)}
		judged, _, requests := judging(t, h, 1, nil)
		if len(requests) != 2 || len(judged) != 1 || judged[0].Decision != answer.Irrelevant || judged[0].Calls != 2 {
			t.Fatalf("%d requests, want 2; verdicts = %+v", len(requests), judged)
		}
		if wait := requests[1].Start.Sub(requests[0].Start); wait < time.Second || wait > 1500*time.Millisecond {
			t.Errorf("second call after %v, want 1s as the server asked", wait)
		}
	})
}
