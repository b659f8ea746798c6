package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

// A damaged reply is none: the call is made again.
func TestDamagedReply(t *testing.T) {
	ctx := t.Context()
	e := openTest(t, t.TempDir())
	l := e.Ledger()
	if err := errors.Join(l.Begin(ctx, retrieve.Job{ID: "a", Started: time.Now()}), l.Keep(ctx, "a", "", "k", []byte("second"))); err != nil {
		t.Fatal(err)
	}
	if _, err := e.write.ExecContext(ctx, `UPDATE replies SET reply = 'sec0nd'`); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := l.Reply(ctx, "a", "k"); ok || err != nil {
		t.Errorf("a damaged reply: %q, %t, %v", got, ok, err)
	}
}

// Of the runs that made room for others, and of those that ended, nothing is left.
func TestLedgerLeavesNothing(t *testing.T) {
	ctx := t.Context()
	e := openWith(t, t.TempDir(), Options{Limits: enginetest.Limits()})
	l := e.Ledger()
	start := time.Now().Add(-time.Hour)
	for i := range 2 * enginetest.Limits().Runs {
		id := fmt.Sprint(i)
		if err := l.Begin(ctx, retrieve.Job{ID: id, Started: start.Add(time.Duration(i) * time.Microsecond)}); err != nil {
			t.Fatal(err)
		}
		if err := l.Keep(ctx, id, "", "k", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	rows := func() (runs, specs, replies int) {
		t.Helper()
		err := e.read.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM specs), (SELECT count(*) FROM replies)`).Scan(&runs, &specs, &replies)
		if err != nil {
			t.Fatal(err)
		}
		return runs, specs, replies
	}
	if runs, specs, replies := rows(); runs != enginetest.Limits().Runs || specs != runs || replies != runs {
		t.Errorf("%d runs, %d specs and %d replies are left", runs, specs, replies)
	}
	for i := range 2 * enginetest.Limits().Runs {
		if err := l.End(ctx, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if runs, specs, replies := rows(); runs != 0 || specs != 0 || replies != 0 {
		t.Errorf("%d runs, %d specs and %d replies are left in the end", runs, specs, replies)
	}
}

// A database that holds runs is repaired like any other when its first page is
// gone: the runs are lost, the documents are not.
func TestRepairWithLedger(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	e, err := Open(ctx, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Ledger().Begin(ctx, retrieve.Job{ID: "a", Started: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.AddRoot(ctx, filepath.Join(dir, "notes"), "default"); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(data[:pageSize])
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err = Open(ctx, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	roots, err := e.Roots(ctx)
	if err != nil || len(roots) != 1 || roots[0].Name != "notes" {
		t.Errorf("roots %v, %v", roots, err)
	}
	if _, err := e.Ledger().Job(ctx, "a"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("the run: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
