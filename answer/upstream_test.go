package answer_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/openai/openaitest"
	"ibid/ingest"
	"ibid/retrieve"
)

type passages []retrieve.Passage

func (p passages) Search(context.Context, retrieve.Query) ([]retrieve.Passage, error) { return p, nil }

func twelve() passages {
	var out passages
	for i := range 12 {
		text := fmt.Sprintf("Rule %d of the harbour says what to do with the mooring fee.", i+1)
		if i%3 == 0 {
			text = fmt.Sprintf("The mooring fee of jetty %d is %d marks a season.", i+1, 100+i)
		}
		out = append(out, retrieve.Passage{
			Chunk: ingest.Chunk{ID: fmt.Sprintf("r/%d#1", i+1), Document: fmt.Sprintf("r/%d", i+1), Text: text},
			Title: fmt.Sprintf("Paper %d", i+1), Scores: retrieve.Scores{Dense: .5, Lexical: .5, Coverage: .5},
		})
	}
	return out
}

// The whole way over real HTTP: reasoning is taken off, judges are cut as soon
// as their word is known, drafts and text stream, tokens are counted.
func TestAskOverHTTP(t *testing.T) {
	h := &openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Prompt: regexp.MustCompile(`marks a season`), Reply: openaitest.Reply{Text: "yes\n" + strings.Repeat("because it says so ", 20000)}},
		openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "no\nno amount in it", Reasoning: "Hm, let me see."}},
		openaitest.Rule{Role: "answer", Reply: openaitest.Reply{Text: "100 marks.[1]", Reasoning: "Let me think: [3]."}},
		openaitest.Rule{Role: "refine", Times: 1, Reply: openaitest.Reply{Text: "NO CHANGE"}},
		openaitest.Rule{Role: "refine", Reply: openaitest.Reply{Text: "From 100[1] to 106 marks.[3]"}},
	)}
	client, err := openai.New(openai.Options{BaseURL: openaitest.Start(t, h), Model: "test-model"})
	if err != nil {
		t.Fatal(err)
	}
	a := &answer.Answerer{Retriever: twelve(), Model: client, Gate: answer.GateModel, StepPassages: 1, AnswerCalls: 3}
	var kinds []string
	var text, drafts strings.Builder
	var usage answer.Usage
	for e, err := range a.Ask(t.Context(), answer.Question{Text: "What is the mooring fee?"}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != e.Kind() {
			kinds = append(kinds, e.Kind())
		}
		switch e := e.(type) {
		case answer.Judged:
			if e.Decision == answer.Irrelevant && e.Reason != "no amount in it" {
				t.Errorf("%s: reason %q", e.Passage, e.Reason)
			}
		case answer.Text:
			text.WriteString(e.Text)
		case answer.Draft:
			drafts.WriteString(e.Text)
		case answer.Usage:
			usage = e
		}
	}
	if got := strings.Join(kinds, " "); got != "retrieved judged kept stepped draft stepped text stepped usage" {
		t.Errorf("the events were %s", got)
	}
	if text.String() != "From 100[1] to 106 marks.[3]" || drafts.String() != "100 marks.[1]" {
		t.Errorf("text %q, drafts %q", text.String(), drafts.String())
	}
	if usage.JudgeCalls != 12 || usage.Calls != 15 || usage.Looked != 12 || usage.Used != 2 || usage.ReasoningTokens == 0 {
		t.Errorf("usage %+v", usage)
	}
	var judges, sent int
	for _, x := range h.Exchanges() {
		if x.Role == "judge" {
			judges++
			sent += x.Sent
		}
	}
	if judges != 12 || sent > 100000 {
		t.Errorf("%d judges sent %d tokens: they were not cut", judges, sent)
	}
}

// A model's server that is not there is an error at the first call that
// needs it, in words that name it.
func TestAskServerDown(t *testing.T) {
	for _, gate := range []answer.GateKind{answer.GateModel, answer.GateOff} {
		client, err := openai.New(openai.Options{BaseURL: "http://127.0.0.1:1/v1", Model: "test-model", Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		a := &answer.Answerer{Retriever: twelve(), Model: client, Gate: gate}
		var last error
		for e, err := range a.Ask(t.Context(), answer.Question{Text: "What is the mooring fee?"}) {
			if last = err; e != nil && (e.Kind() == "text" || e.Kind() == "unanswered") {
				t.Errorf("gate %s: %s from a server that is not there", gate, e.Kind())
			}
		}
		if last == nil || !strings.Contains(last.Error(), "127.0.0.1:1") {
			t.Errorf("gate %s: the stream ended with %v", gate, last)
		}
	}
}
