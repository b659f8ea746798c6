package state

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk opens a library on a disk without any room, even for the file that
// readers share.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("mounting a disk needs root: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(disk, unix.MNT_DETACH)) })
	dir := filepath.Join(disk, "library")
	s, err := Open(t.Context(), dir, Options{})
	must(t, err)
	must(t, s.Close())
	fill := filepath.Join(disk, "fill")
	if err := os.WriteFile(fill, bytes.Repeat([]byte("x"), 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if s, err := Open(t.Context(), dir, Options{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, %v", s, err)
	}
	must(t, os.Remove(fill))
	openTest(t, dir)
}
