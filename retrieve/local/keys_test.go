package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"ibid/retrieve"
)

// A damaged key or session lets nobody in, and verify names it.
func TestDamagedKeys(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	e, err := Open(ctx, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := e.Keyring()
	for _, id := range []string{"k1", "k2"} {
		if err := r.Add(ctx, retrieve.Key{ID: id, Name: id, Collections: []string{"law"}, Created: time.Unix(1_700_000_000, 0)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Begin(ctx, retrieve.Session{Key: "k1", Started: time.Unix(1_700_000_000, 0)}); err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{`UPDATE access_keys SET collections = '[]' WHERE id = 'k1'`, `UPDATE sessions SET key = 'k2'`} {
		if _, err := e.write.Exec(damage); err != nil {
			t.Fatal(err)
		}
	}
	ring, err := r.Ring(ctx)
	if err != nil || len(ring.Keys) != 1 || ring.Keys[0].ID != "k2" || len(ring.Sessions) != 0 || ring.Damaged != 2 {
		t.Errorf("the ring: %+v, %v", ring, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := Verify(ctx, dir, Options{}, nil)
	if err != nil || len(report.Damaged) != 2 {
		t.Errorf("verify: %+v, %v", report.Damaged, err)
	}
}

// The keyring is opened alone, beside who has the whole directory open, and
// where there is no directory yet.
func TestOpenKeyring(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "new")
	use := func(id string, want int) {
		t.Helper()
		r, done, err := OpenKeyring(ctx, dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Add(ctx, retrieve.Key{ID: id, Name: id, Created: time.Now()}); err != nil {
			t.Error(err)
		}
		if ring, err := r.Ring(ctx); err != nil || len(ring.Keys) != want {
			t.Errorf("%d keys, %v", len(ring.Keys), err)
		}
		if err := done(); err != nil {
			t.Error(err)
		}
	}
	use("first", 1)
	e, err := Open(ctx, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	use("second", 2)
	if ring, err := e.Keyring().Ring(ctx); err != nil || len(ring.Keys) != 2 {
		t.Errorf("%+v, %v", ring, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	use("third", 3)
	// A file that is damaged is repaired, and has no keys then.
	if err := os.WriteFile(filepath.Join(dir, FileName), make([]byte, 8*pageSize), 0o600); err != nil {
		t.Fatal(err)
	}
	use("fourth", 1)
	if _, _, err := OpenKeyring(ctx, "/dev/null", Options{}); err == nil {
		t.Error("a file is a data directory")
	}
}
