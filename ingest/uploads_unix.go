//go:build unix

package ingest

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks an open file for this process until it is closed, and reports
// whether no other process has it. A file system without locks counts as unlocked.
func lockFile(f *os.File) (ok bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	case errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOLCK):
		return true, nil
	}
	return err == nil, err
}

// syncFolder makes the names in a folder durable.
func syncFolder(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
