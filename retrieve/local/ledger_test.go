package local

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
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
	if e, err = Open(ctx, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
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
