package local

import (
	"path/filepath"
	"testing"
	"time"

	"ibid/retrieve"
)

// held begins a run with a claim, and gives who looks at it from elsewhere.
func held(t *testing.T, dir string) (holder *Engine, worker func() string) {
	t.Helper()
	holder = openTest(t, dir)
	if err := holder.Ledger().Begin(t.Context(), retrieve.Job{ID: "a", Started: time.Now(), Worker: "w", Left: retrieve.MaxClaim}); err != nil {
		t.Fatal(err)
	}
	other := openTest(t, dir).Ledger()
	worker = func() string {
		t.Helper()
		r, err := other.Job(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return r.Worker
	}
	if w := worker(); w != "w" {
		t.Fatalf("the run is held by %q", w)
	}
	return holder, worker
}

func badges(t *testing.T, dir string) int {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "ibid.*"+badgeSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// The claim of a process that has died need not run out, and the file that it
// leaves is swept up by the next one that claims.
func TestClaimOfTheDead(t *testing.T) {
	dir := t.TempDir()
	holder, worker := held(t, dir)
	// The system closes the files of a process that dies.
	if err := holder.badge.file.Close(); err != nil {
		t.Fatal(err)
	}
	if w := worker(); w != "" {
		t.Errorf("the run is held by %q, which is dead", w)
	}
	if n := badges(t, dir); n != 1 {
		t.Fatalf("%d badges", n)
	}
	holder.badge.file, holder.badge.name = nil, ""
	e := openTest(t, dir)
	if err := e.Ledger().Claim(t.Context(), "a", "v", retrieve.MaxClaim); err != nil {
		t.Error(err)
	}
	if w := worker(); w != "v" {
		t.Errorf("the run is held by %q", w)
	}
	if n := badges(t, dir); n != 1 {
		t.Errorf("%d badges", n)
	}
}

// Who closes its store holds nothing any longer, and leaves nothing.
func TestClaimOfTheClosed(t *testing.T) {
	dir := t.TempDir()
	e, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Ledger().Begin(t.Context(), retrieve.Job{ID: "a", Started: time.Now(), Worker: "w", Left: retrieve.MaxClaim}); err != nil {
		t.Fatal(err)
	}
	if n := badges(t, dir); n != 1 {
		t.Errorf("%d badges", n)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if n := badges(t, dir); n != 0 {
		t.Errorf("%d badges", n)
	}
	if r, err := openTest(t, dir).Ledger().Job(t.Context(), "a"); err != nil || r.Worker != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A claim that is damaged, or was made before the clock was set back by long, is none.
func TestClaimDamaged(t *testing.T) {
	e, worker := held(t, t.TempDir())
	for _, damage := range []string{
		`UPDATE claims SET until = until + 1`,
		`UPDATE claims SET worker = 'v'`,
		`UPDATE claims SET stop = 1`,
		`UPDATE claims SET until = 'x'`,
	} {
		if err := e.Ledger().Claim(t.Context(), "a", "w", retrieve.MaxClaim); err != nil {
			t.Fatal(err)
		}
		if w := worker(); w != "w" {
			t.Fatalf("the run is held by %q", w)
		}
		if _, err := e.write.ExecContext(t.Context(), damage); err != nil {
			t.Fatal(err)
		}
		if w := worker(); w != "" {
			t.Errorf("after %s the run is held by %q", damage, w)
		}
	}
	own, err := e.newClaim("w", retrieve.MaxClaim)
	if err != nil {
		t.Fatal(err)
	}
	if left := e.left(own); left <= 0 {
		t.Errorf("it is held for %s", left)
	}
	own.until += int64(time.Hour / time.Microsecond)
	if left := e.left(own); left != 0 {
		t.Errorf("it is held for %s", left)
	}
}
