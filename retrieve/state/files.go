package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ibid/retrieve/disk"
)

// lockName is the name of the file that is locked while a data directory is open.
const lockName = "ibid.lock"

// shareLock locks the data directory as in use, which all processes may do that use
// it, except while one repairs the database. A folder that cannot be written need
// not have the file.
func (s *Store) shareLock(ctx context.Context) error {
	path, flags := filepath.Join(s.dir, lockName), os.O_RDWR|os.O_CREATE
	if s.readOnly {
		flags = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flags, 0o600)
	switch refused := errors.Is(err, fs.ErrPermission); {
	case s.readOnly && (refused || errors.Is(err, fs.ErrNotExist)):
		return nil
	case refused:
		return fmt.Errorf("%s cannot be opened: check its permissions and those of its folder: %w", path, fs.ErrPermission)
	case err != nil:
		return err
	}
	err = s.retry(ctx, s.wait, func() error {
		err := disk.Lock(f, false)
		if errors.Is(err, disk.ErrLocked) {
			return &failure{what: path + ": another process repairs the library", busy: true, err: err}
		}
		return err
	})
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.lock = f
	return nil
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

// removeUnfinished removes what interrupted repairs left in a data
// directory that no other process uses.
func (s *Store) removeUnfinished() error {
	names, err := fs.Glob(os.DirFS(s.dir), FileName+".*.new*")
	for _, name := range names {
		err = errors.Join(err, removeFiles(filepath.Join(s.dir, name)))
	}
	return err
}
