package answer

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

func TestJudgement(t *testing.T) {
	for _, test := range datatest.Table[struct {
		Reply    string
		Decision Decision
		Read     string // the part of the reply that is read before the call is canceled
	}](t, "testdata/tables.txt", "verdicts") {
		n := 1
		for n < len(test.Reply) && !hasVerdict(test.Reply[:n]) {
			n++
		}
		n = min(n, len(test.Reply))
		if decision := readVerdict(test.Reply[:n]); decision != test.Decision || test.Reply[:n] != test.Read {
			t.Errorf("%q: verdict = %s after %q; want %s after %q", test.Reply, decision, test.Reply[:n], test.Decision, test.Read)
		}
	}
}

func TestGate(t *testing.T) {
	clear := passages("The mooring fee is 120 marks.", "The mooring lies in the bay.", "A mooring is hired by the year.",
		"Take two apples and a cup of flour.")
	for i, s := range []retrieve.Scores{{Lexical: .9, Coverage: .7}, {Lexical: .2, Coverage: .3}, {Lexical: .2, Coverage: .3}, {}} {
		clear[i].Scores = s
	}
	for i, want := range []string{"on", "?", "?", "off"} {
		r := &finder{Answerer: &Answerer{Retriever: clear}, standalone: "mooring fee 2025"}
		must(t, r.readPassages(t.Context(), clear))
		c, _ := r.reading.Chance(clear[i])
		if on, off := c > surelyOn, c < surelyOff; on != (want == "on") || off != (want == "off") {
			t.Fatalf("chance of passage %d = %.4f, want it %s; adjust the scores of this test", i+1, c, want)
		}
	}
	cases, err := txtar.ParseFile("testdata/gate.txt")
	must(t, err)
	for _, file := range cases.Files {
		t.Run(file.Name, func(t *testing.T) {
			head, rest, _ := strings.Cut(string(file.Data), "\n")
			budget, replies, _ := strings.Cut(head, " ⇒ ")
			calls, err := strconv.Atoi(budget)
			must(t, err)
			m := &script{reply: byRole(map[Role][]string{RoleJudge: strings.Split(replies, " ⇒ "), RoleAnswer: {"120.[1]"}})}
			a := &Answerer{Retriever: clear, Model: m, Gate: GateKind(file.Name), JudgeCalls: calls, Parallel: 1}
			got := read(a.Ask(t.Context(), Question{Text: "mooring fee 2025"}))
			var lines []string
			for _, l := range got.lines {
				if strings.HasPrefix(l, "judged") {
					lines = append(lines, l)
				}
			}
			want := strings.FieldsFunc(rest, func(r rune) bool { return r == '\n' })
			if !slices.EqualFunc(lines, want, func(a, b string) bool {
				before, after, wild := strings.Cut(b, " * ")
				return a == b || wild && strings.HasPrefix(a, before) && strings.HasSuffix(a, after)
			}) {
				t.Errorf("got\n%s\n\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestAfterNo checks that the judge's no overrules any chance up to .9, and none above it.
func TestAfterNo(t *testing.T) {
	for chance, kept := range map[float64]bool{0: false, .2: false, .89: false, .91: true, 1: true} {
		if got := (Trust{}).chanceAfterNo(chance) > .5; got != kept {
			t.Errorf("chance %g after a no: kept = %t, want %t", chance, got, kept)
		}
	}
}

// TestGateForeign checks that no score skips a passage in another language than the
// question's if a model could judge it, since the words of the question can't be in it.
func TestGateForeign(t *testing.T) {
	for _, test := range datatest.Table[struct {
		Gate            GateKind
		Question, Text  string
		Decision, Judge string
	}](t, "testdata/tables.txt", "other languages") {
		documents := passages(test.Text)
		documents[0].Scores = retrieve.Scores{}
		m := &script{reply: byRole(map[Role][]string{RoleJudge: {"yes"}, RoleAnswer: {"Brandt.[1]"}})}
		a := &Answerer{Retriever: documents, Model: m, Gate: test.Gate}
		got := read(a.Ask(t.Context(), Question{Text: test.Question}))
		if want := fmt.Sprintf("judged r/d1.md#1 %s by %s ", test.Decision, test.Judge); got.err != nil ||
			!strings.Contains(got.String(), want) {
			t.Errorf("%s, question %q of %q: got\n%s", test.Gate, test.Question, test.Text, got)
		}
	}
}

// slow is a judge that takes a second per passage and counts its concurrent calls.
type slow struct{ now, most atomic.Int32 }

func (s *slow) Complete(ctx context.Context, p Prompt) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		if n := s.now.Add(1); n > s.most.Load() {
			s.most.Store(n)
		}
		defer s.now.Add(-1)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			yield(Piece{}, ctx.Err())
			return
		}
		text := "yes\n"
		if p.Role != RoleJudge {
			text = "120.[1]"
		}
		if yield(Piece{Text: text}, nil) {
			yield(Piece{Finish: "stop"}, nil)
		}
	}
}

// TestGateParallel checks that by default twelve passages are judged at the same time.
func TestGateParallel(t *testing.T) {
	for parallel, want := range map[int]int{0: 12, 4: 4} {
		testParallel(t, parallel, want)
	}
}

func testParallel(t *testing.T, parallel, want int) {
	synctest.Test(t, func(t *testing.T) {
		texts := make([]string, 12)
		for i := range texts {
			texts[i] = fmt.Sprintf("fee %d", i)
		}
		m := &slow{}
		a := &Answerer{Retriever: passages(texts...), Model: m, Gate: GateModel, Parallel: parallel}
		start := time.Now()
		got := read(a.Ask(t.Context(), Question{Text: "fee?"}))
		if got.err != nil || got.text != "120.[1]" {
			t.Fatalf("got\n%s", got)
		}
		if took, rounds := time.Since(start), 12/want; took != time.Duration(rounds+1)*time.Second { // plus one for the answer
			t.Errorf("judging took %v, want %d rounds of a second", took, rounds+1)
		}
		if most := m.most.Load(); int(most) != want {
			t.Errorf("%d concurrent calls, want %d", most, want)
		}
	})
}

// TestGateModelUnusable checks that an unusable judge is not called again, and that the
// model still answers.
func TestGateModelUnusable(t *testing.T) {
	judge := &script{reply: func(Prompt) (string, error) { return "", downError{} }}
	m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"120.[1]"}})}
	a := &Answerer{Retriever: three, Model: m, GateModel: judge, Gate: GateModel, Parallel: 1}
	got := read(a.Ask(t.Context(), Question{Text: "What is the mooring fee?"}))
	if got.err != nil || got.text != "120.[1]" || len(judge.calls) != 1 {
		t.Errorf("%d calls of the judge, want 1\n%s", len(judge.calls), got)
	}
	for _, line := range []string{
		"judged r/d1.md#1 error by model (1 calls)", "judged r/d2.md#1 relevant by unjudged (0 calls)",
		"the judge cannot be used, so the remaining passages were ranked by search score: cannot reach http://localhost:1",
	} {
		if !strings.Contains(got.String(), line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
	a = &Answerer{Retriever: three, Model: judge, Gate: GateModel, Parallel: 1}
	if got := read(a.Ask(t.Context(), Question{Text: "What is the mooring fee?"})); got.err == nil {
		t.Errorf("no error without another model; got\n%s", got)
	}
}

// mute is a judge that never replies about some passages.
type mute struct{ on string }

func (s mute) Complete(ctx context.Context, p Prompt) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		text := "no\nof something else"
		switch {
		case p.Role != RoleJudge:
			text = "120.[1]"
		case strings.Contains(p.User, s.on):
			<-ctx.Done()
			yield(Piece{}, ctx.Err())
			return
		}
		if yield(Piece{Text: text}, nil) {
			yield(Piece{Finish: "stop"}, nil)
		}
	}
}

// TestGateTime checks that judging ends at its time limit: passages without a verdict by
// then, asked about or not, are decided by their scores, and the answer continues.
func TestGateTime(t *testing.T) {
	for _, test := range []struct {
		limit, caller time.Duration // the limits of the asker and of the caller's context
		want          time.Duration
	}{
		{0, 0, time.Minute},
		{5 * time.Second, 0, 5 * time.Second},
		{5 * time.Second, time.Minute, 5 * time.Second},
		{0, 20 * time.Second, 10 * time.Second},
		{-1, 20 * time.Second, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			ps := passages("The fee is 120.", "The fee is stalled.", "The bay is deep.", "The fee is stalled too.", "The fee is not paid.")
			ps[0].Scores = retrieve.Scores{} // the verdict alone decides
			a := &Answerer{Retriever: ps, Model: mute{"stalled"}, Gate: GateModel, Parallel: 2, JudgeTime: test.limit}
			ctx := t.Context()
			if test.caller > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.caller)
				defer cancel()
			}
			start := time.Now()
			got := read(a.Ask(ctx, Question{Text: "What is the fee?"}))
			if got.err != nil || got.text != "120.[1]" || time.Since(start) != test.want {
				t.Errorf("ended after %v, want %v\n%s", time.Since(start), test.want, got)
			}
			for _, line := range []string{
				"judged r/d1.md#1 irrelevant by model (1 calls): the model says no",
				"judged r/d2.md#1 relevant by unjudged (1 calls)",
				"judged r/d4.md#1 relevant by unjudged (1 calls)",
				"judged r/d5.md#1 relevant by unjudged (0 calls)",
				"warning {Message:judging the passages took too long (--gate-time, or the time for the answer)",
			} {
				if n := strings.Count(got.String(), line); n != 1 {
					t.Errorf("%d lines %q, want 1, in\n%s", n, line, got)
				}
			}
		})
	}
}

func TestKeep(t *testing.T) {
	for _, test := range []struct{ decisions, want string }{
		{"rrr", "123"}, {"iri", "2"}, {"uer", "312"}, {"uie", "13"}, {"iii", ""}, {"eirr", "314"}, {"", ""},
	} {
		var ps []retrieve.Passage
		var judged []Judged
		for i, d := range test.decisions {
			ps = append(ps, retrieve.Passage{Chunk: ingest.Chunk{ID: fmt.Sprint(i + 1)}})
			judged = append(judged, Judged{Decision: map[rune]Decision{'r': Relevant, 'i': Irrelevant, 'u': Unparsable, 'e': Errored}[d]})
		}
		got := ""
		for _, p := range keptPassages(ps, judged) {
			got += p.ID
		}
		if got != test.want {
			t.Errorf("%s: kept %s, want %s", test.decisions, got, test.want)
		}
	}
}
