//go:build unix

package index

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile returns the content of a file. The memory is read when it is used.
func mapFile(f *os.File, size int) (data []byte, mapped bool, err error) {
	data, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	return data, true, err
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
