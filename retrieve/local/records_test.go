package local

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ibid/ingest"
	"ibid/retrieve"
)

// record is one of a run that began so many microseconds after a start.
func record(id string, start time.Time, after int) retrieve.Record {
	began := start.Add(time.Duration(after) * time.Microsecond)
	return retrieve.Record{ID: id, Kind: "ask", State: "done", Started: began, Ended: began.Add(time.Second), Expires: began.Add(time.Hour),
		Spec: []byte(`{"question":"When?"}`), Events: []byte("event: done\n")}
}

func TestRecords(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	e, err := Open(ctx, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := e.Ledger()
	start := time.Now().Truncate(time.Microsecond)

	// Before there is any.
	if _, err := l.Record(ctx, "a"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a record that was never kept: %v", err)
	}
	if list, err := l.Records(ctx, "", retrieve.Record{}, 10); len(list) > 0 || err != nil {
		t.Errorf("the list: %v, %v", list, err)
	}
	if err := l.ForgetRecord(ctx, "a"); err != nil {
		t.Errorf("forgetting it: %v", err)
	}
	if list, err := l.Feedback(ctx, 0, 10); len(list) > 0 || err != nil {
		t.Errorf("the feedback: %v, %v", list, err)
	}

	for i := range 5 {
		if err := l.KeepRecord(ctx, record(fmt.Sprint(i), start, i/2)); err != nil {
			t.Fatal(err)
		}
	}
	others := record("others", start, 9)
	others.By = "somebody"
	if err := l.KeepRecord(ctx, others); err != nil {
		t.Fatal(err)
	}
	again := record("1", start, 0)
	again.State, again.Shared, again.Events = "stopped", true, nil
	if err := l.KeepRecord(ctx, again); err != nil {
		t.Fatal(err)
	}
	late := record("late", start, 0)
	late.Expires = time.Now().Add(-time.Second)
	if err := l.KeepRecord(ctx, late); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Record(ctx, "late"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a record that has expired: %v", err)
	}

	// Another process sees the same.
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = openTest(t, dir)
	l = e.Ledger()
	got, err := l.Record(ctx, "1")
	if diff := cmp.Diff(again, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	// Newest first, page by page; those that began at once in the order of their ids.
	var ids []string
	after := retrieve.Record{}
	for {
		page, err := l.Records(ctx, "", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			if r.Events != nil || string(r.Spec) != `{"question":"When?"}` {
				t.Errorf("listed as %+v", r)
			}
			ids = append(ids, r.ID)
		}
		after = page[len(page)-1]
	}
	if want := []string{"4", "3", "2", "1", "0"}; !slices.Equal(ids, want) {
		t.Errorf("listed %v, want %v", ids, want)
	}
	if list, err := l.Records(ctx, "somebody", retrieve.Record{}, 10); len(list) != 1 || err != nil {
		t.Errorf("the list of somebody: %v, %v", list, err)
	}

	// A damaged one is none.
	for _, damage := range []string{`UPDATE records SET head = x'7b7d' WHERE id = '2'`, `UPDATE record_events SET events = 'x' WHERE record = '3'`} {
		if _, err := e.write.ExecContext(ctx, damage); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"2", "3"} {
		if _, err := l.Record(ctx, id); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("the damaged record %s: %v", id, err)
		}
	}
	if err := l.ForgetRecord(ctx, "4"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Record(ctx, "4"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a forgotten record: %v", err)
	}
}

// The oldest records make room for new ones.
func TestRecordRoom(t *testing.T) {
	ctx := t.Context()
	e := openTest(t, t.TempDir())
	l := e.Ledger()
	start := time.Now()
	for i := range 4 {
		if err := l.KeepRecord(ctx, record(fmt.Sprint(i), start, i)); err != nil {
			t.Fatal(err)
		}
	}
	ids := func() (ids []string) {
		list, err := l.Records(ctx, "", retrieve.Record{}, 20_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			ids = append(ids, r.ID)
		}
		return ids
	}
	if _, err := e.write.ExecContext(ctx, `UPDATE records SET size = ? WHERE id IN ('0', '2')`, retrieve.MaxRecordBytes/2); err != nil {
		t.Fatal(err)
	}
	if err := l.KeepRecord(ctx, record("4", start, 4)); err != nil {
		t.Fatal(err)
	}
	if got, want := ids(), []string{"4", "3", "2", "1"}; !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
	// Many, of which one has expired since.
	_, err := e.write.ExecContext(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO records (id, caller, started, expires, size, sum, head) SELECT 'n' || i, '', 0, ?, 0, 0, x'' FROM n`, retrieve.MaxRecords-4, start.Add(time.Hour).UnixMicro())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.KeepRecord(ctx, record("5", start, 5)); err != nil {
		t.Fatal(err)
	}
	var count int
	if err := e.read.QueryRowContext(ctx, `SELECT count(*) FROM records`).Scan(&count); err != nil || count != retrieve.MaxRecords {
		t.Errorf("%d records, %v", count, err)
	}
	for _, table := range []string{"record_events", "record_documents"} {
		var left int
		if err := e.read.QueryRowContext(ctx, `SELECT count(*) FROM `+table+` WHERE record NOT IN (SELECT id FROM records)`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d rows are left in %s, %v", left, table, err)
		}
	}
}

// A record goes with the documents whose words stand in it.
func TestRecordOfDeleted(t *testing.T) {
	ctx := t.Context()
	e := openTest(t, t.TempDir())
	if err := e.SetSpace(ctx, "test/2"); err != nil {
		t.Fatal(err)
	}
	l := e.Ledger()
	for _, name := range []string{"a", "b"} {
		if _, err := e.AddRoot(ctx, filepath.Join(t.TempDir(), name), ""); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"x.md", "y.md"} {
			doc := &ingest.Document{ID: name + "/" + path, Root: name, Path: path, Title: path, Format: "markdown", Digest: "00", Text: "Words."}
			if err := e.Replace(ctx, doc, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	keep := func(id string, documents ...string) error {
		r := record(id, time.Now(), 0)
		r.Documents = documents
		return l.KeepRecord(ctx, r)
	}
	check := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, id := range []string{"ax", "ay", "both", "bx"} {
			if _, err := l.Record(ctx, id); err == nil {
				got = append(got, id)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s there are %v, want %v", when, got, want)
		}
	}
	err := errors.Join(keep("ax", "a/x.md"), keep("ay", "a/y.md"), keep("both", "a/y.md", "b/x.md"), keep("bx", "b/x.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := keep("gone", "a/x.md", "a/never.md"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a record of a document that is gone: %v", err)
	}
	check("at first", "ax", "ay", "both", "bx")
	renamed := &ingest.Document{ID: "a/z.md", Root: "a", Path: "z.md", Title: "x.md", Digest: "00"}
	if err := e.Rename(ctx, "a/x.md", renamed); err != nil {
		t.Fatal(err)
	}
	check("after a document was renamed", "ax", "ay", "both", "bx")
	if r, err := l.Record(ctx, "ax"); err != nil || !slices.Equal(r.Documents, []string{"a/z.md"}) {
		t.Errorf("its record: %v, %v", r.Documents, err)
	}
	// One of which it is not known what it holds is not shown.
	if err := keep("torn", "a/y.md", "b/y.md"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.write.ExecContext(ctx, `UPDATE record_documents SET document = 'a/w.md' WHERE record = 'torn' AND document = 'a/y.md'`); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Record(ctx, "torn"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a record of which a document is damaged: %v", err)
	}
	if err := e.Delete(ctx, "a/z.md"); err != nil {
		t.Fatal(err)
	}
	check("after it was deleted", "ay", "both", "bx")
	if _, err := e.DeleteRoot(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	check("after its folder was forgotten", "bx")
}

func TestFeedback(t *testing.T) {
	ctx := t.Context()
	e := openTest(t, t.TempDir())
	l := e.Ledger()
	at := time.Now().Truncate(time.Microsecond)
	for _, f := range []retrieve.Feedback{
		{Run: "a", Citation: -1, Rating: 1},
		{Run: "a", Citation: 0, Rating: -1, Comment: "Not there."},
		{Run: "a", By: "somebody", Citation: -1, Rating: -1},
		{Run: "a", Citation: -1, Rating: -1, Comment: "On second thoughts."},
	} {
		f.At = at
		if err := l.KeepFeedback(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
	first, err := l.Feedback(ctx, 0, 2)
	if err != nil || len(first) != 2 {
		t.Fatalf("%+v, %v", first, err)
	}
	rest, err := l.Feedback(ctx, first[1].Key, 2)
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Concat(first, rest)
	for i := range got {
		got[i].Key = 0
	}
	want := []retrieve.Feedback{
		{Run: "a", Citation: -1, Rating: -1, Comment: "On second thoughts.", At: at},
		{Run: "a", By: "somebody", Citation: -1, Rating: -1, At: at},
		{Run: "a", Citation: 0, Rating: -1, Comment: "Not there.", At: at},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = e.write.ExecContext(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO feedback (run, caller, citation, rating, at, sum, comment) SELECT 'n', '', i, 1, 0, 0, '' FROM n`, retrieve.MaxFeedback)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.KeepFeedback(ctx, retrieve.Feedback{Run: "b", Citation: -1, Rating: 1, At: at}); err != nil {
		t.Fatal(err)
	}
	var count int
	if err := e.read.QueryRowContext(ctx, `SELECT count(*) FROM feedback`).Scan(&count); err != nil || count != retrieve.MaxFeedback {
		t.Errorf("%d opinions, %v", count, err)
	}
	// Damaged ones are passed over.
	all, err := l.Feedback(ctx, 0, 2*retrieve.MaxFeedback)
	if err != nil || len(all) != 1 || all[0].Run != "b" {
		t.Errorf("%d opinions, %v", len(all), err)
	}
}
