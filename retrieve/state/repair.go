package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ibid/retrieve/disk"
)

// marker is the name of the file that requests a repair by the next start. It is empty, or
// contains, one per line, the names of the repaired file and of the file to which the damaged one
// is moved.
const marker = "ibid.damaged"

func (s *Store) isMarked() bool {
	_, err := os.Stat(filepath.Join(s.dir, marker))
	return s.dir != "" && err == nil
}

// requestRepair makes the next start repair the damage that an error reports, and says so in the
// error.
func (s *Store) requestRepair(f *failure) *failure {
	if !f.damaged || !s.started || s.readOnly {
		return f
	}
	f.message += ": restart ibid to repair it"
	if err := s.writeMarker(""); err != nil {
		f.message += fmt.Sprintf(" (%v)", err)
	}
	return f
}

// writeMarker makes the next start repair the file, or finish an interrupted repair.
func (s *Store) writeMarker(names string) error {
	if names == "" && s.isMarked() {
		return nil
	}
	file := filepath.Join(s.dir, marker)
	if err := os.WriteFile(file, []byte(names), 0o600); err != nil {
		return err
	}
	return errors.Join(syncFile(file), disk.SyncDir(s.dir))
}

// finishRepair finishes a repair that was interrupted after the new file was complete.
func (s *Store) finishRepair() error {
	text, err := os.ReadFile(filepath.Join(s.dir, marker))
	if s.readOnly || err != nil || strings.Count(string(text), "\n") != 2 { // the marker is incomplete
		return nil // other errors appear when the library is opened
	}
	if err := disk.Lock(s.lock, true); err != nil {
		return fmt.Errorf("its repair was interrupted and other processes use it: stop them, and start again: %w", err)
	}
	if err := errors.Join(s.replaceDamaged(), disk.Lock(s.lock, false)); err != nil {
		return err
	}
	s.addLost(Damage{Reason: rebuilt})
	return nil
}

// replaceDamaged replaces the damaged file with the new one, as the marker says. It can resume after an
// interruption.
func (s *Store) replaceDamaged() error {
	text, err := os.ReadFile(filepath.Join(s.dir, marker))
	names := strings.Split(string(text), "\n")
	if err != nil || len(names) != 3 {
		return err
	}
	fresh, aside := filepath.Join(s.dir, names[0]), filepath.Join(s.dir, names[1])
	if _, err := os.Lstat(fresh); err == nil {
		// The log is moved first: SQLite would apply a log that stays to the new file.
		if err := os.Rename(s.place+"-wal", aside+"-wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// With a link the file's name exists at all times, but some file systems have no links.
		if err := os.Link(s.place, aside); err != nil && !errors.Is(err, fs.ErrExist) {
			if err := os.Rename(s.place, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err := errors.Join(removeFiles(s.place+"-shm"), os.Rename(fresh, s.place)); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(disk.SyncDir(s.dir), removeFiles(filepath.Join(s.dir, marker)))
}

// repair moves every undamaged row of the damaged file into a new one, sets the damaged file aside
// and starts with the new one. [Store.ListDamage] lists the lost documents.
func (s *Store) repair(ctx context.Context, cause error) error {
	if s.readOnly {
		return fmt.Errorf("%w; it cannot be written, so it is not repaired: %s", cause, s.place)
	}
	if err := s.disconnect(); err != nil {
		return err
	}
	if err := disk.Lock(s.lock, true); err != nil {
		return errors.Join(cause, fmt.Errorf("the database is damaged and other processes use it: "+
			"stop them, and restart ibid to repair it: %w", err))
	}
	unfinished, err := fs.Glob(os.DirFS(s.dir), FileName+".*.new*") // by interrupted repairs
	for _, name := range unfinished {
		err = errors.Join(err, removeFiles(filepath.Join(s.dir, name)))
	}
	if err != nil {
		return err
	}
	lost, aside, err := s.rebuild(ctx)
	if err != nil {
		return fmt.Errorf("repairing the damaged database: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return fmt.Errorf("opening the repaired database: %w", err)
	}
	for _, d := range lost {
		d.Reason += "; the damaged file is kept as " + filepath.Base(aside)
		s.addLost(d)
	}
	return disk.Lock(s.lock, false)
}

// rebuild creates the new file and replaces the damaged one with it.
func (s *Store) rebuild(ctx context.Context) (lost []Damage, aside string, err error) {
	aside = filepath.Join(s.dir, "damaged-"+time.Now().UTC().Format("20060102-150405.000000")+".db")
	fresh, err := s.newFile(ctx)
	if err != nil {
		return nil, "", err
	}
	lost, err = fresh.salvage(ctx, s.place)
	if err == nil {
		err = fresh.merge(ctx)
	}
	if err != nil {
		return nil, "", errors.Join(err, fresh.disconnect(), removeDatabase(fresh.place))
	}
	if err := s.writeMarker(filepath.Base(fresh.place) + "\n" + filepath.Base(aside) + "\n"); err != nil {
		return nil, "", err
	}
	return lost, aside, s.replaceDamaged()
}

// The most rows and bytes that one transaction of a salvage moves.
const (
	salvageBatch = 5000 // rows
	salvageBytes = 32 << 20
)

func sizeOf(values []any) (n int) {
	for _, v := range values {
		if b, ok := v.([]byte); ok {
			n += len(b)
		}
	}
	return n
}

// merge moves the log into the file and closes it.
func (s *Store) merge(ctx context.Context) error {
	if _, err := s.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		return s.explain(err)
	}
	return errors.Join(s.disconnect(), syncFile(s.place))
}

// salvage moves the undamaged rows of a damaged file into this one, which is empty, and returns the
// lost documents. A row belongs to the table whose columns it has and whose checksum it matches.
func (s *Store) salvage(ctx context.Context, from string) (lost []Damage, err error) {
	if log, failed := os.Stat(from + "-wal"); failed == nil && log.Size() > 0 {
		to := s.place + ".log"
		defer func() { err = errors.Join(err, removeDatabase(to)) }()
		if err := copyWithLog(ctx, from, s.place, to); err != nil {
			return nil, fmt.Errorf("reading the log of %s: %w", from, s.explain(err))
		}
		from = to
	}
	f, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	all := tables()
	var rows []savedRow
	bytes, whole, other := 0, 0, 0
	flush := func() error {
		moved := rows
		rows, bytes = nil, 0
		return s.update(ctx, func(t *tx) {
			for _, row := range moved {
				t.exec(`INSERT OR REPLACE INTO ibid.`+row.table.name+` (`+strings.Join(row.table.columns, ", ")+`)
					VALUES (`+marks(len(row.table.columns))+`)`, row.values...)
			}
		})
	}
	err = pageReader{f}.rows(func(number int64, values []any) error {
		i := slices.IndexFunc(all, func(t table) bool { return t.isIntact(t.orderValues(number, values)) })
		if i < 0 {
			other++
			return nil
		}
		whole++
		rows = append(rows, savedRow{&all[i], all[i].orderValues(number, values)})
		if bytes += sizeOf(values); len(rows) < salvageBatch && bytes < salvageBytes {
			return nil
		}
		return flush()
	})
	if err == nil && whole == 0 && other > len(all)*4 {
		return nil, fmt.Errorf("%s has %d rows, but none belongs to the tables of this version: "+
			"move the file away and ingest the folders again", from, other)
	}
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = s.update(ctx, func(t *tx) { lost = t.repairRows() })
	}
	return lost, err
}

// A savedRow is an undamaged row of a damaged file.
type savedRow struct {
	table  *table
	values []any
}

// orderValues returns the values of a row's columns in order. In a column that is the row's number,
// SQLite stores NULL.
func (t *table) orderValues(number int64, values []any) []any {
	if t.serial && len(values) > 0 && values[0] == nil {
		return values[1:]
	}
	if t.numbered && len(values) > 0 && values[0] == nil {
		return append([]any{number}, values[1:]...)
	}
	return values
}

// rebuilt is the reason given for losses that include the documents' names.
const rebuilt = "the database was damaged and has been rebuilt from its undamaged rows: " +
	"ingest the folders again, because other documents may be lost, and their names with them"

// repairRows makes the salvaged rows consistent and returns the lost documents. The library gets a
// new name, so that searchers do not continue from their old revisions.
func (t *tx) repairRows() (lost []Damage) {
	// Rows of both tables of settings were restored to the first table.
	t.exec(`INSERT OR REPLACE INTO settings_copy SELECT * FROM settings`)
	var all spaces
	if err := catch(func() { all = t.spaces() }); !isDamage(err) {
		check(err)
	}
	if all.Used == 0 && t.hasRows("documents") {
		// Vectors of an unknown space cannot be compared.
		lost = append(lost, Damage{Reason: "the embedding model of the stored documents can no longer be read, and they are lost: " +
			"ingest the folders again"})
	}
	names := make(map[int64]string) // ids by number, from any row that has them
	for r := range t.rows(`SELECT document, id FROM ibid.changes WHERE deleted = 0 AND document <> 0
		UNION SELECT number, id FROM ibid.documents`) {
		var number int64
		var name string
		check(r.Scan(&number, &name))
		names[number] = name
	}
	changes := []change{{}}
	for _, number := range slices.Sorted(maps.Keys(names)) {
		d, reason := t.examine(number, all.Used)
		if reason == "" {
			changes = append(changes, change{document: number, id: d.ID})
			continue
		}
		t.erase(number, nil)
		changes = append(changes, change{document: number, deleted: true})
		lost = append(lost, Damage{Document: names[number], Reason: "it is damaged and lost: ingest it again"})
	}
	t.exec(`DELETE FROM damage`)
	t.deleteOrphans()
	for _, name := range column[string](t, `SELECT DISTINCT root FROM ibid.documents
		WHERE root NOT IN (SELECT name FROM ibid.roots) ORDER BY root`) {
		lost = append(lost, Damage{Reason: fmt.Sprintf("the path of the root %q is lost: ingest its folder again", name)})
	}
	t.mendLedger()
	t.fillLayout()
	t.recordChanges(changes...)
	return append(lost, Damage{Reason: rebuilt})
}

func (t *tx) hasRows(table string) bool {
	return value[bool](t, `SELECT EXISTS (SELECT 1 FROM ibid.`+table+`)`)
}
