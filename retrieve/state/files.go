package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ibid/retrieve/disk"
)

// lockName is the name of the file that is locked while a data directory is open.
const lockName = "ibid.lock"

// shareLock locks a data directory as in use, which all processes may do that
// use it, except while one repairs the database. A folder that cannot be written
// need not have the file; then the result is nil.
func shareLock(ctx context.Context, path string, readOnly bool, wait time.Duration) (*os.File, error) {
	flags := os.O_RDWR | os.O_CREATE
	if readOnly {
		flags = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if readOnly && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for start := time.Now(); ; {
		err := disk.Lock(f, false)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, disk.ErrLocked) || time.Since(start) > wait {
			return nil, errors.Join(fmt.Errorf("%s: it is repaired or brought up to date: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// publish gives a whole and closed file its name, and never overwrites: an
// existing one is [fs.ErrExist].
func publish(partial, name string) error {
	if err := syncFile(partial); err != nil {
		return err
	}
	// A link, unlike a renaming, never overwrites; some file systems have none.
	if err := os.Link(partial, name); errors.Is(err, fs.ErrExist) {
		return err
	} else if err != nil {
		if _, there := os.Lstat(name); there == nil {
			return fs.ErrExist
		}
		if err := os.Rename(partial, name); err != nil {
			return err
		}
	}
	return disk.SyncDir(filepath.Dir(name))
}

// removeDatabase removes a file and those that SQLite keeps with it, if they
// exist.
func removeDatabase(path string) error {
	return removeFiles(path, path+"-wal", path+"-shm", path+"-journal")
}

// removeFiles removes files, if they exist.
func removeFiles(paths ...string) (err error) {
	for _, path := range paths {
		if gone := os.Remove(path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// syncFile makes a file's content durable.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// removeUnfinished removes what interrupted repairs and migrations left in a data
// directory that no other process uses.
func (s *Store) removeUnfinished() error {
	names, err := fs.Glob(os.DirFS(s.dir), FileName+".*.new*")
	for _, name := range names {
		err = errors.Join(err, removeFiles(filepath.Join(s.dir, name)))
	}
	return err
}
