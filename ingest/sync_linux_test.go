package ingest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestSyncOfRealFolder syncs a folder on a real disk with links that leave the folder, and
// a pipe that blocks.
func TestSyncOfRealFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write := func(p, text string) {
		t.Helper()
		must(t, os.WriteFile(p, []byte(text), 0o600))
	}
	write(filepath.Join(dir, "a.md"), "# A\n\nText.")
	write(filepath.Join(outside, "secret.md"), "secret")
	for link, to := range map[string]string{"out.md": filepath.Join(outside, "secret.md"), "folder": outside, "loop": ".",
		"gone.md": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skipf("symbolic links are not supported: %v", err)
		}
	}
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o600))
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	sink := newMemory()
	got, err := syncAll(t, &Syncer{Sink: sink}, root.FS())
	must(t, err)
	for i, l := range got {
		got[i], _, _ = strings.Cut(l, ":")
	}
	wantLines(t, got, "added a.md", "skipped folder", "skipped gone.md", "skipped loop", "skipped out.md", "skipped pipe.md")
	if len(sink.docs) != 1 {
		t.Errorf("stored = %v, want one document", slices.Sorted(maps.Keys(sink.docs)))
	}
}
