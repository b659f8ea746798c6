package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"ibid/ingest"
	"ibid/retrieve"
)

// errEarlier reports that a library has a layout before [firstLayout].
var errEarlier = errors.New("it was written by an earlier version of ibid")

// Settings of a library that is being filled from one of an earlier layout.
const (
	settingSource   = "migrating from" // what is copied; empty when nothing is
	settingMigrated = "migrated"       // key of the last document that was copied
)

// A migration copies a library of an earlier layout, in batches that are durable
// together, and resumes where it was interrupted.
type migration struct {
	from, into *Store
	// document reads one by its key in the earlier layout, checked as far as it
	// has checksums. The error may be a damagedError.
	document func(t *tx, key int64) (*oldDocument, error)
	// space returns the name of the space in use.
	space func(t *tx) (string, error)
	// roots returns the roots that are whole.
	roots func(t *tx) ([]ingest.Root, error)
	// listings returns the columns of the new table.
	listings func(t *tx) ([][]any, error)
	progress func(done, total int)
	most     int // documents in one transaction
}

// An oldDocument is a document of an earlier layout.
type oldDocument struct {
	doc     *ingest.Document
	chunks  []ingest.Chunk
	vectors [][]float32
}

// How much is copied in one transaction.
const (
	migrateDocuments = 200
	migrateBytes     = 16 << 20 // of text
)

func (m *migration) run(ctx context.Context) error {
	if err := m.together(ctx, m.head); err != nil {
		return err
	}
	for more := true; more; {
		err := m.together(ctx, func(from, into *tx) (err error) {
			more, err = m.batch(from, into)
			return err
		})
		if err != nil {
			return err
		}
	}
	return m.together(ctx, m.tail)
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

// head copies the space and the roots.
func (m *migration) head(from, into *tx) error {
	name, err := m.space(from)
	if err != nil {
		return err
	}
	if name != "" {
		all, err := into.spaces()
		if err != nil {
			return err
		}
		all.use(*all.add(name))
		if err := into.setSpaces(all); err != nil {
			return err
		}
	}
	roots, err := m.roots(from)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, r := range roots {
		rows = append(rows, []any{r.Name, r.Path, r.Collection})
	}
	return into.insert("roots", "name, path, collection", "ON CONFLICT DO NOTHING", rows...)
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
	err = from.row(`SELECT (SELECT count(*) FROM ibid.documents WHERE key <= ?), (SELECT count(*) FROM ibid.documents)`, after).Scan(&done, &total)
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
	old, err := m.document(from, key)
	var p *prepared
	if err == nil {
		p, err = prepare(old.doc, old.chunks, old.vectors)
		if err != nil {
			err = &damagedError{id: old.doc.ID, reason: err.Error()}
		}
	}
	if err == nil {
		err = into.replace(space, p)
	}
	if errors.Is(err, retrieve.ErrNotFound) {
		err = &damagedError{id: old.doc.ID, reason: "the row of its root is damaged: ingest its folder again"}
	}
	damaged := (*damagedError)(nil)
	if err == nil || !errors.As(err, &damaged) {
		if err == nil {
			bytes = len(old.doc.Text)
		}
		return bytes, err
	}
	if err := into.row(into.s.dialect.nextNumber).Scan(&damaged.number); err != nil {
		return 0, err
	}
	changes, err := into.setAside(damaged)
	if err != nil {
		return 0, err
	}
	return 0, into.changed(changes...)
}

// tail copies the listings, the ledger and the keyring, and ends the migration.
func (m *migration) tail(from, into *tx) error {
	listings, err := m.listings(from)
	if err != nil {
		return err
	}
	if err := into.insert("listings", "key, id, root, listing", "ON CONFLICT DO NOTHING", listings...); err != nil {
		return err
	}
	lost, err := copyOldLedger(from, into)
	if err != nil {
		return err
	}
	into.s.mu.Lock()
	for i, d := range lost {
		into.s.damaged[-1-int64(i)] = d
	}
	into.s.mu.Unlock()
	if err := into.set(settingSource, ""); err != nil {
		return err
	}
	return into.changed(change{})
}

// migrate replaces the file of an earlier layout by one of today's. The earlier one
// is kept under another name.
func (s *Store) migrate(ctx context.Context, opts Options) (err error) {
	if s.readOnly {
		return fmt.Errorf("%w, and it cannot be written: open it once where it can", errEarlier)
	}
	if err := s.disconnect(); err != nil {
		return err
	}
	if err := lockFile(s.lock, true); err != nil {
		return fmt.Errorf("%w, and another process uses it: end that, and start again to have it brought up to date: %w", errEarlier, err)
	}
	defer func() { err = errors.Join(err, lockFile(s.lock, false)) }()
	old := fileStore(s.place, Options{Wait: s.wait})
	if err := old.connect(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.disconnect()) }()
	source, err := old.sourceOf(ctx)
	if err != nil || source == "" {
		return err // another process was first
	}
	size, err := old.size(ctx)
	if err != nil {
		return err
	}
	if free, err := freeBytes(s.dir); err != nil {
		return err
	} else if free < size {
		return fmt.Errorf("%w, and bringing it up to date needs %.1f MB of free space in %s, which has %.1f MB: free some and start again",
			errEarlier, float64(size)/1e6, s.dir, float64(free)/1e6)
	}
	into, err := s.resume(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, into.disconnect()) }()
	m := migration{from: old, into: into, document: oldFileDocument, progress: opts.migrating(), most: opts.most(), listings: oldFileListings,
		space: func(t *tx) (string, error) { return oldSetting(t, "space") },
		roots: func(t *tx) (roots []ingest.Root, err error) { roots, _, err = t.roots(); return roots, err }}
	if err := m.run(ctx); err != nil {
		if errors.Is(err, ErrDamaged) {
			err = fmt.Errorf("%w: repair it with the version of ibid that wrote it, by 'ibid ingest' of its folders, and start again", err)
		}
		return fmt.Errorf("bringing the library up to date: %w", err)
	}
	s.mu.Lock()
	for number, d := range into.damaged {
		s.damaged[number] = d
	}
	s.mu.Unlock()
	if err := errors.Join(into.merge(ctx), old.merge(ctx)); err != nil {
		return err
	}
	return s.switchTo(into.place)
}

// merge moves the log into the file and closes it.
func (s *Store) merge(ctx context.Context) error {
	if _, err := s.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		return s.explain(err)
	}
	return errors.Join(s.disconnect(), syncFile(s.place))
}

// switchTo puts a new file in the place of that of the earlier layout.
func (s *Store) switchTo(fresh string) error {
	var kept string
	for n := 1; ; n++ {
		kept = filepath.Join(s.dir, fmt.Sprintf("before-layout-%d.%d.db", firstLayout, n))
		err := os.Link(s.place, kept)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil { // some file systems have no links
			err = copyFile(s.place, kept)
		}
		if err != nil {
			return err
		}
		break
	}
	if err := syncDir(s.dir); err != nil {
		return err
	}
	if err := os.Rename(fresh, s.place); err != nil {
		return err
	}
	return errors.Join(syncDir(s.dir), removeLogs(s.place), removeLogs(fresh))
}

func removeLogs(path string) (err error) {
	for _, suffix := range []string{"-wal", "-shm"} {
		if gone := os.Remove(path + suffix); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

func copyFile(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, source)
	return errors.Join(err, f.Sync(), f.Close())
}

// resume opens the file that a migration fills, or creates it. One that was being
// filled from something else is removed: the library changed after an interrupted
// migration.
func (s *Store) resume(ctx context.Context, source string) (*Store, error) {
	into := fileStore(s.place+".migrating", Options{Wait: s.wait})
	if _, err := os.Stat(into.place); err == nil {
		var was string
		err := into.connect()
		if err == nil {
			err = into.view(ctx, func(t *tx) error {
				was, err = t.setting(settingSource)
				return err
			})
		}
		if err == nil && was == source {
			return into, nil
		}
		if err := errors.Join(into.disconnect(), removeDatabase(into.place)); err != nil {
			return nil, err
		}
		into = fileStore(into.place, Options{Wait: s.wait})
	}
	f, err := os.OpenFile(into.place, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // SQLite would let everyone read it
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Close(), into.connect()); err != nil {
		return nil, err
	}
	return into, into.update(ctx, func(t *tx) error {
		if err := t.layOut(0); err != nil {
			return err
		}
		return t.set(settingSource, source)
	})
}

// sourceOf identifies what a file of the first layout holds; empty if it has a
// later layout.
func (s *Store) sourceOf(ctx context.Context) (source string, err error) {
	err = s.view(ctx, func(t *tx) error {
		number, err := s.layout(t)
		if err != nil || number >= firstLayout {
			return err
		}
		var revision int64
		if err := t.row(`SELECT coalesce(max(revision), 0) FROM changes`).Scan(&revision); err != nil {
			return err
		}
		digest, err := oldSetting(t, "library")
		source = fmt.Sprintf("layout %d, revision %d, %s", number, revision, digest)
		return err
	})
	return source, err
}

// oldSetting reads a setting of the first layout, or its copy.
func oldSetting(t *tx, name string) (value string, err error) {
	for _, table := range []string{"meta", "meta_copy"} {
		var sum int64
		err = t.row(`SELECT value, sum FROM `+table+` WHERE name = CAST(? AS TEXT)`, name).Scan(&value, &sum)
		if err == nil && rowSum(name, value) == sum {
			return value, nil
		}
		if err != nil && !isDamage(err) && !errors.Is(err, sql.ErrNoRows) {
			return "", err
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return "", fmt.Errorf("%w: the setting %q of %s cannot be read", ErrDamaged, name, t.s.place)
}

// oldFileListings returns the whole listings of the first layout.
func oldFileListings(t *tx) (rows [][]any, err error) {
	if exists, err := t.hasTable("listings"); err != nil || !exists {
		return nil, err
	}
	err = t.each(func(r scanner) error {
		var id, root string
		var listing []byte
		var sum int64
		err := r.Scan(&id, &root, &listing, &sum)
		if rowSum(id, listing) == sum {
			rows = append(rows, []any{keyOf(id), id, root, listing})
		}
		return err
	}, `SELECT id, root, listing, sum FROM listings`)
	return rows, err
}

// oldFileDocument reads a document of the first layout and checks all its rows.
func oldFileDocument(t *tx, key int64) (*oldDocument, error) {
	var id, root, path, collection, title, format, digest, meta, stored, text string
	var revision, sum int64
	err := t.row(`SELECT id, root, path, collection, title, format, digest, meta, outline, text, revision, sum
		FROM documents WHERE key = ?`, key).
		Scan(&id, &root, &path, &collection, &title, &format, &digest, &meta, &stored, &text, &revision, &sum)
	if errors.Is(err, errRow) {
		return nil, &damagedError{id: id, reason: "its row is damaged"}
	}
	if err != nil {
		return nil, err
	}
	old := &oldDocument{doc: &ingest.Document{ID: id, Root: root, Path: path, Title: title, Format: format, Digest: digest, Text: text}}
	first, last := keyRange(key)
	columns := []any{key, id, root, path, collection, title, format, digest, meta, stored, text, revision, 0}
	err = t.each(func(r scanner) error {
		c, sum, err := oldFileChunk(r, id)
		columns = append(columns, sum)
		old.chunks = append(old.chunks, c)
		return err
	}, `SELECT key, start, end, page, tokens, heading, anchor, terms, text, sum
		FROM chunks WHERE key BETWEEN ? AND ? ORDER BY key`, first, last)
	if err == nil {
		old.vectors, err = oldFileVectors(t, first, last)
	}
	columns[12] = len(old.chunks)
	if err == nil && rowSum(columns...) != sum {
		err = errRow
	}
	if err == nil {
		err = old.describe(meta, stored)
	}
	if errors.Is(err, errRow) {
		return nil, &damagedError{id: id, reason: "it was damaged before the library was brought up to date"}
	}
	return old, err
}

// describe sets what is stored as JSON.
func (o *oldDocument) describe(meta, stored string) error {
	var parts outline
	if err := errors.Join(json.Unmarshal([]byte(meta), &o.doc.Meta), json.Unmarshal([]byte(stored), &parts)); err != nil {
		return fmt.Errorf("%w: %w", errRow, err)
	}
	o.doc.Sections, o.doc.Pages = parts.Sections, parts.Pages
	return nil
}

func oldFileChunk(r scanner, document string) (c ingest.Chunk, sum int64, err error) {
	var row chunkRow
	var terms []byte
	err = checked(sumKept{r, &sum}, &row.key, &row.Start, &row.End, &row.place, &row.Tokens, &row.Heading, &row.Anchor, &terms, &row.Text)
	row.at()
	return *row.of(document), sum, err
}

// sumKept keeps the checksum that is the last column of a row.
type sumKept struct {
	scanner
	sum *int64
}

func (s sumKept) Scan(dest ...any) error {
	err := s.scanner.Scan(dest...)
	if last, ok := dest[len(dest)-1].(*int64); ok {
		*s.sum = *last
	}
	return err
}

func oldFileVectors(t *tx, first, last int64) (vectors [][]float32, err error) {
	err = t.each(func(r scanner) error {
		var key int64
		var vector []byte
		err := checked(r, &key, &vector)
		vectors = append(vectors, retrieve.UnpackVector(vector))
		return err
	}, `SELECT key, vector, sum FROM vectors WHERE key BETWEEN ? AND ? ORDER BY key`, first, last)
	return vectors, err
}
