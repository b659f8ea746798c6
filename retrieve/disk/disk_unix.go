//go:build unix

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const errReadOnly = unix.EROFS

// Lock acquires the lock of a file, or changes a lock that is held, without waiting.
func Lock(f *os.File, exclusive bool) error {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// Map maps a file into memory and returns its content and a function that unmaps it.
func Map(f *os.File, size int) (data []byte, release func() error, err error) {
	data, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	return data, func() error { return unix.Munmap(data) }, err
}

// SyncDir makes renames in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Free returns the number of bytes that this user may still write to the disk of a directory.
func Free(dir string) (int64, error) {
	var fs unix.Statfs_t
	err := unix.Statfs(dir, &fs)
	return int64(fs.Bavail) * int64(fs.Bsize), err
}
