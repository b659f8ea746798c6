package answer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"ibid/answer/prompt"
	"ibid/data/datatest"
)

type vectorPart struct {
	Tokens int
	IDs    []int `json:"ids"`
}

type vectorError struct {
	Kind                 string
	Index, Round, Rounds int
}

func (e *vectorError) is(t *testing.T, err error) {
	t.Helper()
	var got *ReduceError
	if !errors.As(err, &got) {
		t.Fatalf("err = %v, want %+v", err, *e)
	}
	if got.Kind != e.Kind || got.Index != e.Index || got.Round != e.Round+e.Rounds {
		t.Errorf("err = %+v, want %+v", *got, *e)
	}
}

type reduceVector struct {
	Name, Category string

	Limit, Overhead, Separator int
	Lengths                    []int
	ExpectedGroups             [][]int      `json:"expected_groups"`
	ExpectedError              *vectorError `json:"expected_error"`

	MaxRounds            int `json:"max_rounds"`
	Inputs               []vectorPart
	CollapseReplies      [][]int      `json:"collapse_replies"`
	ExpectedRounds       [][][]int    `json:"expected_rounds"`
	ExpectedFinal        []vectorPart `json:"expected_final"`
	ExpectedIDs          []int        `json:"expected_ids"`
	ExpectedCombineCalls int          `json:"expected_combine_calls"`
	ExpectedUnanswered   bool         `json:"expected_unanswered"`

	Documents []struct {
		ID, Finish int
		MapTokens  int `json:"map_tokens"`
	}
	ExpectedMap      []int `json:"expected_map"`
	ExpectedMapCalls int   `json:"expected_map_calls"`

	Replies         []string
	ExpectedAnswers []string `json:"expected_answers"`
	ExpectedScores  []int    `json:"expected_scores"`
	ExpectedBad     []int    `json:"expected_bad"`
	ExpectedOrder   []int    `json:"expected_order"`
	ExpectedBest    int      `json:"expected_best"`
}

func (v reduceVector) budget() Budget { return Budget{v.Limit, v.Overhead, v.Separator} }

func reduceVectors(t *testing.T, category string) iter.Seq[reduceVector] {
	return func(yield func(reduceVector) bool) {
		n := 0
		for _, v := range vectorsOf[reduceVector](t, "collapse.json") {
			if v.Category == category {
				n++
				if !yield(v) {
					return
				}
			}
		}
		if n == 0 {
			t.Errorf("no vectors of the category %s", category)
		}
	}
}

func TestVectorsSplit(t *testing.T) {
	for v := range reduceVectors(t, "split") {
		t.Run(v.Name, func(t *testing.T) {
			groups, err := v.budget().Group(v.Lengths)
			if v.ExpectedError != nil {
				v.ExpectedError.is(t, err)
				return
			}
			must(t, err)
			if fmt.Sprint(groups) != fmt.Sprint(v.ExpectedGroups) {
				t.Errorf("groups = %v, want %v", groups, v.ExpectedGroups)
			}
		})
	}
}

func TestVectorsReduce(t *testing.T) {
	for v := range reduceVectors(t, "reduce") {
		t.Run(v.Name, func(t *testing.T) {
			parts := make([]Part, len(v.Inputs))
			for i, in := range v.Inputs {
				parts[i] = Part{Tokens: in.Tokens, Labels: in.IDs}
			}
			checkReduce(t, v, parts)
		})
	}
}

// checkReduce reduces the parts with the vector's collapse replies.
func checkReduce(t *testing.T, v reduceVector, parts []Part) {
	t.Helper()
	for i := range parts {
		parts[i].steps = []int{i}
	}
	rounds := [][][]int{}
	final, err := v.budget().Reduce(parts, v.MaxRounds, func(groups [][]Part) ([]Part, error) {
		var indices [][]int
		var next []Part
		for g, group := range groups {
			indices = append(indices, stepsOf(group))
			next = append(next, Part{Tokens: v.CollapseReplies[len(rounds)][g], steps: []int{g}})
		}
		rounds = append(rounds, indices)
		return next, nil
	})
	if fmt.Sprint(rounds) != fmt.Sprint(v.ExpectedRounds) {
		t.Errorf("rounds = %v, want %v", rounds, v.ExpectedRounds)
	}
	if v.ExpectedError != nil {
		v.ExpectedError.is(t, err)
		return
	}
	must(t, err)
	got := []vectorPart{}
	for _, p := range final {
		got = append(got, vectorPart{p.Tokens, p.Labels})
	}
	if fmt.Sprint(got) != fmt.Sprint(v.ExpectedFinal) {
		t.Errorf("final parts = %v, want %v", got, v.ExpectedFinal)
	}
	equal(t, "ids", labelsOf(final), v.ExpectedIDs)
	if unanswered := len(final) == 0; unanswered != v.ExpectedUnanswered {
		t.Errorf("unanswered = %t, want %t", unanswered, v.ExpectedUnanswered)
	}
}

// TestVectorsMapReduce ends the map calls of a vector in the vector's order; the results
// must be in the order of the documents.
func TestVectorsMapReduce(t *testing.T) {
	for v := range reduceVectors(t, "map-reduce") {
		t.Run(v.Name, func(t *testing.T) {
			n := len(v.Documents)
			turn := make([]chan struct{}, n+1)
			for i := range turn {
				turn[i] = make(chan struct{})
			}
			close(turn[0])
			m := inTurn{at: map[string]int{}, turn: turn}
			prompts := make([]Prompt, n)
			for i, d := range v.Documents {
				id := strconv.Itoa(d.ID)
				m.at[id] = d.Finish
				prompts[i] = Prompt{Role: RoleMap, User: id}
			}
			r := (&Answerer{Parallel: n}).newCaller(func(Event, error) bool { return true }, nil)
			var parts []Part
			var order []int
			for i, reply := range r.callAll(t.Context(), m, prompts) {
				if reply.err != nil {
					t.Fatalf("reply %d: %v", i, reply.err)
				}
				id, err := strconv.Atoi(string(reply.text))
				must(t, err)
				order = append(order, id)
				parts = append(parts, Part{Tokens: v.Documents[i].MapTokens, Labels: []int{id}})
			}
			equal(t, "order", order, v.ExpectedMap)
			if len(parts) != v.ExpectedMapCalls {
				t.Errorf("%d calls, want %d", len(parts), v.ExpectedMapCalls)
			}
			checkReduce(t, v, parts)
		})
	}
}

// inTurn is a model whose calls end in a given order.
type inTurn struct {
	at   map[string]int // 1-based
	turn []chan struct{}
}

func (m inTurn) Complete(_ context.Context, p Prompt) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		n := m.at[p.User]
		<-m.turn[n-1]
		defer close(m.turn[n])
		_ = yield(Piece{Text: p.User}, nil) && yield(Piece{Finish: "stop"}, nil)
	}
}

func TestVectorsRerank(t *testing.T) {
	for v := range reduceVectors(t, "rerank") {
		t.Run(v.Name, func(t *testing.T) {
			var rated []Rated
			answers, scores, bad := []string{}, []int{}, []int{}
			for i, reply := range v.Replies {
				r := Rate(reply)
				rated = append(rated, r)
				answers, scores = append(answers, r.Answer), append(scores, r.Score)
				if r.Unscored {
					bad = append(bad, i)
				}
			}
			equal(t, "answers", answers, v.ExpectedAnswers)
			equal(t, "scores", scores, v.ExpectedScores)
			equal(t, "without a score", bad, v.ExpectedBad)
			order := Rank(rated)
			equal(t, "order", order, v.ExpectedOrder)
			if best := append(order, -1)[0]; best != v.ExpectedBest || (best < 0) != v.ExpectedUnanswered {
				t.Errorf("best = %d, want %d", best, v.ExpectedBest)
			}
		})
	}
}

// The prompts show what a scripted model needs in these strategies.
var partPrompts = fstest.MapFS{
	"evidence.tmpl": {Data: []byte(`{{define "evidence"}}{{range .Evidence}}[{{.Label}}] {{.Text}}{{end}}{{end}}`)},
	"map.tmpl":      {Data: []byte(`{{define "system"}}{{end}}{{define "user"}}{{template "evidence" .}}{{end}}`)},
	"rerank.tmpl":   {Data: []byte(`{{define "system"}}{{end}}{{define "user"}}{{template "evidence" .}}{{end}}`)},
	"collapse.tmpl": {Data: []byte(`{{define "system"}}{{end}}{{define "user"}}{{range .Parts}}{{.}}|{{end}}{{end}}`)},
	"combine.tmpl":  {Data: []byte(`{{define "system"}}{{end}}{{define "user"}}{{range .Parts}}{{.}}|{{end}}{{end}}`)},
}

// TestMapReduce answers a question from each part alone, and then from those answers.
func TestMapReduce(t *testing.T) {
	prompts, err := prompt.Parse(partPrompts)
	must(t, err)
	answers := func(combine string, cerr error) *script {
		return &script{reply: func(p Prompt) (string, error) {
			switch {
			case p.Role == RoleCombine:
				return combine, cerr
			case strings.Contains(p.User, "fee"):
				return "The fee is 120 marks [1]. It is due in April [2][9].", nil
			}
			return "NO ANSWER", nil
		}}
	}
	ask := func(m Model, texts ...string) transcript {
		a := &Answerer{Retriever: passages(texts...), Model: m, Gate: GateOff, Prompts: prompts, StepTokens: 18}
		return read(a.Ask(t.Context(), Question{Text: "What is the fee?", Strategy: "map-reduce"}))
	}
	texts := []string{"the fee is 120", "the fee is due", "boats", "oars"}

	m := answers("120 marks, due in April [1][2]. And [3] too [7].", nil)
	got := ask(m, texts...)
	if got.err != nil || got.text != "120 marks, due in April [1][2]. And [0](id=) too [0](id=)." {
		t.Errorf("got\n%s", got)
	}
	if len(m.calls) != 3 || m.calls[2].User != "The fee is 120 marks [1]. It is due in April [2].|" {
		t.Errorf("calls = %+v", m.calls)
	}

	// Without a call that combines them, the parts are the answer, with a warning.
	got = ask(answers("", errors.New("gone")), texts...)
	if got.err != nil || got.text != "The fee is 120 marks [1]. It is due in April [2]." ||
		!strings.Contains(got.String(), "\nincomplete {Reason:the parts could not be combined: asking the model (combine): gone}") {
		t.Errorf("got\n%s", got)
	}
	got = ask(answers("120 ma", errors.New("gone")), texts...)
	if got.err != nil || got.text != "120 ma" || !strings.Contains(got.String(), "\nincomplete {Reason:") {
		t.Errorf("got\n%s", got)
	}

	// No answer in any part, or in all parts together.
	got = ask(answers("", nil), "boats", "oars")
	if got.err != nil || got.text != "" || !strings.Contains(got.String(), "unanswered {Reason:no_answer") {
		t.Errorf("got\n%s", got)
	}
	for _, refusal := range []string{"NO ANSWER", "NO ANSWER\n\nThe notes do not state the price.", "**NO ANSWER** [1]"} {
		got = ask(answers(refusal, nil), texts...)
		if got.err != nil || got.text != "" || !strings.Contains(got.String(), "unanswered {Reason:no_answer") {
			t.Errorf("%q: want no_answer, got\n%s", refusal, got)
		}
	}
}

func TestMapRerank(t *testing.T) {
	prompts, err := prompt.Parse(partPrompts)
	must(t, err)
	for _, test := range datatest.Table[struct {
		Name    string
		Replies []string // about a, b and c
		Text    string
	}](t, "testdata/tables.txt", "scores") {
		t.Run(test.Name, func(t *testing.T) {
			m := &script{reply: func(p Prompt) (string, error) { return test.Replies[p.User[len(p.User)-1]-'a'], nil }}
			a := &Answerer{Retriever: passages("a", "b", "c"), Model: m, Gate: GateOff, Prompts: prompts}
			got := read(a.Ask(t.Context(), Question{Text: "How many?", Strategy: "map-rerank"}))
			if got.err != nil || got.text != test.Text || strings.Contains(got.String(), "unanswered") != (test.Text == "") || len(m.calls) != 3 {
				t.Errorf("%d calls, want 3 and the text %q; got\n%s", len(m.calls), test.Text, got)
			}
		})
	}
}
