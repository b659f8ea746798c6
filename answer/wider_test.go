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

// nearest finds no more passages than a query asks for, two by default.
type nearest found

func (n nearest) Search(_ context.Context, q retrieve.Query) ([]retrieve.Passage, error) {
	return n[:min(cmp.Or(q.K, 2), len(n))], nil
}

// TestWiderLook: what was skipped or found further down is read, once, when the
// model finds no answer in the passages before.
func TestWiderLook(t *testing.T) {
	library := passages("The mooring fee is due in April.", "Take two apples and a cup of flour.", "The mooring fee is 120 marks.",
		"Ice covers the bay.", "The crane lifts boats.", "The club has a flag.", "Nothing is ever read this far down.")
	library[1].Scores = retrieve.Scores{} // surely off topic, and skipped
	for _, test := range datatest.Table[struct {
		Name     string
		Gate     GateKind
		Strategy string
		Verdict  string // of the judge about each passage; empty for yes
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
				t.Errorf("%d calls, want %d\n%s", answering, test.Calling, got)
			}
			if strings.Contains(got.String(), "d7.md") {
				t.Errorf("a passage beyond three times the first was read\n%s", got)
			}
		})
	}
}

// TestWiderLookReads: the second call shows what the first did not, and the
// counts say what was looked at.
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
		t.Errorf("read in the wider look: %s", got)
	}
	if usage.Looked != 4 || usage.Calls != 2 {
		t.Errorf("%+v", usage)
	}
	second := m.calls[1].User
	if strings.Contains(second, "in April") || !strings.Contains(second, "two apples") || !strings.Contains(second, "120 marks") {
		t.Errorf("the second call shows\n%s", second)
	}
}

// TestWiderLookFails: where the wider look fails, nobody has said that its passages hold no
// answer, so sentences are quoted.
func TestWiderLookFails(t *testing.T) {
	m := &script{}
	m.reply = func(Prompt) (string, error) {
		if len(m.calls) == 1 {
			return "NO ANSWER", nil
		}
		m.finish = "length"
		return "", nil // it has thought its whole length away
	}
	a := &Answerer{Retriever: nearest(passages("The mooring fee is 120 marks.", "The crane lifts boats.", "Ice covers the bay.")), Model: m}
	got := read(a.Ask(t.Context(), Question{Text: "What is the mooring fee?"}))
	if got.err != nil || got.text != "The mooring fee is 120 marks.[1]" || !strings.Contains(got.String(), "fallback {Reason:model_failed") {
		t.Errorf("got\n%s", got)
	}
}

// lookWider asks about twelve passages in a budget: wider is how many the judge names in the
// wider look, read how many the last answering call is said to show, shown how many it does.
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

// TestUnread: a wider look counts the passages that it had room to read, and the refusal
// the others.
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
		t.Errorf("%d calls, %d of a wider look, %d shown, %+v", calls, wider, shown, usage)
	}
	want := fmt.Sprintf("of the passages that were found, %d could not be read: --context-tokens (4096) or --budget-tokens (1600)", 8-shown)
	if shown == 8 || !strings.Contains(warnings, want) {
		t.Errorf("want %q in %q", want, warnings)
	}
}

// TestUnreadFirst: the wider look shows first what no call was left for, and without one
// the refusal says so, whatever the strategy.
func TestUnreadFirst(t *testing.T) {
	for _, row := range datatest.Table[struct {
		Strategy string
		Gate     GateKind
		Step     int // StepTokens
		Wider    int // passages that were found and are read by the wider look
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
			t.Errorf("%+v: %d calls, %d read by the wider look\n%s\n%s", row, len(m.calls), wider, last, got)
		}
	}
}

// TestWiderLookShows: where not all fit, the passages that are said to be read are those
// that the call shows, whatever their lengths.
func TestWiderLookShows(t *testing.T) {
	looks := 0
	for budget := 1500; budget <= 2000; budget += 100 {
		wider, read, shown, calls, _ := lookWider(t, budget, func(i int) int { return 1 + i*i*7%40 })
		if wider != 0 && wider < 8 {
			looks++
		}
		if calls == 2 && (wider != read || read != shown) {
			t.Errorf("with %d tokens %d passages are said to be looked at, %d to be read, and %d are", budget, wider, read, shown)
		}
	}
	if looks == 0 {
		t.Error("no wider look left a passage out")
	}
}

// metered is a model each of whose prompts costs 500 tokens.
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

// TestFirstLook: the first call shows the passages that most likely answer, and the
// next one the others, within the budget.
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
				t.Errorf("passage %d is not shown at first", i)
			}
			if calls == 2 && strings.Contains(m.calls[1].User, text) == first {
				t.Errorf("passage %d is shown in both calls, or in none", i)
			}
		}
	}
}

// All prompts of a question are within the budget, whatever the strategy: passages that it
// has no room for are not read, and the stream and a refusal say so. The likeliest is read.
func TestBudget(t *testing.T) {
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
					t.Errorf("%s, %s, budget %d: %d tokens, %t\n%s", strategy, gate, budget, spent, shown, got)
				}
				if budget <= 1000 && !strings.Contains(got.String(), " budget ") {
					t.Errorf("%s, %s, budget %d:\n%s", strategy, gate, budget, got)
				}
			}
		}
	}
	over := read((&Answerer{Retriever: three, Model: &script{}, BudgetTokens: LeastBudget}).Ask(t.Context(),
		Question{Text: strings.Repeat("What is the mooring fee? ", 90)}))
	if q := (*QuestionError)(nil); !errors.As(over.err, &q) || q.Code != "too_long" {
		t.Error(over)
	}
	m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"NO ANSWER"}})}
	a := &Answerer{Retriever: three, Model: metered{m}, Gate: GateOff, StepTokens: 1, BudgetTokens: 500}
	got := read(a.Ask(t.Context(), Question{Text: "What is the mooring fee?"})).String()
	if !strings.Contains(got, "2 could not be read: --step-tokens (1) or --context-tokens (4096) or --budget-tokens (500) has no room") ||
		!strings.Contains(got, "unanswered {Reason:no_answer") {
		t.Error(got)
	}
}

// Passages and statements share the budget of the judge.
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
			t.Errorf("%+v: %v\n%s", test, asked, got)
		}
	}
}
