package index

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReadOnly uses an index in a directory that cannot be written: existing documents are found,
// and new ones remain in memory.
func TestReadOnly(t *testing.T) {
	dir, h, revision := made(t)
	before := files(t, dir)
	must(t, os.Chmod(dir, 0o555))
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	for name := range before {
		must(t, os.Chmod(filepath.Join(dir, name), 0o444))
	}
	if os.Geteuid() == 0 { // root may write everywhere, so this thread becomes another user
		runtime.LockOSThread() // the thread ends with the test
		const nobody = 65534
		_, err := unix.SetfsuidRetUid(nobody)
		must(t, err)
		defer unix.SetfsuidRetUid(0)
	}
	for _, remove := range []bool{false, true} {
		x := open(t, dir, 50)
		at, _, err := x.Revision(t.Context())
		if err != nil || at != revision {
			t.Fatalf("revision %d, want %d: %v", at, revision, err)
		}
		if remove {
			must(t, x.Reset(t.Context()))
			at = 0
		}
		for range 5 {
			changes := h.after(at, 150)
			must(t, x.Apply(t.Context(), changes))
			at = changes[len(changes)-1].Revision
			must(t, h.maker.Check(t.Context(), h.until(t, at), x, 3))
		}
		must(t, x.err())
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	unix.SetfsuidRetUid(0)
	if after := files(t, dir); len(after) != len(before) {
		t.Errorf("%d files, want %d as before", len(after), len(before))
	}
}
