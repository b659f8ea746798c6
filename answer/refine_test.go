package answer

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"ibid/answer/prompt"
	"ibid/answer/replay"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

var must = datatest.Must

func TestMain(m *testing.M) {
	if code, ran := ingest.RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); ran {
		os.Exit(code)
	}
	if !datatest.Campaign() {
		flag.Parse()
		if err := flag.Set("rapid.checks", "5"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// passages returns passages with the given texts, all with the scores of a passage on
// topic.
func passages(texts ...string) found {
	var out found
	for i, text := range texts {
		out = append(out, retrieve.Passage{
			Chunk:  ingest.Chunk{ID: fmt.Sprintf("r/d%d.md#1", i+1), Document: fmt.Sprintf("r/d%d.md", i+1), Text: text},
			Title:  fmt.Sprintf("Document %d", i+1),
			Scores: retrieve.Scores{Dense: .9, BM25: 9, Lexical: .9, Coverage: 1},
		})
	}
	return out
}

var three = passages(
	"The mooring fee for a Tarn 14 is 120 marks a season.",
	"Members of the school pay half of the mooring fee.",
	"The fee is due on the first of April and is not refunded.",
)

// byRole returns the reply function of a script from a table. The replies of a role are
// used in order, and the last one is repeated.
func byRole(replies map[Role][]string) func(Prompt) (string, error) {
	at := map[Role]int{}
	return func(p Prompt) (string, error) {
		list := replies[p.Role]
		if len(list) == 0 {
			return "", fmt.Errorf("no reply for %s", p.Role)
		}
		text := list[min(at[p.Role], len(list)-1)]
		at[p.Role]++
		if broken, ok := strings.CutSuffix(text, "<down>"); ok {
			return broken, errDown
		}
		if begun, ok := strings.CutSuffix(text, "<too long>"); ok {
			return begun, fmt.Errorf("400: %w", ErrContextLength)
		}
		return text, nil
	}
}

// A transcript is a stream of events, one per line, without the parts that differ between
// runs.
type transcript struct {
	closest []Closest
	lines   []string
	text    string
	err     error
}

func (r transcript) String() string {
	out := strings.Join(r.lines, "\n")
	if r.err != nil {
		out += "\nerror: " + r.err.Error()
	}
	return out
}

func read(events iter.Seq2[Event, error]) transcript {
	var r transcript
	add := func(format string, args ...any) { r.lines = append(r.lines, fmt.Sprintf(format, args...)) }
	draft, text, kind := "", "", ""
	flush := func() {
		if text != "" {
			add("%s %q", kind, text)
		}
		text = ""
	}
	for e, err := range events {
		if text != "" && (err != nil || e.Kind() != kind) {
			flush()
		}
		if err != nil {
			r.err = err
			continue
		}
		switch e := e.(type) {
		case Retrieved:
			add("retrieved %q %d", e.Question, len(e.Passages))
		case Judged:
			add("judged %s %s by %s (%d calls): %s", e.Passage, e.Decision, e.By, e.Calls, e.Reason)
		case Kept:
			add("kept %d", len(e.Passages))
		case Draft:
			if draft += e.Text; e.Final {
				add("draft %d %q %v", e.Step, draft, e.Labels)
				draft = ""
			}
		case Revision:
			if text, kind = text+e.Text, e.Kind(); e.Cut {
				flush()
				add("revision cut")
			}
		case Text:
			text, kind = text+e.Text, e.Kind()
			r.text += e.Text
		case Stepped:
			if draft != "" {
				add("draft %d %q", e.Step, draft) // the reply broke off
				draft = ""
			}
			add("stepped %d %s %v changed=%t %s invented=%v lost=%v", e.Step, e.Role, e.Labels, e.Changed, e.Reason, e.Invented, e.Lost)
		case Unanswered:
			r.closest = e.Closest
			add("%s %+v", e.Kind(), e)
		case Usage:
			add("usage calls=%d judge=%d looked=%d used=%d", e.Calls, e.JudgeCalls, e.Looked, e.Used)
		default:
			add("%s %+v", e.Kind(), e)
		}
	}
	flush()
	return r
}

// run asks a question by a strategy, or for a summary of the passages that the retriever
// finds.
func run(t *testing.T, a *Answerer, strategy string) transcript {
	if way, ok := strings.CutPrefix(strategy, "summarize "); ok {
		return read(a.Summarize(t.Context(), Summary{Passages: a.Retriever.(found), Strategy: way}))
	}
	return read(a.Ask(t.Context(), Question{Text: "What is the fee?", Strategy: strategy}))
}

// A refineCase is the first line of a case in testdata/refine.txt: the model's replies and
// the settings. The events follow.
type refineCase struct {
	Replies        map[Role][]string
	Finish         string
	StepTokens     int `json:"step_tokens"`
	AnswerCalls    int `json:"answer_calls"`
	MaxDraftTokens int `json:"max_draft_tokens"`
}

func TestRefine(t *testing.T) {
	cases, err := txtar.ParseFile("testdata/refine.txt")
	must(t, err)
	for _, file := range cases.Files {
		config, want, _ := strings.Cut(strings.TrimSpace(string(file.Data)), "\n")
		var test refineCase
		must(t, json.Unmarshal([]byte(config), &test))
		for _, cut := range []func(string) []string{nil, byRune} {
			t.Run(fmt.Sprintf("%s/whole=%t", file.Name, cut == nil), func(t *testing.T) {
				a := &Answerer{Retriever: three, Model: &script{reply: byRole(test.Replies), cut: cut, finish: test.Finish}, Gate: GateOff,
					StepTokens: test.StepTokens, AnswerCalls: test.AnswerCalls, MaxDraftTokens: test.MaxDraftTokens}
				got := read(a.Ask(t.Context(), Question{Text: "What does a mooring cost?"}))
				got.lines = slices.DeleteFunc(got.lines, func(l string) bool { return strings.HasPrefix(l, "retrieved ") })
				for i, l := range got.lines {
					if strings.HasPrefix(l, "unanswered") {
						got.lines[i] = "unanswered no_answer 3"
					}
				}
				if got.String() != want {
					t.Errorf("got\n%s\n\nwant\n%s", got, want)
				}
			})
		}
	}
}

// TestRefineCutAnywhere checks that the events do not depend on how the pieces of the
// replies are cut, except for the pieces of drafts and text.
func TestRefineCutAnywhere(t *testing.T) {
	replies := rapid.SampledFrom([]string{
		"120 marks.[1]", "NO CHANGE", "NO ANSWER", "NO ANSWER\nbecause", "No changes needed!!", "no change at all",
		"No answer is given by [2].", "  \n", "", "It is 120.[1] And more.[2]", "none", "None of them.[3]", "cut<down>", "<down>", "n/a <down>",
		"The existing answer remains relevant and accurate.", "The existing answer remains relevant and rude.",
	})
	rapid.Check(t, func(rt *rapid.T) {
		table := map[Role][]string{
			RoleAnswer: rapid.SliceOfN(replies, 1, 3).Draw(rt, "answer"),
			RoleRefine: rapid.SliceOfN(replies, 1, 3).Draw(rt, "refine"),
		}
		per := rapid.IntRange(1, 3).Draw(rt, "passages in a step")
		ask := func(cut func(string) []string) transcript {
			a := &Answerer{
				Retriever: three, Gate: GateOff, StepTokens: []int{1, 100, 0}[per-1],
				Model: &script{reply: byRole(table), cut: cut},
			}
			r := read(a.Ask(context.Background(), Question{Text: "fee?"}))
			// A draft that failed has no last piece: its beginning precedes the next draft.
			r.lines = slices.DeleteFunc(r.lines, func(l string) bool { return strings.HasPrefix(l, "draft ") })
			return r
		}
		whole := ask(nil)
		cut := ask(func(s string) []string {
			var out []string
			for len(s) > 0 {
				n := rapid.IntRange(1, len(s)).Draw(rt, "cut")
				out, s = append(out, s[:n]), s[n:]
			}
			return out
		})
		if whole.String() != cut.String() {
			rt.Fatalf("whole\n%s\n\ncut\n%s", whole, cut)
		}
	})
}

// TestAskBreak checks that leaving the range at any event leaves nothing running. (The
// language checks that nothing is yielded afterwards: it would panic.)
func TestAskBreak(t *testing.T) {
	for _, gate := range []GateKind{GateModel, GateOff} {
		for n := 1; ; n++ {
			m := &script{
				reply: byRole(map[Role][]string{
					RoleJudge: {"yes\nand"}, RoleAnswer: {"120 marks.[1]"}, RoleRefine: {"120 marks,[1] half for members.[2]"},
				}),
				cut: byRune,
			}
			a := &Answerer{Retriever: three, Model: m, Gate: gate, StepTokens: 1, Parallel: 2}
			seen := 0
			for _, err := range a.Ask(t.Context(), Question{Text: "fee?"}) {
				must(t, err)
				if seen++; seen == n {
					break
				}
			}
			if seen < n {
				break
			}
			goleak.VerifyNone(t, goleak.IgnoreCurrent())
		}
	}
}

// stalled is a Model that sends nothing until its context ends.
type stalled struct{ running chan struct{} }

func (s stalled) Complete(ctx context.Context, p Prompt) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		s.running <- struct{}{}
		<-ctx.Done()
		yield(Piece{}, ctx.Err())
	}
}

func TestAskCancelled(t *testing.T) {
	for _, gate := range []GateKind{GateModel, GateOff} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			a := &Answerer{Retriever: three, Model: stalled{make(chan struct{}, 100)}, Gate: gate}
			start := time.Now()
			var last error
			for _, err := range a.Ask(ctx, Question{Text: "fee?"}) {
				last = err
			}
			if !errors.Is(last, context.DeadlineExceeded) {
				t.Errorf("gate %s: last error = %v, want DeadlineExceeded", gate, last)
			}
			if took := time.Since(start); took != time.Minute {
				t.Errorf("gate %s: ended after %v, want 1m", gate, took)
			}
		})
	}
}

// TestCutPromptWarning checks that a prompt cut by the server is noticed by its token
// count, in any script, although the server's tokenizer counts differently.
func TestCutPromptWarning(t *testing.T) {
	for _, test := range datatest.Table[struct {
		Name  string
		Text  string
		Share float64 // the server's tokens per token of ours
	}](t, "testdata/tables.txt", "prompts that are cut") {
		t.Run(test.Name, func(t *testing.T) {
			long := passages(strings.Repeat(test.Text, 2400/ingest.CountTokens(test.Text)))
			for _, whole := range []float64{1, .5} {
				m := &script{}
				m.reply = func(p Prompt) (string, error) {
					own := ingest.CountTokens(long[0].Text)
					rest := ingest.CountTokens(p.System) + ingest.CountTokens(p.User) - own
					if !strings.Contains(p.User, strings.TrimSpace(long[0].Text)) {
						t.Error("prompt lacks a part of the evidence")
					}
					m.usage = Tokens{Prompt: int(whole * (float64(rest) + test.Share*float64(own))), Completion: 5, Reported: true}
					return "120 marks.[1]", nil
				}
				got := read((&Answerer{Retriever: long, Model: m, Gate: GateOff}).Ask(t.Context(), Question{Text: "fee?"}))
				if warned := strings.Contains(got.String(), "so it has cut the prompt"); warned != (whole < 1) {
					t.Errorf("server read %g of the prompt; warned = %t\n%s", whole, warned, got)
				}
			}
		})
	}
}

func TestQuestionErrors(t *testing.T) {
	m := &script{reply: byRole(nil)}
	for _, test := range []struct {
		q    Question
		m    Model
		code string
	}{
		{Question{Text: " \n"}, nil, "empty"},
		{Question{Text: "\xff"}, nil, "empty"},
		{Question{Text: strings.Repeat("long ", 20000)}, nil, "too_long"},
		{Question{Text: "q", Strategy: "guess"}, m, "strategy"},
		{Question{Text: "q", Strategy: "refine"}, nil, "strategy"},
		{Question{Text: "q", TopK: -1}, nil, "top_k"},
		{Question{Text: "q", History: []Turn{{Role: "system", Content: "obey"}}}, m, "history"},
	} {
		a := &Answerer{Retriever: three, Model: test.m}
		got := read(a.Ask(t.Context(), test.q))
		var q *QuestionError
		if !errors.As(got.err, &q) || q.Code != test.code || len(got.lines) > 0 {
			t.Errorf("%q, strategy %q: got\n%s\nwant only a QuestionError %s", prompt.Clip(test.q.Text, 20), test.q.Strategy, got, test.code)
		}
	}
}

// TestCondenseLongHistory checks that a history that is too long is shortened, not omitted.
func TestCondenseLongHistory(t *testing.T) {
	history := []Turn{{"user", "What does a mooring cost?"}, {"assistant", strings.Repeat("A mooring costs 120 marks a season. ", 2000)}}
	m := &script{reply: byRole(map[Role][]string{RoleCondense: {"What does a mooring cost for members?"}, RoleAnswer: {"Half.[2]"}})}
	a := &Answerer{Retriever: three, Model: m, Gate: GateOff}
	if got := read(a.Ask(t.Context(), Question{Text: "and for members?", History: history})); got.err != nil ||
		m.calls[0].Role != RoleCondense {
		t.Fatalf("got\n%s", got)
	}
	p := m.calls[0]
	if n := ingest.CountTokens(p.System) + ingest.CountTokens(p.User) + p.MaxTokens; n > 4096*85/100 ||
		!strings.Contains(p.User, "120 marks") {
		t.Errorf("prompt and reply have %d tokens: %s", n, prompt.Clip(p.User, 300))
	}
}

// A german library finds only words of German questions, and warns if a question is in
// another language.
type german struct{ asked []string }

func (g *german) Search(ctx context.Context, q retrieve.Query) ([]retrieve.Passage, error) {
	if g.asked = append(g.asked, q.Text); !strings.Contains(q.Text, "Liegeplatz") {
		q.Warn(&retrieve.LanguageError{Language: "de"})
	}
	return three.Search(ctx, q)
}

// A crowded library allows one search or reading at a time.
type crowded struct {
	busy  bool
	turns int
}

func (c *crowded) WaitTurn(context.Context) (end func(), err error) {
	if c.busy {
		return nil, errors.New("one turn waits for another")
	}
	c.busy, c.turns = true, c.turns+1
	return func() { c.busy = false }, nil
}

func (c *crowded) Search(ctx context.Context, q retrieve.Query) ([]retrieve.Passage, error) {
	end, err := c.WaitTurn(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return three.Search(ctx, q)
}

// TestReadInTurn checks that passages are read in a separate turn, which is released.
func TestReadInTurn(t *testing.T) {
	library := &crowded{}
	got := read((&Answerer{Retriever: library, Gate: GateScore}).Ask(t.Context(), Question{Text: "mooring?"}))
	if got.err != nil || library.turns < 2 || library.busy {
		t.Errorf("%d turns, want at least 2; still held: %v\n%s", library.turns, library.busy, got)
	}
}

// A mixed library has one page in German, which is found first for any question in German.
type mixed struct {
	off   bool // the German page is certainly off topic
	asked []string
}

func (m *mixed) Search(_ context.Context, q retrieve.Query) ([]retrieve.Passage, error) {
	m.asked = append(m.asked, q.Text)
	all := passages("Der Hafen hat im Winter für alle Boote geschlossen, und die Ware wird nicht geliefert.",
		"Each of the employees has 27 days of holiday a year, and they are to be taken by March.",
		"The office is closed on the first day of the year, and it is open on the others.", "Parking is free for all who work here.")
	for i := range all {
		all[i].Scores = retrieve.Scores{}
		if strings.Contains(q.Text, "holiday") == (i == 1) && !(m.off && i == 0) {
			all[i].Scores = retrieve.Scores{Dense: .6, Lexical: .6, Coverage: .9, BM25: 9}
		}
	}
	return all, nil
}

// TestTranslateMixed checks that a page in the language of the question does not prevent
// translation if the page is off topic or has no answer.
func TestTranslateMixed(t *testing.T) {
	const question, inEnglish = "Wie viele Urlaubstage habe ich pro Jahr?", "How many days of holiday do I have a year?"
	for _, off := range []bool{true, false} {
		library := &mixed{off: off}
		m := &script{reply: byRole(map[Role][]string{RoleTranslate: {inEnglish}})}
		write := m.reply
		m.reply = func(p Prompt) (string, error) {
			if p.Role != RoleAnswer {
				return write(p)
			}
			if !strings.Contains(p.User, "27 days") {
				return "NO ANSWER", nil
			}
			return "27 Tage.[1]", nil
		}
		got := read((&Answerer{Retriever: library, Model: m}).Ask(t.Context(), Question{Text: question}))
		if got.err != nil || got.text != "27 Tage.[1]" || !slices.Contains(library.asked, inEnglish) {
			t.Errorf("off topic = %t: searched for %q\n%s", off, library.asked, got)
		}
	}
}

func TestTranslate(t *testing.T) {
	const question = "What does a mooring cost?"
	warning := fmt.Sprintf("warning {Message:%s}", &retrieve.LanguageError{Language: "de"})
	for _, test := range datatest.Table[struct {
		Reply, Finish string
		Model         bool
		Asked         []string
		Warned        bool
	}](t, "testdata/tables.txt", "translations") {
		library := &german{}
		m := &script{reply: byRole(map[Role][]string{RoleTranslate: {test.Reply}, RoleAnswer: {"Half.[2]"}}), finish: test.Finish}
		a := &Answerer{Retriever: library, Gate: GateOff}
		if test.Model {
			a.Model = m
		}
		got := read(a.Ask(t.Context(), Question{Text: question}))
		last := fmt.Sprintf("retrieved %q 3", library.asked[len(library.asked)-1])
		if !slices.Equal(library.asked, test.Asked) || slices.Contains(got.lines, warning) != test.Warned || !slices.Contains(got.lines, last) {
			t.Errorf("reply %q: searched for %q, want %q; want a warning: %t; events\n%s", test.Reply, library.asked, test.Asked, test.Warned, got)
		}
		if !test.Model {
			continue
		}
		if p := m.calls[0]; p.Role != RoleTranslate || !strings.Contains(p.User, question) || !strings.Contains(p.System, "German") {
			t.Errorf("first call: role %s, system %s, user\n%s", p.Role, p.System, p.User)
		}
		if p := m.calls[len(m.calls)-1]; p.Role != RoleAnswer || !strings.Contains(p.User, "Question: "+question) {
			t.Errorf("call for the answer: role %s, user\n%s", p.Role, p.User)
		}
	}
}

// TestTranslateOnce checks that a question is translated once, and that a resumed answer
// searches for the same translation.
func TestTranslateOnce(t *testing.T) {
	newModel := func() *script {
		return &script{reply: byRole(map[Role][]string{RoleTranslate: {"Was kostet ein Liegeplatz?"}, RoleAnswer: {"Half.[2]"}})}
	}
	m, restarted := newModel(), newModel()
	kept := map[*script]*Translations{m: {}, restarted: {}}
	recorder := &replay.Recorder{ID: "r", Secret: []byte("s"), Journal: &memoryJournal{replies: map[string][]byte{}}}
	for i, test := range []struct {
		model *script
		Question
		want int // number of translations before the resumption
	}{
		{m, Question{Text: "What does a mooring cost?"}, 1},
		{m, Question{Text: "What does a mooring cost?"}, 1},
		{m, Question{Text: "What is the fee?"}, 2},
		{m, Question{Text: "What is the fee?", Recorder: recorder}, 2},
		{restarted, Question{Text: "What is the fee?", Recorder: recorder}, 0},
	} {
		library := &german{}
		got := read((&Answerer{Retriever: library, Gate: GateOff, Model: test.model, Translations: kept[test.model]}).Ask(t.Context(),
			test.Question))
		calls := 0
		for _, p := range test.model.calls {
			if p.Role == RoleTranslate {
				calls++
			}
		}
		if calls != test.want || len(library.asked) != 2 || got.err != nil {
			t.Errorf("question %d: %d translations, want %d; searched for %q: %v", i+1, calls, test.want, library.asked, got.err)
		}
	}
}

func TestCondense(t *testing.T) {
	history := []Turn{{"user", "What does a mooring cost?"}, {"assistant", "120 marks.[1]"}}
	for _, row := range datatest.Rows(t, "testdata/replies.txt", "whole questions") {
		reply, finish, want := row[0], row[1], row[2]
		m := &script{reply: byRole(map[Role][]string{RoleCondense: {reply}, RoleAnswer: {"Half.[2]"}}), cut: byRune, finish: finish}
		a := &Answerer{Retriever: three, Model: m, Gate: GateOff}
		got := read(a.Ask(t.Context(), Question{Text: "and for members?", History: history}))
		if want = fmt.Sprintf("retrieved %q 3", want); !slices.Contains(got.lines, want) {
			t.Errorf("reply %q: events\n%s\nwant %s", reply, got, want)
		}
		if strings.Contains(m.calls[0].User, "[1]") {
			t.Errorf("labels of the history are in the prompt:\n%s", m.calls[0].User)
		}
	}
}
