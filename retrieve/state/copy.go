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
	err = to.update(ctx, func(into *tx) error {
		return s.view(ctx, func(from *tx) error { return into.copyFrom(from) })
	})
	if err != nil {
		return r, err
	}
	return to.verify(ctx, progress)
}

// copyFrom copies the undamaged rows of another library into an empty one.
func (t *tx) copyFrom(from *tx) error {
	if err := t.lock("layout"); err != nil {
		return err
	}
	own := []string{"settings", "settings_copy", "changes", "eras"} // an empty library has rows in these
	for _, of := range tables() {
		if !slices.Contains(own, of.name) && t.any(of.name) {
			return fmt.Errorf("%w: the schema of %s has a library: name another one with search_path", ErrTarget, t.s.place)
		}
		if _, err := t.exec(`DELETE FROM ibid.` + of.name); err != nil {
			return err
		}
		if err := t.copyTable(from, &of); err != nil {
			return fmt.Errorf("copying the table %s: %w", of.name, err)
		}
	}
	// A name of its own, so that no search index is used for both.
	if err := t.found(); err != nil {
		return err
	}
	_, err := t.exec(`UPDATE ibid.clock SET revision = (SELECT coalesce(max(revision), 0) FROM ibid.changes)`)
	if err == nil {
		_, err = t.exec(`SELECT setval('` + strings.ReplaceAll(t.s.dialect.schema, "'", "''") + `numbers', greatest(1,
			(SELECT max(number) FROM ibid.documents), (SELECT max(document) FROM ibid.changes)))`)
	}
	if err == nil {
		err = t.changed(change{})
	}
	return err
}

// copyTable copies the rows of a table.
func (t *tx) copyTable(from *tx, of *table) error {
	columns := strings.Join(of.columns, ", ")
	var rows [][]any
	bytes := 0
	flush := func() error {
		for part := range slices.Chunk(rows, maxParameters/len(of.columns)) {
			values := strings.TrimSuffix(strings.Repeat("("+marks(len(of.columns))+"), ", len(part)), ", ")
			if _, err := t.exec(`INSERT INTO ibid.`+of.name+` (`+columns+`) VALUES `+values, slices.Concat(part...)...); err != nil {
				return err
			}
		}
		rows, bytes = nil, 0
		return nil
	}
	err := from.each(func(r scanner) error {
		values, err := anyRow(r, len(of.columns))
		if err != nil || of.sum >= 0 && !of.intact(values) {
			return err
		}
		rows = append(rows, values)
		if bytes += sizeOf(values); len(rows) < salvageBatch && bytes < salvageBytes {
			return nil
		}
		return flush()
	}, `SELECT `+columns+` FROM ibid.`+of.name)
	return errors.Join(err, flush())
}
