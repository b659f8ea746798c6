package answer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"sync"
	"testing"

	"ibid/answer/replay"
	"ibid/retrieve"
)

// talkativeModel is a model that writes more than is asked, gives one unreadable verdict, and
// finds no answer in another passage.
func talkativeModel() *script {
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

// lines splits a text after each line break.
func lines(text string) []string { return strings.SplitAfter(text, "\n") }

func parts(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("The fee for part %d of %s is %d marks.", i+1, strings.Repeat(string(rune('a'+i)), 9), 10+i)
	}
	return out
}

// TestAskResumed checks that a question that is interrupted at any call resumes after it,
// with the same result as without the interruption.
func TestAskResumed(t *testing.T) {
	for _, strategy := range Strategies()[1:] {
		t.Run(strategy, func(t *testing.T) {
			ask := func(ctx context.Context, m Model, j replay.Journal) string {
				a := &Answerer{Retriever: passages(parts(7)...), Model: m, Gate: GateModel, StepTokens: 1, Parallel: 1}
				got := read(a.Ask(ctx, Question{
					Text: "And the fee?", History: []Turn{{Role: "user", Content: "Tell me of boats."}}, Strategy: strategy,
					Recorder: &replay.Recorder{ID: "r", Secret: []byte("s"), Journal: j},
				}))
				return got.String()
			}
			interruptEachCall(t, 9, talkativeModel, ask)
		})
	}
}

// TestAskResumedElsewhere checks that after a document has changed, only the calls that
// show it are repeated; passages with the same words keep their verdicts.
func TestAskResumedElsewhere(t *testing.T) {
	j := &memoryJournal{replies: map[string][]byte{}}
	ask := func(m *script, texts []string) transcript {
		p := passages(texts...)
		for i := range p {
			p[i].Title, p[i].Scores = "Fees", retrieve.Scores{}
		}
		a := &Answerer{Retriever: p, Model: m, Gate: GateModel, Parallel: 1}
		return read(a.Ask(t.Context(), Question{Text: "What is the fee?", Recorder: &replay.Recorder{ID: "r", Secret: []byte("s"), Journal: j}}))
	}
	texts := parts(3)
	texts[1] = texts[0]
	turn := 0
	reply := func(p Prompt) (string, error) {
		if p.Role != RoleJudge {
			return "10 marks [1].", nil
		}
		turn++
		return map[bool]string{true: "yes\n", false: "no"}[turn == 1], nil
	}
	whole := &script{reply: reply}
	want := ask(whole, texts)
	if len(whole.calls) != 4 || want.err != nil || !strings.Contains(want.String(), "r/d2.md#1 irrelevant") {
		t.Fatalf("%d calls, want 4, for\n%s", len(whole.calls), want)
	}
	again := &script{reply: reply}
	if got := ask(again, texts); got.String() != want.String() || len(again.calls) != 0 {
		t.Errorf("%d calls, want none, for\n%s\nwant\n%s", len(again.calls), got, want)
	}
	texts[2] = "The fee for part 3 is 99 marks now."
	changed := &script{reply: reply}
	if got := ask(changed, texts); got.err != nil || len(changed.calls) != 1 || !strings.Contains(changed.calls[0].User, "99 marks") {
		t.Errorf("%d calls, want one with the new text, for\n%s", len(changed.calls), got)
	}
}

// TestResumedAfterEmptyReply checks that an empty reply is not replayed.
func TestResumedAfterEmptyReply(t *testing.T) {
	j := &memoryJournal{replies: map[string][]byte{}}
	ask := func(reply string) (transcript, int) {
		m := &script{reply: byRole(map[Role][]string{RoleAnswer: {reply}})}
		a := &Answerer{Retriever: three, Model: m, Gate: GateOff}
		return read(a.Ask(t.Context(), Question{Text: "What is the fee?",
			Recorder: &replay.Recorder{ID: "r", Secret: []byte("s"), Journal: j}})), len(m.calls)
	}
	if got, _ := ask(" \n"); got.text != "" {
		t.Fatalf("got\n%s", got)
	}
	if got, calls := ask("120 marks [1]."); calls != 1 || !strings.HasPrefix(got.text, "120 marks") {
		t.Errorf("%d calls, want 1, for\n%s", calls, got)
	}
	if got, calls := ask("130 marks [1]."); calls != 0 || !strings.HasPrefix(got.text, "120 marks") {
		t.Errorf("%d calls, want none, for\n%s", calls, got)
	}
}

// TestJournalFails checks that a failing journal does not stop an answer.
func TestJournalFails(t *testing.T) {
	a := &Answerer{Retriever: three, Model: &script{reply: byRole(map[Role][]string{RoleJudge: {"yes"}, RoleAnswer: {"120 marks [1]."}})},
		Gate: GateModel}
	got := read(a.Ask(t.Context(), Question{Text: "What is the fee?",
		Recorder: &replay.Recorder{ID: "r", Secret: []byte("s"), Journal: brokenJournal{}}}))
	if got.err != nil || !strings.HasPrefix(got.text, "120 marks") || strings.Count(got.String(), "cannot be resumed") != 1 {
		t.Errorf("got\n%s", got)
	}
}

type brokenJournal struct{}

func (brokenJournal) Reply(context.Context, string, string) ([]byte, bool, error) {
	return nil, false, errors.New("the disk is gone")
}

func (brokenJournal) KeepReply(context.Context, string, string, string, []byte) error {
	return errors.New("the disk is gone")
}

// TestWatch checks that a record is kept if resuming it may add to the answer.
func TestWatch(t *testing.T) {
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
		"abandoned by its caller": {events: []Event{Text{Text: "x"}}, kept: true},
		"an error after all that": {events: []Event{Text{Text: "x"}, Usage{}}, err: errDown, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &replay.Recorder{}
			shown := test.shown
			for _, err := range Watch(r, func(yield func(Event, error) bool) {
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
			if kept := !r.IsJobDone(t.Context(), shown, false); kept != test.kept {
				t.Errorf("kept = %t, want %t", kept, test.kept)
			}
		})
	}
}

// memoryJournal is a journal of one run in memory.
type memoryJournal struct {
	mu      sync.Mutex
	replies map[string][]byte
}

func (j *memoryJournal) Reply(_ context.Context, run, key string) ([]byte, bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	b, ok := j.replies[run+key]
	return b, ok, nil
}

func (j *memoryJournal) KeepReply(_ context.Context, run, _, key string, reply []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.replies[run+key] = reply
	return nil
}

// TestSummaryResumed checks that a summary that is interrupted at any call resumes after
// it, with the same result.
func TestSummaryResumed(t *testing.T) {
	for _, strategy := range []string{"refine", "map-reduce"} {
		t.Log(strategy)
		reply := func(p Prompt) (string, error) {
			first := anyLabel.FindString(p.User)
			return fmt.Sprintf("%x sails %s.", len(p.User), first), nil
		}
		summarize := func(ctx context.Context, m Model, j replay.Journal) string {
			a := &Answerer{Model: m, StepTokens: 1, Parallel: 1}
			var b strings.Builder
			for e, err := range a.Summarize(ctx, Summary{Passages: story(12), Strategy: strategy,
				Recorder: &replay.Recorder{ID: "r", Secret: []byte("s"), Journal: j}}) {
				if err != nil {
					return "error: " + err.Error()
				}
				if e, ok := e.(Text); ok {
					b.WriteString(e.Text)
				}
			}
			return b.String()
		}
		interruptEachCall(t, 12, func() *script { return &script{reply: reply} }, summarize)
	}
}

// interruptEachCall interrupts a run at each of the model's calls, of which there must be at
// least least, and checks that the second run has the same result and repeats no call.
func interruptEachCall(t *testing.T, least int, model func() *script, run func(context.Context, Model, replay.Journal) string) {
	t.Helper()
	whole := model()
	want := run(t.Context(), whole, &memoryJournal{replies: map[string][]byte{}})
	if len(whole.calls) < least || !regexp.MustCompile(`marks|It costs|sails`).MatchString(want) {
		t.Fatalf("%d calls, want at least %d, for\n%s", len(whole.calls), least, want)
	}
	for at := range whole.calls {
		j := &memoryJournal{replies: map[string][]byte{}}
		ctx, cancel := context.WithCancel(t.Context())
		run(ctx, breaksAt{model(), at, cancel}, j)
		cancel()
		second := model()
		if got := run(t.Context(), second, j); got != want {
			t.Errorf("interrupted at call %d: result\n%s\nwant\n%s", at+1, got, want)
		}
		if n := len(second.calls); n != len(whole.calls)-at {
			t.Errorf("interrupted at call %d: %d calls in the second run, %d in a whole one", at+1, n, len(whole.calls))
		}
	}
}

// breaksAt is a model that cancels the context at a call.
type breaksAt struct {
	scripted
	at     int
	cancel func()
}

type scripted interface {
	Model
	made() int
}

func (m breaksAt) Complete(ctx context.Context, p Prompt) iter.Seq2[Piece, error] {
	if m.made() == m.at {
		m.cancel()
	}
	return m.scripted.Complete(ctx, p)
}
