package state

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ibid/retrieve"
)

// record returns the record of a job that began so many microseconds after start.
func record(id string, start time.Time, after int) retrieve.Record {
	began := start.Add(time.Duration(after) * time.Microsecond)
	return retrieve.Record{ID: id, Kind: "ask", State: "done", Started: began, Ended: began.Add(time.Second),
		Expires: began.Add(time.Hour), Spec: []byte(`{"question":"When?"}`), Events: []byte("event: done\n")}
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

// recordIDs returns the ids of the records of a caller, read n at a time.
func recordIDs(t *testing.T, s *Store, by string, n int) (ids []string) {
	t.Helper()
	for _, r := range paged(t, n, func(after retrieve.Record, n int) ([]retrieve.Record, error) {
		return s.Ledger().Records(t.Context(), by, after, n)
	}) {
		if r.Events != nil || r.By != by || r.Kind != "ask" || r.State != "done" || string(r.Spec) != `{"question":"When?"}` {
			t.Errorf("listed as %+v", r)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

func TestRecord(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		ctx := t.Context()
		if list, err := a.Ledger().Records(ctx, "", retrieve.Record{}, 10); len(list) > 0 || err != nil {
			t.Errorf("the list of none: %v, %v", list, err)
		}
		missing := func(id string) {
			t.Helper()
			if _, err := b.Ledger().Record(ctx, id); !errors.Is(err, retrieve.ErrNotFound) {
				t.Errorf("the record %q: %v", id, err)
			}
		}
		first := record("a/b 'é\"", now(), 0)
		missing(first.ID)
		must(t, a.Ledger().ForgetRecord(ctx, first.ID))
		again := first
		again.State, again.Shared, again.By, again.Kind = "stopped", true, "somebody", "summarize"
		again.Events = append([]byte{0, 255}, bytes.Repeat([]byte("event: draft\n"), 1000)...)
		again.Ended = again.Started.Add(time.Minute)
		for _, want := range []retrieve.Record{first, again} {
			must(t, a.Ledger().KeepRecord(ctx, want))
			got, err := b.Ledger().Record(ctx, want.ID)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		}
		late := record("late", now(), 0)
		late.Expires = time.Now().Add(-time.Second)
		must(t, a.Ledger().KeepRecord(ctx, late))
		missing("late")
		must(t, a.Ledger().ForgetRecord(ctx, first.ID))
		missing(first.ID)
		for _, damage := range []string{`UPDATE ibid.records SET state = ?`, `UPDATE ibid.events SET events = ?`} {
			must(t, a.Ledger().KeepRecord(ctx, first))
			execute(t, a, damage, "X")
			missing(first.ID)
		}
	})
}

// Records are listed newest first, then by id.
func TestRecords(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		ctx, start := t.Context(), now()
		for i := range 5 {
			must(t, []*Store{a, b}[i%2].Ledger().KeepRecord(ctx, record(fmt.Sprint(i), start, i/2)))
		}
		others := record("others", start, 9)
		others.By = "somebody"
		must(t, a.Ledger().KeepRecord(ctx, others))
		for n := range 6 {
			wantIDs(t, fmt.Sprintf("%d at a time", n+1), recordIDs(t, b, "", n+1), "4", "3", "2", "1", "0")
		}
		wantIDs(t, "those of somebody", recordIDs(t, b, "somebody", 9), "others")
		wantIDs(t, "those of nobody", recordIDs(t, b, "nobody", 9))
		late := record("late", start, 10)
		late.Expires = time.Now().Add(-time.Second)
		must(t, a.Ledger().KeepRecord(ctx, late))
		must(t, a.Ledger().ForgetRecord(ctx, "2"))
		must(t, a.Ledger().KeepRecord(ctx, record("1", start, 20)))
		wantIDs(t, "as they are now", recordIDs(t, b, "", 2), "1", "4", "3", "0")
	})
}

// New records displace those that have expired, then the oldest.
func TestRecordRoom(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		ctx, start, most := t.Context(), now(), testLimits.records
		keep := func(id string, after, size int) {
			t.Helper()
			r := record(id, start, after)
			r.Events = make([]byte, size)
			must(t, a.Ledger().KeepRecord(ctx, r))
		}
		var newest []string
		for i := range most {
			keep(fmt.Sprintf("%02d", i), i, 10)
			newest = append([]string{fmt.Sprintf("%02d", i)}, newest...)
		}
		wantIDs(t, "as many as there may be", recordIDs(t, b, "", 100), newest...)
		keep(newest[0], most-1, 10)
		wantIDs(t, "one stored again", recordIDs(t, b, "", 100), newest...)
		keep("new", most, 10)
		wantIDs(t, "one more", recordIDs(t, b, "", 100), append([]string{"new"}, newest[:most-1]...)...)
		short, later := record(newest[0], start, most-1), record("later", start, most+1)
		short.Expires, later.Ended = start.Add(20*time.Minute), start.Add(30*time.Minute)
		must(t, b.Ledger().KeepRecord(ctx, short))
		must(t, b.Ledger().KeepRecord(ctx, later))
		wantIDs(t, "one more after one has expired", recordIDs(t, a, "", 100), append([]string{"later", "new"}, newest[1:most-1]...)...)

		third := int(testLimits.recordBytes) / 3
		for i, size := range []int{third, 10, third, third / 2, third} {
			keep(fmt.Sprint("large ", i), most+2+i, size)
		}
		wantIDs(t, "after large ones", recordIDs(t, b, "", 100), "large 4", "large 3", "large 2", "large 1")
		keep("larger", most+8, 2*3*third)
		wantIDs(t, "after one above the limit", recordIDs(t, b, "", 100), "larger")
		keep("next", most+9, 10)
		wantIDs(t, "after the next", recordIDs(t, b, "", 100), "next")
	})
}

func opinions(t *testing.T, s *Store, n int) (all []retrieve.Feedback) {
	t.Helper()
	all = paged(t, n, func(after retrieve.Feedback, n int) ([]retrieve.Feedback, error) {
		return s.Ledger().Feedback(t.Context(), after.Key, n)
	})
	before := int64(math.MaxInt64)
	for i := range all {
		if all[i].Key <= 0 || all[i].Key >= before {
			t.Errorf("an entry has the key %d, after %d", all[i].Key, before)
		}
		before, all[i].Key = all[i].Key, 0
	}
	return all
}

func TestFeedback(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		ctx, at := t.Context(), now()
		entries := []retrieve.Feedback{
			{Run: "a", Citation: -1, Rating: 1, At: at},
			{Run: "a", Citation: 0, Rating: -1, Comment: "Not there: 'é\"\n\x00", At: at},
			{Run: "a", By: "somebody", Citation: -1, Rating: -1, At: at},
			{Run: "a", Citation: -1, Rating: -1, Comment: "On second thoughts.", At: at},
		}
		for i, f := range entries {
			must(t, []*Store{a, b}[i%2].Ledger().KeepFeedback(ctx, f))
		}
		want := []retrieve.Feedback{entries[3], entries[2], entries[1]}
		for n := range 4 {
			if diff := cmp.Diff(want, opinions(t, b, n+1)); diff != "" {
				t.Errorf("%d at a time (-want +got):\n%s", n+1, diff)
			}
		}
		// Of too many the oldest are deleted, in one order for all.
		most := testLimits.feedback
		var wg sync.WaitGroup
		for i := range most - 1 {
			wg.Go(func() {
				f := retrieve.Feedback{Run: "b", Citation: i, Rating: 1, At: at}
				if err := []*Store{a, b}[i%2].Ledger().KeepFeedback(ctx, f); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		first, second := opinions(t, a, 3), opinions(t, b, 5)
		if diff := cmp.Diff(first, second); diff != "" || len(first) != most || first[most-1].Comment != "On second thoughts." {
			t.Errorf("%d entries, seen from two places (-first +second):\n%s", len(first), diff)
		}
		execute(t, a, `UPDATE ibid.feedback SET rating = 1, comment = ? WHERE run = ?`, "X", "a")
		if slices.ContainsFunc(opinions(t, b, 9), func(f retrieve.Feedback) bool { return f.Run == "a" }) {
			t.Error("a damaged entry is listed")
		}
	})
}

// keepRecord stores a record that quotes documents.
func keepRecord(t *testing.T, s *Store, id string, documents ...string) error {
	r := record(id, now(), len(id))
	r.Documents = documents
	return s.Ledger().KeepRecord(t.Context(), r)
}

// A record remains without the documents that it quotes, until one is forgotten.
func TestQuoted(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		ctx := ready(t, a, "a", "ab", "b")
		for _, root := range []string{"a", "ab", "b"} {
			put(t, a, root, "x.md", "boat")
			put(t, a, root, "y.md", "boat")
		}
		keep := func(id string, documents ...string) error { return keepRecord(t, b, id, documents...) }
		must(t, errors.Join(keep("ax", "a/x.md"), keep("ayx", "a/y.md", "a/x.md", "a/y.md"),
			keep("both", "b/x.md", "a/y.md"), keep("abx", "ab/x.md"), keep("none")))
		if err := keep("gone", "a/x.md", "a/never.md"); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("a record of a document that does not exist: %v", err)
		}
		check := func(when string, want ...string) {
			t.Helper()
			got := recordIDs(t, a, "", 100)
			slices.Sort(got)
			wantIDs(t, when, got, want...)
		}
		put(t, a, "b", "x.md", "ship")
		check("after replacing a document", "abx", "ax", "ayx", "both", "none")
		to, _ := newDocument("a", "z.md", "boat")
		to.Title = "Title of x.md"
		must(t, a.Rename(ctx, "a/x.md", to))
		if r, err := b.Ledger().Record(ctx, "ayx"); err != nil || !slices.Equal(r.Documents, []string{"a/y.md", "a/z.md"}) {
			t.Errorf("after renaming one of its documents: %q, %v", r.Documents, err)
		}
		must(t, b.Delete(ctx, "a/z.md"))
		check("after deleting a document", "abx", "ax", "ayx", "both", "none")
		must(t, b.Ledger().ForgetQuoting(ctx, "a/z.md"))
		check("after forgetting it", "abx", "both", "none")
		begin(t, a, retrieve.Job{ID: "a"})
		must(t, a.Ledger().Keep(ctx, "a", "", "k", []byte("words of a/y.md")))
		_, err := b.DeleteRoot(ctx, "a", false)
		must(t, err)
		check("after deleting its root", "abx", "none")
		wantReply(t, b, "a", "k", "", false)

		must(t, keep("abx", "b/x.md", "ab/x.md"))
		to.ID, to.Root, to.Path = "b/x.md", "b", "x.md"
		must(t, a.Rename(ctx, "ab/x.md", to))
		check("after a document took the place of another", "none")
		must(t, keep("b", "b/x.md", "b/y.md"))
		execute(t, a, `DELETE FROM ibid.quoted WHERE document = ?`, "b/y.md")
		if _, err := b.Ledger().Record(ctx, "b"); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("a record without one of its rows: %v", err)
		}
	})
}

// TestQuotedTogether stores records while the documents that they quote are
// deleted and forgotten.
func TestQuotedTogether(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		ctx := ready(t, a, "b")
		for i := range 10 {
			path, id := fmt.Sprint(i), fmt.Sprint("record ", i)
			put(t, a, "b", path, "boat")
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := keepRecord(t, b, id, "b/"+path); err != nil && !errors.Is(err, retrieve.ErrNotFound) {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if err := errors.Join(a.Delete(ctx, "b/"+path), a.Ledger().ForgetQuoting(ctx, "b/"+path)); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
			if _, err := b.Ledger().Record(ctx, id); !errors.Is(err, retrieve.ErrNotFound) {
				t.Errorf("the record of a forgotten document: %v", err)
			}
		}
	})
}

// Finish stores the records of documents that exist, and deletes the jobs.
func TestFinish(t *testing.T) {
	onTwo(t, func(t *testing.T, a, b *Store) {
		ctx, start := t.Context(), now()
		for _, id := range []string{"1", "2", "3"} {
			must(t, a.Ledger().Begin(ctx, retrieve.Job{ID: id, Kind: "ask", Started: start, Secret: []byte("s"), Spec: []byte("{}")}))
		}
		quoting := record("2", start, 2)
		quoting.Documents = []string{"docs/deleted.md"}
		stored, err := b.Ledger().Finish(ctx, []retrieve.Record{record("1", start, 1), quoting, record("3", start, 3)}, []string{"1", "2"})
		must(t, err)
		if !slices.Equal(stored, []bool{true, false, true}) {
			t.Errorf("stored %v", stored)
		}
		wantIDs(t, "after the end", recordIDs(t, a, "", 9), "3", "1")
		for _, id := range []string{"1", "2", "3"} {
			if _, err := a.Ledger().Job(ctx, id); errors.Is(err, retrieve.ErrNotFound) != (id != "3") {
				t.Errorf("the job %s: %v", id, err)
			}
		}
	})
}
