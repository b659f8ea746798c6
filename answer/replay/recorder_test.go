package replay

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ibid/data/datatest"
	"ibid/retrieve"
)

var must = datatest.Must

// TestLoad checks that a recorder finds what it saved, and that a nil recorder saves
// nothing.
func TestLoad(t *testing.T) {
	l := &memoryLedger{replies: map[string][]byte{}, runs: map[string]retrieve.Job{}}
	first, err := Begin(t.Context(), l, "test", 7)
	must(t, err)
	must(t, first.Save(t.Context(), "k", "reply"))
	second, err := Resume(t.Context(), l, "test", first.ID, new(int))
	must(t, err)
	var got string
	if ok, err := second.Load(t.Context(), "k", &got); !ok || err != nil || got != "reply" {
		t.Errorf("Load = %t, %v with %q; want the saved reply", ok, err, got)
	}
	if ok, err := (*Recorder)(nil).Load(t.Context(), "k", &got); ok || err != nil || (*Recorder)(nil).Save(t.Context(), "k", got) != nil {
		t.Errorf("Load of a nil recorder = %t, %v; want nothing", ok, err)
	}
}

// TestNonce checks that the marks of fences depend only on the secret and the prompt.
func TestNonce(t *testing.T) {
	mark := func(secret, text string) string { return (&Recorder{Secret: []byte(secret)}).Nonce("map", text) }
	if first := mark("a", "x"); len(first) < 8 || first != mark("a", "x") || first == mark("b", "x") || first == mark("a", "y") {
		t.Errorf("marks = %q, %q, %q, %q", first, mark("a", "x"), mark("b", "x"), mark("a", "y"))
	}
}

// memoryLedger is a Ledger in memory.
type memoryLedger struct {
	retrieve.Archive // it keeps no shared records
	mu               sync.Mutex
	runs             map[string]retrieve.Job
	replies          map[string][]byte
}

// held returns a run and whether a worker may have it. No claim expires.
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

func (l *memoryLedger) KeepReply(_ context.Context, run, worker, key string, reply []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.held(run, worker)
	if err == nil {
		l.replies[run+key] = reply
	}
	return err
}

func (l *memoryLedger) Reply(_ context.Context, run, key string) ([]byte, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.replies[run+key]
	return b, ok, nil
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

func TestResume(t *testing.T) {
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
		{"question", "c", 0, "begun by 'summary'"},
		{"question", "z", 0, retrieve.ErrNotFound.Error()},
		{"torn", "d", 0, "reading the run d"},
	} {
		var spec struct{ N int }
		run, err := Resume(t.Context(), l, test.kind, test.id, &spec)
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) || spec.N != test.n {
			t.Errorf("%s %q: err = %v, spec %d; want %q, %d", test.kind, test.id, err, spec.N, test.err, test.n)
		}
		if err == nil && (run.ID != test.id || string(run.Secret) != "s" || run.Journal == nil) {
			t.Errorf("%s %q: run = %+v", test.kind, test.id, run)
		}
	}
}

// TestHeld checks that a run is held by one worker at a time. A worker that learns that
// another one holds the run stops, and writes nothing more to it.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &memoryLedger{replies: map[string][]byte{}, runs: map[string]retrieve.Job{}}
		hold := func(run *Recorder) (context.Context, error) {
			ctx, cancel := context.WithCancelCause(t.Context())
			return ctx, run.HoldJob(ctx, cancel)
		}
		holder := func(id string) string {
			r, err := l.Job(t.Context(), id)
			if err != nil {
				return err.Error()
			}
			return r.Worker
		}
		begin := func() (*Recorder, context.Context) {
			run, err := Begin(t.Context(), l, "test", 7)
			must(t, err)
			ctx, err := hold(run)
			if err != nil || holder(run.ID) != run.worker {
				t.Fatalf("holding the run: %v; its holder is %q, want %q", err, holder(run.ID), run.worker)
			}
			return run, ctx
		}
		resume := func(id string) *Recorder {
			run, err := Resume(t.Context(), l, "test", id, new(int))
			must(t, err)
			return run
		}
		isHeld := func(err error, by string) {
			t.Helper()
			if held := (*retrieve.HeldError)(nil); !errors.As(err, &held) || held.Worker != by {
				t.Errorf("err = %v, want a HeldError with the worker %q", err, by)
			}
		}

		settle := func(r *Recorder, err error) (kept bool) {
			t.Helper()
			if r.IsJobDone(t.Context(), err, false) {
				r.StopProlonging()
				return false
			}
			must(t, r.Release(t.Context()))
			return true
		}

		// A worker keeps the run as long as it needs; others get it only after it is
		// settled.
		first, ctx := begin()
		time.Sleep(time.Hour)
		second := resume(first.ID)
		_, err := hold(second)
		isHeld(err, first.worker)
		if err := first.Save(t.Context(), "k", "reply"); err != nil || ctx.Err() != nil {
			t.Errorf("keeping a reply as the first holder: %v, %v; want no error", err, context.Cause(ctx))
		}
		if kept := settle(first, errors.New("it broke off")); !kept {
			t.Errorf("settle after an interruption: kept = %t, want true", kept)
		}
		if ctx, err = hold(second); err != nil {
			t.Fatal(err)
		}
		isHeld(first.Save(t.Context(), "k", nil), second.worker)

		// Another worker claims the run: the first one learns that when it saves a reply.
		steal := func(id, worker string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			r := l.runs[id]
			r.Worker = worker
			l.runs[id] = r
		}
		steal(second.ID, "thief")
		isHeld(second.Save(t.Context(), "k", "late"), "thief")
		isHeld(context.Cause(ctx), "thief")
		if b, _, _ := l.Reply(t.Context(), second.ID, "k"); string(b) != `"reply"` {
			t.Errorf("reply = %q, want the one saved before", b)
		}
		second.SetOutcome(Done)
		if kept := settle(second, nil); !kept || l.runs[second.ID].Worker != "thief" ||
			!second.HasLostJob(t.Context()) {
			t.Errorf("kept = %t; ledger = %v", kept, l.runs)
		}

		// Otherwise it learns that when it renews its claim.
		third, ctx := begin()
		steal(third.ID, "thief")
		time.Sleep(retrieve.ClaimTime / 3)
		isHeld(context.Cause(ctx), "thief")
		if kept := settle(third, nil); !kept {
			t.Errorf("kept = %t, want true", kept)
		}

		// A worker that was suspended and renewed nothing checks its claim before it ends
		// the run.
		fourth, err := Begin(t.Context(), l, "test", 7)
		must(t, err)
		time.Sleep(retrieve.ClaimTime)
		steal(fourth.ID, "thief")
		fourth.SetOutcome(Done)
		if kept := settle(fourth, nil); !kept || l.runs[fourth.ID].ID == "" {
			t.Errorf("kept = %t; ledger = %v", kept, l.runs)
		}

		// Another worker claimed and ended the run while this process was suspended.
		fifth, err := Begin(t.Context(), l, "test", 7)
		must(t, err)
		time.Sleep(retrieve.ClaimTime + 1)
		delete(l.runs, fifth.ID)
		if !fifth.HasLostJob(t.Context()) {
			t.Error("HasLostJob = false for a run that another worker ended")
		}

		// A run that the ledger has lost is completed.
		sixth, ctx := begin()
		l.mu.Lock()
		delete(l.runs, sixth.ID)
		l.mu.Unlock()
		time.Sleep(time.Minute)
		if ctx.Err() != nil || sixth.HasLostJob(t.Context()) {
			t.Errorf("run ended: %v", context.Cause(ctx))
		}
		sixth.SetOutcome(Done)
		if kept := settle(sixth, nil); kept {
			t.Errorf("kept = %t, want false", kept)
		}
	})
}
