package state

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ibid/ingest"
	"ibid/retrieve"
)

// TestFullDisk opens a library on a disk without space even for the file that readers share. It
// must be readable, and writable after it is opened again.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("mounting a disk needs root: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(disk, unix.MNT_DETACH)) })
	dir := filepath.Join(disk, "library")
	s, err := Open(t.Context(), dir, Options{})
	must(t, err)
	must(t, s.CheckRoom())
	root, err := s.AddRoot(t.Context(), "/notes", "")
	must(t, errors.Join(err, s.Close()))
	fill := filepath.Join(disk, "fill")
	if err := os.WriteFile(fill, bytes.Repeat([]byte("x"), 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	s, err = Open(t.Context(), dir, Options{})
	must(t, err)
	if err := s.CheckRoom(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("its disk: %v", err)
	}
	if roots, err := s.Roots(t.Context()); err != nil || !slices.Equal(roots, []ingest.Root{root}) {
		t.Errorf("read %v, %v", roots, err)
	}
	if _, err := s.AddRoot(t.Context(), "/more", ""); !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, retrieve.ErrReadOnly) {
		t.Errorf("written: %v", err)
	}
	if r, err := Verify(t.Context(), dir, Options{}, nil); err != nil || len(r.Damaged) > 0 {
		t.Errorf("verified: %+v, %v", r, err)
	}
	must(t, s.Close())
	must(t, os.Remove(fill))
	_, err = openTest(t, dir).AddRoot(t.Context(), "/more", "")
	must(t, err)
}
