package state

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
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
	progress func(done, total int) // may be nil
	most     int                   // documents in one transaction
}

// migrate copies the rows not yet copied from a library of an earlier layout, which
// is kept. Several processes may do that together.
func (s *Store) migrate(ctx context.Context, opts Options) (err error) {
	source := ""
	err = s.view(ctx, func(t *tx) { source = t.setting(settingSource) })
	if isDamage(err) && ctx.Err() == nil {
		return nil // it is in neither table, and the other settings are read from the copy
	}
	if err != nil || source == "" {
		return err
	}
	m := migration{into: s, progress: opts.Migrating, most: cmp.Or(opts.batch, migrateDocuments)}
	if s.dir == "" {
		m.earlier, m.from = oldServer(), &Store{place: s.place, dialect: postgresDialect(source), schema: source, classify: s.classify,
			write: s.write, read: s.read, wait: s.wait, silence: s.silence, maxPause: s.maxPause}
	} else {
		m.earlier, m.from = oldFile(), fileStore(filepath.Join(s.dir, source), Options{Wait: s.wait})
		m.from.readOnly = true
		if err := m.from.connect(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.from.disconnect()) }()
	}
	if err := m.run(ctx); err != nil {
		return fmt.Errorf("bringing the library up to date from %s: %w", source, err)
	}
	return nil
}

// An earlier says how a layout before [firstLayout] is read.
type earlier struct {
	// space returns the name of the space in use.
	space func(*tx) string
	// read reads the document of a key, and compares its rows with their
	// checksums if there are any. It may end with an errRow.
	read  func(t *tx, key int64, into *oldDocument)
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
	return func(row []any) { row[i] = retrieve.DigestOf(fmt.Sprintf("%s", row[i])) }
}

// How much is copied in one transaction.
const (
	migrateDocuments = 200
	migrateBytes     = 16 << 20 // of text
)

func (m *migration) run(ctx context.Context) error {
	err := m.together(ctx, func(from, into *tx) { m.roots.copy(from, into) })
	for more := true; more && err == nil; {
		more = false // unless this process copies a batch: another may have finished
		err = m.together(ctx, func(from, into *tx) { more = m.batch(from, into) })
	}
	if err == nil {
		err = m.together(ctx, m.tail)
	}
	return err
}

// together runs f in a transaction of both libraries, unless another process has
// finished the migration.
func (m *migration) together(ctx context.Context, f func(from, into *tx)) error {
	return m.into.update(ctx, func(into *tx) {
		into.lock("migration")
		if into.setting(settingSource) != "" {
			check(m.from.view(ctx, func(from *tx) { f(from, into) }))
		}
	})
}

// batch copies the next documents, and reports whether there may be more.
func (m *migration) batch(from, into *tx) (more bool) {
	var after int64
	if text := into.setting(settingMigrated); text != "" {
		_, err := fmt.Sscan(text, &after)
		check(err)
	}
	var done, total int
	check(from.row(`SELECT (SELECT count(*) FROM ibid.documents WHERE key <= ?), (SELECT count(*) FROM ibid.documents)`, after).
		Scan(&done, &total))
	keys := column[int64](from, `SELECT key FROM ibid.documents WHERE key > ? ORDER BY key LIMIT ?`, after, m.most)
	if len(keys) == 0 {
		return false
	}
	name, bytes := m.space(from), 0
	for _, key := range keys {
		if bytes > migrateBytes {
			break
		}
		bytes += m.copy(from, into, name, key)
		after, done = key, done+1
	}
	if m.progress != nil {
		m.progress(done, total)
	}
	into.set(settingMigrated, fmt.Sprint(after))
	return true
}

// copy copies a document, and returns the length of its text. A damaged one is set
// aside.
func (m *migration) copy(from, into *tx, space string, key int64) (bytes int) {
	var old oldDocument
	reason := "it was damaged before the library was brought up to date"
	err := caught(func() {
		m.read(from, key, &old)
		var o retrieve.Outline
		if errors.Join(json.Unmarshal([]byte(old.meta), &old.doc.Meta), json.Unmarshal([]byte(old.outline), &o)) != nil {
			check(errRow)
		}
		old.doc.Sections, old.doc.Pages = o.Sections, o.Pages
		p, err := prepare(&old.doc, old.chunks, old.vectors)
		if err != nil {
			reason = err.Error()
			check(errRow)
		}
		into.replace(space, p)
	})
	switch {
	case err == nil:
		return len(old.doc.Text)
	case errors.Is(err, retrieve.ErrNotFound):
		reason = "the row of its root is damaged: ingest its folder again"
	case !errors.Is(err, errRow):
		check(err)
	}
	damaged := &damagedError{value[int64](into, into.s.dialect.nextNumber), cmp.Or(old.doc.ID, fmt.Sprintf("document %d", key)), reason}
	into.changed(into.setAside(damaged)...)
	return 0
}

// tail copies the rest, and ends the migration.
func (m *migration) tail(from, into *tx) {
	for _, table := range m.rest {
		table.copy(from, into)
	}
	into.set(settingSource, "")
	into.changed(change{})
}

// copy copies the rows that are whole.
func (o *oldTable) copy(from, into *tx) {
	if !from.hasTable(o.name) {
		return
	}
	damaged := 0
	for r := range from.rows(`SELECT ` + o.query + ` FROM ibid.` + o.name) {
		if values := o.read(r); values != nil {
			into.insert(o.to, o.columns, "ON CONFLICT DO NOTHING", values)
		} else {
			damaged++
		}
	}
	if damaged > 0 {
		into.s.addLost(Damage{Reason: fmt.Sprintf("%d %s are damaged and lost", damaged, o.what)})
	}
}

// read returns the columns of the new table from a row; nil if it is damaged.
func (o *oldTable) read(r row) []any {
	names, err := r.Columns()
	check(err)
	values := anyRow(r, len(names))
	for _, v := range values {
		switch v.(type) {
		case int64, []byte, string, bool:
		default:
			return nil
		}
	}
	if sum := slices.Index(names, "sum"); sum >= 0 {
		if values[sum] != rowSum(values[:sum]...) {
			return nil
		}
		values = values[sum+1:]
	}
	if o.convert != nil {
		o.convert(values)
	}
	return values
}

// hasTable reports whether the library has a table of a name.
func (t *tx) hasTable(name string) bool {
	query, args := `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = CAST(? AS TEXT)`, []any{name}
	if t.s.dir == "" {
		query = `SELECT count(*) FROM pg_tables WHERE schemaname = convert_from(?, 'UTF8') AND tablename = convert_from(?, 'UTF8')`
		args = []any{t.s.schema, name}
	}
	return value[int](t, query, args...) > 0
}
