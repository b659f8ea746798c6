package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

// backupPages is how many pages are copied between two looks at the context.
const backupPages = 1024

// Backup copies the database of a data directory, as it is at one moment, into
// a new file, checks the copy as [Verify] does and says what it found; a copy
// with damage is kept. Other processes may go on reading and writing. The file
// is whole and durable when Backup returns, and appears under its name only
// then. A file of that name is not overwritten: that is [os.ErrExist]; another
// name that will not do is [ErrTarget]. A database that SQLite cannot read is
// [ErrDamaged]. A copy is used by giving it the name [FileName] in a folder of its
// own.
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
	if err := e.refuseTarget(file); err != nil {
		return r, err
	}
	err = e.filled()
	if err == nil {
		err = e.view(ctx, func(tx *sql.Tx) error { return checkFormat(ctx, tx) })
	}
	if err != nil && !isDamage(err) || errors.Is(err, errEmptied) {
		return r, e.beyondCopying(err)
	}
	// SQLite makes its files for everyone to read, so it gets one that is there.
	partial, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*.partial")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, removeDatabase(partial.Name())) }()
	if err := partial.Close(); err != nil {
		return r, err
	}
	if err := e.copyPages(ctx, partial.Name()); isDamage(err) {
		return r, e.beyondCopying(err)
	} else if err != nil {
		return r, e.noRoom(err, file)
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
	if err := errors.Join(err, copied.write.Close()); err != nil {
		return r, e.noRoom(err, file)
	}
	return r, publish(partial.Name(), file)
}

// ErrTarget says that a backup cannot be made where it was to be.
var ErrTarget = errors.New("a backup cannot be made there")

// refuseTarget refuses what is no place for a backup.
func (e *Engine) refuseTarget(file string) error {
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return err
	}
	if info, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no folder %s: make it first", ErrTarget, filepath.Dir(file))
	} else if err == nil && !info.IsDir() {
		return fmt.Errorf("%w: %s is a file, not a folder", ErrTarget, filepath.Dir(file))
	}
	info, err := os.Stat(file) // what a link leads to counts
	if own, e := os.Stat(e.path); err == nil && e == nil && os.SameFile(info, own) {
		return fmt.Errorf("%w: that is the library itself: give another name", ErrTarget)
	}
	if mine, err := os.Stat(filepath.Dir(e.path)); err == nil && strings.HasPrefix(filepath.Base(file), FileName) {
		if theirs, err := os.Stat(folder); err == nil && os.SameFile(mine, theirs) {
			return fmt.Errorf("%w: names that begin with %s belong to the library there: give another", ErrTarget, FileName)
		}
	}
	if err == nil && info.IsDir() {
		return fmt.Errorf("%w: it is a folder: give the name of a file in it", ErrTarget)
	}
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%w: remove it first, or give another name", fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// beyondCopying says what to do with a database that SQLite cannot read.
func (e *Engine) beyondCopying(err error) error {
	if !isDamage(err) {
		return err
	}
	dir := filepath.Dir(e.path)
	return fmt.Errorf("%w: %s: run 'ibid verify --data %s' to see what is lost; 'ibid ingest' of its folders sets the damaged file aside and saves what is whole, and then it can be backed up", ErrDamaged, wrong(err), dir)
}

// noRoom adds to the error of a copy how much room it needs.
func (e *Engine) noRoom(err error, file string) error {
	n, unknown := e.size()
	if unknown != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("writing the copy failed; it needs %.1f MB of free space in %s: %w", math.Ceil(float64(n)/1e5)/10, filepath.Dir(file), err)
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
