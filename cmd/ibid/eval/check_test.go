package eval

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// passage is one that was retrieved from a document, kept or not.
func passage(document string, kept bool, text string) Passage {
	p := Passage{ID: document + "#1", Document: document, Kept: kept, Verdict: "relevant", Text: text}
	if !kept {
		p.Verdict = "irrelevant"
	}
	return p
}

// answered is an outcome whose answer cites a document.
func answered(q Question, text, document string, retrieved ...Passage) *Outcome {
	return &Outcome{Question: q, Answered: true, Text: text, Retrieved: retrieved, Sources: []Source{{1, document, document}},
		Citations: []Citation{{Number: 1, Document: document, Verdict: "quoted", End: len(text)}}}
}

func TestCheck(t *testing.T) {
	tea := Question{Text: "When is tea served?", Answers: []string{"at four"}, Documents: []string{"tea.md"}}
	quote := Question{Text: "When is tea served?", Answers: []string{"at four"}, Documents: []string{"tea.md"},
		Quotes: []string{"black tea is served at four"}}
	none := Question{Text: "What does gold cost?", Unanswerable: true}
	found := passage("tea.md", true, "Black  tea is\nserved at four.")
	skipped := passage("tea.md", false, "Black tea is served at four.")
	other := passage("boats.md", true, "The boats are blue.")
	refused := func(q Question, retrieved ...Passage) *Outcome {
		return &Outcome{Question: q, Reason: "nothing_relevant", Text: "No.", Retrieved: retrieved}
	}
	uncited := answered(tea, "Tea is served at four.", "tea.md", found)
	uncited.Sources, uncited.Citations = nil, nil
	weakly := answered(tea, "Tea is served at four. It is free [1].", "tea.md", found)
	weakly.Unsupported = []Sentence{{23, 38, "weak"}}
	broken := answered(tea, "Tea is served at four", "tea.md", found)
	broken.Incomplete, broken.Reason = true, "the server closed the connection"
	for _, test := range []struct {
		name   string
		o      *Outcome
		status Status
		cause  Cause
		why    []string
	}{
		{"right", answered(tea, "Tea is served at four [1].", "tea.md", other, found), Passed, "", nil},
		{"refused rightly", refused(none, other), Passed, "", nil},
		{"refused without anything found", refused(none), Passed, "", nil},

		{"not found", answered(tea, "It is blue [1].", "boats.md", other), Failed, Retrieval,
			[]string{"none of the 1 retrieved passage is from a right document (tea.md)", "the answer contains none of “at four”",
				"no right document (tea.md) is cited, but boats.md"}},
		{"refused, not found", refused(tea, other, other), Failed, Retrieval,
			[]string{"none of the 2 retrieved passages is from a right document (tea.md)",
				"refused (nothing_relevant), although there is an answer"}},
		{"the quote is missing", answered(quote, "It is blue [1].", "tea.md", passage("tea.md", true, "Green tea is served at five.")),
			Failed, Retrieval,
			[]string{"none of the 1 retrieved passage contains “black tea is served at four”", "the answer contains none of “at four”"}},
		{"skipped", refused(tea, skipped, other), Failed, Gate,
			[]string{"the gate skipped every right passage: tea.md#1", "refused (nothing_relevant), although there is an answer"}},
		{"another was kept", refused(tea, skipped, found), Failed, Refusal, []string{"refused (nothing_relevant), although there is an answer"}},
		{"wrong words", answered(tea, "Tea is served at five [1].", "tea.md", found), Failed, Generation,
			[]string{"the answer contains none of “at four”"}},
		{"broken off", broken, Failed, Generation, []string{"the answer is incomplete: the server closed the connection"}},
		{"nothing cited", uncited, Failed, Citations, []string{"no source is cited"}},
		{"another document cited", answered(tea, "Tea is served at four [1].", "boats.md", found, other), Failed, Citations,
			[]string{"no right document (tea.md) is cited, but boats.md"}},
		{"a sentence without support", weakly, Failed, Citations, []string{"nothing cited supports “It is free [1].”"}},
		{"answered wrongly", answered(none, "Much [1].", "boats.md", other), Failed, Refusal, []string{"answered, although there is no answer"}},
		{"error", &Outcome{Question: tea, Error: "the model is gone"}, Failed, Trouble, []string{"the model is gone"}},

		{"nothing known", answered(Question{Text: "?"}, "Tea [1].", "tea.md", found), Open, "", nil},
		{"nothing known, and refused", refused(Question{Text: "?"}, found), Open, "", nil},
		{"there is one, and no more is known", answered(Question{Text: "?", HasAnswer: true}, "Tea [1].", "tea.md", found), Open, "", nil},
		{"there is one, and refused", refused(Question{Text: "?", HasAnswer: true}, found), Failed, Refusal,
			[]string{"refused (nothing_relevant), although there is an answer"}},
		{"documents alone", answered(Question{Text: "?", Documents: []string{"tea.md"}}, "Tea [1].", "tea.md", found), Passed, "", nil},
		{"a quote alone", answered(Question{Text: "?", Quotes: []string{"served at four"}}, "Tea [1].", "tea.md", found), Passed, "", nil},
		{"a quote alone, skipped", answered(Question{Text: "?", Quotes: []string{"served at four"}}, "Tea [1].", "boats.md", skipped, other),
			Failed, Gate,
			[]string{"the gate skipped every right passage: tea.md#1"}},
		{"words", answered(Question{Text: "?", Words: []string{"tea", "four", "milk"}}, "Tea at four [1].", "tea.md", found), Failed, Generation,
			[]string{"the answer does not contain “milk”"}},
		{"words in a number that cites", answered(Question{Text: "?", Words: []string{"1"}}, "Tea at four [1].", "tea.md", found), Failed,
			Generation, []string{"the answer does not contain “1”"}},
		{"an answer in prose alone", answered(Question{Text: "?", Expected: "Tea at five"}, "Tea at four [1].", "tea.md", found), Open, "", nil},
		{"an answer in prose, and refused", refused(Question{Text: "?", Expected: "Tea at five"}, found), Failed, Refusal,
			[]string{"refused (nothing_relevant), although there is an answer"}},
	} {
		test.o.Check()
		if test.why == nil {
			test.why = []string{}
		}
		if diff := cmp.Diff(test.why, test.o.Why); diff != "" || test.o.Status != test.status || test.o.Cause != test.cause {
			t.Errorf("%s: %s, %s, want %s, %s: %s", test.name, test.o.Status, test.o.Cause, test.status, test.cause, diff)
		}
	}
}

// Passages are right by their document, or by the quotes if there are some; excerpts
// are short.
func TestMark(t *testing.T) {
	long := Passage{Document: "a.md", Text: strings.Repeat("é", 700)}
	quoted := Passage{Document: "b.md", Text: "at four"}
	for _, test := range []struct {
		question Question
		want     []bool
	}{
		{Question{Documents: []string{"a.md"}}, []bool{true, false}},
		{Question{Documents: []string{"a.md"}, Quotes: []string{"At  four"}}, []bool{false, true}},
		{Question{}, []bool{false, false}},
	} {
		o := &Outcome{Question: test.question, Retrieved: []Passage{long, quoted}}
		o.Check()
		if got := []bool{o.Retrieved[0].Right, o.Retrieved[1].Right}; !slices.Equal(got, test.want) {
			t.Errorf("%+v: %v, want %v", test.question, got, test.want)
		}
		if got := o.Retrieved[0].Text; got != strings.Repeat("é", 600)+"…" {
			t.Errorf("%d characters", len(got))
		}
	}
}
