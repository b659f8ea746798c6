package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/support"
	"ibid/cmd/ibid/eval"
)

// retrieved is a passage that was retrieved from a document, kept or not.
func retrieved(document string, kept bool, text string) tracedPassage {
	p := tracedPassage{Kept: kept, Verdict: answer.Relevant}
	p.ID, p.Document, p.Text = document+"#1", document, text
	if !kept {
		p.Verdict = answer.Irrelevant
	}
	return p
}

// answered is an outcome whose answer cites a document.
func answered(q eval.Question, text, document string, found ...tracedPassage) *outcome {
	return &outcome{Question: q, Retrieved: found, Answer: cite.Answer{Answered: true, Text: text,
		Sources:   []cite.Source{{Number: 1, Document: document, Title: document}},
		Citations: []cite.Citation{{Number: 1, Document: document, Verdict: support.Quoted, TextEnd: len(text)}}}}
}

func unanswered(q eval.Question, text string, found ...tracedPassage) *outcome {
	return &outcome{Question: q, Retrieved: found, Answer: cite.Answer{Reason: "nothing_relevant", Text: text}}
}

func TestOutcomes(t *testing.T) {
	tea := eval.Question{Text: "When is tea served?", Answers: []string{"at four"}, Documents: []string{"tea.md"}}
	quote := eval.Question{Text: "When is tea served?", Answers: []string{"at four"}, Documents: []string{"tea.md"},
		Quotes: []string{"black tea is served at four"}}
	none := eval.Question{Text: "What does gold cost?", Unanswerable: true}
	found := retrieved("tea.md", true, "Black  tea is\nserved at four.")
	skipped := retrieved("tea.md", false, "Black tea is served at four.")
	other := retrieved("boats.md", true, "The boats are blue.")
	refused := func(q eval.Question, found ...tracedPassage) *outcome { return unanswered(q, "No.", found...) }
	uncited := answered(tea, "Tea is served at four.", "tea.md", found)
	uncited.Sources, uncited.Citations = nil, nil
	weakly := answered(tea, "Tea is served at four. It is free [1].", "tea.md", found)
	weakly.Unsupported = []cite.Unsupported{{TextStart: 23, TextEnd: 38, Reason: "weak"}}
	broken := answered(tea, "Tea is served at four", "tea.md", found)
	broken.Incomplete, broken.Reason = true, "the server closed the connection"
	for _, test := range []struct {
		name string
		o    *outcome
		want string // the cause of a failure, or else the status
		why  []string
	}{
		{"right", answered(tea, "Tea is served at four [1].", "tea.md", other, found), "passed", nil},
		{"refused rightly", refused(none, other), "passed", nil},
		{"refused without anything found", refused(none), "passed", nil},

		{"not found", answered(tea, "It is blue [1].", "boats.md", other), "retrieval",
			[]string{"none of the 1 retrieved passage is from a right document (tea.md)", "the answer contains none of “at four”",
				"no right document (tea.md) is cited, but boats.md"}},
		{"refused, not found", refused(tea, other, other), "retrieval",
			[]string{"none of the 2 retrieved passages is from a right document (tea.md)",
				"refused (nothing_relevant), although there is an answer"}},
		{"the quote is missing", answered(quote, "It is blue [1].", "tea.md", retrieved("tea.md", true, "Green tea is served at five.")),
			"retrieval",
			[]string{"none of the 1 retrieved passage contains “black tea is served at four”", "the answer contains none of “at four”"}},
		{"skipped", refused(tea, skipped, other), "gate",
			[]string{"the gate skipped every right passage: tea.md#1", "refused (nothing_relevant), although there is an answer"}},
		{"another was kept", refused(tea, skipped, found), "refusal", []string{"refused (nothing_relevant), although there is an answer"}},
		{"wrong words", answered(tea, "Tea is served at five [1].", "tea.md", found), "generation",
			[]string{"the answer contains none of “at four”"}},
		{"broken off", broken, "generation", []string{"the answer is incomplete: the server closed the connection"}},
		{"nothing cited", uncited, "citation", []string{"no source is cited"}},
		{"another document cited", answered(tea, "Tea is served at four [1].", "boats.md", found, other), "citation",
			[]string{"no right document (tea.md) is cited, but boats.md"}},
		{"a sentence without support", weakly, "citation", []string{"nothing cited supports “It is free [1].”"}},
		{"answered wrongly", answered(none, "Much [1].", "boats.md", other), "refusal", []string{"answered, although there is no answer"}},
		{"error", &outcome{Question: tea, Error: "the model is gone"}, "error", []string{"the model is gone"}},

		{"nothing known", answered(eval.Question{Text: "?"}, "Tea [1].", "tea.md", found), "open", nil},
		{"nothing known, and refused", refused(eval.Question{Text: "?"}, found), "open", nil},
		{"there is one, and no more is known", answered(eval.Question{Text: "?", HasAnswer: true}, "Tea [1].", "tea.md", found), "open", nil},
		{"there is one, and refused", refused(eval.Question{Text: "?", HasAnswer: true}, found), "refusal",
			[]string{"refused (nothing_relevant), although there is an answer"}},
		{"documents alone", answered(eval.Question{Text: "?", Documents: []string{"tea.md"}}, "Tea [1].", "tea.md", found), "passed", nil},
		{"a quote alone", answered(eval.Question{Text: "?", Quotes: []string{"served at four"}}, "Tea [1].", "tea.md", found), "passed", nil},
		{"a quote alone, skipped", answered(eval.Question{Text: "?", Quotes: []string{"served at four"}}, "Tea [1].", "boats.md",
			skipped, other),
			"gate",
			[]string{"the gate skipped every right passage: tea.md#1"}},
		{"words", answered(eval.Question{Text: "?", Words: []string{"tea", "four", "milk"}}, "Tea at four [1].", "tea.md", found), "generation",
			[]string{"the answer does not contain “milk”"}},
		{"words in a number that cites", answered(eval.Question{Text: "?", Words: []string{"1"}}, "Tea at four [1].", "tea.md",
			found), "generation",
			[]string{"the answer does not contain “1”"}},
		{"an answer in prose alone", answered(eval.Question{Text: "?", Expected: "Tea at five"}, "Tea at four [1].", "tea.md", found), "open",
			nil},
		{"an answer in prose, and refused", refused(eval.Question{Text: "?", Expected: "Tea at five"}, found), "refusal",
			[]string{"refused (nothing_relevant), although there is an answer"}},
	} {
		test.o.check()
		if test.why == nil {
			test.why = []string{}
		}
		got := string(test.o.Status)
		if test.o.Cause != "" {
			got = string(test.o.Cause)
		}
		if diff := cmp.Diff(test.why, test.o.Why); diff != "" || got != test.want {
			t.Errorf("%s: %s, want %s: %s", test.name, got, test.want, diff)
		}
	}
}

// Passages are right by their document, or by the quotes if there are some; excerpts
// are short.
func TestRightPassages(t *testing.T) {
	long, quoted := retrieved("a.md", true, strings.Repeat("é", 700)), retrieved("b.md", true, "at four")
	for _, test := range []struct {
		question eval.Question
		want     []bool
	}{
		{eval.Question{Documents: []string{"a.md"}}, []bool{true, false}},
		{eval.Question{Documents: []string{"a.md"}, Quotes: []string{"At  four"}}, []bool{false, true}},
		{eval.Question{}, []bool{false, false}},
	} {
		o := &outcome{Question: test.question, Retrieved: []tracedPassage{long, quoted}}
		o.check()
		if got := []bool{o.Retrieved[0].Right, o.Retrieved[1].Right}; !slices.Equal(got, test.want) {
			t.Errorf("%+v: %v, want %v", test.question, got, test.want)
		}
		if got := o.Retrieved[0].Text; got != strings.Repeat("é", 600)+"…" {
			t.Errorf("%d characters", len(got))
		}
	}
}
