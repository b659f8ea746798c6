package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
)

// backupPages is how many pages are copied between two looks at the context.
const backupPages = 1024

// Backup copies the database of a data directory, as it is at one moment, into
// a new file, checks the copy as [Verify] does and says what it found; a copy
// with damage is kept. Other processes may go on reading and writing. The file
// is whole and durable when Backup returns, and appears under its name only
// then. A file of that name is not overwritten: that is [os.ErrExist]. A copy
// is used by giving it the name [FileName] in a folder of its own.
func Backup(ctx context.Context, dir, file string, opts Options, progress func(done, total int)) (r Report, err error) {
	e, err := attach(ctx, dir, opts)
	if err != nil {
		return r, fmt.Errorf("back up the data directory %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, e.disconnect(), e.lock.Close()) }()
	if r, err = e.backup(ctx, file, progress); err != nil {
		return r, fmt.Errorf("back up the data directory %s to %s: %w", dir, file, err)
	}
	return r, nil
}

func (e *Engine) backup(ctx context.Context, file string, progress func(done, total int)) (r Report, err error) {
	if _, err := os.Lstat(file); err == nil {
		return r, fmt.Errorf("%w: remove it first, or give another name", fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if err := e.view(ctx, func(tx *sql.Tx) error { return checkFormat(ctx, tx) }); err != nil && !isDamage(err) {
		return r, err
	}
	// SQLite makes its files for everyone to read, so it gets one that is there.
	partial, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*.partial")
	if err != nil {
		return r, err
	}
	defer func() {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			if gone := os.Remove(partial.Name() + suffix); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}()
	if err := partial.Close(); err != nil {
		return r, err
	}
	if err := e.copyPages(ctx, partial.Name()); err != nil {
		return r, err
	}
	copied := &Engine{path: partial.Name(), wait: e.wait}
	if err := copied.connect(); err != nil {
		return r, err
	}
	r, err = copied.verify(ctx, progress)
	if err = errors.Join(err, copied.read.Close()); err == nil {
		// Without a log beside it the copy is one file.
		_, err = copied.write.ExecContext(ctx, `PRAGMA journal_mode(DELETE)`)
		if isDamage(err) {
			err = nil // it was told by verify
		}
	}
	if err := errors.Join(err, copied.write.Close(), syncFile(partial.Name())); err != nil {
		return r, err
	}
	// A link, unlike a renaming, never overwrites.
	if err := os.Link(partial.Name(), file); errors.Is(err, fs.ErrExist) {
		return r, err
	} else if err != nil {
		if err := os.Rename(partial.Name(), file); err != nil {
			return r, err
		}
	}
	return r, syncDir(filepath.Dir(file))
}

// copyPages copies every page of the database, log included, in one read
// transaction.
func (e *Engine) copyPages(ctx context.Context, to string) (err error) {
	conn, err := e.read.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if undo := tx.Rollback(); !errors.Is(undo, sql.ErrTxDone) {
			err = errors.Join(err, undo)
		}
	}()
	// The transaction sees one state from its first reading on.
	if _, err := revision(ctx, tx); err != nil && !isDamage(err) {
		return err
	}
	return conn.Raw(func(driver any) error {
		source, ok := driver.(interface {
			NewBackup(string) (*sqlite.Backup, error)
		})
		if !ok {
			return errors.New("the database driver cannot copy a database")
		}
		b, err := source.NewBackup(to)
		if err != nil {
			return err
		}
		for more := true; more && err == nil; {
			if err = ctx.Err(); err == nil {
				more, err = b.Step(backupPages)
			}
		}
		return errors.Join(err, b.Finish())
	})
}

// syncFile makes a file's content durable.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
