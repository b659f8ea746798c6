package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"ibid/ingest"
	"ibid/retrieve"
)

// errEarlier reports that a library has a layout before [firstLayout].
var errEarlier = errors.New("it was written by an earlier version of ibid")

// Settings of a library that is being filled from one of an earlier layout.
const (
	settingSource   = "migrating from" // source of the copy; empty if none is in progress
	settingMigrated = "migrated"       // key of the last document that was copied
)

// A migration copies a library of an earlier layout, in batches that are durable
// together, and resumes where it was interrupted. Data that a user can make
// again is not copied: unfinished runs and sessions of browsers.
type migration struct {
	from, into *Store
	earlier
	progress func(done, total int)
	most     int // documents in one transaction
}

// An earlier says how a layout before [firstLayout] is read.
type earlier struct {
	// space returns the name of the space in use.
	space func(*tx) (string, error)
	// read reads the document of a key, and compares its rows with their
	// checksums if there are any. Its error may wrap errRow.
	read  func(t *tx, key int64, into *oldDocument) error
	roots oldTable
	rest  []oldTable
}

// An oldDocument is a document of an earlier layout.
type oldDocument struct {
	doc           ingest.Document
	meta, outline string // JSON
	chunks        []ingest.Chunk
	vectors       [][]float32
}

const oldColumns = `id, root, path, title, format, digest, meta, outline, text`

func (d *oldDocument) dest() []any {
	return []any{&d.doc.ID, &d.doc.Root, &d.doc.Path, &d.doc.Title, &d.doc.Format, &d.doc.Digest, &d.meta, &d.outline, &d.doc.Text}
}

// An oldTable is another table of an earlier layout.
type oldTable struct {
	what string // its rows, in messages
	name string // a library without the table has no rows
	// query has the columns that are read. If one is named sum, it is the checksum
	// of those before it, and those after it are copied.
	query       string
	to, columns string // of the new layout
	convert     func(row []any)
}

// keyed has the column i be the key of the id that was read there.
func keyed(i int) func(row []any) {
	return func(row []any) { row[i] = keyOf(fmt.Sprintf("%s", row[i])) }
}

// How much is copied in one transaction.
const (
	migrateDocuments = 200
	migrateBytes     = 16 << 20 // of text
)

func (m *migration) run(ctx context.Context) error {
	err := m.together(ctx, func(from, into *tx) error { return m.roots.copy(from, into) })
	for more := true; more && err == nil; {
		err = m.together(ctx, func(from, into *tx) (err error) {
			more, err = m.batch(from, into)
			return err
		})
	}
	if err == nil {
		err = m.together(ctx, m.tail)
	}
	if err != nil {
		return fmt.Errorf("bringing the library up to date: %w", err)
	}
	return nil
}

// together runs f in a transaction of both libraries, unless another process has
// finished the migration.
func (m *migration) together(ctx context.Context, f func(from, into *tx) error) error {
	return m.into.update(ctx, func(into *tx) error {
		if err := into.lock("migration"); err != nil {
			return err
		}
		if source, err := into.setting(settingSource); err != nil || source == "" {
			return err
		}
		return m.from.view(ctx, func(from *tx) error { return f(from, into) })
	})
}

// batch copies the next documents, and reports whether there may be more.
func (m *migration) batch(from, into *tx) (more bool, err error) {
	var after int64
	if text, err := into.setting(settingMigrated); err != nil {
		return false, err
	} else if text != "" {
		if _, err := fmt.Sscan(text, &after); err != nil {
			return false, err
		}
	}
	var done, total int
	err = from.row(`SELECT (SELECT count(*) FROM ibid.documents WHERE key <= ?), (SELECT count(*) FROM ibid.documents)`, after).
		Scan(&done, &total)
	if err != nil {
		return false, err
	}
	keys, err := column[int64](from, `SELECT key FROM ibid.documents WHERE key > ? ORDER BY key LIMIT ?`, after, m.most)
	if err != nil || len(keys) == 0 {
		return false, err
	}
	name, err := m.space(from)
	if err != nil {
		return false, err
	}
	bytes := 0
	for _, key := range keys {
		if bytes > migrateBytes {
			break
		}
		n, err := m.copy(from, into, name, key)
		if err != nil {
			return false, err
		}
		bytes, after, done = bytes+n, key, done+1
	}
	m.progress(done, total)
	return true, into.set(settingMigrated, fmt.Sprint(after))
}

// copy copies a document, and returns the length of its text. A damaged one is set
// aside.
func (m *migration) copy(from, into *tx, space string, key int64) (bytes int, err error) {
	var old oldDocument
	reason := "it was damaged before the library was brought up to date"
	err = m.read(from, key, &old)
	if err == nil {
		var o outline
		if errors.Join(json.Unmarshal([]byte(old.meta), &old.doc.Meta), json.Unmarshal([]byte(old.outline), &o)) != nil {
			err = errRow
		}
		old.doc.Sections, old.doc.Pages = o.Sections, o.Pages
	}
	if err == nil {
		p, refused := prepare(&old.doc, old.chunks, old.vectors)
		if err = refused; err == nil {
			err = into.replace(space, p)
		} else {
			reason, err = err.Error(), errRow
		}
	}
	if err == nil {
		return len(old.doc.Text), nil
	}
	if errors.Is(err, retrieve.ErrNotFound) {
		reason, err = "the row of its root is damaged: ingest its folder again", errRow
	}
	if !errors.Is(err, errRow) {
		return 0, err
	}
	damaged := &damagedError{id: old.doc.ID, reason: reason}
	if err := into.row(into.s.dialect.nextNumber).Scan(&damaged.number); err != nil {
		return 0, err
	}
	changes, err := into.setAside(damaged)
	if err != nil {
		return 0, err
	}
	return 0, into.changed(changes...)
}

// tail copies the rest, and ends the migration.
func (m *migration) tail(from, into *tx) error {
	for _, table := range m.rest {
		if err := table.copy(from, into); err != nil {
			return err
		}
	}
	if err := into.set(settingSource, ""); err != nil {
		return err
	}
	return into.changed(change{})
}

// copy copies the rows that are whole.
func (o *oldTable) copy(from, into *tx) error {
	exists, err := from.hasTable(o.name)
	if err != nil || !exists {
		return err
	}
	damaged := 0
	err = from.each(func(r scanner) error {
		values, err := o.read(r)
		if values == nil || err != nil {
			damaged++
			return err
		}
		return into.insert(o.to, o.columns, "ON CONFLICT DO NOTHING", values)
	}, `SELECT `+o.query+` FROM ibid.`+o.name)
	if damaged > 0 {
		into.s.addLost(Damage{Reason: fmt.Sprintf("%d %s are damaged and lost", damaged, o.what)})
	}
	return err
}

// read returns the columns of the new table from a row; nil if it is damaged.
func (o *oldTable) read(r scanner) ([]any, error) {
	names, err := r.(row).Columns()
	if err != nil {
		return nil, err
	}
	values, err := anyRow(r, len(names))
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		switch v.(type) {
		case int64, []byte, string, bool:
		default:
			return nil, nil
		}
	}
	if sum := slices.Index(names, "sum"); sum >= 0 {
		if values[sum] != rowSum(values[:sum]...) {
			return nil, nil
		}
		values = values[sum+1:]
	}
	if o.convert != nil {
		o.convert(values)
	}
	return values, nil
}

// hasTable reports whether the library has a table of a name.
func (t *tx) hasTable(name string) (bool, error) {
	query, args := `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = CAST(? AS TEXT)`, []any{name}
	if t.s.dir == "" {
		query = `SELECT count(*) FROM pg_tables WHERE schemaname = convert_from(?, 'UTF8') AND tablename = convert_from(?, 'UTF8')`
		args = []any{t.s.schema, name}
	}
	n := 0
	err := t.row(query, args...).Scan(&n)
	return n > 0, err
}
