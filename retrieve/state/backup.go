package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// backupPages is the number of pages that are copied between two checks of the context.
const backupPages = 1024

// ErrTarget reports that a backup or a copy cannot be made at the given place.
var ErrTarget = errors.New("a copy cannot be made there")

// Backup copies a snapshot of a library into a new database file, checks the copy as [Verify] does
// and reports the result; a damaged copy is kept. Other processes may read and write meanwhile. The
// file gets its name only when it is complete and durable. Backup never overwrites: if the name
// exists, the error is [os.ErrExist]. If the name cannot be used for another reason, the error is
// [ErrTarget], and if SQLite cannot read the database, it is [ErrDamaged]. To use a copy, name it
// [FileName] in a folder of its own.
func Backup(ctx context.Context, address, file string, opts Options, progress func(done, total int)) (r Report, err error) {
	err = inspect(ctx, address, opts, "writing "+file+", the backup of", func(s *Store) error {
		r, err = s.backup(ctx, file, progress)
		return err
	})
	return r, err
}

func (s *Store) backup(ctx context.Context, file string, progress func(done, total int)) (r Report, err error) {
	if err := s.refuseTarget(file); err != nil {
		return r, err
	}
	if s.dir != "" && s.read == nil {
		if err := errors.Join(s.checkFilled(), s.connect()); err != nil {
			return r, s.copyError(err)
		}
	}
	// SQLite would create a file that everyone may read.
	partial, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*.partial")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, removeDatabase(partial.Name())) }()
	if err := partial.Close(); err != nil {
		return r, err
	}
	copyAll := s.copyPages
	if s.dir == "" {
		copyAll = s.copyRows
	}
	if err := copyAll(ctx, partial.Name()); isDamage(err) {
		return r, s.copyError(err)
	} else if err != nil {
		return r, s.roomError(err, file)
	}
	copied := fileStore(partial.Name(), Options{Wait: s.wait})
	r, err = copied.verify(ctx, progress)
	if err == nil && copied.read != nil {
		err = copied.dropLog()
	}
	if err := errors.Join(err, copied.disconnect()); err != nil {
		return r, s.roomError(copied.explain(err), file)
	}
	return r, publish(partial.Name(), file)
}

// dropLog merges the log of the copy into its file.
func (s *Store) dropLog() error {
	if err := s.read.Close(); err != nil {
		return err
	}
	if _, err := s.write.Exec(`PRAGMA journal_mode(DELETE)`); err != nil && !isDamage(s.explain(err)) { // verify has reported damage
		return err
	}
	return nil
}

// refuseTarget refuses a name that a backup cannot have.
func (s *Store) refuseTarget(file string) error {
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return err
	}
	theirs, err := os.Stat(folder)
	if err != nil || !theirs.IsDir() {
		return fmt.Errorf("%w: there is no folder %s: create it first", ErrTarget, filepath.Dir(file))
	}
	if mine, err := os.Stat(s.dir); err == nil && strings.HasPrefix(filepath.Base(file), FileName) && os.SameFile(mine, theirs) {
		return fmt.Errorf("%w: %s belongs to the library to be copied: give another name", ErrTarget, file)
	}
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%w: give another name", fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// copyError adds advice on recovery to the error of a database that SQLite cannot read.
func (s *Store) copyError(err error) error {
	if !isDamage(err) {
		return err
	}
	return fmt.Errorf("%w: run 'ibid verify --data %s' to see what is lost; 'ibid ingest' of its folders "+
		"sets the damaged file aside and saves its undamaged rows; then run the backup again", err, s.dir)
}

// roomError adds the space that a copy needs to its error.
func (s *Store) roomError(err error, file string) error {
	n, unknown := s.size(context.Background())
	if unknown != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	megabytes := math.Ceil(float64(n)/1e5) / 10
	if s.dir != "" && errors.Is(err, syscall.ENOSPC) { // SQLite does not say which file's disk is full
		what := fmt.Sprintf("the disk of %s is full: the copy needs %.1f MB of free space there", filepath.Dir(file), megabytes)
		return &failure{message: what, full: true, err: err}
	}
	return fmt.Errorf("writing the copy failed; it needs %.1f MB of free space in %s: %w", megabytes, filepath.Dir(file), err)
}

// copyPages copies every page of the database, including the log, in one read transaction.
func (s *Store) copyPages(ctx context.Context, to string) error {
	return s.view(ctx, func(t *tx) {
		// The first statement fixes the state that the transaction sees.
		value[int](t, `SELECT count(*) FROM sqlite_schema`)
		check(t.conn.Raw(func(driver any) error {
			b, err := driver.(*fileConn).NewBackup(to)
			if err != nil {
				return s.explain(err)
			}
			for more := true; more && err == nil; {
				if err = ctx.Err(); err == nil {
					more, err = b.Step(backupPages)
				}
			}
			return s.explain(errors.Join(err, b.Finish()))
		}))
	})
}

// copyRows copies every row of a library on a server into an empty file.
func (s *Store) copyRows(ctx context.Context, to string) error {
	fresh, err := s.layOutFile(ctx, to)
	if err != nil {
		return err
	}
	err = s.view(ctx, func(t *tx) {
		for _, of := range tables() {
			check(fresh.update(ctx, func(to *tx) { to.exec(`DELETE FROM ibid.` + of.name) }))
			t.eachBatch(&of, func(rows [][]any) {
				check(fresh.update(ctx, func(to *tx) { to.insertSummed(of.name, strings.Join(of.columns, ", "), "", rows) }))
			})
		}
	})
	if err == nil {
		err = fresh.update(ctx, func(t *tx) { t.exec(`INSERT OR REPLACE INTO settings_copy SELECT * FROM settings`) })
	}
	return errors.Join(err, fresh.disconnect())
}

// Compact reclaims the disk space of deleted documents, and deletes expired entries of the ledger.
// Other processes may read meanwhile; those that write wait. While it runs it needs free space for
// a second copy of the database. It returns the sizes of the database in bytes before and after. A
// crash leaves the database unchanged.
func Compact(ctx context.Context, dir string, opts Options) (before, after int64, err error) {
	if isServer(dir) {
		return 0, 0, errors.New("a library on a server is compacted by the server: autovacuum, or VACUUM FULL")
	}
	err = inspect(ctx, dir, opts, "compacting", func(s *Store) error {
		before, after, err = s.compact(ctx)
		return err
	})
	return before, after, err
}

func (s *Store) compact(ctx context.Context) (before, after int64, err error) {
	if before, err = s.size(ctx); err == nil && s.readOnly {
		err = s.refusal()
	}
	if err == nil {
		err = s.start(ctx) // does not repair
	}
	if err == nil {
		err = s.update(ctx, func(t *tx) {
			t.deleteOrphans()
			t.forgetOld()
		})
	}
	if err == nil {
		err = s.retry(ctx, s.wait, func() error {
			_, err := s.write.ExecContext(ctx, `VACUUM`)
			return s.explain(err)
		})
	}
	if err == nil {
		err = s.truncateLog(ctx)
	}
	if err == nil {
		after, err = s.size(ctx)
	}
	return before, after, err
}

// truncateLog moves the log of a file into the file. Another process that is reading may prevent
// this; a later close moves the remaining log.
func (s *Store) truncateLog(ctx context.Context) error {
	if s.dir == "" {
		return nil
	}
	_, err := s.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	if busy := (*failure)(nil); errors.As(s.explain(err), &busy) && busy.busy {
		return nil
	}
	return s.explain(err)
}

// CopyTo copies a snapshot of the library to another address: a data directory or a schema of a
// server, which must not contain a library. Everything is copied: documents with their vectors,
// answers, feedback and keys. CopyTo makes a complete copy or none, checks it as [Verify] does and
// reports the result. If the address has a library, the error is [ErrTarget].
func (s *Store) CopyTo(ctx context.Context, address string, opts Options, progress func(done, total int)) (r Report, err error) {
	if !isServer(address) {
		if err := os.MkdirAll(address, 0o700); err != nil {
			return r, err
		}
		r, err = s.backup(ctx, filepath.Join(address, FileName), progress)
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%w: %s has a library: name another folder", ErrTarget, address)
		}
		return r, err
	}
	to, err := openServer(ctx, address, opts)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	err = to.update(ctx, func(into *tx) {
		check(s.view(ctx, func(from *tx) { into.copyFrom(from) }))
	})
	if err != nil {
		return r, err
	}
	return to.verify(ctx, progress)
}

// copyFrom copies the undamaged rows of another library into an empty one.
func (t *tx) copyFrom(from *tx) {
	t.lock("layout")
	own := []string{"settings", "settings_copy", "changes", "eras"} // an empty library has rows in these
	for _, of := range tables() {
		if !slices.Contains(own, of.name) && t.hasRows(of.name) {
			check(fmt.Errorf("%w: the schema of %s has a library: name another one with search_path", ErrTarget, t.s.place))
		}
		t.exec(`DELETE FROM ibid.` + of.name)
		from.eachBatch(&of, func(rows [][]any) {
			rows = slices.DeleteFunc(rows, func(row []any) bool { return of.sum >= 0 && !of.isIntact(row) })
			t.insertSummed(of.name, strings.Join(of.columns, ", "), "", rows)
		})
	}
	// The copy gets its own name, so that no search index is used for both libraries.
	t.fillLayout()
	t.exec(`UPDATE ibid.clock SET revision = (SELECT coalesce(max(revision), 0) FROM ibid.changes)`)
	t.exec(`SELECT setval('` + strings.ReplaceAll(t.s.dialect.schema, "'", "''") + `numbers', greatest(1,
		(SELECT max(number) FROM ibid.documents), (SELECT max(document) FROM ibid.changes)))`)
	t.recordChanges(change{})
}

// eachBatch calls f with the rows of a table, in batches that one transaction can copy.
func (t *tx) eachBatch(of *table, f func(rows [][]any)) {
	var rows [][]any
	bytes := 0
	for r := range t.rows(`SELECT ` + strings.Join(of.columns, ", ") + ` FROM ibid.` + of.name) {
		values := anyRow(r, len(of.columns))
		rows = append(rows, values)
		if bytes += sizeOf(values); len(rows) >= salvageBatch || bytes >= salvageBytes {
			f(rows)
			rows, bytes = nil, 0
		}
	}
	f(rows)
}
