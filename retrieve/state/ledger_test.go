package state

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ibid/retrieve"
)

// testLimits are those of all stores in tests: a few calls fill a ledger.
var testLimits = limits{runs: 12, runBytes: 40_000, records: 10, recordBytes: 40_000, feedback: 8}

// onTwo runs a test over both dialects with two handles on an empty library, as
// two processes have them.
func onTwo(t *testing.T, test func(t *testing.T, a, b *Store)) {
	onBoth(t, func(t *testing.T, address string) { test(t, openTest(t, address), openTest(t, address)) })
}

// now is the time as ledgers store it.
func now() time.Time { return time.Now().Truncate(time.Microsecond) }

func wantIDs(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// jobs returns which of the jobs exist.
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

func begin(t *testing.T, s *Store, j retrieve.Job) {
	t.Helper()
	if j.Started.IsZero() {
		j.Started = now()
	}
	must(t, s.Ledger().Begin(t.Context(), j))
}

func wantReply(t *testing.T, s *Store, job, key, want string, kept bool) {
	t.Helper()
	got, ok, err := s.Ledger().Reply(t.Context(), job, key)
	if err != nil || ok != kept || string(got) != want {
		t.Errorf("the reply to %q of %s is %.60q, %t, %v; want %.60q, %t", key, job, got, ok, err, want, kept)
	}
}

func TestNoJob(t *testing.T) {
	onTwo(t, func(t *testing.T, a, _ *Store) {
		ctx, l := t.Context(), a.Ledger()
		_, job := l.Job(ctx, "a")
		for what, err := range map[string]error{"Job": job, "Keep": l.Keep(ctx, "a", "", "k", []byte("x")),
			"Claim": l.Claim(ctx, "a", "w", time.Second)} {
			if !errors.Is(err, retrieve.ErrNotFound) {
				t.Errorf("%s: %v", what, err)
			}
		}
		wantReply(t, a, "a", "k", "", false)
		must(t, l.Release(ctx, "a", "w"))
		must(t, l.End(ctx, "a"))
	})
}

func TestJob(t *testing.T) {
	onBoth(t, func(t *testing.T, address string) {
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
			begin(t, a, want)
			b := openTest(t, address)
			if err := b.Ledger().Begin(ctx, want); err == nil {
				t.Errorf("two jobs have the id %q", want.ID)
			}
			must(t, a.Close())
			got, err := b.Ledger().Job(ctx, want.ID)
			if err != nil || got.ID != want.ID || got.Kind != want.Kind || !got.Started.Equal(want.Started) ||
				!bytes.Equal(got.Secret, want.Secret) || !bytes.Equal(got.Spec, want.Spec) || got.Worker != "" || got.Left != 0 {
				t.Errorf("the job is %+v, %v; want %+v", got, err, want)
			}
			must(t, b.Ledger().End(ctx, want.ID))
			a = openTest(t, address)
			wantIDs(t, "after its end", jobs(t, a, want.ID))
		}
	})
}

func TestReply(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		ctx := t.Context()
		begin(t, a, retrieve.Job{ID: "a"})
		for i, reply := range []string{"first", "", "\x00\xff", strings.Repeat("long ", 4000), "last"} {
			must(t, []*Store{a, b}[i%2].Ledger().Keep(ctx, "a", "", "k", []byte(reply)))
			wantReply(t, a, "a", "k", reply, true)
			wantReply(t, b, "a", "k", reply, true)
		}
		must(t, b.Ledger().Keep(ctx, "a", "", "K", []byte("capital")))
		wantReply(t, a, "a", "k", "last", true)
		wantReply(t, a, "a", "another", "", false)

		// The replies of a deleted document's readers go, and the job continues.
		must(t, a.update(ctx, (*tx).deleteReplies))
		wantReply(t, b, "a", "k", "", false)
		must(t, b.Ledger().Keep(ctx, "a", "", "k", []byte("again")))
		wantReply(t, a, "a", "k", "again", true)

		// A job with the id of one that has ended has none of its replies.
		must(t, b.Ledger().End(ctx, "a"))
		wantReply(t, a, "a", "k", "", false)
		begin(t, a, retrieve.Job{ID: "a"})
		wantReply(t, b, "a", "k", "", false)
	})
}

// A new job deletes old ones with their replies, however active they were.
func TestJobAge(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		start := time.Unix(1_700_000_000, 0)
		begin(t, a, retrieve.Job{ID: "old", Started: start})
		must(t, a.Ledger().Keep(t.Context(), "old", "", "k", []byte("x")))
		begin(t, b, retrieve.Job{ID: "young", Started: start.Add(retrieve.MaxRunAge)})
		wantIDs(t, "jobs that are young enough", jobs(t, a, "old", "young"), "old", "young")
		begin(t, b, retrieve.Job{ID: "new", Started: start.Add(retrieve.MaxRunAge + time.Second)})
		wantIDs(t, "jobs after a new one", jobs(t, a, "old", "young", "new"), "young", "new")
		wantReply(t, a, "old", "k", "", false)
	})
}

// Of too many jobs those that were active last stay, and of too large ones as
// well.
func TestJobRoom(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		ctx := t.Context()
		var ids []string
		start := now().Add(-time.Hour)
		next := func(s *Store, size int) {
			t.Helper()
			id := fmt.Sprintf("%02d", len(ids))
			begin(t, s, retrieve.Job{ID: id, Started: start.Add(time.Duration(len(ids)) * time.Microsecond), Spec: make([]byte, size)})
			ids = append(ids, id)
		}
		for range testLimits.runs {
			next(a, 1)
		}
		wantIDs(t, "as many as there may be", jobs(t, b, ids...), ids...)
		if err := a.Ledger().Begin(ctx, retrieve.Job{ID: "00", Started: start.Add(2 * retrieve.MaxRunAge)}); err == nil {
			t.Error("two jobs have one id")
		}
		wantIDs(t, "after one was refused", jobs(t, b, ids...), ids...)
		must(t, b.Ledger().Keep(ctx, "00", "", "k", []byte("something happened")))
		next(b, 1)
		wantIDs(t, "one more", jobs(t, a, ids...), append([]string{"00"}, ids[2:]...)...)

		third := int(testLimits.runBytes) / 3
		must(t, a.Ledger().Keep(ctx, "02", "", "k", make([]byte, third)))
		next(a, third)
		next(b, third)
		wantIDs(t, "after two large ones", jobs(t, a, ids...), "00", "02", "14")
		next(a, 4*third)
		wantIDs(t, "after one above the limit", jobs(t, b, ids...), "15")
		next(b, 1)
		wantIDs(t, "after the next", jobs(t, a, ids...), "16")
		wantReply(t, a, "02", "k", "", false)
	})
}

// Of several processes that begin one job, or claim it, one succeeds; nobody
// disturbs others.
func TestJobsTogether(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
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
					if err := l.Keep(ctx, id, won, fmt.Sprint(k), []byte(id)); err != nil {
						t.Error(err)
					}
					if err := l.Keep(ctx, "none", won, "k", nil); !errors.Is(err, retrieve.ErrNotFound) {
						t.Errorf("a reply of a job that never began: %v", err)
					}
				})
			}
			wg.Wait()
			for k := range 6 {
				wantReply(t, a, id, fmt.Sprint(k), id, true)
			}
		}
	})
}

// wantHolder checks which worker holds a job.
func wantHolder(t *testing.T, s *Store, id, worker string) {
	t.Helper()
	j, err := s.Ledger().Job(t.Context(), id)
	if err != nil || j.Worker != worker || (j.Left > 0) != (worker != "") || j.Left > retrieve.MaxClaim {
		t.Errorf("the job %s is held by %q for %s, %v; want %q", id, j.Worker, j.Left, err, worker)
	}
}

// wantHeld checks that an error names the holder of the job, "" for nobody.
func wantHeld(t *testing.T, err error, worker string) {
	t.Helper()
	held := (*retrieve.HeldError)(nil)
	if !errors.As(err, &held) || held.Worker != worker || (held.Left > 0) != (worker != "") || held.Left > retrieve.MaxClaim {
		t.Errorf("the error is %v; want one that the job is held by %q", err, worker)
	}
}

func TestClaim(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		ctx, here, there := t.Context(), a.Ledger(), b.Ledger()
		const long = retrieve.MaxClaim
		begin(t, a, retrieve.Job{ID: "a", Worker: "w", Left: long / 2})
		wantHolder(t, b, "a", "w")
		for _, err := range []error{here.Claim(ctx, "a", "", long), here.Claim(ctx, "a", "w", 0), here.Claim(ctx, "a", "w", long+1),
			here.Begin(ctx, retrieve.Job{ID: "b", Worker: "w", Left: long + 1})} {
			if err == nil || retrieve.IsLost(err) {
				t.Errorf("a claim by nobody, or for a time that is out of range: %v", err)
			}
		}
		wantHeld(t, there.Claim(ctx, "a", "v", long), "w")
		must(t, there.Release(ctx, "a", "v"))
		must(t, here.Claim(ctx, "a", "w", long))
		if j, err := there.Job(ctx, "a"); err != nil || j.Left < long*3/4 {
			t.Errorf("prolonged for %s it is held for %s, %v", long, j.Left, err)
		}
		must(t, there.Keep(ctx, "a", "w", "k", []byte("held"))) // the worker's claim, wherever it is
		wantHeld(t, there.Keep(ctx, "a", "v", "k", []byte("v")), "w")
		wantHeld(t, there.Keep(ctx, "a", "", "k", []byte("nobody")), "w")
		wantReply(t, a, "a", "k", "held", true)

		must(t, here.Release(ctx, "a", "w"))
		wantHolder(t, b, "a", "")
		wantHeld(t, here.Keep(ctx, "a", "w", "k", []byte("late")), "")
		must(t, here.Keep(ctx, "a", "", "k", []byte("free")))
		must(t, there.Claim(ctx, "a", "v", long))
		wantHeld(t, here.Claim(ctx, "a", "w", long), "v")

		must(t, here.End(ctx, "a"))
		if err := there.Claim(ctx, "a", "v", long); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("prolonged after its end: %v", err)
		}
		begin(t, a, retrieve.Job{ID: "a"})
		wantHolder(t, b, "a", "")
	})
}

// A claim that has expired may be taken; until then the worker keeps the job.
func TestClaimExpires(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		ctx := t.Context()
		for _, id := range []string{"a", "b"} {
			begin(t, a, retrieve.Job{ID: id, Worker: "w", Left: time.Minute})
			execute(t, a, `UPDATE ibid.jobs SET until = until - 60000000 WHERE id = ?`, id)
			wantHolder(t, b, id, "")
		}
		must(t, a.Ledger().Keep(ctx, "b", "w", "k", []byte("in time")))
		wantHeld(t, b.Ledger().Keep(ctx, "b", "v", "k", nil), "")
		must(t, a.Ledger().Claim(ctx, "b", "w", time.Minute))
		wantHolder(t, b, "b", "w")

		must(t, b.Ledger().Claim(ctx, "a", "v", time.Minute))
		wantHeld(t, a.Ledger().Claim(ctx, "a", "w", time.Minute), "v")
		wantHeld(t, a.Ledger().Keep(ctx, "a", "w", "k", []byte("late")), "v")
		wantReply(t, b, "a", "k", "", false)
		must(t, a.Ledger().Release(ctx, "a", "w"))
		wantHolder(t, a, "a", "v")
	})
}

// The claim of a process that has died need not expire.
func TestClaimOfTheDead(t *testing.T) {
	ended := exec.Command(os.Args[0], "-test.run=^$")
	must(t, ended.Run())
	parts := strings.Split(retrieve.NewWorker(), "/")
	parts[1] = fmt.Sprint(ended.Process.Pid)
	dead := strings.Join(parts, "/")
	if !retrieve.HasDied(dead) {
		t.Skip("this system does not say which processes have died")
	}
	onTwo(t, func(t *testing.T, a, b *Store) {
		begin(t, a, retrieve.Job{ID: "a", Kind: "ask", Worker: dead, Left: time.Minute})
		wantHolder(t, b, "a", "")
		must(t, b.Ledger().Claim(t.Context(), "a", "w", time.Minute))
		wantHolder(t, a, "a", "w")
	})
}

// A damaged row of a job or a reply is never returned as a whole one.
func TestJobDamaged(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		ctx := t.Context()
		for _, damage := range []string{
			`UPDATE ibid.specs SET spec = ?`, `UPDATE ibid.specs SET secret = ?`, `UPDATE ibid.specs SET kind = ?`,
			`UPDATE ibid.replies SET reply = ?`,
		} {
			begin(t, a, retrieve.Job{ID: "a", Kind: "ask", Spec: []byte("spec")})
			must(t, a.Ledger().Keep(ctx, "a", "", "k", []byte("reply")))
			execute(t, a, damage, "X")
			_, job := b.Ledger().Job(ctx, "a")
			_, ok, err := b.Ledger().Reply(ctx, "a", "k")
			if strings.Contains(damage, "replies") {
				must(t, job)
			} else if !errors.Is(job, errRow) {
				t.Errorf("%s: the job: %v", damage, job)
			}
			if ok == strings.Contains(damage, "replies") || err != nil {
				t.Errorf("%s: the reply: %t, %v", damage, ok, err)
			}
			must(t, a.Ledger().End(ctx, "a"))
		}
	})
}

// Jobs whose specs and replies were saved from a damaged database continue; old
// ones can be deleted.
func TestMendLedger(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		begin(t, a, retrieve.Job{ID: "a", Kind: "ask", Spec: []byte("spec"), Worker: "w", Left: time.Minute})
		must(t, a.Ledger().Keep(t.Context(), "a", "w", "k", []byte("reply")))
		begin(t, a, retrieve.Job{ID: "b", Kind: "ask"})
		execute(t, a, `DELETE FROM ibid.jobs WHERE id = ?`, "a")
		must(t, a.update(t.Context(), (*tx).mendLedger))
		must(t, b.Ledger().Claim(t.Context(), "a", "v", time.Minute))
		wantHolder(t, a, "a", "v")
		wantReply(t, b, "a", "k", "reply", true)
		must(t, a.Ledger().End(t.Context(), "b"))
		begin(t, a, retrieve.Job{ID: "old", Started: now().Add(-retrieve.MaxRunAge - time.Minute)})
		r := record("old", now().Add(-2*time.Hour), 0)
		must(t, errors.Join(a.Ledger().KeepRecord(t.Context(), r), b.update(t.Context(), (*tx).forgetOld)))
		wantIDs(t, "after deleting old ones", jobs(t, b, "a", "b", "old"), "a")
		must(t, b.view(t.Context(), func(tx *tx) {
			wantIDs(t, "records after deleting old ones", column[string](tx, `SELECT id FROM ibid.records`))
		}))
	})
}
