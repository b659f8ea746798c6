package state

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"ibid/retrieve"
)

// testLimits are the limits of all stores in tests: a few calls fill a ledger.
var testLimits = limits{runs: 12, runBytes: 40_000, records: 10, recordBytes: 40_000, feedback: 8}

// onTwoHandles runs a test over both dialects with two handles on an empty library, like two processes.
func onTwoHandles(t *testing.T, test func(t *testing.T, a, b *Store)) {
	onBothDialects(t, func(t *testing.T, address string) { test(t, openTest(t, address), openTest(t, address)) })
}

// now returns the time as ledgers store it.
func now() time.Time { return time.Now().Truncate(time.Microsecond) }

// jobs returns those of the given jobs that exist.
func jobs(t *testing.T, s *Store, ids ...string) (exist []string) {
	t.Helper()
	for _, id := range ids {
		_, err := s.Ledger().Job(t.Context(), id)
		if err == nil {
			exist = append(exist, id)
		} else if !errors.Is(err, retrieve.ErrNotFound) {
			t.Fatal(err)
		}
	}
	return exist
}

func TestJob(t *testing.T) {
	onBothDialects(t, func(t *testing.T, address string) {
		ctx, a := t.Context(), openTest(t, address)
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		for _, want := range []retrieve.Job{
			{ID: "a", Kind: "ibid ask", Started: now(), Secret: all, Spec: []byte(`{"words":100}`)},
			{ID: "b", Started: time.Unix(1_700_000_000, 999_999_000)},
			{ID: "c/d #1 'é\"\x00\xff", Kind: "Ibid: 'summarize'", Started: now(), Spec: bytes.Repeat(all, 40)},
		} {
			must(t, a.Ledger().Begin(ctx, want))
			b := openTest(t, address)
			if err := b.Ledger().Begin(ctx, want); err == nil {
				t.Errorf("a second job with the id %q was accepted", want.ID)
			}
			must(t, a.Close())
			got, err := b.Ledger().Job(ctx, want.ID)
			if err != nil || got.ID != want.ID || got.Kind != want.Kind || !got.Started.Equal(want.Started) ||
				!bytes.Equal(got.Secret, want.Secret) || !bytes.Equal(got.Spec, want.Spec) || got.Worker != "" || got.Left != 0 {
				t.Errorf("the job is %+v, %v; want %+v", got, err, want)
			}
			must(t, b.Ledger().End(ctx, want.ID))
			a = openTest(t, address)
			if left := jobs(t, a, want.ID); len(left) > 0 {
				t.Errorf("jobs after the end = %q, want none", left)
			}
		}
	})
}

// TestJobsTogether checks that if several processes begin or claim one job, one succeeds,
// and that different jobs do not affect each other.
func TestJobsTogether(t *testing.T) {
	onTwoHandles(t, func(t *testing.T, a, b *Store) {
		ctx, handles := t.Context(), []*Store{a, b}
		together := func(what string, do func(l retrieve.Ledger, name string) error) (winner string) {
			t.Helper()
			var mu sync.Mutex
			var wg sync.WaitGroup
			var won []string
			for i := range 6 {
				wg.Go(func() {
					name := fmt.Sprint("w", i)
					if err := do(handles[i%2].Ledger(), name); err == nil {
						mu.Lock()
						won = append(won, name)
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			if len(won) != 1 {
				t.Fatalf("%s: %q succeeded", what, won)
			}
			return won[0]
		}
		for round := range 5 {
			id := fmt.Sprint(round)
			won := together("Begin", func(l retrieve.Ledger, name string) error {
				return l.Begin(ctx, retrieve.Job{ID: id, Started: now(), Spec: []byte(name)})
			})
			if j, err := b.Ledger().Job(ctx, id); err != nil || string(j.Spec) != won {
				t.Errorf("%s began the job, and it is %+v, %v", won, j, err)
			}
			won = together("Claim", func(l retrieve.Ledger, name string) error { return l.Claim(ctx, id, name, time.Minute) })
			wantHolder(t, a, id, won)
			var wg sync.WaitGroup
			for k := range 6 {
				wg.Go(func() {
					l := handles[k%2].Ledger()
					if err := l.KeepReply(ctx, id, won, fmt.Sprint(k), []byte(id)); err != nil {
						t.Error(err)
					}
					if err := l.KeepReply(ctx, "none", won, "k", nil); !errors.Is(err, retrieve.ErrNotFound) {
						t.Errorf("reply of a job that never began: err = %v, want ErrNotFound", err)
					}
				})
			}
			wg.Wait()
			for k := range 6 {
				if reply, ok, err := a.Ledger().Reply(ctx, id, fmt.Sprint(k)); !ok || string(reply) != id || err != nil {
					t.Errorf("reply %d = %q, %v", k, reply, err)
				}
			}
		}
	})
}

// wantHolder checks which worker holds a job.
func wantHolder(t *testing.T, s *Store, id, worker string) {
	t.Helper()
	j, err := s.Ledger().Job(t.Context(), id)
	if err != nil || j.Worker != worker || (j.Left > 0) != (worker != "") || j.Left > retrieve.MaxClaim {
		t.Errorf("job %s is held by %q for %s, %v; want %q", id, j.Worker, j.Left, err, worker)
	}
}

// TestClaimOfDeadProcess checks that the claim of a process that has died ends before it
// expires.
func TestClaimOfDeadProcess(t *testing.T) {
	ended := exec.Command(os.Args[0], "-test.run=^$")
	must(t, ended.Run())
	parts := strings.Split(retrieve.NewWorker(), "/")
	parts[1] = fmt.Sprint(ended.Process.Pid)
	dead := strings.Join(parts, "/")
	if !retrieve.HasDied(dead) {
		t.Skip("this system does not report which processes have died")
	}
	onTwoHandles(t, func(t *testing.T, a, b *Store) {
		must(t, a.Ledger().Begin(t.Context(), retrieve.Job{ID: "a", Kind: "ask", Started: now(), Worker: dead, Left: time.Minute}))
		wantHolder(t, b, "a", "")
		must(t, b.Ledger().Claim(t.Context(), "a", "w", time.Minute))
		wantHolder(t, a, "a", "w")
	})
}
