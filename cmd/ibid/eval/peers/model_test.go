package main

import (
	"strings"
	"testing"
)

var answered = map[string]question{fold("When does the office open?"): {"When does the office open?", []string{"nine o'clock"}, errors{verdicts: 1}}}

const (
	office = "The office opens at nine o'clock. It closes at five."
	boats  = "Boats lie ashore in winter."
)

// The prompts of every tool give the same passages and question.
func TestRead(t *testing.T) {
	for _, test := range []struct {
		name, system, user string
		labels             []int
		draft              string
		mark               string
	}{
		{"ibid", "You answer a question.", "<evidence ab12>\n[3] About › Hours\n" + office + "\n</evidence ab12>\n\n<evidence " +
			"ab12>\n[4] Boats\n" + boats + "\n</evidence ab12>\n\n\nQuestion: When does the office open?", []int{3, 4}, "", "S.[1]"},
		{"ibid refines", "You improve an answer.", "<answer ab12>\nAt ten.[1]\n</answer ab12>\n\n<evidence ab12>\n[3] About\n" + office +
			"\n</evidence ab12>\n\n\nQuestion: When does the office open?", []int{3}, "At ten.[1]", "S.[1]"},
		{"langchain", "Use \"【ID_NUMBER†source】\".", "<document id=1>\n" + office + "\n</document>\n<document id=2>\n" + boats +
			"\n</document>\n\nQuestion: When does the office open?", []int{1, 2}, "", "S 【1†source】."},
		{"langchain refines", "Use \"【ID_NUMBER†source】\".", "<answer>\nAt ten.\n</answer>\n\n<document id=7>\n" + office +
			"\n</document>\n\nQuestion: When does the office open?", []int{7}, "At ten.", "S 【1†source】."},
		{"haystack", "Answer.", "<document id=1>\n" + office + "\n</document>\n\nQuestion: When does the office open?", []int{1}, "", "S [1]."},
		{"llamaindex cites", "", "For example:\nSource 1:\nThe sky is red.\nQuery: When is water wet?\nAnswer: [2].\nNow it's your turn. Below " +
			"are several numbered sources of information:\n------\nSource 1:\n" + office + "\n\nSource 2:\n" + boats +
			"\n\n------\nQuery: When does the office open?\nAnswer: ", []int{1, 2}, "", "S [1]."},
		{"llamaindex cites and refines", "",
			"Now it's your turn. We have provided an existing answer: At ten [1].Below are several numbered sources of information. Begin " +
				"refining!\n------\nSource 5:\n" + office + "\n\n------\nQuery: When does the office open?\nAnswer: ", []int{5},
			"At ten [1].", "S [1]."},
		{"llamaindex", "", "Context information is below.\n---------------------\n" + office + "\n---------------------\nGiven the context " +
			"information and not prior knowledge, answer the query.\nQuery: When does the office open?\nAnswer: ", []int{0}, "", ""},
		{"llamaindex refines", "", "You are an expert.\nNew Context: " + office +
			"\nQuery: When does the office open?\nOriginal Answer: At ten.\nNew Answer: ", []int{0}, "At ten.", ""},
		{"txtai", "", "question: When does the office open?\ncontext: " + office + "\n\n" + boats, []int{0}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := parse(test.system, test.user)
			if p.question != "When does the office open?" || p.draft != test.draft || p.judge || len(p.passages) != len(test.labels) {
				t.Fatalf("%+v", p)
			}
			for i, label := range test.labels {
				if p.passages[i].label != label {
					t.Errorf("label %d, want %d", p.passages[i].label, label)
				}
			}
			if got := strings.TrimSpace(p.passages[0].text); !strings.HasPrefix(got, office) {
				t.Errorf("passage %q", got)
			}
			if mark := ""; p.cite != nil {
				if mark = p.cite("S", [][]int{{1}}); mark != test.mark {
					t.Errorf("mark %q, want %q", mark, test.mark)
				}
			} else if test.mark != "" {
				t.Error("no marks")
			}
		})
	}
	if p := parse("", "Give this chat a title."); p.question != "" {
		t.Errorf("%+v", p)
	}
}

func TestWriter(t *testing.T) {
	w := &writer{questions: answered, written: map[string][]part{}}
	ask := func(draft string, passages ...passage) (string, written) {
		return w.reply(prompt{question: "When does the office open?", draft: draft, passages: passages, layout: layouts[0]})
	}
	first, s := ask("", passage{1, boats}, passage{2, office})
	if !strings.HasPrefix(first, "The office opens at nine o'clock.[2") || !strings.HasPrefix(s.Plain, "The office opens at nine o'clock.") ||
		strings.Contains(s.Plain, "2") {
		t.Errorf("%q, %+v", first, s)
	}
	if text, s := ask("", passage{1, boats}); text != "NO ANSWER" || s.Plain != "" {
		t.Errorf("nothing found: %q, %+v", text, s)
	}
	if text, _ := ask(first, passage{3, boats}); text != "NO CHANGE" {
		t.Errorf("nothing new: %q", text)
	}
	if text, _ := ask(first, passage{3, "In winter the office opens at nine o'clock, too."}); !strings.HasPrefix(text, first+" In winter") {
		t.Errorf("a second statement: %q", text)
	}
	text, _ := w.reply(prompt{question: "When does the office open?", passages: []passage{{0, boats}}, structured: true,
		layout: layout{nothing: dontKnow}})
	if text != `{"query_satisfied":false,"answer":"I don't know."}` {
		t.Errorf("structured: %q", text)
	}
}

// A statement belongs in the answer if it holds one, and the evidence does.
func TestVerifies(t *testing.T) {
	w := &writer{questions: answered, written: map[string][]part{}}
	const system = "You check a statement before a reader sees it. Reply with one word: yes or no."
	evidence := func(text string) string { return "<evidence a1>\n[1] Handbook\n" + text + "\n</evidence a1>\n\n" }
	for _, test := range []struct{ before, statement, want string }{
		{"", "The office opens at nine o'clock.", "yes"},
		{"", boats, "no"},
		{evidence(office), "It opens at nine o'clock.", "yes"},
		{evidence(boats), "It opens at nine o'clock.", "no"},
	} {
		p := parse(system, test.before+"Question: When does the office open?\nStatement: "+test.statement+"\n\nDoes the statement answer?")
		if got, s := w.reply(p); got != test.want || !s.Judge || s.Tool != "ibid" {
			t.Errorf("%s: %q, %+v", test.statement, got, s)
		}
	}
	w.errors.verdicts = 10
	p := parse(system, "Question: When does the office open?\nStatement: "+boats)
	if got, _ := w.reply(p); got != "yes" {
		t.Errorf("always wrong: %q", got)
	}
}

func TestBrackets(t *testing.T) {
	if got := brackets([][]int{{1}, {99}, {2, 3}}); got != "[1][99][2, 3]" {
		t.Error(got)
	}
}

// The model errs at the stated rate, whatever surrounds the sentence.
func TestErrs(t *testing.T) {
	wrong, n := 0, 3000
	for i := range n {
		q := question{"What is fact " + strings.Repeat("x", i%50) + words(strings.Repeat("y", i/50)) + "?", []string{"never written"}, errors{verdicts: 1}}
		if q.verdict(boats) {
			wrong++
		}
		if q.verdict(boats) != q.verdict("  "+boats+"\n") {
			t.Fatal("white space decides")
		}
	}
	if share := float64(wrong) / float64(n); share < 0.07 || share > 0.13 {
		t.Errorf("%.3f of the verdicts are wrong, want one in ten", share)
	}
}
