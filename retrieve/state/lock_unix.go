//go:build unix

package state

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile acquires the lock, or changes one that is held, without waiting.
func lockFile(f *os.File, exclusive bool) error {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

// syncDir makes renames in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// isReadOnlyDisk reports whether an error means that a disk cannot be written.
func isReadOnlyDisk(err error) bool { return errors.Is(err, unix.EROFS) }

// freeBytes returns how much space this user has on the disk of a directory.
func freeBytes(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail) * int64(fs.Bsize), nil
}
