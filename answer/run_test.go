package answer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ibid/retrieve"
)

// talkative is a model that goes on behind all that is wanted of it, judges
// one passage beyond understanding, and finds no answer in another.
func talkative() *script {
	tail := "\n" + strings.Repeat("and so on ", 30)
	return &script{cut: lines, reply: func(p Prompt) (string, error) {
		text := fmt.Sprintf("It costs %d [%s].", len(p.System+p.User), strings.Trim(anyLabel.FindString(p.User), "[]"))
		switch p.Role {
		case RoleCondense:
			return "What is the fee?\n" + tail, nil
		case RoleJudge:
			switch {
			case strings.Contains(p.User, "part 2 "):
				return "hard to say\n" + tail, nil
			case strings.Contains(p.User, "part 3 "):
				return "no\n it is about boats\n" + tail, nil
			}
			return "yes\n" + tail, nil
		case RoleRefine:
			if strings.Contains(p.User, "part 4 ") {
				return "No answer\n" + tail, nil
			}
		case RoleRerank:
			return text + fmt.Sprintf("\nScore: %d", len(p.User)%7), nil
		}
		return text, nil
	}}
}

// lines cuts a text behind each line break, so that what stands before it
// comes first.
func lines(text string) []string { return strings.SplitAfter(text, "\n") }

func parts(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("The fee for part %d of %s is %d marks.", i+1, strings.Repeat(string(rune('a'+i)), 9), 10+i)
	}
	return out
}

// A question that breaks off at any call goes on behind it and ends as one that
// never did, with what was cut because enough had come.
func TestAskResumed(t *testing.T) {
	for _, strategy := range []string{"refine", "stuff", "map-reduce", "map-rerank", "extract"} {
		t.Run(strategy, func(t *testing.T) {
			ask := func(ctx context.Context, m Model, j Journal) string {
				a := &Answerer{Retriever: passages(parts(7)...), Model: m, Gate: GateModel, StepPassages: 1, Parallel: 1}
				got := read(a.Ask(ctx, Question{
					Text: "And the fee?", History: []Turn{{Role: "user", Content: "Tell me of boats."}}, Strategy: strategy,
					Run: &Run{ID: "r", Secret: []byte("s"), Journal: j},
				}))
				return got.String()
			}
			whole := talkative()
			want := ask(t.Context(), whole, &memoryJournal{replies: map[string][]byte{}})
			if len(whole.calls) < 9 || !strings.Contains(want, "marks") && !strings.Contains(want, "It costs") {
				t.Fatalf("%d calls for\n%s", len(whole.calls), want)
			}
			for at := range whole.calls {
				j := &memoryJournal{replies: map[string][]byte{}}
				ctx, cancel := context.WithCancel(t.Context())
				first, second := talkative(), talkative()
				ask(ctx, breaksAt{first, at, cancel}, j)
				cancel()
				if got := ask(t.Context(), second, j); got != want {
					t.Errorf("broken at call %d:\n%s\nwant\n%s", at+1, got, want)
				}
				if n := len(second.calls); n != len(whole.calls)-at {
					t.Errorf("broken at call %d: %d calls were left of %d", at+1, n, len(whole.calls))
				}
			}
		})
	}
}

// What was decided without a call that failed, or that was not made in time,
// stays decided: all that came after rests on it.
func TestAskResumedAfterFailures(t *testing.T) {
	for name, test := range map[string]struct {
		broken func(p Prompt) bool
		mute   bool
		says   string
	}{
		"condense":          {func(p Prompt) bool { return p.Role == RoleCondense }, false, "searched for as it stands: cannot reach the model"},
		"a judge":           {func(p Prompt) bool { return p.Role == RoleJudge && strings.Contains(p.User, "part 3 ") }, false, "judged r/d3.md#1 error by model (2 calls)"},
		"all judges":        {func(p Prompt) bool { return p.Role == RoleJudge }, false, "every call to the judge failed"},
		"a judge, in time":  {func(p Prompt) bool { return p.Role == RoleJudge && strings.Contains(p.User, "part 3 ") }, true, "longer than 1m0s"},
		"the first to keep": {func(p Prompt) bool { return p.Role == RoleJudge && strings.Contains(p.User, "part 1 ") }, true, "(0 calls)"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ask := func(ctx context.Context, m Model, j Journal) string {
					a := &Answerer{Retriever: passages(parts(7)...), Model: m, Gate: GateModel, StepPassages: 1, Parallel: 1}
					return read(a.Ask(ctx, Question{
						Text: "And the fee?", History: []Turn{{Role: "user", Content: "Tell me of boats."}}, Run: &Run{ID: "r", Secret: []byte("s"), Journal: j},
					})).String()
				}
				whole := talkative()
				want := ask(t.Context(), failing{whole, test.broken, test.mute}, &memoryJournal{replies: map[string][]byte{}})
				if !strings.Contains(want, test.says) {
					t.Fatalf("got\n%s", want)
				}
				judging := 0
				for i, p := range whole.calls {
					if p.Role == RoleJudge || p.Role == RoleCondense {
						judging = i + 1
					}
				}
				for at := judging; at < len(whole.calls); at++ {
					j := &memoryJournal{replies: map[string][]byte{}}
					ctx, cancel := context.WithCancel(t.Context())
					ask(ctx, breaksAt{failing{talkative(), test.broken, test.mute}, at, cancel}, j)
					cancel()
					second := talkative() // by now all is well
					if got := ask(t.Context(), second, j); got != want {
						t.Errorf("broken at call %d:\n%s\nwant\n%s", at+1, got, want)
					}
					if n := len(second.calls); n != len(whole.calls)-at {
						t.Errorf("broken at call %d: %d calls were left of %d", at+1, n, len(whole.calls))
					}
				}
			})
		})
	}
}

// failing is a script some of whose calls fail, or get no reply for as long as
// there is time.
type failing struct {
	*script
	broken func(Prompt) bool
	mute   bool
}

func (m failing) Complete(ctx context.Context, p Prompt) iter.Seq2[Piece, error] {
	if !m.broken(p) {
		return m.script.Complete(ctx, p)
	}
	m.script.calls = append(m.script.calls, p)
	return func(yield func(Piece, error) bool) {
		if m.mute {
			<-ctx.Done()
		}
		yield(Piece{}, errDown)
	}
}

// Where a document has changed in between, the calls that show it are made
// again, and no other; passages of the same words keep each its own verdict.
func TestAskResumedElsewhere(t *testing.T) {
	j := &memoryJournal{replies: map[string][]byte{}}
	ask := func(m *script, texts []string) record {
		p := passages(texts...)
		for i := range p {
			p[i].Title = "Fees"
		}
		a := &Answerer{Retriever: p, Model: m, Gate: GateModel, Parallel: 1}
		return read(a.Ask(t.Context(), Question{Text: "What is the fee?", Run: &Run{ID: "r", Secret: []byte("s"), Journal: j}}))
	}
	texts := parts(3)
	texts[1] = texts[0]
	turn := 0
	reply := func(p Prompt) (string, error) {
		if p.Role != RoleJudge {
			return "10 marks [1].", nil
		}
		turn++
		return map[bool]string{true: "yes\n", false: "no\nreason " + fmt.Sprint(turn)}[turn == 1], nil
	}
	whole := &script{reply: reply}
	want := ask(whole, texts)
	if len(whole.calls) != 4 || want.err != nil || !strings.Contains(want.String(), "reason 2") {
		t.Fatalf("%d calls for\n%s", len(whole.calls), want)
	}
	again := &script{reply: reply}
	if got := ask(again, texts); got.String() != want.String() || len(again.calls) != 0 {
		t.Errorf("%d calls for\n%s\nwant\n%s", len(again.calls), got, want)
	}
	texts[2] = "The fee for part 3 is 99 marks now."
	changed := &script{reply: reply}
	if got := ask(changed, texts); got.err != nil || len(changed.calls) != 1 || !strings.Contains(changed.calls[0].User, "99 marks") {
		t.Errorf("%d calls for\n%s", len(changed.calls), got)
	}
}

// A reply without a word is no reason to be without one for ever.
func TestResumedAfterEmptyReply(t *testing.T) {
	j := &memoryJournal{replies: map[string][]byte{}}
	ask := func(reply string) (record, int) {
		m := &script{reply: byRole(map[Role][]string{RoleAnswer: {reply}})}
		a := &Answerer{Retriever: three, Model: m, Gate: GateOff}
		return read(a.Ask(t.Context(), Question{Text: "What is the fee?", Run: &Run{ID: "r", Secret: []byte("s"), Journal: j}})), len(m.calls)
	}
	if got, _ := ask(" \n"); got.text != "" {
		t.Fatalf("got\n%s", got)
	}
	if got, calls := ask("120 marks [1]."); calls != 1 || !strings.HasPrefix(got.text, "120 marks") {
		t.Errorf("%d calls for\n%s", calls, got)
	}
	if got, calls := ask("130 marks [1]."); calls != 0 || !strings.HasPrefix(got.text, "120 marks") {
		t.Errorf("%d calls for\n%s", calls, got)
	}
}

// A journal that fails costs no answer.
func TestJournalFails(t *testing.T) {
	a := &Answerer{Retriever: three, Model: &script{reply: byRole(map[Role][]string{RoleJudge: {"yes"}, RoleAnswer: {"120 marks [1]."}})}, Gate: GateModel}
	got := read(a.Ask(t.Context(), Question{Text: "What is the fee?", Run: &Run{ID: "r", Secret: []byte("s"), Journal: brokenJournal{}}}))
	if got.err != nil || !strings.HasPrefix(got.text, "120 marks") || strings.Count(got.String(), "cannot be taken up again") != 1 {
		t.Errorf("got\n%s", got)
	}
}

type brokenJournal struct{}

func (brokenJournal) Reply(context.Context, string, string) ([]byte, bool, error) {
	return nil, false, errors.New("the disk is gone")
}

func (brokenJournal) Keep(context.Context, string, string, []byte) error {
	return errors.New("the disk is gone")
}

// A run is forgotten when taking it up would change nothing.
func TestRunSettled(t *testing.T) {
	failed, empty, cut := Stepped{Step: 1, Reason: "model_error"}, Stepped{Step: 1, Reason: "empty_reply"}, Incomplete{Reason: "it broke off"}
	for name, test := range map[string]struct {
		events []Event
		err    error
		shown  error
		kept   bool
	}{
		"whole":                   {events: []Event{Text{Text: "x"}, Usage{}}},
		"whole, after a failure":  {events: []Event{failed, Text{Text: "x"}, Usage{}}},
		"refused":                 {events: []Event{Unanswered{}, Usage{}}},
		"cut for good":            {events: []Event{Text{Text: "x"}, cut, Usage{}}},
		"cut by a failure":        {events: []Event{failed, Text{Text: "x"}, cut, Usage{}}, kept: true},
		"cut by an empty reply":   {events: []Event{empty, Text{Text: "x"}, cut, Usage{}}, kept: true},
		"an error":                {events: []Event{Text{Text: "x"}}, err: errDown, kept: true},
		"what cannot be asked":    {err: &QuestionError{Code: "top_k"}},
		"shown to nobody":         {events: []Event{Text{Text: "x"}, Usage{}}, shown: errors.New("broken pipe"), kept: true},
		"left by who asked":       {events: []Event{Text{Text: "x"}}, kept: true},
		"an error after all that": {events: []Event{Text{Text: "x"}, Usage{}}, err: errDown, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := &memoryLedger{runs: map[string]retrieve.Job{}}
			run, err := BeginRun(t.Context(), l, "test", 7)
			if err != nil {
				t.Fatal(err)
			}
			shown := test.shown
			for _, err := range run.Watch(func(yield func(Event, error) bool) {
				for _, e := range test.events {
					if !yield(e, nil) {
						return
					}
				}
				if test.err != nil {
					yield(nil, test.err)
				}
			}) {
				shown = errors.Join(shown, err)
			}
			kept, err := run.Settle(t.Context(), shown)
			if err != nil || kept != test.kept || len(l.runs) == 1 != test.kept {
				t.Errorf("kept %t, %v; %d in the ledger", kept, err, len(l.runs))
			}
		})
	}
}

// memoryLedger is a Ledger that holds runs in memory.
type memoryLedger struct {
	retrieve.Archive // none are kept here
	memoryJournal
	mu   sync.Mutex // guards runs
	runs map[string]retrieve.Job
}

// held gives a run, and whether a worker may have it. Nobody's claim runs out by itself here.
func (l *memoryLedger) held(id, worker string) (retrieve.Job, error) {
	r, ok := l.runs[id]
	switch {
	case !ok:
		return r, retrieve.ErrNotFound
	case r.Worker != "" && r.Worker != worker:
		return r, &retrieve.HeldError{Run: id, Worker: r.Worker, Left: r.Left}
	}
	return r, nil
}

func (l *memoryLedger) Claim(_ context.Context, id, worker string, d time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, err := l.held(id, worker)
	if err == nil {
		r.Worker, r.Left = worker, d
		l.runs[id] = r
	}
	return err
}

func (l *memoryLedger) Release(_ context.Context, id, worker string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, ok := l.runs[id]; ok && r.Worker == worker {
		r.Worker, r.Left = "", 0
		l.runs[id] = r
	}
	return nil
}

func (l *memoryLedger) Keep(ctx context.Context, run, worker, key string, reply []byte) error {
	l.mu.Lock()
	_, err := l.held(run, worker)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return l.memoryJournal.Keep(ctx, run, key, reply)
}

func (l *memoryLedger) Begin(_ context.Context, r retrieve.Job) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[r.ID] = r
	return nil
}

func (l *memoryLedger) End(_ context.Context, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs, id)
	return nil
}

func (l *memoryLedger) Job(_ context.Context, id string) (retrieve.Job, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.runs[id]
	if !ok {
		return r, retrieve.ErrNotFound
	}
	return r, nil
}

func (l *memoryLedger) Latest(_ context.Context, kind string) (latest retrieve.Job, err error) {
	err = retrieve.ErrNotFound
	for _, r := range l.runs {
		if r.Kind == kind && r.Started.After(latest.Started) {
			latest, err = r, nil
		}
	}
	return latest, err
}

func TestResumeRun(t *testing.T) {
	l := &memoryLedger{runs: map[string]retrieve.Job{
		"a": {ID: "a", Kind: "question", Started: time.Unix(1, 0), Secret: []byte("s"), Spec: []byte(`{"n":1}`)},
		"b": {ID: "b", Kind: "question", Started: time.Unix(2, 0), Secret: []byte("s"), Spec: []byte(`{"n":2}`)},
		"c": {ID: "c", Kind: "summary", Started: time.Unix(3, 0), Secret: []byte("s"), Spec: []byte(`{"n":3}`)},
		"d": {ID: "d", Kind: "torn", Started: time.Unix(3, 0), Secret: []byte("s"), Spec: []byte(`{"n`)},
	}}
	for _, test := range []struct {
		kind, id string
		n        int
		err      string
	}{
		{"question", "a", 1, ""},
		{"question", "", 2, ""},
		{"question", "c", 0, "begun by 'summary'"},
		{"question", "z", 0, retrieve.ErrNotFound.Error()},
		{"other", "", 0, retrieve.ErrNotFound.Error()},
		{"torn", "d", 0, "reading what the run d is to do"},
	} {
		var spec struct{ N int }
		run, err := ResumeRun(t.Context(), l, test.kind, test.id, &spec)
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) || spec.N != test.n {
			t.Errorf("%s %q: %v, spec %d", test.kind, test.id, err, spec.N)
		}
		if err == nil && (test.id != "" && run.ID != test.id || string(run.Secret) != "s" || run.Journal == nil) {
			t.Errorf("%s %q: %+v", test.kind, test.id, run)
		}
	}
}

// A run is held by one worker at a time, which stops when it learns that another
// one has it, and then leaves it alone.
func TestRunHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &memoryLedger{memoryJournal: memoryJournal{replies: map[string][]byte{}}, runs: map[string]retrieve.Job{}}
		hold := func(run *Run) (context.Context, error) {
			ctx, cancel := context.WithCancelCause(t.Context())
			return ctx, run.Hold(ctx, cancel)
		}
		holder := func(id string) string {
			r, err := l.Job(t.Context(), id)
			if err != nil {
				return err.Error()
			}
			return r.Worker
		}
		begin := func() (*Run, context.Context) {
			run, err := BeginRun(t.Context(), l, "test", 7)
			if err != nil {
				t.Fatal(err)
			}
			ctx, err := hold(run)
			if err != nil || holder(run.ID) != run.worker {
				t.Fatal(err, holder(run.ID))
			}
			return run, ctx
		}
		resume := func(id string) *Run {
			run, err := ResumeRun(t.Context(), l, "test", id, new(int))
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
		isHeld := func(err error, by string) {
			t.Helper()
			if held := (*retrieve.HeldError)(nil); !errors.As(err, &held) || held.Worker != by {
				t.Errorf("%v; want it to be held by %q", err, by)
			}
		}

		// It goes on for as long as it likes; nobody else gets it until it is settled.
		first, ctx := begin()
		time.Sleep(time.Hour)
		second := resume(first.ID)
		_, err := hold(second)
		isHeld(err, first.worker)
		if err := first.Journal.Keep(t.Context(), first.ID, "k", []byte("reply")); err != nil || ctx.Err() != nil {
			t.Error(err, context.Cause(ctx))
		}
		if kept, err := first.Settle(t.Context(), errDown); !kept || err != nil {
			t.Errorf("kept %t, %v", kept, err)
		}
		if ctx, err = hold(second); err != nil {
			t.Fatal(err)
		}
		isHeld(first.Journal.Keep(t.Context(), first.ID, "k", nil), second.worker)

		// Another worker takes it: it learns that when it keeps a reply.
		steal := func(id, worker string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			r := l.runs[id]
			r.Worker = worker
			l.runs[id] = r
		}
		steal(second.ID, "thief")
		isHeld(second.Journal.Keep(t.Context(), second.ID, "k", []byte("late")), "thief")
		isHeld(context.Cause(ctx), "thief")
		if b, _, _ := l.Reply(t.Context(), second.ID, "k"); string(b) != "reply" {
			t.Errorf("the reply is %q", b)
		}
		second.ended = true // its answer is whole
		if kept, err := second.Settle(t.Context(), nil); !kept || err != nil || l.runs[second.ID].Worker != "thief" || !second.Lost(t.Context()) {
			t.Errorf("kept %t, %v; the ledger has %v", kept, err, l.runs)
		}

		// Or at the latest when it prolongs its claim.
		third, ctx := begin()
		steal(third.ID, "thief")
		time.Sleep(retrieve.ClaimTime / 3)
		isHeld(context.Cause(ctx), "thief")
		if kept, err := third.Settle(t.Context(), nil); !kept || err != nil {
			t.Errorf("kept %t, %v", kept, err)
		}

		// One that was held up, and heard of nothing, asks before it ends the run.
		fourth, err := BeginRun(t.Context(), l, "test", 7)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(retrieve.ClaimTime)
		steal(fourth.ID, "thief")
		fourth.ended = true
		if kept, err := fourth.Settle(t.Context(), nil); !kept || err != nil || l.runs[fourth.ID].ID == "" {
			t.Errorf("kept %t, %v; the ledger has %v", kept, err, l.runs)
		}

		// A run that the ledger has forgotten goes on to its end.
		sixth, ctx := begin()
		l.mu.Lock()
		delete(l.runs, sixth.ID)
		l.mu.Unlock()
		time.Sleep(time.Minute)
		if ctx.Err() != nil || sixth.Lost(t.Context()) {
			t.Errorf("it ended: %v", context.Cause(ctx))
		}
		sixth.ended = true
		if kept, err := sixth.Settle(t.Context(), nil); kept || err != nil {
			t.Errorf("kept %t, %v", kept, err)
		}

		// But not one that another worker may have ended meanwhile.
		seventh, err := BeginRun(t.Context(), l, "test", 7)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(retrieve.ClaimTime)
		delete(l.runs, seventh.ID)
		isHeld(func() error {
			ctx, cancel := context.WithCancelCause(t.Context())
			if err := seventh.Hold(ctx, cancel); err != nil {
				return err
			}
			time.Sleep(retrieve.ClaimTime / 3)
			return context.Cause(ctx)
		}(), "")
		if kept, err := seventh.Settle(t.Context(), nil); !kept || err != nil {
			t.Errorf("kept %t, %v", kept, err)
		}
	})
}
