package answer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"ibid/answer/prompt"
	"ibid/ingest"
	"ibid/retrieve"
)

// vectorFile reads a file of behaviour vectors from the folder that IBID_VECTORS names,
// relative to this package's folder or to that of go.mod.
func vectorFile(t *testing.T, name string) []vector { return vectorsOf[vector](t, name) }

func vectorsOf[V any](t *testing.T, name string) []V {
	t.Helper()
	dir := cmp.Or(os.Getenv("IBID_VECTORS"), "testdata")
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !filepath.IsAbs(dir) {
		top, errTop := os.ReadFile(filepath.Join("..", dir, name))
		if errTop != nil {
			t.Fatalf("no vectors in IBID_VECTORS=%s, relative to this package or to go.mod: %v; %v", dir, err, errTop)
		}
		b, err = top, nil
	}
	must(t, err)
	var file struct{ Vectors []V }
	must(t, json.Unmarshal(b, &file))
	if len(file.Vectors) == 0 {
		t.Fatalf("%s has no vectors", name)
	}
	return file.Vectors
}

type scriptedReply struct{ Text, Error string }

func (r scriptedReply) get() (string, error) {
	if r.Error != "" {
		return r.Text, errors.New(r.Error)
	}
	return r.Text, nil
}

type vectorCall struct {
	Role     string
	Document int
	Existing string
}

type vectorDecision struct {
	Document int
	Decision Decision
	Changed  bool
	Reason   string
}

type vector struct {
	Name, Category string

	Reply    string
	Expected Decision

	Documents          []int
	MaxAnswerWords     int                        `json:"max_answer_words"`
	Judge              map[string][]scriptedReply `json:"judge"`
	Answer             map[string]scriptedReply   `json:"answer"`
	Refine             map[string]scriptedReply   `json:"refine"`
	ExpectedJudgeCalls []int                      `json:"expected_judge_calls"`
	ExpectedCalls      []vectorCall               `json:"expected_calls"`
	ExpectedDecisions  []vectorDecision           `json:"expected_decisions"`
	ExpectedUsed       []int                      `json:"expected_used"`
	ExpectedAnswer     string                     `json:"expected_answer"`
	ExpectedUnanswered bool                       `json:"expected_unanswered"`
}

func TestVectorsGrade(t *testing.T) {
	for _, v := range vectorFile(t, "refine.json") {
		if v.Category != "grade" {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			if got := Grade(v.Reply); got != v.Expected {
				t.Errorf("Grade(%q) = %s, want %s", v.Reply, got, v.Expected)
			}
		})
	}
}

// The vectors do not cover the words of prompts. These prompts have only what the scripted
// model needs.
var barePrompts = fstest.MapFS{
	"evidence.tmpl": {Data: []byte(`{{define "evidence"}}{{range .Evidence}}{{.Text}}{{end}}{{end}}`)},
	"judge.tmpl":    {Data: []byte(`{{define "system"}}{{end}}{{define "user"}}{{template "evidence" .}}{{end}}`)},
	"answer.tmpl":   {Data: []byte(`{{define "system"}}{{end}}{{define "user"}}{{template "evidence" .}}{{end}}`)},
	"refine.tmpl":   {Data: []byte(`{{define "system"}}{{.Draft}}{{end}}{{define "user"}}{{template "evidence" .}}{{end}}`)},
}

// found is a Retriever that returns itself.
type found []retrieve.Passage

func (f found) Search(context.Context, retrieve.Query) ([]retrieve.Passage, error) {
	return slices.Clone(f), nil
}

// table is the model of a vector. Its judge calls wait for each other, so that they end in
// the vector's order.
type table struct {
	script
	v      vector
	judged map[int]int // judge calls by document id
	calls  []vectorCall
	after  map[string]chan struct{} // a judge call about this document waits for …
	done   map[string]chan struct{} // … the last call about another
}

func (m *table) Complete(ctx context.Context, p Prompt) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		if p.Role == RoleJudge {
			if wait, ok := m.after[p.User]; ok {
				<-wait
			}
		}
		for piece, err := range m.script.Complete(ctx, p) {
			if !yield(piece, err) {
				break
			}
		}
	}
}

func (m *table) answer(p Prompt) (string, error) {
	id := p.User
	n, err := strconv.Atoi(id)
	if err != nil {
		return "", fmt.Errorf("no document id in the prompt %q", id)
	}
	switch p.Role {
	case RoleJudge:
		replies := m.v.Judge[id]
		reply := replies[min(m.judged[n], len(replies)-1)]
		m.judged[n]++
		if text, err := reply.get(); m.done != nil && (err == nil && readVerdict(text) != Unparsable || m.judged[n] == 2) {
			close(m.done[id])
		}
		return reply.get()
	case RoleAnswer:
		m.calls = append(m.calls, vectorCall{Role: "answer", Document: n})
		return m.v.Answer[id].get()
	case RoleRefine:
		m.calls = append(m.calls, vectorCall{Role: "refine", Document: n, Existing: p.System})
		return m.v.Refine[id].get()
	}
	return "", fmt.Errorf("unexpected role: %s", p.Role)
}

func byRune(s string) []string { return strings.Split(s, "") }

func TestVectorsRefine(t *testing.T) {
	prompts, err := prompt.Parse(barePrompts)
	must(t, err)
	for _, v := range vectorFile(t, "refine.json") {
		if v.Category != "refine" {
			continue
		}
		for _, last := range []bool{false, true} {
			for _, cut := range []func(string) []string{nil, byRune} {
				t.Run(fmt.Sprintf("%s/last_first=%t/whole=%t", v.Name, last, cut == nil), func(t *testing.T) {
					runVector(t, v, prompts, last, cut)
				})
			}
		}
	}
}

func runVector(t *testing.T, v vector, prompts *prompt.Templates, lastFirst bool, cut func(string) []string) {
	m := &table{v: v, judged: map[int]int{}}
	m.reply, m.cut = m.answer, cut
	distinct := slices.Compact(slices.Sorted(slices.Values(v.Documents)))
	if lastFirst && len(distinct) == len(v.Documents) {
		m.after, m.done = map[string]chan struct{}{}, map[string]chan struct{}{}
		for i, d := range v.Documents {
			m.done[strconv.Itoa(d)] = make(chan struct{})
			if i > 0 {
				m.after[strconv.Itoa(v.Documents[i-1])] = m.done[strconv.Itoa(d)]
			}
		}
	}
	var passages found
	for i, d := range v.Documents {
		passages = append(passages, retrieve.Passage{
			Chunk: ingest.Chunk{ID: fmt.Sprintf("%d#%d", i, d), Text: strconv.Itoa(d)},
		})
	}
	a := &Answerer{
		Retriever: passages, Model: m, Gate: GateModel, Prompts: prompts, NoFallback: true,
		JudgeCalls: -1, AnswerCalls: -1, Parallel: len(v.Documents),
		StepTokens: 1, ContextTokens: 1 << 20,
		MaxDraftTokens: v.MaxAnswerWords,
		Count:          func(s string) int { return len(strings.Fields(s)) },
	}

	var judgeCalls []int
	decisions := make([]vectorDecision, len(v.Documents))
	at := func(id string) *vectorDecision {
		i, _, _ := strings.Cut(id, "#")
		n, err := strconv.Atoi(i)
		must(t, err)
		return &decisions[n]
	}
	used := []int{}
	var text strings.Builder
	unanswered := false
	for e, err := range a.Ask(t.Context(), Question{Text: "question"}) {
		if err != nil {
			// If every call fails, nothing can be said about the documents: the stream ends
			// with the error, without an answer.
			if v.ExpectedUnanswered && text.Len() == 0 {
				unanswered = true
				continue
			}
			t.Fatal(err)
		}
		switch e := e.(type) {
		case Judged:
			d := at(e.Passage)
			d.Document, d.Decision = v.Documents[len(judgeCalls)], e.Decision
			judgeCalls = append(judgeCalls, e.Calls)
		case Stepped:
			for _, id := range e.Passages {
				d := at(id)
				d.Changed, d.Reason = e.Changed, e.Reason
				if e.Changed {
					used = append(used, d.Document)
				}
			}
		case Text:
			text.WriteString(e.Text)
		case Unanswered:
			unanswered = true
		case Incomplete:
			t.Errorf("incomplete: %s", e.Reason)
		}
	}
	equal(t, "judge calls", judgeCalls, v.ExpectedJudgeCalls)
	equal(t, "calls", append([]vectorCall{}, m.calls...), append([]vectorCall{}, v.ExpectedCalls...))
	equal(t, "decisions", decisions, v.ExpectedDecisions)
	equal(t, "used", used, append([]int{}, v.ExpectedUsed...))
	if text.String() != v.ExpectedAnswer {
		t.Errorf("answer = %q, want %q", text.String(), v.ExpectedAnswer)
	}
	if unanswered != v.ExpectedUnanswered {
		t.Errorf("unanswered = %t, want %t", unanswered, v.ExpectedUnanswered)
	}
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}
