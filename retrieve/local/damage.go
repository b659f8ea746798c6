package local

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"ibid/ingest"
)

// ErrDamaged says that the tables of a database contradict one another, or cannot
// be read at all.
var ErrDamaged = errors.New("the database is damaged")

// errEmptied says that a file has lost the tables that every database has.
var errEmptied = fmt.Errorf("%w: there is nothing in it", ErrDamaged)

// wrong says in plain words what SQLite found.
func wrong(err error) string {
	var own *sqlite.Error
	switch {
	case errors.Is(err, errEmptied):
		return "there is nothing in its file"
	case !errors.As(err, &own):
		return err.Error()
	}
	switch own.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT:
		return "the pages of its file contradict one another"
	case sqlite3.SQLITE_NOTADB:
		return "its file is no database"
	case sqlite3.SQLITE_IOERR:
		return "its file ends too early"
	}
	if _, table, ok := strings.Cut(err.Error(), "no such table: "); ok {
		table, _, _ = strings.Cut(table, " ")
		return "the table " + table + " is missing"
	}
	return err.Error()
}

// A Damage is something stored that is no longer as it was stored.
type Damage struct {
	// Document is the id of the document, which is not searched until it is
	// ingested again; empty where the damage is of no one document.
	Document string
	Reason   string
}

// Keys of damage that is of no one document.
const (
	damagedWhole = 0
	damagedRoots = -1
)

// Damaged lists what was found damaged and set apart, by document. Documents in
// it are left out of everything else, so that the next sync stores them anew.
func (e *Engine) Damaged() []Damage {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.SortedFunc(maps.Values(e.damaged), func(a, b Damage) int {
		return cmp.Or(cmp.Compare(a.Document, b.Document), cmp.Compare(a.Reason, b.Reason))
	})
}

// checkRoots reports rows of roots that are damaged.
func (e *Engine) checkRoots(ctx context.Context, tx *sql.Tx, damage map[int64]Damage) error {
	_, damaged, err := readRoots(ctx, tx)
	if err == nil && len(damaged) > 0 {
		damage[damagedRoots] = Damage{Reason: fmt.Sprintf("the stored path of the root %q is damaged: ingest its folder again", damaged)}
	}
	return err
}

// readRoots lists the roots by name, and apart from them the names of those
// whose rows are damaged.
func readRoots(ctx context.Context, tx *sql.Tx) (roots []ingest.Root, damaged []string, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT name, path, collection, sum FROM roots ORDER BY name`)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r ingest.Root
		var stored int64
		err := scanned(rows.Scan(&r.Name, &r.Path, &r.Collection, &stored))
		if err != nil && !errors.Is(err, errRow) {
			return nil, nil, err
		}
		if err != nil || rootSum(r) != stored {
			damaged = append(damaged, r.Name)
			continue
		}
		roots = append(roots, r)
	}
	return roots, damaged, rows.Err()
}
