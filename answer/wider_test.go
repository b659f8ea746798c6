package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

// nearest is a retriever that finds at most as many passages as a query asks for, by
// default two.
type nearest found

func (n nearest) Search(_ context.Context, q retrieve.Query) ([]retrieve.Passage, error) {
	return n[:min(cmp.Or(q.K, 2), len(n))], nil
}

// TestWiderLook checks that skipped passages and those further down are read once if the
// model finds no answer in the first passages.
func TestWiderLook(t *testing.T) {
	library := passages("The mooring fee is due in April.", "Take two apples and a cup of flour.", "The mooring fee is 120 marks.",
		"Ice covers the bay.", "The crane lifts boats.", "The club has a flag.", "Nothing is ever read this far down.")
	library[1].Scores = retrieve.Scores{} // certainly off topic, and skipped
	for _, test := range datatest.Table[struct {
		Name     string
		Gate     GateKind
		Strategy string
		Verdict  string // the judge's reply about each passage; empty for yes
		Calls    int    // AnswerCalls
		Replies  []string
		Want     string
		Calling  int
	}](t, "testdata/tables.txt", "wider looks") {
		t.Run(test.Name, func(t *testing.T) {
			m := &script{reply: byRole(map[Role][]string{RoleAnswer: test.Replies, RoleJudge: {cmp.Or(test.Verdict, "yes")}})}
			a := &Answerer{Retriever: nearest(library), Model: m, Gate: test.Gate, AnswerCalls: test.Calls, Parallel: 1}
			got := read(a.Ask(t.Context(), Question{Text: "mooring fee", Strategy: test.Strategy}))
			if got.err != nil || !strings.Contains(got.String(), test.Want) {
				t.Errorf("want %s in\n%s", test.Want, got)
			}
			answering := 0
			for _, p := range m.calls {
				if p.Role == RoleAnswer {
					answering++
				}
			}
			if answering != test.Calling {
				t.Errorf("%d answering calls, want %d\n%s", answering, test.Calling, got)
			}
			if strings.Contains(got.String(), "d7.md") {
				t.Errorf("a passage after three times the first number was read\n%s", got)
			}
		})
	}
}

// TestWiderLookReads checks that the second call shows the passages that the first did not,
// and that the counts agree.
func TestWiderLookReads(t *testing.T) {
	library := passages("The mooring fee is due in April.", "Take two apples and a cup of flour.", "The mooring fee is 120 marks.",
		"Ice covers the bay.")
	library[1].Scores = retrieve.Scores{}
	m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"NO ANSWER", "120 marks.[2]"}})}
	a := &Answerer{Retriever: nearest(library), Model: m}
	var wide []string
	var usage Usage
	for e, err := range a.Ask(t.Context(), Question{Text: "mooring fee"}) {
		must(t, err)
		switch e := e.(type) {
		case Judged:
			if e.Wider {
				wide = append(wide, e.Passage)
			}
		case Usage:
			usage = e
		}
	}
	if got := strings.Join(wide, " "); got != "r/d3.md#1 r/d2.md#1 r/d4.md#1" {
		t.Errorf("passages read in the second call = %s", got)
	}
	if usage.Looked != 4 || usage.Calls != 2 {
		t.Errorf("usage = %+v, want 4 passages looked at in 2 calls", usage)
	}
	second := m.calls[1].User
	if strings.Contains(second, "in April") || !strings.Contains(second, "two apples") || !strings.Contains(second, "120 marks") {
		t.Errorf("prompt of the second call =\n%s", second)
	}
}

// TestWiderLookFails checks that if the second call fails, sentences are quoted, since no
// call found that the passages have no answer.
func TestWiderLookFails(t *testing.T) {
	m := &script{}
	m.reply = func(Prompt) (string, error) {
		if len(m.calls) == 1 {
			return "NO ANSWER", nil
		}
		m.finish = "length"
		return "", nil // the model has used its whole length for thoughts
	}
	a := &Answerer{Retriever: nearest(passages("The mooring fee is 120 marks.", "The crane lifts boats.", "Ice covers the bay.")), Model: m}
	got := read(a.Ask(t.Context(), Question{Text: "What is the mooring fee?"}))
	if got.err != nil || got.text != "The mooring fee is 120 marks.[1]" || !strings.Contains(got.String(), "fallback {Reason:model_failed") {
		t.Errorf("got\n%s", got)
	}
}

// lookWider asks about twelve passages within a budget. wider is the number of passages
// that the judge names in the wider look, read the number that the last answering call is
// said to show, and shown the number that it does show.
func lookWider(t *testing.T, budget int, sentences func(passage int) int) (wider, read, shown, calls int, events []Event) {
	texts := make([]string, 12)
	for i := range texts {
		texts[i] = fmt.Sprintf("Mooring %d lies near the lighthouse. %s", i, strings.Repeat("The ferry departs each morning. ", sentences(i)))
	}
	m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"NO ANSWER"}})}
	a := &Answerer{Retriever: nearest(passages(texts...)), Model: m, BudgetTokens: budget}
	for e, err := range a.Ask(t.Context(), Question{Text: "When does the ferry to the mooring depart?", TopK: 4}) {
		must(t, err)
		events = append(events, e)
		switch e := e.(type) {
		case Judged:
			if e.Wider {
				wider++
			}
		case Stepped:
			if e.Role == RoleAnswer {
				read = len(e.Passages)
			}
		}
	}
	return wider, read, strings.Count(m.calls[len(m.calls)-1].User, "Mooring "), len(m.calls), events
}

// TestUnread checks that a wider look counts the passages that it had room for, and the
// refusal the other ones.
func TestUnread(t *testing.T) {
	wider, _, shown, calls, events := lookWider(t, 1600, func(int) int { return 20 })
	usage, warnings := Usage{}, ""
	for _, e := range events {
		switch e := e.(type) {
		case Warning:
			warnings += e.Message
		case Usage:
			usage = e
		}
	}
	if calls != 2 || wider != shown || usage.Looked != 4+shown {
		t.Errorf("%d calls, %d passages in the wider look, %d shown, usage = %+v", calls, wider, shown, usage)
	}
	want := fmt.Sprintf("of the passages that were found, %d could not be read: --context-tokens (4096) or --budget-tokens (1600)", 8-shown)
	if shown == 8 || !strings.Contains(warnings, want) {
		t.Errorf("warnings = %q, want %q", warnings, want)
	}
}

// TestUnreadFirst checks that a wider look shows first the passages for which no call was
// left, and that without a wider look the refusal names them, whatever the strategy.
func TestUnreadFirst(t *testing.T) {
	for _, row := range datatest.Table[struct {
		Strategy string
		Gate     GateKind
		Step     int // StepTokens
		Wider    int // number of found passages, and of those read by the wider look
		Says     string
	}](t, "testdata/tables.txt", "unread") {
		texts := make([]string, 18)
		for i := range texts {
			texts[i] = fmt.Sprintf("Mooring <%d> lies near the lighthouse, where the ferry departs each morning.", i)
		}
		m := &script{reply: func(Prompt) (string, error) { return "NO ANSWER", nil }}
		a := &Answerer{Retriever: nearest(passages(texts...)), Model: m, Gate: row.Gate, StepTokens: row.Step, ContextTokens: 32000}
		got := read(a.Ask(t.Context(), Question{Text: "When does the ferry to the mooring depart?", Strategy: row.Strategy, TopK: 12})).String()
		last, before := m.calls[len(m.calls)-1].User, ""
		for _, p := range m.calls[:len(m.calls)-1] {
			before += p.User
		}
		wider := 0
		for i := range 12 {
			name := fmt.Sprintf("<%d>", i)
			if strings.Contains(last, name) && !strings.Contains(before, name) {
				wider++
			}
		}
		if end := strings.Index(last, "<12>"); row.Wider > 0 && (wider != row.Wider || end < strings.Index(last, "<11>")) ||
			len(m.calls) > defaultAnswerCalls || !strings.Contains(got, row.Says) || row.Says == "" && strings.Contains(got, "could not be read") {
			t.Errorf("%+v: %d calls, %d passages read by the wider look\n%s\n%s", row, len(m.calls), wider, last, got)
		}
	}
}

// TestWiderLookShows checks that if not all passages fit, those that are reported as read
// are those that the call shows, whatever their lengths.
func TestWiderLookShows(t *testing.T) {
	looks := 0
	for budget := 1500; budget <= 2000; budget += 100 {
		wider, read, shown, calls, _ := lookWider(t, budget, func(i int) int { return 1 + i*i*7%40 })
		if wider != 0 && wider < 8 {
			looks++
		}
		if calls == 2 && (wider != read || read != shown) {
			t.Errorf("budget %d: %d passages are said to be in the wider look and %d to be read, but %d are shown", budget, wider, read, shown)
		}
	}
	if looks == 0 {
		t.Error("every wider look had room for all passages")
	}
}

// metered is a model whose prompts cost 500 tokens each.
type metered struct{ Model }

func (m metered) Complete(ctx context.Context, p Prompt) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		for piece, err := range m.Model.Complete(ctx, p) {
			if piece.Usage.Prompt = 500; !yield(piece, err) {
				return
			}
		}
	}
}

// TestFirstLook checks that the first call shows the passages that most likely answer the
// question, and the next call the other ones, within the budget.
func TestFirstLook(t *testing.T) {
	texts := make([]string, 9)
	for i := range texts {
		texts[i] = fmt.Sprintf("Mooring number %d lies near the lighthouse and the bakery, where the ferry departs each morning.", i)
	}
	texts[7] = "The mooring fee is 120 marks."
	library := passages(texts...)
	for i := range library {
		library[i].Scores = retrieve.Scores{Dense: .3, Lexical: .3, Coverage: .3, BM25: 1}
	}
	for budget, calls := range map[int]int{0: 2, 1500: 2, 700: 1} {
		m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"NO ANSWER", "120 marks.[1]"}})}
		a := &Answerer{Retriever: nearest(library), Model: metered{m}, BudgetTokens: budget}
		got := read(a.Ask(t.Context(), Question{Text: "How much is the mooring fee in the harbour in winter?", TopK: 9}))
		if len(m.calls) != calls || !strings.Contains(got.String(), "deferred") {
			t.Fatalf("budget %d: %d calls, want %d\n%s", budget, len(m.calls), calls, got)
		}
		for i, text := range texts {
			first := strings.Contains(m.calls[0].User, text)
			if best := i < firstLeast || i == 7; best && !first {
				t.Errorf("passage %d is not in the first call", i)
			}
			if calls == 2 && strings.Contains(m.calls[1].User, text) == first {
				t.Errorf("passage %d is in both calls, or in neither", i)
			}
		}
	}
}

// TestBudget checks that the prompts of a question are within the budget, whatever the
// strategy. Passages for which there is no room are not read, and the stream and a refusal
// say so. The likeliest passage is read.
func TestBudget(t *testing.T) {
	t.Parallel()
	texts := make([]string, 12)
	for i := range texts {
		texts[i] = fmt.Sprintf("Pier %d lies near the lighthouse. %s", i, strings.Repeat("The ferry departs each morning in May. ", 40))
	}
	texts[9] = "The mooring fee is 120 marks. " + strings.Repeat("It is due on the first day of May each year. ", 40)
	library := passages(texts...)
	for i := range library {
		library[i].Scores = retrieve.Scores{Dense: .3, Lexical: .3, Coverage: .3, BM25: 1}
	}
	for _, strategy := range writingStrategies() {
		for _, gate := range []GateKind{GateAuto, GateBoth, GateModel} {
			for _, budget := range []int{LeastBudget, 700, 1000, 2000, 4000, 8000} {
				long := strings.Repeat("Members pay half of the fee for a mooring.[1] ", 10) + "The fee is 120 marks.[1]\nScore: 7"
				m := &script{reply: func(p Prompt) (string, error) {
					if p.Verdict {
						return "yes", nil
					}
					return long, nil
				}}
				a := &Answerer{Retriever: nearest(library), Model: m, Gate: gate, Unproved: UnprovedDrop, BudgetTokens: budget, Parallel: 1,
					ContextTokens: 2048, AnswerCalls: -1}
				got := read(a.Ask(t.Context(), Question{Text: "How much is the mooring fee?", Strategy: strategy, TopK: 12,
					History: []Turn{{Role: "user", Content: strings.Repeat("What about the club? ", 99)}}}))
				spent, shown := 0, false
				for _, p := range m.calls {
					spent += ingest.CountTokens(p.System) + ingest.CountTokens(p.User)
					shown = shown || p.Role != RoleJudge && strings.Contains(p.User, "120 marks")
				}
				if got.err != nil || spent > budget || got.text == "" || !shown && gate == GateAuto && strategy != "map-rerank" {
					t.Errorf("%s, %s, budget %d: %d tokens spent, likeliest shown = %t\n%s", strategy, gate, budget, spent, shown, got)
				}
				if budget <= 1000 && !strings.Contains(got.String(), " budget ") {
					t.Errorf("%s, %s: the budget of %d is not reported\n%s", strategy, gate, budget, got)
				}
			}
		}
	}
	over := read((&Answerer{Retriever: three, Model: &script{}, BudgetTokens: LeastBudget}).Ask(t.Context(),
		Question{Text: strings.Repeat("What is the mooring fee? ", 90)}))
	if q := (*QuestionError)(nil); !errors.As(over.err, &q) || q.Code != "too_long" {
		t.Errorf("long question: err = %v, want the code too_long", over.err)
	}
	m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"NO ANSWER"}})}
	a := &Answerer{Retriever: three, Model: metered{m}, Gate: GateOff, StepTokens: 1, BudgetTokens: 500}
	got := read(a.Ask(t.Context(), Question{Text: "What is the mooring fee?"})).String()
	if !strings.Contains(got, "2 could not be read: --step-tokens (1) or --context-tokens (4096) or --budget-tokens (500) has no room") ||
		!strings.Contains(got, "unanswered {Reason:no_answer") {
		t.Errorf("no room for a passage: want a warning with the limits, and no_answer, in\n%s", got)
	}
}

// TestJudgeBudget checks that passages and statements share the budget of the judge.
func TestJudgeBudget(t *testing.T) {
	const answer = "Ice covers the bay in winter.[3] The crane lifts boats on Mondays in May.[2]"
	for _, test := range []struct{ calls, tokens, passages, statements int }{{0, 0, 3, 2}, {3, 0, 1, 2}, {0, 1, 0, 0}, {-1, -1, 3, 2}} {
		m := proving([]string{answer}, "", "")
		a := &Answerer{Retriever: proofLibrary(), Model: m, Gate: GateModel, Unproved: UnprovedDrop, JudgeCalls: test.calls,
			JudgeTokens: test.tokens}
		got, asked := read(a.Ask(t.Context(), Question{Text: "mooring fee of members"})), map[Role]int{}
		for _, p := range m.calls {
			asked[p.Role]++
		}
		if got.text != answer || asked[RoleJudge] != test.passages || asked[RoleVerify] != test.statements {
			t.Errorf("%+v: calls by role = %v\n%s", test, asked, got)
		}
	}
}
