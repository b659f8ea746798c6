package enginetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"ibid/retrieve"
)

// long is a claim that outlasts every test.
const long = retrieve.MaxClaim

func beginRun(t *testing.T, l retrieve.Ledger, id string) {
	t.Helper()
	must(t, l.Begin(t.Context(), retrieve.Job{ID: id, Kind: "kind", Started: now(), Spec: []byte("spec")}))
}

// refusedBy checks that an error names the holder of the job, and at most a time
// until the claim expires.
func refusedBy(t *testing.T, what string, err error, worker string, most time.Duration) {
	t.Helper()
	held := (*retrieve.HeldError)(nil)
	if !errors.As(err, &held) || held.Worker != worker || held.Left > most || (held.Left > 0) != (worker != "") {
		t.Errorf("%s: %v; want it to be held by %q", what, err, worker)
	}
}

// heldBy checks which worker holds a job.
func heldBy(t *testing.T, l retrieve.Ledger, id, worker string, most time.Duration) {
	t.Helper()
	r, err := l.Job(t.Context(), id)
	if err != nil || r.Worker != worker || r.Left > most || (r.Left > 0) != (worker != "") || string(r.Spec) != "spec" {
		t.Errorf("the run %s is held by %q for %s, %v; want %q", id, r.Worker, r.Left, err, worker)
	}
}

// claimed claims a job as soon as it is unclaimed.
func claimed(t *testing.T, l retrieve.Ledger, id, worker string, d time.Duration) {
	t.Helper()
	for {
		err := l.Claim(t.Context(), id, worker, d)
		held := (*retrieve.HeldError)(nil)
		if err == nil || !errors.As(err, &held) {
			must(t, err)
			return
		}
		select { // the store's clock decides, and says how long it takes
		case <-time.After(held.Left):
		case <-t.Context().Done():
		}
	}
}

func testNoClaim(t *testing.T, open func() retrieve.Store) {
	ctx, l := t.Context(), open().Ledger()
	if err := l.Claim(ctx, "a", "w", long); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("of a run that never began: %v", err)
	}
	must(t, l.Release(ctx, "a", "w"))
	beginRun(t, l, "a")
	heldBy(t, l, "a", "", 0)
	must(t, l.Release(ctx, "a", "w"))
	must(t, l.Claim(ctx, "a", "w", long))
	for _, wrong := range []error{
		l.Claim(ctx, "a", "", long), l.Claim(ctx, "a", "w", 0), l.Claim(ctx, "a", "w", -time.Second), l.Claim(ctx, "a", "w", retrieve.MaxClaim+time.Second),
	} {
		if wrong == nil || retrieve.IsLost(wrong) {
			t.Errorf("a claim of nobody, or for a time that is out of range: %v", wrong)
		}
	}
	heldBy(t, l, "a", "w", long)
}

func testClaim(t *testing.T, open func() retrieve.Store) {
	ctx, here, there := t.Context(), open().Ledger(), open().Ledger()
	beginRun(t, here, "a")
	beginRun(t, here, "b")
	must(t, here.Claim(ctx, "a", "w", long/2))
	heldBy(t, there, "a", "w", long/2)
	heldBy(t, there, "b", "", 0)
	refusedBy(t, "claimed elsewhere", there.Claim(ctx, "a", "v", long), "w", long/2)
	refusedBy(t, "claimed as well", here.Claim(ctx, "a", "v", long), "w", long/2)
	must(t, there.Claim(ctx, "b", "v", long))
	must(t, here.Claim(ctx, "a", "w", long))
	if r, err := there.Job(ctx, "a"); err != nil || r.Left < long/2+long/4 {
		t.Errorf("prolonged for %s it is held for %s, %v", long, r.Left, err)
	}
	must(t, here.Claim(ctx, "a", "w", long/4))
	heldBy(t, there, "a", "w", long/4)
	must(t, there.Release(ctx, "a", "v"))
	heldBy(t, there, "a", "w", long)
	must(t, here.Release(ctx, "a", "w"))
	heldBy(t, there, "a", "", 0)
	must(t, there.Claim(ctx, "a", "v", long))
	refusedBy(t, "claimed after it was released", here.Claim(ctx, "a", "w", long), "v", long)
	must(t, here.End(ctx, "a"))
	beginRun(t, here, "a")
	heldBy(t, there, "a", "", 0)
}

func testClaimBegun(t *testing.T, open func() retrieve.Store) {
	ctx, here, there := t.Context(), open().Ledger(), open().Ledger()
	must(t, here.Begin(ctx, retrieve.Job{ID: "a", Started: now(), Spec: []byte("spec"), Worker: "w", Left: long}))
	heldBy(t, there, "a", "w", long)
	refusedBy(t, "claimed elsewhere", there.Claim(ctx, "a", "v", long), "w", long)
	must(t, here.Keep(ctx, "a", "w", "k", nil))
	if err := there.Begin(ctx, retrieve.Job{ID: "a", Started: now(), Spec: []byte("other"), Worker: "v", Left: long}); err == nil {
		t.Error("two runs have one id")
	}
	heldBy(t, here, "a", "w", long)
}

func testClaimRunsOut(t *testing.T, open func() retrieve.Store) {
	const short = 300 * time.Millisecond
	ctx, here, there := t.Context(), open().Ledger(), open().Ledger()
	beginRun(t, here, "a")
	beginRun(t, here, "b")
	start := time.Now()
	must(t, here.Claim(ctx, "a", "w", short))
	must(t, here.Claim(ctx, "b", "w", short))
	claimed(t, there, "a", "v", long)
	if took := time.Since(start); took < short-10*time.Millisecond {
		t.Errorf("a claim for %s ran out after %s", short, took)
	}
	refusedBy(t, "prolonged after another took it", here.Claim(ctx, "a", "w", long), "v", long)
	refusedBy(t, "kept after another took it", here.Keep(ctx, "a", "w", "k", []byte("late")), "v", long)
	if _, ok, err := there.Reply(ctx, "a", "k"); ok || err != nil {
		t.Errorf("what was refused is kept: %t, %v", ok, err)
	}
	must(t, here.Release(ctx, "a", "w"))
	heldBy(t, here, "a", "v", long)

	// An expired claim that no other worker took still counts.
	for r, err := here.Job(ctx, "b"); r.Worker != ""; r, err = here.Job(ctx, "b") {
		must(t, err)
		<-time.After(r.Left)
	}
	must(t, here.Keep(ctx, "b", "w", "k", []byte("in time")))
	heldBy(t, there, "b", "", 0)
	refusedBy(t, "kept by another", there.Keep(ctx, "b", "v", "k", nil), "", 0)
	must(t, here.Claim(ctx, "b", "w", long))
	heldBy(t, there, "b", "w", long)
}

func testClaimKeep(t *testing.T, open func() retrieve.Store) {
	ctx, here, there := t.Context(), open().Ledger(), open().Ledger()
	beginRun(t, here, "a")
	must(t, here.Keep(ctx, "a", "", "k", []byte("free")))
	refusedBy(t, "kept without a claim", here.Keep(ctx, "a", "w", "k", []byte("w")), "", 0)
	must(t, here.Claim(ctx, "a", "w", long))
	must(t, there.Keep(ctx, "a", "w", "k", []byte("held"))) // the claim is the worker's, wherever it is
	refusedBy(t, "kept by another", there.Keep(ctx, "a", "v", "k", []byte("v")), "w", long)
	refusedBy(t, "kept by nobody", there.Keep(ctx, "a", "", "k", []byte("nobody")), "w", long)
	if b, ok, err := there.Reply(ctx, "a", "k"); string(b) != "held" || !ok || err != nil {
		t.Errorf("the reply is %q, %t, %v", b, ok, err)
	}
	must(t, here.Release(ctx, "a", "w"))
	refusedBy(t, "kept after the release", here.Keep(ctx, "a", "w", "k", []byte("w")), "", 0)
	must(t, here.Keep(ctx, "a", "", "k", []byte("free")))
	if err := here.Keep(ctx, "none", "w", "k", nil); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("kept in a run that never began: %v", err)
	}
}

func testClaimLatest(t *testing.T, open func() retrieve.Store) {
	ctx, l := t.Context(), open().Ledger()
	for _, id := range []string{"a", "b", "c"} {
		beginRun(t, l, id)
		must(t, l.Keep(ctx, id, "", "k", nil))
	}
	for _, want := range []string{"c", "b", "a"} {
		r, err := l.Latest(ctx, "kind")
		if err != nil || r.ID != want || r.Worker != "" {
			t.Errorf("the latest is %q, held by %q, %v; want %q", r.ID, r.Worker, err, want)
		}
		must(t, l.Claim(ctx, want, "w", long))
	}
	if r, err := l.Latest(ctx, "kind"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("all are held, and the latest is %q, %v", r.ID, err)
	}
	must(t, l.Release(ctx, "b", "w"))
	if r, err := l.Latest(ctx, "kind"); err != nil || r.ID != "b" {
		t.Errorf("the latest is %q, %v", r.ID, err)
	}
}

// testClaimTogether lets several workers claim a job at once: one succeeds.
func testClaimTogether(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	stores := []retrieve.Ledger{open().Ledger(), open().Ledger(), open().Ledger()}
	for round := range 8 {
		id := fmt.Sprint(round)
		beginRun(t, stores[0], id)
		var mu sync.Mutex
		var got []string
		var all sync.WaitGroup
		for i := range 9 {
			worker := fmt.Sprint("w", i)
			all.Go(func() {
				l := stores[i%len(stores)]
				err := l.Claim(ctx, id, worker, long)
				if held := (*retrieve.HeldError)(nil); err != nil && !errors.As(err, &held) {
					t.Error(err)
				}
				if err == nil {
					mu.Lock()
					got = append(got, worker)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if len(got) != 1 {
			t.Fatalf("%q hold one run", got)
		}
		for _, l := range stores {
			heldBy(t, l, id, got[0], long)
		}
		// Another worker claims it after its release.
		must(t, stores[round%3].Release(ctx, id, got[0]))
		must(t, stores[(round+1)%3].Claim(ctx, id, "next", long))
	}
}

func testClaimOfEnded(t *testing.T, open func() retrieve.Store) {
	ctx, here, there := t.Context(), open().Ledger(), open().Ledger()
	beginRun(t, here, "a")
	must(t, here.Claim(ctx, "a", "w", long))
	must(t, there.End(ctx, "a"))
	if err := here.Claim(ctx, "a", "w", long); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("prolonged after its end: %v", err)
	}
	if err := here.Keep(ctx, "a", "w", "k", nil); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("kept after its end: %v", err)
	}
}
