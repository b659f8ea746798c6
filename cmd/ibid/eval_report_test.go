package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ibid/answer/openai/openaitest"
)

// club writes a folder and questions about it.
var club = map[string]string{
	"club/tea.md":     "# Tea\n\nBlack tea is served in the galley at four.",
	"club/boats.md":   "# Boats\n\nThe dinghies stand on the slipway in winter.",
	"club/hours.md":   "# Opening hours\n\nThe chart room opens at nine and closes at five.",
	"questions.jsonl": clubQuestions,
}

const clubQuestions = `{"id": "tea", "question": "When is black tea served?", "answers": ["at four"], "documents": ["tea.md"], "quotes": "served in the galley at four"}
{"id": "boats", "question": "Where do the dinghies stand in winter?", "answers": ["slipway"], "documents": ["boats"]}
{"id": "gold", "question": "What does an ounce of gold cost in Zurich?", "answerable": false}
`

// reported runs a report and decodes its JSON.
func reported(t *testing.T, code int, args ...string) (*evalReport, string) {
	t.Helper()
	out, errs, got := ibid(t, t.TempDir(), append([]string{"eval", "report", "--json"}, args...)...)
	var r evalReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || got != code {
		t.Fatalf("%q: exit code %d, %v: %s%s", args, got, err, out, errs)
	}
	return &r, errs
}

// figure returns the value of a figure of a report, or -1 if there is no such figure.
func figure(r *evalReport, name string) float64 {
	for _, f := range r.Figures {
		if f.Name == name {
			return f.Value
		}
	}
	return -1
}

// TestEvalReportWithAModel checks that a model's faults are reported and counted.
func TestEvalReportWithAModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, club)
	folder, questions := filepath.Join(dir, "club"), filepath.Join(dir, "questions.jsonl")
	upstream := &openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "yes"}},
		openaitest.Rule{Prompt: regexp.MustCompile(`Question: When is black tea`),
			Reply: openaitest.Reply{Text: "Black tea is served in the galley at four [1]. Nine old sailors juggle burning lemons [1][77]."}},
		openaitest.Rule{Prompt: regexp.MustCompile(`Question: Where do the dinghies`),
			Reply: openaitest.Reply{Text: "The dinghies stand in the hall [1]."}},
		openaitest.Rule{Reply: openaitest.Reply{Text: "An ounce of gold costs 2400 francs [1]."}},
	)}
	args := []string{folder, questions, "--model", "m", "--base-url", openaitest.Start(t, upstream), "--gate", "model"}
	r, _ := reported(t, 0, args...)
	for i, want := range []string{"no cited passage supports “Nine old", "the answer contains none of “slipway”", "answered, but"} {
		if o := r.Outcomes[i]; len(o.Why) == 0 || !strings.HasPrefix(o.Why[0], want) {
			t.Errorf("Why = %v, want %s", o.Why, want)
		}
	}
	prompt, completion := 0, 0
	for _, x := range upstream.Exchanges() {
		prompt += x.Tokens
		completion += x.Sent
	}
	if c := r.Total; c.Calls != len(upstream.Exchanges()) || c.PromptTokens != prompt || c.CompletionTokens == 0 {
		t.Errorf("costs = %+v; the server received %d calls and %d tokens", c, len(upstream.Exchanges()), prompt)
	}
	if figure(r, "unsupported") <= 0 {
		t.Errorf("no unsupported statements counted in %+v", r.Outcomes[0])
	}
}

// TestEvalReportErrors checks that a question that ends in an error doesn't stop the
// others, but that the run fails if every question does.
func TestEvalReportErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, club)
	folder, questions := filepath.Join(dir, "club"), filepath.Join(dir, "questions.jsonl")
	upstream := &openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Prompt: regexp.MustCompile(`Question: Where do the dinghies`),
			Reply: openaitest.Reply{Text: "The dinghies stand on the slipway in winter [1]."}},
		openaitest.Rule{Reply: openaitest.Reply{Fault: openaitest.BadRequest}},
	)}
	r, _ := reported(t, 0, folder, questions, "--model", "m", "--gate", "score", "--base-url", openaitest.Start(t, upstream))
	if o := r.Outcomes[0]; o.Status != failedStatus || o.Error == "" || r.Outcomes[1].Status != passedStatus {
		t.Errorf("outcomes = %+v, want a failure with its error, then a pass", r.Outcomes)
	}
	const asked, refused = `{"question": "When is black tea served?"}` + "\n", `{"question": "Quis custodiet ipsos custodes?"}` + "\n"
	for name, test := range map[string]struct{ questions, at string }{
		"many":                                   {strings.Repeat(asked, 9), "line 5"},
		"fewer than end a run":                   {strings.Repeat(asked, 2), "line 2"},
		"a refusal that asked the model nothing": {refused + strings.Repeat(asked, 9), "line 6"},
	} {
		writeFiles(t, dir, map[string]string{"many.jsonl": test.questions})
		out, errs, code := ibid(t, t.TempDir(), "eval", "report", folder, filepath.Join(dir, "many.jsonl"), "--model", "m", "--gate", "score",
			"--base-url", openaitest.Start(t, upstream))
		if code != exitFailed || !strings.Contains(errs, "asking the question "+test.at+": ") || !strings.Contains(errs, errAllFailed.Error()) ||
			out != "" {
			t.Errorf("%s: exit code = %d, want %d; output %s%s", name, code, exitFailed, out, errs)
		}
	}
}

func TestThresholdValue(t *testing.T) {
	for text, want := range map[string]float64{".8": .8, "80%": .8, "3s": 3, "250ms": .25, "-1": -1,
		"": -9, "x": -9, "NaN": -9, "Inf": -9, "%": -9} {
		if got, err := thresholdValue(text); err == nil && got != want || (err != nil) != (want == -9) {
			t.Errorf("thresholdValue(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}
