// Package local is the embedded [retrieve.Engine]: one SQLite file in a data
// directory is the durable truth, and searches run over a copy of its vectors
// and terms in memory.
//
// Any number of processes may read and write one data directory on a local
// disk at once. Each brings its memory up to date at its next search.
package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"ibid/retrieve"
)

// FileName is the name of the database in its data directory.
const FileName = "ibid.db"

// Options tune an [Engine]. The zero value is what Ibid uses.
type Options struct {
	// Wait is how long to wait for other processes that hold the database;
	// 0 means a minute.
	Wait time.Duration
	// Renewing, where it is set, is told that the terms of so many documents
	// were made by another version's analysis, before they are made anew.
	Renewing func(documents int)
	// Limits are how much the ledger keeps.
	Limits retrieve.Limits
}

// An Engine is an open data directory. It is safe for concurrent use.
type Engine struct {
	path  string
	wait  time.Duration
	lock  *os.File // held shared while the directory is open
	write *sql.DB  // one connection, immediate transactions
	read  *sql.DB

	// pulse is what the memory was up to date with at last.
	pulse pulse
	known atomic.Pointer[beat]

	refreshing sync.Mutex // held while memory is brought up to date
	mu         sync.RWMutex
	memory     *memory
	damaged    map[int64]Damage // by the document's key

	limits    retrieve.Limits
	ledgering together
	closing   sync.Once
	badge     badge
}

// Open opens a data directory, and makes it when there is none. Damaged
// documents do not stop it: see [Engine.Damaged].
func Open(ctx context.Context, dir string, opts Options) (*Engine, error) {
	e, err := open(ctx, dir, opts)
	if err != nil {
		return nil, fmt.Errorf("open the data directory %s: %w", dir, err)
	}
	return e, nil
}

func open(ctx context.Context, dir string, opts Options) (*Engine, error) {
	if opts.Wait <= 0 {
		opts.Wait = time.Minute
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := refuseNetwork(dir); err != nil {
		return nil, err
	}
	if err := lockSafely(); err != nil {
		return nil, err
	}
	e := &Engine{path: filepath.Join(dir, FileName), pulse: pulse{path: filepath.Join(dir, FileName+"-shm")}, wait: opts.Wait, limits: opts.Limits, damaged: make(map[int64]Damage)}
	if e.lock, err = shareLock(ctx, filepath.Join(dir, lockName), e.wait); err != nil {
		return nil, err
	}
	if err := e.found(ctx); err != nil {
		e.abandon()
		return nil, err
	}
	if err = e.filled(); err == nil {
		err = e.start(ctx)
	}
	if err == nil && !e.marked() {
		err = e.renew(ctx, opts.Renewing)
	}
	if isDamage(err) || e.marked() {
		err = e.repair(ctx, err)
	}
	if err != nil {
		e.abandon()
		return nil, err
	}
	return e, nil
}

// found makes a database where there is none. It appears under its name when it
// is laid out, so that a file without tables has lost them.
func (e *Engine) found(ctx context.Context) (err error) {
	if _, err := os.Lstat(e.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// SQLite makes its files for everyone to read, and its log with the rights of the file.
	f, err := os.CreateTemp(filepath.Dir(e.path), FileName+".*.new")
	if err != nil {
		return err
	}
	fresh := &Engine{path: f.Name(), wait: e.wait}
	defer func() { err = errors.Join(err, removeDatabase(fresh.path)) }()
	err = errors.Join(f.Close(), fresh.connect())
	if err == nil {
		err = fresh.transact(ctx, fresh.write, func(tx *sql.Tx) error { return create(ctx, tx) }, (*sql.Tx).Commit)
	}
	if err = errors.Join(err, fresh.disconnect()); err != nil {
		return fmt.Errorf("lay out a new database: %w", err)
	}
	if err := publish(fresh.path, e.path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil // another process was first
}

// publish gives a whole and closed file its name, and never overwrites: where
// there is one already that is [fs.ErrExist].
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
	return syncDir(filepath.Dir(name))
}

// removeDatabase removes a file and what SQLite puts beside it, as far as they
// are there.
func removeDatabase(path string) (err error) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if gone := os.Remove(path + suffix); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// filled says whether there is anything in the database's file. To SQLite one
// without a page is a new database, and it removes the log beside it.
func (e *Engine) filled() error {
	info, err := os.Stat(e.path)
	if err == nil && info.Size() < pageSize {
		err = errEmptied
	}
	return err
}

// lockSafely chooses locks that belong to an open file. Any other reader of the
// file in this process, such as a sync of a folder around the data directory,
// would drop classic POSIX locks.
func lockSafely() error {
	_, err := sqlite.OFDLocking(true)
	if errors.Is(err, sqlite.ErrOFDLockingUnavailable) || errors.Is(err, sqlite.ErrOFDLockingTooLate) {
		return nil
	}
	return err
}

// start opens the database and fills the memory.
func (e *Engine) start(ctx context.Context) error {
	if err := e.connect(); err != nil {
		return err
	}
	// A connection that may write sees to it that the file has a write-ahead log.
	// Beyond that nothing is written, so that a start need not wait for a writer.
	if err := e.retry(ctx, func() error { return e.write.PingContext(ctx) }); err != nil {
		return err
	}
	if err := e.view(ctx, func(tx *sql.Tx) error { return checkFormat(ctx, tx) }); err != nil {
		return err
	}
	return e.reload(ctx)
}

// connect sets up the connections; they are made when they are needed.
func (e *Engine) connect() (err error) {
	if e.write, err = sql.Open("sqlite", dsn(e.path, false)); err != nil {
		return err
	}
	e.write.SetMaxOpenConns(1)
	if e.read, err = sql.Open("sqlite", dsn(e.path, true)); err != nil {
		return err
	}
	e.read.SetMaxOpenConns(8)
	e.read.SetMaxIdleConns(8)
	return nil
}

// disconnect closes the connections.
func (e *Engine) disconnect() (err error) {
	for _, db := range []*sql.DB{e.read, e.write} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	e.read, e.write = nil, nil
	return errors.Join(err, e.pulse.close())
}

// Close closes the engine. The last process to close a data directory leaves
// everything in its one file.
func (e *Engine) Close() (err error) {
	e.closing.Do(func() {
		if _, err = e.write.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`); isBusy(err) {
			err = nil // another process goes on with it
		}
		err = errors.Join(err, e.badge.leave(e.badgePath), e.read.Close(), e.write.Close(), e.pulse.close(), e.lock.Close())
	})
	return err
}

// abandon closes what a failed start has opened; its error is the one to tell.
func (e *Engine) abandon() {
	_ = e.disconnect()
	_ = e.lock.Close()
}

// update runs f in one durable transaction, alone among all processes. It may
// run f several times.
func (e *Engine) update(ctx context.Context, f func(*sql.Tx) error) error {
	return e.noticed(e.transact(ctx, e.write, f, (*sql.Tx).Commit))
}

// noticed has the next start repair what an error says is broken.
func (e *Engine) noticed(err error) error {
	if isDamage(err) && !errors.Is(err, errRow) {
		return errors.Join(fmt.Errorf("%w: close ibid and start it again to have %s repaired: %w", ErrDamaged, e.path, err), e.mark())
	}
	return err
}

// view runs f in a transaction that sees one state of the database. It may run
// f several times.
func (e *Engine) view(ctx context.Context, f func(*sql.Tx) error) error {
	// There is nothing to commit, and a commit fails where a page that was read
	// is damaged.
	return e.transact(ctx, e.read, f, (*sql.Tx).Rollback)
}

func (e *Engine) transact(ctx context.Context, db *sql.DB, f, end func(*sql.Tx) error) error {
	return e.retry(ctx, func() error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := f(tx); err != nil {
			if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) {
				return errors.Join(err, undo)
			}
			return err
		}
		return end(tx)
	})
}

// retry calls f again while other processes keep it from the database.
func (e *Engine) retry(ctx context.Context, f func() error) error {
	start := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := f()
		if !isBusy(err) {
			return err
		}
		if time.Since(start) > e.wait {
			return fmt.Errorf("%s has been locked by another process for %s: %w", e.path, e.wait, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// isBusy says whether another connection was in the way.
func isBusy(err error) bool {
	primary := code(err) & 0xff
	return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED
}

// isDamage says whether an error means that the file no longer holds what was
// stored: SQLite cannot make sense of it, or sums or tables do not fit. What
// the disk, rights or other processes are to blame for is no damage.
func isDamage(err error) bool {
	if errors.Is(err, errRow) || errors.Is(err, ErrDamaged) {
		return true
	}
	switch code(err) & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH,
		sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_RANGE:
		return true
	case sqlite3.SQLITE_IOERR:
		return code(err) == sqlite3.SQLITE_IOERR_SHORT_READ
	}
	return false
}

// scanned tells a value that is not of its column's type as damage of the row.
func scanned(err error) error {
	var own *sqlite.Error
	switch {
	case err == nil, errors.As(err, &own), errors.Is(err, sql.ErrNoRows), errors.Is(err, sql.ErrTxDone),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return fmt.Errorf("%w: %w", errRow, err)
}

func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return sqlite3.SQLITE_OK
}
