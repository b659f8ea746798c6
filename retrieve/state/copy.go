package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CopyTo copies the library, as it is at one moment, to another address: a data
// directory or a schema of a server, without a library so far. Everything is
// copied: documents with their vectors, answers, feedback and keys. The copy is
// complete or not there at all; then it is verified, and what [Verify] finds is
// reported. An address with a library is [ErrTarget]. In a data directory, moved
// returns the path that the root of a path has there; nil: all stay.
func (s *Store) CopyTo(ctx context.Context, address string, opts Options, moved func(path string) string,
	progress func(done, total int)) (r Report, err error) {
	if !isServer(address) {
		if err := os.MkdirAll(address, 0o700); err != nil {
			return r, err
		}
		r, err = s.backup(ctx, filepath.Join(address, FileName), moved, progress)
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
		if !slices.Contains(own, of.name) && t.any(of.name) {
			check(fmt.Errorf("%w: the schema of %s has a library: name another one with search_path", ErrTarget, t.s.place))
		}
		t.exec(`DELETE FROM ibid.` + of.name)
		from.batches(&of, func(rows [][]any) {
			rows = slices.DeleteFunc(rows, func(row []any) bool { return of.sum >= 0 && !of.intact(row) })
			t.insertSummed(of.name, strings.Join(of.columns, ", "), "", rows)
		})
	}
	// A name of its own, so that no search index is used for both.
	t.found()
	t.exec(`UPDATE ibid.clock SET revision = (SELECT coalesce(max(revision), 0) FROM ibid.changes)`)
	t.exec(`SELECT setval('` + strings.ReplaceAll(t.s.dialect.schema, "'", "''") + `numbers', greatest(1,
		(SELECT max(number) FROM ibid.documents), (SELECT max(document) FROM ibid.changes)))`)
	t.changed(change{})
}

// batches calls f with the rows of a table, as many at a time as one transaction copies.
func (t *tx) batches(of *table, f func(rows [][]any)) {
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
