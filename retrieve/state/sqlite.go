package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"ibid/retrieve/disk"
)

// FileName is the name of the database in its data directory.
const FileName = "ibid.db"

// pageSize is the page size of the database in bytes, SQLite's default.
const pageSize = 4096

// fileWait is the default time to wait for other processes.
const fileWait = time.Minute

func sqliteDialect() *dialect {
	return &dialect{
		name:        "sqlite",
		beginUpdate: "BEGIN IMMEDIATE",
		beginView:   "BEGIN",
		types: strings.NewReplacer("ID", "INTEGER PRIMARY KEY", "SERIAL", "INTEGER PRIMARY KEY AUTOINCREMENT",
			"INT", "INTEGER", "BYTES", "BLOB"),
		commit: func(t *tx) error {
			_, err := t.try("COMMIT")
			if err != nil {
				_ = t.rollback() // a refused commit leaves the transaction open
			}
			return err
		},
		lock:         func(*tx, []string, []string) {},
		lockVectors:  func(*tx, string, []any) {},
		nextNumber:   `SELECT 1 + max(coalesce((SELECT max(number) FROM documents), 0), coalesce((SELECT max(document) FROM changes), 0))`,
		nextRevision: `SELECT coalesce(max(revision), 0) + ? FROM changes`,
		now:          `CAST(1e6 * unixepoch('now', 'subsec') AS INTEGER)`,
	}
}

// pragmas are set on every connection. Synchronous FULL makes a commit durable before it returns;
// secure_delete leaves no deleted words in free pages. The log grows to 16 MB before its pages are
// moved into the file.
var pragmas = []string{"busy_timeout(5000)", "synchronous(FULL)", "secure_delete(ON)", "cell_size_check(ON)", "trusted_schema(OFF)",
	"wal_autocheckpoint(4000)"}

// The sizes of the connections' caches in KiB. Several connections read at a time.
const (
	writeCache = 8000
	readCache  = 2000
)

// A fileMode says how a connection uses the file.
type fileMode int

const (
	writing fileMode = iota
	reading
	// sealed reads a file in a folder that cannot be written: it has no log, and no other process
	// uses it.
	sealed
)

func dataSource(path string, mode fileMode) string {
	q := url.Values{"_dqs": {"0"}, "_error_rc": {"1"}}
	cache := readCache
	if mode == writing {
		cache = writeCache
		// The journal mode is stored in the file. This changes a file in another mode.
		q.Add("_pragma", "journal_mode(WAL)")
	} else {
		q.Set("_query_only", "1")
	}
	if mode == sealed {
		q.Set("mode", "ro")
		q.Set("immutable", "1")
	}
	for _, p := range append([]string{fmt.Sprintf("cache_size(-%d)", cache)}, pragmas...) {
		q.Add("_pragma", p)
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

func openDirectory(ctx context.Context, dir string, opts Options) (*Store, error) {
	if dir == "" {
		return nil, errors.New("it has no name")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s, err := attach(ctx, dir, opts)
	if err != nil {
		return nil, err
	}
	if err = s.finishRepair(); err == nil {
		err = s.start(ctx)
	}
	if errors.Is(err, ErrDamaged) || err == nil && s.isMarked() && !s.readOnly {
		if opts.Repairing != nil && !s.readOnly {
			opts.Repairing()
		}
		err = s.repair(ctx, err)
	}
	if err != nil {
		_ = s.Close() // the error of opening says more
		return nil, err
	}
	s.started = true
	return s, nil
}

// fileStore returns the store of a file, without opening the file.
func fileStore(path string, opts Options) *Store {
	s := &Store{place: path, dialect: sqliteDialect(), wait: opts.Wait, silence: math.MaxInt64, maxPause: 100 * time.Millisecond,
		report: opts.Waiting, limits: allLimits, dir: filepath.Dir(path)}
	s.classify = s.classifySQLite
	s.era.Store(newEra())
	if s.wait <= 0 {
		s.wait = fileWait
	}
	return s
}

// attach locks a data directory as in use, without reading its files.
func attach(ctx context.Context, dir string, opts Options) (*Store, error) {
	if err := refuseNetwork(dir); err != nil {
		return nil, err
	}
	// These locks belong to an open file. Ordinary locks would be released when this process closes
	// any other handle of the file, as a sync of a folder around the data directory does.
	if _, err := sqlite.OFDLocking(true); err != nil &&
		!errors.Is(err, sqlite.ErrOFDLockingUnavailable) && !errors.Is(err, sqlite.ErrOFDLockingTooLate) {
		return nil, err
	}
	s := fileStore(filepath.Join(dir, FileName), opts)
	var err error
	if s.readOnly, err = isReadOnly(dir, s.place); err != nil {
		return nil, err
	}
	return s, s.shareLock(ctx)
}

// isReadOnly reports whether the folder or the database in it cannot be written.
func isReadOnly(dir, file string) (bool, error) {
	err := disk.Probe(dir)
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(file, os.O_RDWR, 0); err == nil {
			return false, f.Close()
		}
	}
	if disk.IsReadOnly(err) {
		return true, nil
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOSPC) {
		return false, nil
	}
	return false, err
}

// start opens the database, and creates it if it does not exist.
func (s *Store) start(ctx context.Context) error {
	if err := s.createDatabase(ctx); err != nil {
		return err
	}
	if err := s.checkFilled(); err != nil {
		return err
	}
	file, err := os.Stat(s.place)
	if err != nil {
		return err
	}
	s.file.Store(&file)
	if err := s.connect(); err != nil {
		return err
	}
	return s.view(ctx, func(t *tx) {
		check(checkLayout(s.layout(t)))
		// With this header SQLite would take pages of tables for its list of pages, and overwrite
		// them.
		if value[int](t, `PRAGMA auto_vacuum`) != 0 {
			check(fmt.Errorf("%w: the header of %s says that auto_vacuum is on", ErrDamaged, s.place))
		}
		t.spaces() // fails if the settings are lost
	})
}

// checkPlace returns an error if the database has been removed or replaced since it was opened: the
// removed file would still be read, and changes to it would be lost.
func (s *Store) checkPlace() error {
	opened := s.file.Load()
	if opened == nil {
		return nil
	}
	info, err := os.Stat(s.place)
	if err == nil && os.SameFile(info, *opened) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &failure{message: s.place + " has been removed or replaced since it was opened: restore it, or restart ibid"}
}

// checkFilled reports a file without a page as damaged. SQLite would treat it as a new database and
// remove its log.
func (s *Store) checkFilled() error {
	if s.dir == "" {
		return nil
	}
	info, err := os.Stat(s.place)
	if err == nil && info.Size() < pageSize {
		err = fmt.Errorf("%w: the file %s is empty", ErrDamaged, s.place)
	}
	return err
}

// createDatabase creates a database if it does not exist. The file gets its name only when it has its
// tables, so that a file without tables is known to be damaged.
func (s *Store) createDatabase(ctx context.Context) (err error) {
	if _, err := os.Lstat(s.place); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.readOnly {
		return fmt.Errorf("there is no library in %s, and the folder cannot be written: %w", s.dir, fs.ErrNotExist)
	}
	fresh, err := s.newFile(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeDatabase(fresh.place)) }()
	if err := fresh.disconnect(); err != nil {
		return err
	}
	if err := publish(fresh.place, s.place); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil // another process created it first
}

// newFile returns the store of a new file in the same folder.
func (s *Store) newFile(ctx context.Context) (*Store, error) {
	f, err := os.CreateTemp(s.dir, FileName+".*.new")
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return s.layOutFile(ctx, f.Name())
}

// layOutFile creates the tables in an empty file, which the caller creates because SQLite would make
// it readable by everyone.
func (s *Store) layOutFile(ctx context.Context, path string) (*Store, error) {
	fresh := fileStore(path, Options{Wait: s.wait})
	err := fresh.connect()
	if err == nil {
		err = fresh.update(ctx, func(t *tx) { t.layOut() })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("laying out a new database: %w", err), fresh.disconnect(), removeDatabase(fresh.place))
	}
	return fresh, nil
}

// connect sets up the pools of connections, which are opened on demand.
func (s *Store) connect() (err error) {
	if s.readOnly {
		if _, err := s.readOnlyMode(); err != nil {
			return err
		}
		s.read = sql.OpenDB(fileConnector{s, reading})
		s.read.SetMaxOpenConns(8)
		// Another process may begin to write, and then the file must be read in another mode.
		s.read.SetMaxIdleConns(0)
		return nil
	}
	s.write = sql.OpenDB(fileConnector{s, writing})
	s.write.SetMaxOpenConns(1)
	// Only a connection that may write can turn on the write-ahead log.
	err = s.retry(context.Background(), s.wait, func() error { return s.explain(s.write.Ping()) })
	if errors.Is(err, syscall.ENOSPC) {
		// There is no space for the shared-memory file. A library that was closed can still be
		// read.
		err = s.write.Close()
		s.write, s.full, s.readOnly = nil, true, true
		return errors.Join(err, s.connect())
	}
	if err != nil {
		return err
	}
	s.read = sql.OpenDB(fileConnector{s, reading})
	s.read.SetMaxOpenConns(8)
	s.read.SetMaxIdleConns(8)
	return nil
}

// readOnlyMode determines how a file that cannot be written can be read.
func (s *Store) readOnlyMode() (fileMode, error) {
	log, err := os.Stat(s.place + "-wal")
	if errors.Is(err, fs.ErrNotExist) || err == nil && log.Size() == 0 {
		return sealed, nil
	}
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat(s.place + "-shm"); errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("it cannot be written, and %s-wal holds changes that must be moved into %s first: "+
			"open it once where it can be written", s.place, FileName)
	}
	return reading, nil
}

// layout returns the version of the library's layout.
func (s *Store) layout(t *tx) (number int) {
	if s.dir == "" {
		return s.serverLayout(t)
	}
	var text string
	err := catch(func() { text = t.readSetting("meta", "CAST(? AS TEXT)", "format") })
	if err == nil {
		number, err = strconv.Atoi(text)
		if err != nil {
			err = errRow
		}
	}
	if isDamage(err) {
		err = fmt.Errorf("%w: the number of the layout cannot be read from %s", ErrDamaged, s.place)
	}
	check(err)
	return number
}

// setLayout stores the version of the layout in the place where all versions of Ibid look for it.
func (s *Store) setLayout(t *tx, number int) {
	if s.dir == "" {
		t.exec(`INSERT INTO ibid.migrations (number) VALUES (?)`, number)
		return
	}
	text := strconv.Itoa(number)
	for _, table := range []string{"meta", "meta_copy"} {
		t.exec(`INSERT OR REPLACE INTO `+table+` (name, value, sum) VALUES (CAST(? AS TEXT), CAST(? AS TEXT), ?)`,
			"format", text, rowSum("format", text))
	}
}

// classifySQLite interprets an error of SQLite.
func (s *Store) classifySQLite(err error) *failure {
	var own *sqlite.Error
	if !errors.As(err, &own) {
		return nil
	}
	damaged := func(what string) *failure {
		return s.requestRepair(&failure{message: fmt.Sprintf("%v: %s", ErrDamaged, what), damaged: true})
	}
	full := &failure{message: "the disk of " + s.place + " is full: free space on it", full: true}
	switch own.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return full
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL: // PROTOCOL if several processes open it for ten seconds
		return &failure{message: s.place + " is locked by another process", busy: true}
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN:
		return &failure{message: s.place + " cannot be opened or written: check that it exists, its permissions and those of its folder"}
	case sqlite3.SQLITE_IOERR:
		if own.Code() == sqlite3.SQLITE_IOERR_SHORT_READ {
			return damaged(s.place + " is truncated")
		}
		// If there is no space for the file ibid.db-shm, the error does not say so.
		if free, err := disk.Free(filepath.Dir(s.place)); err == nil && free < 32<<10 {
			return full
		}
		return &failure{message: "reading or writing " + s.place + " failed: check the disk and the system's log"}
	case sqlite3.SQLITE_NOTADB:
		return damaged(s.place + " is not a database")
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA:
		if _, table, ok := strings.Cut(own.Error(), "no such table: "); ok {
			table, _, _ = strings.Cut(table, " ")
			return damaged(fmt.Sprintf("%s has no table %s", s.place, table))
		}
		return &failure{message: fmt.Sprintf("%v: the tables of %s do not have the expected layout", ErrDamaged, s.place), damaged: true}
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_RANGE:
		return damaged("the pages of " + s.place + " contradict one another")
	}
	return &failure{message: "reading or writing " + s.place + " failed"}
}
