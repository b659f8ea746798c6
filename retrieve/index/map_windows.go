package index

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// mapFile reads a file whole: a mapped file could not be replaced or deleted here.
func mapFile(f *os.File, size int) (data []byte, mapped bool, err error) {
	data = make([]byte, size)
	_, err = io.ReadFull(f, data)
	return data, false, err
}

func unmap([]byte, bool) {}

// tryLock locks a file without waiting, and reports whether it is free.
func tryLock(f *os.File) (bool, error) {
	const flags = windows.LOCKFILE_FAIL_IMMEDIATELY | windows.LOCKFILE_EXCLUSIVE_LOCK
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// syncDir has nothing to do: NTFS keeps its own log of renames.
func syncDir(string) error { return nil }
