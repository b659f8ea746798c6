package answer_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"ibid/answer"
	"ibid/answer/openai/openaitest"
	"ibid/ingest"
)

// TestUsageOverHTTP checks that the usage is exact however the calls end: judges that are
// stopped after their verdict, repeated requests, calls that fail halfway, and servers that
// never read a prompt.
func TestUsageOverHTTP(t *testing.T) {
	thoughts := strings.Repeat("Let me see. ", 2)
	const text = "The mooring fee of the first jetty is 100 marks a season.[1] It is due when the season begins, and whoever " +
		"comes later pays all of it nevertheless.[1]"
	for name, test := range map[string]struct {
		rules  []openaitest.Rule
		gate   answer.GateKind
		calls  int
		judges int
		read   func(prompts []int) int // expected prompt tokens, from the tokens of each request
		apart  int                     // completion tokens that are not part of the answer
	}{
		"a judge that thinks is left at its word": {
			rules: []openaitest.Rule{
				{Role: "judge", Reply: openaitest.Reply{Text: "yes\n" + strings.Repeat("because it says so ", 20000), Reasoning: thoughts}},
				{Reply: openaitest.Reply{Text: text, Fault: openaitest.NoUsage}},
			},
			gate: answer.GateModel, calls: 2, judges: 1, read: sum,
			apart: ingest.CountTokens("yes\n") + ingest.CountTokens(thoughts),
		},
		"a busy server is asked again": {
			rules: []openaitest.Rule{
				{Times: 2, Reply: openaitest.Reply{Fault: openaitest.RateLimit}},
				{Reply: openaitest.Reply{Text: text, Fault: openaitest.NoUsage}},
			},
			gate: answer.GateOff, calls: 3, read: last,
		},
		"a reply breaks off": {
			rules: []openaitest.Rule{{Reply: openaitest.Reply{Text: strings.Repeat(text+" ", 3), Reasoning: thoughts, Fault: openaitest.NoFinish,
				After: 60}}},
			gate: answer.GateOff, calls: 1, read: sum, apart: ingest.CountTokens(thoughts),
		},
		"a server that says no": {
			rules: []openaitest.Rule{
				{Role: "judge", Reply: openaitest.Reply{Fault: openaitest.BadRequest}},
				{Reply: openaitest.Reply{Text: text, Fault: openaitest.NoUsage}},
			},
			gate: answer.GateModel, calls: 5, judges: 4, read: last,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &openaitest.Handler{Reply: openaitest.Rules(test.rules...)}
				a := &answer.Answerer{Retriever: twelvePassages()[:1], Model: piped(t, h, 0), Gate: test.gate}
				var usage answer.Usage
				var judged answer.Judged
				var shown strings.Builder
				for e, err := range a.Ask(t.Context(), answer.Question{Text: "What is the mooring fee?"}) {
					must(t, err)
					switch e := e.(type) {
					case answer.Usage:
						usage = e
					case answer.Text:
						shown.WriteString(e.Text)
					case answer.Judged:
						judged = e
					}
				}
				var prompts []int
				for _, x := range h.Exchanges() {
					prompts = append(prompts, ingest.CountTokens(x.System)+ingest.CountTokens(x.User))
				}
				if usage.Calls != test.calls || len(prompts) != test.calls || usage.JudgeCalls != test.judges || judged.Calls != test.judges {
					t.Errorf("%d calls, %d of judges (%d in the verdict), and %d requests; want %d and %d", usage.Calls, usage.JudgeCalls,
						judged.Calls, len(prompts), test.calls, test.judges)
				}
				if want := test.read(prompts); usage.PromptTokens != want {
					t.Errorf("PromptTokens = %d, want %d", usage.PromptTokens, want)
				}
				wrote := test.apart + ingest.CountTokens(shown.String())
				if usage.CompletionTokens < wrote || usage.CompletionTokens > wrote+3 { // a word may arrive before a judge is stopped
					t.Errorf("CompletionTokens = %d with %d of thoughts, want %d", usage.CompletionTokens, usage.ReasoningTokens, wrote)
				}
			})
		})
	}
}

func sum(prompts []int) int {
	n := 0
	for _, p := range prompts {
		n += p
	}
	return n
}

func last(prompts []int) int { return prompts[len(prompts)-1] }
