package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ibid/retrieve"
)

func TestLedger(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	e, err := Open(ctx, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := e.Ledger()
	now := time.Unix(1_700_000_000, 0)

	// Before any run has begun there is none, and nothing is laid out for one.
	if _, err := l.Run(ctx, "a"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a run that never began: %v", err)
	}
	if _, ok, err := l.Reply(ctx, "a", "k"); ok || err != nil {
		t.Errorf("its reply: %t, %v", ok, err)
	}
	if err := l.Keep(ctx, "a", "k", nil); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("keeping a reply of it: %v", err)
	}
	if err := l.End(ctx, "a"); err != nil {
		t.Errorf("ending it: %v", err)
	}

	want := retrieve.Run{ID: "a", Started: now, Secret: []byte{0, 1, 255}, Spec: []byte(`{"words":100}`)}
	if err := l.Begin(ctx, want); err != nil {
		t.Fatal(err)
	}
	if err := l.Begin(ctx, want); err == nil {
		t.Error("two runs under one id")
	}
	for _, reply := range []string{"first", "", "second"} {
		if err := l.Keep(ctx, "a", "k", []byte(reply)); err != nil {
			t.Fatal(err)
		}
		if got, ok, err := l.Reply(ctx, "a", "k"); string(got) != reply || !ok || err != nil {
			t.Errorf("kept %q, got %q, %t, %v", reply, got, ok, err)
		}
	}

	// Another process sees the same.
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = openTest(t, dir)
	l = e.Ledger()
	got, err := l.Run(ctx, "a")
	if err != nil || got.ID != want.ID || !got.Started.Equal(want.Started) || !bytes.Equal(got.Secret, want.Secret) || !bytes.Equal(got.Spec, want.Spec) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, ok, err := l.Reply(ctx, "a", "another"); ok || err != nil {
		t.Errorf("a reply that was not kept: %t, %v", ok, err)
	}

	// A damaged reply is none: the call is made again.
	if _, err := e.write.ExecContext(ctx, `UPDATE replies SET reply = 'sec0nd'`); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := l.Reply(ctx, "a", "k"); ok || err != nil {
		t.Errorf("a damaged reply: %q, %t, %v", got, ok, err)
	}

	// Old runs go when a new one begins, with their replies.
	if err := l.Begin(ctx, retrieve.Run{ID: "b", Started: now.Add(retrieve.MaxRunAge)}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Run(ctx, "a"); err != nil {
		t.Errorf("a run that is just young enough: %v", err)
	}
	if err := l.Begin(ctx, retrieve.Run{ID: "c", Started: now.Add(retrieve.MaxRunAge + time.Second)}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Run(ctx, "a"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a run that is too old: %v", err)
	}
	if err := l.Keep(ctx, "b", "k", []byte("x")); err != nil {
		t.Fatal(err)
	}
	// A forgotten folder leaves no trace in what a model wrote of it.
	root, err := e.AddRoot(ctx, filepath.Join(dir, "notes"), "default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.DeleteRoot(ctx, root.Name); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := l.Reply(ctx, "b", "k"); ok || err != nil {
		t.Errorf("a reply after a folder was forgotten: %t, %v", ok, err)
	}
	if err := l.Keep(ctx, "b", "k", []byte("y")); err != nil {
		t.Errorf("the run does not go on: %v", err)
	}
	if err := l.End(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := e.read.QueryRowContext(ctx, `SELECT count(*) FROM replies`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d replies are left, %v", left, err)
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
	if err := e.Ledger().Begin(ctx, retrieve.Run{ID: "a", Started: time.Now()}); err != nil {
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
	if _, err := e.Ledger().Run(ctx, "a"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("the run: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// Of many runs that have not ended those are kept in which something happened last.
func TestLedgerRoom(t *testing.T) {
	ctx := t.Context()
	e := openTest(t, t.TempDir())
	l := e.Ledger()
	if _, err := l.Latest(ctx, "ask"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("the latest run before there was any: %v", err)
	}
	start := time.Now().Add(-time.Hour)
	begin := func(i int, kind string, spec []byte) {
		t.Helper()
		if err := l.Begin(ctx, retrieve.Run{ID: fmt.Sprint(i), Kind: kind, Started: start.Add(time.Duration(i) * time.Microsecond), Spec: spec}); err != nil {
			t.Fatal(err)
		}
	}
	runs := func() (n int) {
		t.Helper()
		if err := e.read.QueryRowContext(ctx, `SELECT count(*) FROM runs`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	there := func(i int) bool {
		t.Helper()
		_, err := l.Run(ctx, fmt.Sprint(i))
		if err != nil && !errors.Is(err, retrieve.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	for i := range retrieve.MaxRuns {
		begin(i, "ask", nil)
	}
	if err := l.Keep(ctx, "0", "k", make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	begin(retrieve.MaxRuns, "summarize", nil)
	if n := runs(); n != retrieve.MaxRuns || !there(0) || there(1) || !there(2) {
		t.Errorf("%d runs; 0: %t, 1: %t, 2: %t", n, there(0), there(1), there(2))
	}
	if r, err := l.Latest(ctx, "ask"); err != nil || r.ID != "0" || r.Kind != "ask" {
		t.Errorf("the latest: %+v, %v", r, err)
	}
	// Replies that are long in all take the place of as many as they must.
	if _, err := e.write.ExecContext(ctx, `UPDATE runs SET size = ? WHERE id IN ('0', '5')`, retrieve.MaxRunBytes/2); err != nil {
		t.Fatal(err)
	}
	begin(retrieve.MaxRuns+1, "ask", []byte("spec"))
	if n := runs(); n != retrieve.MaxRuns-3 || there(4) || there(5) || !there(6) || !there(0) {
		t.Errorf("%d runs; 4: %t, 5: %t, 6: %t, 0: %t", n, there(4), there(5), there(6), there(0))
	}
	var left int
	if err := e.read.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM replies) + (SELECT count(*) FROM specs)`).Scan(&left); err != nil || left != runs()+1 {
		t.Errorf("%d rows are left, %v", left, err)
	}
}

// Writes that come at once are all kept, each with an error of its own.
func TestLedgerTogether(t *testing.T) {
	ctx := t.Context()
	e := openTest(t, t.TempDir())
	l := e.Ledger()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			id := fmt.Sprint(i)
			if err := l.Begin(ctx, retrieve.Run{ID: id, Started: time.Now()}); err != nil {
				t.Error(err)
			}
			for k := range 12 {
				wg.Go(func() {
					if err := l.Keep(ctx, id, fmt.Sprint(k), []byte(id)); err != nil {
						t.Error(err)
					}
					if err := l.Keep(ctx, "none", "k", nil); !errors.Is(err, retrieve.ErrNotFound) {
						t.Errorf("a reply of a run that never began: %v", err)
					}
				})
			}
		})
	}
	wg.Wait()
	for i := range 8 {
		for k := range 12 {
			if b, ok, err := l.Reply(ctx, fmt.Sprint(i), fmt.Sprint(k)); string(b) != fmt.Sprint(i) || !ok || err != nil {
				t.Errorf("reply %d of run %d: %q, %t, %v", k, i, b, ok, err)
			}
		}
	}
}
