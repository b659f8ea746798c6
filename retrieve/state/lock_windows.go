package state

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile acquires the lock, or changes one that is held, without waiting.
func lockFile(f *os.File, exclusive bool) error {
	var flags uint32 = windows.LOCKFILE_FAIL_IMMEDIATELY
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	h, at := windows.Handle(f.Fd()), new(windows.Overlapped)
	// Windows does not change a lock; the first call finds none to give up.
	if err := windows.UnlockFileEx(h, 0, 1, 0, at); err != nil && !errors.Is(err, windows.ERROR_NOT_LOCKED) {
		return err
	}
	err := windows.LockFileEx(h, flags, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}

// syncDir does nothing: NTFS keeps its own log of renames.
func syncDir(string) error { return nil }

// isReadOnlyDisk reports whether an error means that a disk cannot be written.
func isReadOnlyDisk(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }

// freeBytes returns how much space this user has on the disk of a directory.
func freeBytes(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(free), err
}
