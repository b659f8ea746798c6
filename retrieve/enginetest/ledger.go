package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ibid/retrieve"
)

// Limits are what a [Backend] opens its stores with, so that a few calls fill a
// ledger.
func Limits() retrieve.Limits {
	return retrieve.Limits{Runs: 12, RunBytes: 40_000, Records: 10, RecordBytes: 40_000, Feedback: 8}
}

// Ledger runs the contract of the ledger, its claims and its archive against a
// backend.
func Ledger(t *testing.T, b Backend) {
	run(t, b, []contract{
		{"NoRun", testNoRun},
		{"Run", testRun},
		{"OneRun", testOneRun},
		{"Reply", testReply},
		{"RunAge", testRunAge},
		{"RunRoom", testRunRoom},
		{"RunBytes", testRunBytes},
		{"Latest", testLatest},
		{"RunOfForgotten", testRunOfForgotten},
		{"RunsTogether", testRunsTogether},
		{"RunAbandoned", testRunAbandoned},
		{"NoClaim", testNoClaim},
		{"Claim", testClaim},
		{"ClaimBegun", testClaimBegun},
		{"ClaimRunsOut", testClaimRunsOut},
		{"ClaimKeep", testClaimKeep},
		{"ClaimLatest", testClaimLatest},
		{"ClaimTogether", testClaimTogether},
		{"ClaimOfEnded", testClaimOfEnded},
		{"NoRecord", testNoRecord},
		{"Record", testRecord},
		{"Records", testRecords},
		{"RecordRoom", testRecordRoom},
		{"RecordBytes", testRecordBytes},
		{"RecordOfDeleted", testRecordOfDeleted},
		{"RecordMeetsDelete", testRecordMeetsDelete},
		{"RecordAbandoned", testRecordAbandoned},
		{"Feedback", testFeedback},
		{"FeedbackTogether", testFeedbackTogether},
	})
}

// now is the time in whole microseconds, as ledgers store it.
func now() time.Time { return time.Now().Truncate(time.Microsecond) }

func testNoRun(t *testing.T, open func() retrieve.Store) {
	ctx, l := t.Context(), open().Ledger()
	if _, err := l.Job(ctx, "a"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a run that never began: %v", err)
	}
	if _, err := l.Latest(ctx, "ibid ask"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("the latest run before there was any: %v", err)
	}
	if _, ok, err := l.Reply(ctx, "a", "k"); ok || err != nil {
		t.Errorf("a reply of a run that never began: %t, %v", ok, err)
	}
	if err := l.Keep(ctx, "a", "", "k", []byte("x")); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("keeping one: %v", err)
	}
	must(t, l.End(ctx, "a"))
}

func testRun(t *testing.T, open func() retrieve.Store) {
	ctx, e := t.Context(), open()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, want := range []retrieve.Job{
		{ID: "a", Kind: "ibid ask", Started: now(), Secret: all, Spec: []byte(`{"words":100}`)},
		{ID: "b", Started: time.Unix(1_700_000_000, 999_999_000)},
		{ID: "c/d #1 'é\"", Kind: "Ibid: 'summarize'", Started: now(), Spec: bytes.Repeat(all, 40)},
	} {
		must(t, e.Ledger().Begin(ctx, want))
		if err := e.Ledger().Begin(ctx, want); err == nil {
			t.Errorf("two runs have the id %q", want.ID)
		}
		same := func(when string, l retrieve.Ledger) {
			t.Helper()
			got, err := l.Job(ctx, want.ID)
			if err != nil || got.ID != want.ID || got.Kind != want.Kind || !got.Started.Equal(want.Started) || !bytes.Equal(got.Secret, want.Secret) || !bytes.Equal(got.Spec, want.Spec) {
				t.Errorf("%s: %+v, %v; want %+v", when, got, err, want)
			}
		}
		same("the run", e.Ledger())
		other := open()
		same("the run seen from elsewhere", other.Ledger())
		if err := other.Ledger().Begin(ctx, want); err == nil {
			t.Errorf("two runs have the id %q, begun in two places", want.ID)
		}
		must(t, e.Close())
		same("the run without who began it", other.Ledger())
		must(t, other.Ledger().End(ctx, want.ID))
		e = open()
		if _, err := e.Ledger().Job(ctx, want.ID); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("a run that has ended: %v", err)
		}
	}
}

// testOneRun begins several jobs with one id at once: one succeeds.
func testOneRun(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	handles := []retrieve.Store{open(), open(), open()}
	for round := range 5 {
		id := fmt.Sprint(round)
		var mu sync.Mutex
		var begun []string
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				spec := fmt.Sprint(i)
				if err := handles[i%len(handles)].Ledger().Begin(ctx, retrieve.Job{ID: id, Started: now(), Spec: []byte(spec)}); err == nil {
					mu.Lock()
					begun = append(begun, spec)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		r, err := handles[0].Ledger().Job(ctx, id)
		must(t, err)
		if len(begun) != 1 || string(r.Spec) != begun[0] {
			t.Errorf("%q began the run %s, which is that of %q", begun, id, r.Spec)
		}
	}
}

func testReply(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	a, b := open(), open()
	must(t, a.Ledger().Begin(ctx, retrieve.Job{ID: "a", Started: now()}))
	check := func(e retrieve.Store, key, want string, kept bool) {
		t.Helper()
		got, ok, err := e.Ledger().Reply(ctx, "a", key)
		if err != nil || ok != kept || string(got) != want {
			t.Errorf("the reply to %q is %.60q, %t, %v; want %.60q, %t", key, got, ok, err, want, kept)
		}
	}
	for i, reply := range []string{"first", "", "\x00\xff", strings.Repeat("long ", 4000), "last"} {
		e := []retrieve.Store{a, b}[i%2]
		must(t, e.Ledger().Keep(ctx, "a", "", "k", []byte(reply)))
		check(a, "k", reply, true)
		check(b, "k", reply, true)
	}
	check(b, "another", "", false)
	check(b, "K", "", false)
	must(t, b.Ledger().Keep(ctx, "a", "", "K", []byte("capital")))
	check(a, "k", "last", true)
	must(t, a.Close())
	must(t, b.Close())
	c := open()
	check(c, "k", "last", true)
	check(c, "K", "capital", true)

	// A job with the id of an ended one has none of its replies.
	must(t, c.Ledger().End(ctx, "a"))
	check(c, "k", "", false)
	if err := c.Ledger().Keep(ctx, "a", "", "k", []byte("x")); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("keeping a reply of a run that has ended: %v", err)
	}
	must(t, c.Ledger().Begin(ctx, retrieve.Job{ID: "a", Started: now()}))
	check(c, "k", "", false)
}

// has returns the ids of the jobs that exist.
func has(t *testing.T, l retrieve.Ledger, ids ...string) (there []string) {
	t.Helper()
	for _, id := range ids {
		_, err := l.Job(t.Context(), id)
		if err != nil && !errors.Is(err, retrieve.ErrNotFound) {
			t.Fatal(err)
		}
		if err == nil {
			there = append(there, id)
		}
	}
	return there
}

// testRunAge checks that a new job deletes old ones with their replies.
func testRunAge(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	l, other := open().Ledger(), open().Ledger()
	start := time.Unix(1_700_000_000, 0)
	must(t, l.Begin(ctx, retrieve.Job{ID: "old", Kind: "ask", Started: start}))
	// Later activity does not make it younger.
	must(t, l.Keep(ctx, "old", "", "k", []byte("x")))
	must(t, other.Begin(ctx, retrieve.Job{ID: "young", Kind: "ask", Started: start.Add(retrieve.MaxRunAge)}))
	wantIDs(t, "runs that are young enough", has(t, l, "old", "young"), nil, "old", "young")
	must(t, other.Begin(ctx, retrieve.Job{ID: "new", Kind: "ask", Started: start.Add(retrieve.MaxRunAge + time.Second)}))
	wantIDs(t, "runs after a new one", has(t, l, "old", "young", "new"), nil, "young", "new")
	if _, ok, err := l.Reply(ctx, "old", "k"); ok || err != nil {
		t.Errorf("a reply of a run that is too old: %t, %v", ok, err)
	}
}

// testRunRoom checks that of too many jobs the most recently active stay.
func testRunRoom(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	l, other := open().Ledger(), open().Ledger()
	start := now().Add(-time.Hour)
	var ids []string
	begin := func(l retrieve.Ledger) {
		t.Helper()
		id := fmt.Sprint(len(ids))
		must(t, l.Begin(ctx, retrieve.Job{ID: id, Started: start.Add(time.Duration(len(ids)) * time.Microsecond)}))
		ids = append(ids, id)
	}
	most := Limits().Runs
	for range most {
		begin(l)
	}
	wantIDs(t, "as many runs as there may be", has(t, other, ids...), nil, ids...)
	for _, started := range []time.Time{start, start.Add(2 * retrieve.MaxRunAge)} {
		if err := l.Begin(ctx, retrieve.Job{ID: "0", Started: started}); err == nil {
			t.Error("two runs have one id")
		}
	}
	wantIDs(t, "runs after one was refused", has(t, other, ids...), nil, ids...)
	must(t, other.Keep(ctx, "0", "", "k", []byte("something happened")))
	begin(l)
	wantIDs(t, "one run more", has(t, other, ids...), nil, append([]string{"0"}, ids[2:]...)...)
	must(t, l.End(ctx, ids[5]))
	begin(other)
	wantIDs(t, "one in place of one that ended", has(t, l, ids...), nil, append([]string{"0", "2", "3", "4"}, ids[6:]...)...)
	begin(other)
	wantIDs(t, "one run more again", has(t, l, ids...), nil, append([]string{"0", "3", "4"}, ids[6:]...)...)
}

// testRunBytes checks that large specs and replies displace the oldest jobs.
func testRunBytes(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	l, other := open().Ledger(), open().Ledger()
	start := now().Add(-time.Hour)
	third := make([]byte, Limits().RunBytes/3)
	var ids []string
	begin := func(spec []byte) {
		t.Helper()
		id := fmt.Sprint(len(ids))
		must(t, l.Begin(ctx, retrieve.Job{ID: id, Started: start.Add(time.Duration(len(ids)) * time.Microsecond), Spec: spec}))
		ids = append(ids, id)
	}
	begin(nil)
	begin(nil)
	begin(third)
	must(t, other.Keep(ctx, "0", "", "k", third)) // the latest now
	begin(third[:len(third)/2])
	wantIDs(t, "runs that have room", has(t, other, ids...), nil, "0", "1", "2", "3")
	begin(third)
	wantIDs(t, "runs after a long one", has(t, other, ids...), nil, "0", "3", "4")
	begin(make([]byte, 2*Limits().RunBytes))
	wantIDs(t, "runs after one larger than the limit", has(t, other, ids...), nil, "5")
	if _, ok, err := l.Reply(ctx, "0", "k"); ok || err != nil {
		t.Errorf("a reply of a run that made room: %t, %v", ok, err)
	}
	begin(nil)
	wantIDs(t, "runs after it", has(t, other, ids...), nil, "6")
}

func testLatest(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	l, other := open().Ledger(), open().Ledger()
	start := now().Add(-time.Hour)
	for i, kind := range []string{"ask", "ask", "summarize"} {
		must(t, l.Begin(ctx, retrieve.Job{ID: fmt.Sprint(i), Kind: kind, Started: start.Add(time.Duration(i) * time.Second), Secret: []byte("s"), Spec: []byte(kind)}))
	}
	latest := func(kind, want string) {
		t.Helper()
		r, err := other.Latest(ctx, kind)
		if err != nil || r.ID != want || r.Kind != kind || string(r.Secret) != "s" || string(r.Spec) != kind {
			t.Errorf("the latest of %q is %+v, %v; want %s", kind, r, err, want)
		}
	}
	latest("ask", "1")
	latest("summarize", "2")
	must(t, l.Keep(ctx, "0", "", "k", []byte("x")))
	latest("ask", "0")
	must(t, l.End(ctx, "0"))
	latest("ask", "1")
	must(t, l.End(ctx, "1"))
	if r, err := other.Latest(ctx, "ask"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("the latest of none: %+v, %v", r, err)
	}
}

// testRunOfForgotten checks that deleting a root deletes the replies.
func testRunOfForgotten(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	e, other := open(), open()
	must(t, e.Ledger().Begin(ctx, retrieve.Job{ID: "a", Started: now()}))
	must(t, e.Ledger().Keep(ctx, "a", "", "k", []byte("x")))
	root, err := other.AddRoot(ctx, "/srv/notes", "")
	must(t, err)
	if _, ok, err := e.Ledger().Reply(ctx, "a", "k"); !ok || err != nil {
		t.Fatalf("the reply before: %t, %v", ok, err)
	}
	_, err = other.DeleteRoot(ctx, root.Name)
	must(t, err)
	if got, ok, err := e.Ledger().Reply(ctx, "a", "k"); ok || err != nil {
		t.Errorf("a reply after a folder was forgotten: %q, %t, %v", got, ok, err)
	}
	must(t, e.Ledger().Keep(ctx, "a", "", "k", []byte("y")))
	if got, ok, err := other.Ledger().Reply(ctx, "a", "k"); string(got) != "y" || !ok || err != nil {
		t.Errorf("the run does not go on: %q, %t, %v", got, ok, err)
	}
}

// testRunsTogether writes by several handles at once: all succeed or fail by
// themselves.
func testRunsTogether(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	handles := []retrieve.Store{open(), open()}
	const runs, replies = 6, 6
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			id := fmt.Sprint(i)
			if err := handles[i%2].Ledger().Begin(ctx, retrieve.Job{ID: id, Started: now()}); err != nil {
				t.Error(err)
			}
			for k := range replies {
				wg.Go(func() {
					l := handles[(i+k)%2].Ledger()
					if err := l.Keep(ctx, id, "", fmt.Sprint(k), []byte(id)); err != nil {
						t.Error(err)
					}
					if err := l.Keep(ctx, "none", "", "k", nil); !errors.Is(err, retrieve.ErrNotFound) {
						t.Errorf("a reply of a run that never began: %v", err)
					}
				})
			}
		})
	}
	wg.Wait()
	l := open().Ledger()
	for i := range runs {
		for k := range replies {
			if b, ok, err := l.Reply(ctx, fmt.Sprint(i), fmt.Sprint(k)); string(b) != fmt.Sprint(i) || !ok || err != nil {
				t.Errorf("reply %d of run %d: %q, %t, %v", k, i, b, ok, err)
			}
		}
	}
}

// testRunAbandoned cancels changes to jobs and abandons the handle: another one sees
// the old or the new state, complete, and can continue.
func testRunAbandoned(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	e, watcher := open(), open().Ledger()
	breaks := newBreaker(rand.New(rand.NewPCG(9, 10)))
	for i := range 30 {
		want := retrieve.Job{ID: fmt.Sprint(i), Kind: "ask", Started: now(), Secret: []byte("secret"), Spec: bytes.Repeat([]byte{byte(i)}, 3000)}
		whole := func() (there bool, err error) {
			got, err := watcher.Job(ctx, want.ID)
			if errors.Is(err, retrieve.ErrNotFound) {
				return false, nil
			}
			if err == nil && (!bytes.Equal(got.Secret, want.Secret) || !bytes.Equal(got.Spec, want.Spec) || got.Kind != want.Kind || !got.Started.Equal(want.Started)) {
				err = fmt.Errorf("the run is %+v, want %+v", got, want)
			}
			return true, err
		}
		begun := breaks.try(ctx, "Begin", func(ctx context.Context) error { return e.Ledger().Begin(ctx, want) })
		if there := eventually(t, whole); !there {
			if begun == nil {
				t.Fatalf("the run %d began, and is not there", i)
			}
			// A cancelled change may still happen.
			if err := watcher.Begin(ctx, want); err != nil && !eventually(t, whole) {
				t.Fatalf("a run whose beginning was broken off cannot begin: %v", err)
			}
		}
		old, reply := strings.Repeat("old ", 500), strings.Repeat("reply ", 500)
		must(t, watcher.Keep(ctx, want.ID, "", "k", []byte(old)))
		kept := breaks.try(ctx, "Keep", func(ctx context.Context) error { return e.Ledger().Keep(ctx, want.ID, "", "k", []byte(reply)) })
		if got, ok, err := watcher.Reply(ctx, want.ID, "k"); err != nil || !ok || string(got) != reply && (kept == nil || string(got) != old) {
			t.Fatalf("the reply is %.20q of %d bytes, %t, %v; keeping it: %v", got, len(got), ok, err, kept)
		}
		ended := breaks.try(ctx, "End", func(ctx context.Context) error { return e.Ledger().End(ctx, want.ID) })
		if there := eventually(t, whole); there && ended == nil {
			t.Fatalf("the run %d has ended, and is there", i)
		}
		must(t, watcher.End(ctx, want.ID))
		if _, ok, err := watcher.Reply(ctx, want.ID, "k"); ok || err != nil {
			t.Fatalf("a reply of a run that has ended: %t, %v", ok, err)
		}
		if i%10 == 9 {
			e = open()
		}
	}
	t.Log(breaks)
}

// record returns the record of a job that began so many microseconds after start.
func record(id string, start time.Time, after int) retrieve.Record {
	began := start.Add(time.Duration(after) * time.Microsecond)
	return retrieve.Record{ID: id, Kind: "ask", State: "done", Started: began, Ended: began.Add(time.Second), Expires: began.Add(time.Hour),
		Spec: []byte(`{"question":"When?"}`), Events: []byte("event: done\n")}
}

func testNoRecord(t *testing.T, open func() retrieve.Store) {
	ctx, l := t.Context(), open().Ledger()
	if _, err := l.Record(ctx, "a"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a record that was never kept: %v", err)
	}
	if list, err := l.Records(ctx, "", retrieve.Record{}, 10); len(list) > 0 || err != nil {
		t.Errorf("the list: %v, %v", list, err)
	}
	must(t, l.ForgetRecord(ctx, "a"))
	if list, err := l.Feedback(ctx, 0, 10); len(list) > 0 || err != nil {
		t.Errorf("the feedback: %v, %v", list, err)
	}
}

func testRecord(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	e := open()
	first := record("a/b 'é\"", now(), 0)
	again := first
	again.State, again.Shared, again.By, again.Kind = "stopped", true, "somebody", "summarize"
	again.Events = append([]byte{0, 255}, bytes.Repeat([]byte("event: draft\n"), 1000)...)
	again.Ended = again.Started.Add(time.Minute)
	for _, want := range []retrieve.Record{first, again} {
		must(t, e.Ledger().KeepRecord(ctx, want))
		other := open()
		same := func(when string) {
			t.Helper()
			got, err := other.Ledger().Record(ctx, want.ID)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", when, err, diff)
			}
		}
		same("seen from elsewhere")
		must(t, e.Close())
		same("without who kept it")
		e = other
	}
	late := record("late", now(), 0)
	late.Expires = time.Now().Add(-time.Second)
	must(t, e.Ledger().KeepRecord(ctx, late))
	if _, err := e.Ledger().Record(ctx, "late"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a record that has expired: %v", err)
	}
	must(t, open().Ledger().ForgetRecord(ctx, first.ID))
	if _, err := e.Ledger().Record(ctx, first.ID); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a forgotten record: %v", err)
	}
}

// paged returns the whole list, read n at a time.
func paged[V any](t *testing.T, n int, list func(after V, n int) ([]V, error)) (all []V) {
	t.Helper()
	for {
		var after V
		if len(all) > 0 {
			after = all[len(all)-1]
		}
		page, err := list(after, n)
		must(t, err)
		if len(page) > n {
			t.Fatalf("a list of %d for %d", len(page), n)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

// listed returns the ids of the records of a caller, read n at a time.
func listed(t *testing.T, l retrieve.Ledger, by string, n int) (ids []string) {
	t.Helper()
	for _, r := range paged(t, n, func(after retrieve.Record, n int) ([]retrieve.Record, error) {
		return l.Records(t.Context(), by, after, n)
	}) {
		if r.Events != nil || r.By != by || r.Kind != "ask" || r.State != "done" || string(r.Spec) != `{"question":"When?"}` {
			t.Errorf("listed as %+v", r)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

// testRecords checks the order: newest first, then by id.
func testRecords(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	l, other := open().Ledger(), open().Ledger()
	start := now()
	for i := range 5 {
		must(t, []retrieve.Ledger{l, other}[i%2].KeepRecord(ctx, record(fmt.Sprint(i), start, i/2)))
	}
	others := record("others", start, 9)
	others.By = "somebody"
	must(t, l.KeepRecord(ctx, others))
	for n := range 6 {
		wantIDs(t, fmt.Sprintf("records, %d at a time", n+1), listed(t, other, "", n+1), nil, "4", "3", "2", "1", "0")
	}
	wantIDs(t, "records of somebody", listed(t, other, "somebody", 9), nil, "others")
	wantIDs(t, "records of nobody", listed(t, other, "nobody", 9), nil)
	late := record("late", start, 10)
	late.Expires = time.Now().Add(-time.Second)
	must(t, l.KeepRecord(ctx, late))
	must(t, l.ForgetRecord(ctx, "2"))
	must(t, l.KeepRecord(ctx, record("1", start, 20)))
	wantIDs(t, "records as they are now", listed(t, other, "", 2), nil, "1", "4", "3", "0")
}

// testRecordRoom checks that new records displace the oldest.
func testRecordRoom(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	l, other := open().Ledger(), open().Ledger()
	start, most := now(), Limits().Records
	var newest []string
	for i := range most {
		must(t, l.KeepRecord(ctx, record(fmt.Sprintf("%02d", i), start, i)))
		newest = append([]string{fmt.Sprintf("%02d", i)}, newest...)
	}
	wantIDs(t, "as many as there may be", listed(t, other, "", 100), nil, newest...)
	must(t, other.KeepRecord(ctx, record(newest[0], start, most-1)))
	wantIDs(t, "one kept again", listed(t, l, "", 100), nil, newest...)
	must(t, other.KeepRecord(ctx, record("new", start, most)))
	wantIDs(t, "one more", listed(t, l, "", 100), nil, append([]string{"new"}, newest[:most-1]...)...)
	if _, err := l.Record(ctx, "00"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("the oldest: %v", err)
	}
	// Records that have expired by its end are deleted first.
	later := record("later", start, most+1)
	later.Ended = start.Add(30 * time.Minute)
	short := record(newest[0], start, most-1)
	short.Expires = start.Add(20 * time.Minute)
	must(t, l.KeepRecord(ctx, short))
	must(t, l.KeepRecord(ctx, later))
	wantIDs(t, "one more after one has expired", listed(t, other, "", 100), nil, append([]string{"later", "new"}, newest[1:most-1]...)...)
}

// testRecordBytes checks that large records displace the oldest.
func testRecordBytes(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	l, other := open().Ledger(), open().Ledger()
	start, third := now(), int(Limits().RecordBytes)/3
	keep := func(id string, after, size int) {
		t.Helper()
		r := record(id, start, after)
		r.Events = make([]byte, size)
		must(t, l.KeepRecord(ctx, r))
	}
	keep("0", 0, third)
	keep("1", 1, 10)
	keep("2", 2, third)
	keep("3", 3, third/2)
	wantIDs(t, "records that have room", listed(t, other, "", 100), nil, "3", "2", "1", "0")
	keep("4", 4, third)
	wantIDs(t, "records after a long one", listed(t, other, "", 100), nil, "4", "3", "2", "1")
	keep("5", 5, 2*int(Limits().RecordBytes))
	wantIDs(t, "records after one larger than the limit", listed(t, other, "", 100), nil, "5")
	keep("6", 6, 10)
	wantIDs(t, "records after it", listed(t, other, "", 100), nil, "6")
}

// testRecordOfDeleted checks that a record is deleted with the documents it quotes.
func testRecordOfDeleted(t *testing.T, open func() retrieve.Store) {
	e, other := open(), open()
	ctx := ready(t, e, "a", "b", "ab")
	for _, root := range []string{"a", "b", "ab"} {
		put(t, e, root, "x.md", []float64{0}, "boat")
		put(t, e, root, "y.md", []float64{0}, "boat")
	}
	keep := func(id string, documents ...string) error {
		r := record(id, now(), 0)
		r.Documents = documents
		return e.Ledger().KeepRecord(ctx, r)
	}
	check := func(when string, want ...string) {
		t.Helper()
		for _, e := range []retrieve.Store{e, other} {
			var got []string
			for _, id := range []string{"abx", "ax", "ay", "both", "bx", "none"} {
				if _, err := e.Ledger().Record(ctx, id); err == nil {
					got = append(got, id)
				} else if !errors.Is(err, retrieve.ErrNotFound) {
					t.Fatal(err)
				}
			}
			wantIDs(t, when+" the records", got, nil, want...)
			got = listed(t, e.Ledger(), "", 100)
			slices.Sort(got)
			wantIDs(t, when+" the list of records", got, nil, want...)
		}
	}
	must(t, errors.Join(keep("ax", "a/x.md"), keep("ay", "a/y.md"), keep("both", "a/y.md", "b/x.md", "a/y.md"), keep("bx", "b/x.md"), keep("abx", "ab/x.md"), keep("none")))
	if err := keep("gone", "a/x.md", "a/never.md"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a record of a document that is gone: %v", err)
	}
	check("at first", "abx", "ax", "ay", "both", "bx", "none")
	must(t, e.Rename(ctx, "a/x.md", renamed("a", "z.md", "boat")))
	put(t, e, "b", "x.md", []float64{1}, "ship")
	check("after one document was renamed and another replaced", "abx", "ax", "ay", "both", "bx", "none")
	for id, want := range map[string][]string{"ax": {"a/z.md"}, "both": {"a/y.md", "b/x.md"}} {
		if r, err := other.Ledger().Record(ctx, id); err != nil || !slices.Equal(r.Documents, want) {
			t.Errorf("the documents of %s are %q, %v; want %q", id, r.Documents, err, want)
		}
	}
	must(t, other.Delete(ctx, "a/z.md"))
	check("after it was deleted", "abx", "ay", "both", "bx", "none")
	_, err := e.DeleteRoot(ctx, "a")
	must(t, err)
	check("after its folder was forgotten", "abx", "bx", "none")
	// Storing a document again under the id of a deleted one restores no record.
	_, err = e.AddRoot(ctx, "/srv/a", "")
	must(t, err)
	put(t, e, "a", "y.md", []float64{0}, "boat")
	check("after its document came back", "abx", "bx", "none")
}

// testRecordMeetsDelete stores a record while its document is deleted: in the end
// there is neither.
func testRecordMeetsDelete(t *testing.T, open func() retrieve.Store) {
	e, other := open(), open()
	ctx := ready(t, e, "a")
	for i := range 10 {
		path, id := fmt.Sprint(i), "record "+fmt.Sprint(i)
		put(t, e, "a", path, []float64{0}, "boat")
		r := record(id, now(), 0)
		r.Documents = []string{"a/" + path}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := other.Ledger().KeepRecord(ctx, r); err != nil && !errors.Is(err, retrieve.ErrNotFound) {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if err := e.Delete(ctx, "a/"+path); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if _, err := e.Ledger().Record(ctx, id); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("the record of a deleted document: %v", err)
		}
	}
	wantIDs(t, "records of deleted documents", listed(t, other.Ledger(), "", 100), nil)
}

// testRecordAbandoned is testRunAbandoned for records.
func testRecordAbandoned(t *testing.T, open func() retrieve.Store) {
	e, watcher := open(), open()
	ctx := ready(t, e, "a")
	breaks := newBreaker(rand.New(rand.NewPCG(11, 12)))
	put(t, e, "a", "x", []float64{0}, "boat")
	put(t, e, "a", "y", []float64{0}, "boat")
	for i := range 30 {
		want := record(fmt.Sprint(i), now(), 0)
		want.Documents, want.Events = []string{"a/x", "a/y"}, bytes.Repeat([]byte{byte(i)}, 3000)
		must(t, watcher.Ledger().KeepRecord(ctx, want))
		again := want
		again.State, again.Events, again.Documents = "stopped", bytes.Repeat([]byte{byte(i), 1}, 3000), []string{"a/y"}
		kept := breaks.try(ctx, "KeepRecord", func(ctx context.Context) error { return e.Ledger().KeepRecord(ctx, again) })
		// One of them must exist at any time.
		got, err := watcher.Ledger().Record(ctx, want.ID)
		if err != nil || !cmp.Equal(got, again) && (kept == nil || !cmp.Equal(got, want)) {
			t.Fatalf("the record is %+v, %v; keeping it: %v", got, err, kept)
		}
		forgotten := breaks.try(ctx, "ForgetRecord", func(ctx context.Context) error { return e.Ledger().ForgetRecord(ctx, want.ID) })
		_, err = watcher.Ledger().Record(ctx, want.ID)
		if err != nil && !errors.Is(err, retrieve.ErrNotFound) || forgotten == nil && err == nil {
			t.Fatalf("a record that was forgotten: %v; forgetting it: %v", err, forgotten)
		}
		if i%10 == 9 {
			e = open()
		}
	}
	t.Log(breaks)
}

// opinions returns all feedback, read n at a time, without keys.
func opinions(t *testing.T, l retrieve.Ledger, n int) (all []retrieve.Feedback) {
	t.Helper()
	all = paged(t, n, func(after retrieve.Feedback, n int) ([]retrieve.Feedback, error) {
		return l.Feedback(t.Context(), after.Key, n)
	})
	before := int64(math.MaxInt64)
	for i := range all {
		if all[i].Key <= 0 || all[i].Key >= before {
			t.Errorf("an opinion has the key %d, after %d", all[i].Key, before)
		}
		before, all[i].Key = all[i].Key, 0
	}
	return all
}

func testFeedback(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	e, other := open(), open()
	at := now()
	for i, f := range []retrieve.Feedback{
		{Run: "a", Citation: -1, Rating: 1},
		{Run: "a", Citation: 0, Rating: -1, Comment: "Not there: 'é\"\n\x00"},
		{Run: "a", By: "somebody", Citation: -1, Rating: -1},
		{Run: "a", Citation: -1, Rating: -1, Comment: "On second thoughts."},
	} {
		f.At = at
		must(t, []retrieve.Store{e, other}[i%2].Ledger().KeepFeedback(ctx, f))
	}
	want := []retrieve.Feedback{
		{Run: "a", Citation: -1, Rating: -1, Comment: "On second thoughts.", At: at},
		{Run: "a", By: "somebody", Citation: -1, Rating: -1, At: at},
		{Run: "a", Citation: 0, Rating: -1, Comment: "Not there: 'é\"\n\x00", At: at},
	}
	must(t, e.Close())
	for n := range 4 {
		if diff := cmp.Diff(want, opinions(t, other.Ledger(), n+1)); diff != "" {
			t.Errorf("%d at a time (-want +got):\n%s", n+1, diff)
		}
	}
	// Of too many the oldest are deleted.
	most := Limits().Feedback
	for i := range most - 1 {
		must(t, other.Ledger().KeepFeedback(ctx, retrieve.Feedback{Run: "b", Citation: i, Rating: 1, At: at}))
	}
	all := opinions(t, open().Ledger(), 3)
	if len(all) != most || all[0].Run != "b" || all[0].Citation != most-2 || all[most-2].Citation != 0 || all[most-1].Comment != "On second thoughts." {
		t.Errorf("%d opinions: %+v", len(all), all)
	}
}

// testFeedbackTogether stores feedback by several handles at once, in one order.
func testFeedbackTogether(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	handles := []retrieve.Store{open(), open()}
	var wg sync.WaitGroup
	most := Limits().Feedback
	for i := range most {
		wg.Go(func() {
			if err := handles[i%2].Ledger().KeepFeedback(ctx, retrieve.Feedback{Run: "a", Citation: i, Rating: 1, At: now()}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	first, second := opinions(t, handles[0].Ledger(), 3), opinions(t, handles[1].Ledger(), 5)
	if diff := cmp.Diff(first, second); diff != "" || len(first) != most {
		t.Errorf("%d opinions, in two places (-first +second):\n%s", len(first), diff)
	}
}
