package local

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

func keepRecord(t *testing.T, l retrieve.Ledger, id string, documents ...string) {
	t.Helper()
	now := time.Now()
	err := l.KeepRecord(t.Context(), retrieve.Record{ID: id, Kind: "ask", State: "done", Started: now, Ended: now, Expires: now.Add(time.Hour),
		Spec: []byte(`{"question":"When?"}`), Events: []byte("event: done\n"), Documents: documents})
	if err != nil {
		t.Fatal(err)
	}
}

// A damaged record is none, and neither is one of which it is not known whose
// words it holds.
func TestDamagedRecords(t *testing.T) {
	ctx := t.Context()
	e := openTest(t, t.TempDir())
	l := e.Ledger()
	if err := e.SetSpace(ctx, "test/2"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.AddRoot(ctx, "/srv/a", ""); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"x.md", "y.md"} {
		doc := &ingest.Document{ID: "a/" + path, Root: "a", Path: path, Title: path, Format: "markdown", Digest: "00", Text: "Words."}
		if err := e.Replace(ctx, doc, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	for id, damage := range map[string]string{
		"head":      `UPDATE records SET head = x'7b7d' WHERE id = 'head'`,
		"events":    `UPDATE record_events SET events = 'x' WHERE record = 'events'`,
		"documents": `UPDATE record_documents SET document = 'a/w.md' WHERE record = 'documents' AND document = 'a/y.md'`,
	} {
		keepRecord(t, l, id, "a/x.md", "a/y.md")
		if _, err := l.Record(ctx, id); err != nil {
			t.Errorf("the record %s before it was damaged: %v", id, err)
		}
		if _, err := e.write.ExecContext(ctx, damage); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Record(ctx, id); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("the damaged record %s: %v", id, err)
		}
	}
}

// Of the records that made room for others nothing is left.
func TestRecordsLeaveNothing(t *testing.T) {
	ctx := t.Context()
	e := openWith(t, t.TempDir(), Options{Limits: enginetest.Limits()})
	for i := range 2 * enginetest.Limits().Records {
		keepRecord(t, e.Ledger(), fmt.Sprint(i))
	}
	for _, table := range []string{"record_events", "record_documents"} {
		var left int
		if err := e.read.QueryRowContext(ctx, `SELECT count(*) FROM `+table+` WHERE record NOT IN (SELECT id FROM records)`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d rows are left in %s, %v", left, table, err)
		}
	}
	var count int
	if err := e.read.QueryRowContext(ctx, `SELECT count(*) FROM record_events`).Scan(&count); err != nil || count != enginetest.Limits().Records {
		t.Errorf("the events of %d records, %v", count, err)
	}
}

// A damaged opinion is passed over.
func TestDamagedFeedback(t *testing.T) {
	ctx := t.Context()
	e := openTest(t, t.TempDir())
	l := e.Ledger()
	for _, run := range []string{"a", "b"} {
		if err := l.KeepFeedback(ctx, retrieve.Feedback{Run: run, Citation: -1, Rating: 1, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.write.ExecContext(ctx, `UPDATE feedback SET rating = -1 WHERE run = 'a'`); err != nil {
		t.Fatal(err)
	}
	all, err := l.Feedback(ctx, 0, 10)
	if err != nil || len(all) != 1 || all[0].Run != "b" {
		t.Errorf("opinions %+v, %v", all, err)
	}
}
