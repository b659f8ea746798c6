package index

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReadOnly uses an index in a directory that it must not write: existing
// documents are found, and new ones remain in memory.
func TestReadOnly(t *testing.T) {
	dir, h, revision := made(t)
	before := files(t, dir)
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	for name := range before {
		if err := os.Chmod(filepath.Join(dir, name), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 { // root may write everywhere; this thread becomes another user
		runtime.LockOSThread() // and ends with the test
		const nobody = 65534
		if _, err := unix.SetfsuidRetUid(nobody); err != nil {
			t.Fatal(err)
		}
		defer unix.SetfsuidRetUid(0)
	}
	for _, remove := range []bool{false, true} {
		x := open(t, dir, 50)
		at, _, err := x.Revision(t.Context())
		if err != nil || at != revision {
			t.Fatalf("revision %d, want %d: %v", at, revision, err)
		}
		if remove {
			if err := x.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			at = 0
		}
		for range 5 {
			changes := h.after(at, 150)
			if err := x.Apply(t.Context(), changes); err != nil {
				t.Fatal(err)
			}
			at = changes[len(changes)-1].Revision
			if err := h.maker.Check(t.Context(), h.until(t, at), x, 3); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.err(); err != nil {
			t.Error(err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	unix.SetfsuidRetUid(0)
	if after := files(t, dir); len(after) != len(before) {
		t.Errorf("%d files, before %d", len(after), len(before))
	}
}
