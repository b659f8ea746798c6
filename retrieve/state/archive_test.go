package state

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ibid/data/datatest"
	"ibid/retrieve"
)

// record returns the record of a job that began the given number of microseconds after start.
func record(id string, start time.Time, after int) retrieve.Record {
	began := start.Add(time.Duration(after) * time.Microsecond)
	return retrieve.Record{ID: id, Kind: "ask", State: "done", Started: began, Ended: began.Add(time.Second),
		Expires: began.Add(time.Hour), Spec: []byte(`{"question":"When?"}`), Events: []byte("event: done\n")}
}

// paged returns the whole list, reading n at a time.
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
			t.Errorf("listed record = %+v", r)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

func readFeedback(t *testing.T, s *Store, n int) (all []retrieve.Feedback) {
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
	onTwoHandles(t, func(t *testing.T, a, b *Store) {
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
			datatest.Same(t, fmt.Sprintf("%d at a time", n+1), want, readFeedback(t, b, n+1))
		}
		// If there are too many entries, the oldest are deleted, in the same order for all
		// callers.
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
		first, second := readFeedback(t, a, 3), readFeedback(t, b, 5)
		if diff := cmp.Diff(first, second); diff != "" || len(first) != most || first[most-1].Comment != "On second thoughts." {
			t.Errorf("%d entries, listed by two handles (-first +second):\n%s", len(first), diff)
		}
		execute(t, a, `UPDATE ibid.feedback SET rating = 1, comment = ? WHERE run = ?`, "X", "a")
		if slices.ContainsFunc(readFeedback(t, b, 9), func(f retrieve.Feedback) bool { return f.Run == "a" }) {
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

// TestQuotedTogether stores records while the documents that they quote are deleted and forgotten.
func TestQuotedTogether(t *testing.T) {
	onTwoHandles(t, func(t *testing.T, a, b *Store) {
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
				t.Errorf("record of a forgotten document: err = %v, want ErrNotFound", err)
			}
		}
	})
}
