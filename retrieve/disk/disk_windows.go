package disk

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

const errReadOnly = windows.ERROR_WRITE_PROTECT

// Lock acquires the lock of a file, or changes a lock that is held, without waiting.
func Lock(f *os.File, exclusive bool) error {
	var flags uint32 = windows.LOCKFILE_FAIL_IMMEDIATELY
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	h, at := windows.Handle(f.Fd()), new(windows.Overlapped)
	// Windows does not change a lock, so it is released first; the first call has no lock to
	// release.
	if err := windows.UnlockFileEx(h, 0, 1, 0, at); err != nil && !errors.Is(err, windows.ERROR_NOT_LOCKED) {
		return err
	}
	err := windows.LockFileEx(h, flags, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// Map reads a file into memory: on Windows a mapped file could not be replaced or deleted.
func Map(f *os.File, size int) (data []byte, release func() error, err error) {
	data = make([]byte, size)
	_, err = io.ReadFull(f, data)
	return data, func() error { return nil }, err
}

// SyncDir does nothing: NTFS logs renames itself.
func SyncDir(string) error { return nil }

// Free returns the number of bytes that this user may still write to the disk of a directory.
func Free(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(free), err
}
