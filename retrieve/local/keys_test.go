package local

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ibid/retrieve"
)

func TestKeyring(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	e, err := Open(ctx, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := e.Keyring()
	now := time.Unix(1_700_000_000, 0)

	// Before the first key there is nothing, and nothing is laid out.
	if ring, err := r.Ring(ctx); err != nil || ring.Revision != 0 || len(ring.Keys) != 0 {
		t.Errorf("an empty ring: %+v, %v", ring, err)
	}
	if err := r.Revoke(ctx, "k1"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("revoking what is not there: %v", err)
	}
	if err := r.Begin(ctx, retrieve.Session{Key: "k1"}); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a session of no key: %v", err)
	}
	if err := errors.Join(r.Used(ctx, "k1", now), r.End(ctx, [32]byte{})); err != nil {
		t.Error(err)
	}

	keys := []retrieve.Key{
		{ID: "k1", Name: "the page", Digest: sha256.Sum256([]byte("one")), Write: true, Created: now},
		{ID: "k2", Name: "a bot", Digest: sha256.Sum256([]byte("two")), Collections: []string{"law", "ta'x"}, Created: now.Add(time.Second), Expires: now.Add(time.Hour)},
	}
	var seen int64
	grows := func(what string, want bool) {
		t.Helper()
		revision, err := r.Revision(ctx)
		if err != nil || revision > seen != want {
			t.Errorf("%s: revision %d after %d, %v", what, revision, seen, err)
		}
		seen = revision
	}
	for _, k := range keys {
		if err := r.Add(ctx, k); err != nil {
			t.Fatal(err)
		}
		grows("adding", true)
	}
	if err := r.Add(ctx, retrieve.Key{ID: "k3", Name: "a bot"}); !errors.Is(err, retrieve.ErrKeyName) {
		t.Errorf("a second key of a name: %v", err)
	}
	grows("a refused key", false)
	if err := r.Used(ctx, "k2", now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	keys[1].Used = now.Add(time.Minute)
	grows("use", false)
	session := retrieve.Session{Digest: sha256.Sum256([]byte("s")), Key: "k1", Started: now}
	if err := errors.Join(r.Begin(ctx, session), r.Begin(ctx, session)); err != nil {
		t.Fatal(err)
	}
	grows("a session", true)

	// Another process sees the same.
	other, err := Open(ctx, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ring, err := other.Keyring().Ring(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := retrieve.Ring{Revision: seen, Keys: keys, Sessions: []retrieve.Session{session}}
	if diff := cmp.Diff(want, ring); diff != "" {
		t.Errorf("the ring (-want +got):\n%s", diff)
	}
	if err := other.Keyring().Revoke(ctx, "k1"); err != nil {
		t.Fatal(err)
	}
	grows("revoking elsewhere", true)
	if ring, err = r.Ring(ctx); err != nil || len(ring.Keys) != 1 || len(ring.Sessions) != 0 {
		t.Errorf("after revoking: %+v, %v", ring, err)
	}
	if err := r.Begin(ctx, session); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a session of a revoked key: %v", err)
	}
}

// Sessions are bounded by number and age.
func TestSessionsBounded(t *testing.T) {
	ctx := t.Context()
	e, err := Open(ctx, t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := e.Keyring()
	now := time.Unix(1_700_000_000, 0)
	for _, id := range []string{"k1", "k2"} {
		if err := r.Add(ctx, retrieve.Key{ID: id, Name: id, Created: now}); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(key string, n int, at time.Time) {
		t.Helper()
		if err := r.Begin(ctx, retrieve.Session{Digest: sha256.Sum256(fmt.Append(nil, key, n)), Key: key, Started: at}); err != nil {
			t.Fatal(err)
		}
	}
	begin("k2", 0, now)
	for n := range retrieve.MaxSessions + 5 {
		begin("k1", n, now.Add(time.Duration(n)*time.Second))
	}
	count := func() map[string]int {
		t.Helper()
		ring, err := r.Ring(ctx)
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]int{}
		for _, s := range ring.Sessions {
			n[s.Key]++
		}
		return n
	}
	if n := count(); n["k1"] != retrieve.MaxSessions || n["k2"] != 1 {
		t.Errorf("sessions are kept: %v", n)
	}
	begin("k2", 1, now.Add(retrieve.MaxSessionAge+time.Hour))
	if n := count(); n["k1"] != 0 || n["k2"] != 1 {
		t.Errorf("after a month are kept: %v", n)
	}
	if err := r.End(ctx, sha256.Sum256([]byte("k21"))); err != nil {
		t.Fatal(err)
	}
	if n := count(); len(n) != 0 {
		t.Errorf("after its end are kept: %v", n)
	}
}

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
