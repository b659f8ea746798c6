//go:build unix

package index

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile returns the content of a file, which must have the given size. The
// memory is read from the file when it is used.
func mapFile(path string, size int64) (data []byte, mapped bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := checkSize(f, size); err != nil {
		return nil, false, err
	}
	data, err = unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	return data, true, os.NewSyscallError("mmap", err)
}

func unmap(data []byte, mapped bool) {
	if mapped {
		_ = unix.Munmap(data) // it fails only for memory that is not mapped
	}
}

// tryLock locks a file without waiting, and reports whether it is free.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// syncDir makes renames in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
