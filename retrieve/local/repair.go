package local

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// marker is the name of the empty file by which a process that met damage asks
// the next start for a repair.
const marker = "ibid.damaged"

func (e *Engine) markerPath() string { return filepath.Join(filepath.Dir(e.path), marker) }

func (e *Engine) mark() error { return os.WriteFile(e.markerPath(), nil, 0o600) }

func (e *Engine) marked() bool {
	_, err := os.Stat(e.markerPath())
	return err == nil
}

// repair sets a damaged file aside, moves every document that is whole into a
// new one, and starts with that. What is lost is named in [Engine.Damaged].
func (e *Engine) repair(ctx context.Context, cause error) error {
	if err := e.disconnect(); err != nil {
		return err
	}
	if err := lockFile(e.lock, true); err != nil {
		return errors.Join(cause, fmt.Errorf("the database is damaged and other processes use it: stop them, and start again to have it repaired: %w", err))
	}
	lost, aside, err := e.rebuild(ctx)
	if err != nil {
		return fmt.Errorf("repair the damaged database: %w", err)
	}
	if err := e.start(ctx); err != nil {
		return fmt.Errorf("open the repaired database: %w", err)
	}
	e.mu.Lock()
	for i, d := range lost {
		d.Reason += "; the damaged file is kept as " + filepath.Base(aside)
		e.damaged[damagedLost-int64(i)] = d
	}
	e.mu.Unlock()
	return lockFile(e.lock, false)
}

// damagedLost is the first of the keys, downwards, of documents that a repair
// could not keep.
const damagedLost = -2

// rebuild makes the new file and puts it in the place of the damaged one.
func (e *Engine) rebuild(ctx context.Context) (lost []Damage, aside string, err error) {
	aside = filepath.Join(filepath.Dir(e.path), "damaged-"+time.Now().UTC().Format("20060102-150405.000000")+".db")
	old, fresh := aside+".old", aside+".new"
	defer func() {
		err = errors.Join(err, removeDatabase(old), removeDatabase(fresh))
	}()
	if err := copyDamaged(e.path, old); err != nil {
		return nil, "", err
	}
	// SQLite makes its files for everyone to read, so it gets one that is there.
	if err := os.WriteFile(fresh, nil, 0o600); err != nil {
		return nil, "", err
	}
	if lost, err = salvage(ctx, old, fresh); err != nil {
		return nil, "", err
	}
	// The log first: left beside a new file it would be played into it.
	for _, suffix := range []string{"-wal", ""} {
		if err := os.Rename(e.path+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, "", err
		}
	}
	for _, path := range []string{e.path + "-shm", e.markerPath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, "", err
		}
	}
	if err := os.Rename(fresh, e.path); err != nil {
		return nil, "", err
	}
	return lost, aside, syncDir(filepath.Dir(e.path))
}

// pageSize of the database, SQLite's default.
const pageSize = 4096

// copyDamaged copies a damaged file and its log, and gives the copy the first
// page of an empty database: it holds the schema, which is the same in all,
// and the header.
func copyDamaged(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	empty, err := emptyFile(to + ".new")
	if err != nil {
		return err
	}
	// A file that ends too early gets the pages that every one has.
	data = data[:len(data)/pageSize*pageSize]
	data = append(data, empty[min(len(data), len(empty)):]...)
	copy(data, empty[:pageSize])
	// Offsets of the header, from https://www.sqlite.org/fileformat2.html: the
	// change counter and the counter for which the size is valid, the size in
	// pages, and the free pages, of which none are remembered.
	binary.BigEndian.PutUint32(data[24:], 1)
	binary.BigEndian.PutUint32(data[92:], 1)
	binary.BigEndian.PutUint32(data[28:], uint32(len(data)/pageSize))
	binary.BigEndian.PutUint32(data[32:], 0)
	binary.BigEndian.PutUint32(data[36:], 0)
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return err
	}
	log, err := os.ReadFile(from + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to+"-wal", log, 0o600)
}

// emptyFile makes an empty database at the path, reads it and removes it again.
func emptyFile(path string) (data []byte, err error) {
	e := &Engine{path: path, wait: time.Minute}
	if err := e.connect(); err != nil {
		return nil, err
	}
	ctx := context.Background()
	err = errors.Join(e.update(ctx, func(tx *sql.Tx) error { return create(ctx, tx) }), e.disconnect())
	if err != nil {
		return nil, err
	}
	data, err = os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return data, os.Remove(path)
}

// salvage moves what is whole from one file to a new one, and tells what is not.
func salvage(ctx context.Context, from, to string) ([]Damage, error) {
	old := &Engine{path: from, wait: time.Minute}
	fresh := &Engine{path: to, wait: time.Minute}
	if err := errors.Join(old.connect(), fresh.connect()); err != nil {
		return nil, err
	}
	var lost []Damage
	err := fresh.update(ctx, func(into *sql.Tx) error {
		if err := create(ctx, into); err != nil {
			return err
		}
		return old.view(ctx, func(tx *sql.Tx) (err error) {
			s := salvager{from: tx, into: into, fresh: fresh}
			lost, err = s.run(ctx)
			return err
		})
	})
	return lost, errors.Join(err, old.disconnect(), fresh.disconnect())
}

type salvager struct {
	from, into *sql.Tx
	fresh      *Engine
	lost       []Damage
	names      map[int64]string // by key, as far as they could be read
	saved      map[int64]bool
}

func (s *salvager) run(ctx context.Context) ([]Damage, error) {
	s.names, s.saved = make(map[int64]string), make(map[int64]bool)
	space, err := getMeta(ctx, s.from, metaSpace)
	if err != nil && !isDamage(err) {
		return nil, err
	}
	if err != nil {
		// Vectors whose space is not known cannot be compared with any.
		return []Damage{{Reason: "the embedding model of the stored documents can no longer be read, and all of them are lost: ingest the folders again"}}, nil
	}
	if space != "" {
		if err := setMeta(ctx, s.into, metaSpace, space); err != nil {
			return nil, err
		}
	}
	if err := s.roots(ctx); err != nil {
		return nil, err
	}
	last, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	for key := int64(1); key <= last; key++ {
		if err := s.document(ctx, key); err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.names)) {
		if !s.saved[key] {
			s.lost = append(s.lost, Damage{Document: s.names[key], Reason: "it is damaged and lost: ingest it again"})
		}
	}
	s.unnamed(ctx)
	switch {
	case len(s.lost) > 0:
	case len(s.saved) == 0:
		s.lost = append(s.lost, Damage{Reason: "the database was damaged, and no document is left in it: put a backup in its place, or ingest the folders again"})
	default:
		s.lost = append(s.lost, Damage{Reason: "the database was damaged and has been repaired, and no document is lost"})
	}
	// Readers of the old file must see that everything is new.
	_, err = changed(ctx, s.into, changedAll, false)
	return s.lost, err
}

// both runs a query forwards and backwards, each as far as it can be read.
func (s *salvager) both(ctx context.Context, query, by string, scan func(*sql.Rows) error) error {
	for _, order := range []string{" ORDER BY " + by, " ORDER BY " + by + " DESC"} {
		rows, err := s.from.QueryContext(ctx, query+order)
		if err == nil {
			for rows.Next() {
				// A row that cannot be read is not followed by its like.
				if err = scanned(scan(rows)); err != nil && !isDamage(err) {
					break
				}
			}
			err = errors.Join(rows.Err(), rows.Close())
		}
		if err != nil && !isDamage(err) {
			return err
		}
	}
	return ctx.Err()
}

// list reads the names of the documents, and finds the highest key there is.
func (s *salvager) list(ctx context.Context) (last int64, err error) {
	const most = 1 << 24 // a damaged number must not keep us here for ever
	note := func(key int64) {
		if key > last && key <= most {
			last = key
		}
	}
	err = s.both(ctx, `SELECT id, key FROM documents INDEXED BY sqlite_autoindex_documents_1`, "id", func(r *sql.Rows) error {
		var id string
		var key int64
		if err := r.Scan(&id, &key); err != nil {
			return err
		}
		s.names[key] = id
		note(key)
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, query := range []string{
		`SELECT seq FROM sqlite_sequence WHERE name = 'documents'`,
		`SELECT coalesce(max(key), 0) FROM documents`,
		fmt.Sprintf(`SELECT coalesce(max(key), 0) >> %d FROM chunks`, ordinalBits),
	} {
		var key int64
		err := scanned(s.from.QueryRowContext(ctx, query).Scan(&key))
		if err != nil && !isDamage(err) && !errors.Is(err, sql.ErrNoRows) {
			return 0, err
		}
		note(key)
	}
	return last, nil
}

// roots moves the roots that are whole.
func (s *salvager) roots(ctx context.Context) error {
	roots, damaged, err := readRoots(ctx, s.from)
	if err != nil && !isDamage(err) {
		return err
	}
	if err != nil || len(damaged) > 0 {
		s.lost = append(s.lost, Damage{Reason: "the list of folders is damaged: ingest the folders again"})
	}
	for _, r := range roots {
		_, err := s.into.ExecContext(ctx, `INSERT INTO roots (name, path, collection, sum) VALUES (?, ?, ?, ?)`, r.Name, r.Path, r.Collection, rootSum(r))
		if err != nil {
			return err
		}
	}
	return nil
}

// document moves one document, if it is there and whole.
func (s *salvager) document(ctx context.Context, key int64) error {
	var row documentRow
	err := row.scan(s.from.QueryRowContext(ctx, `SELECT `+documentColumns+` FROM documents WHERE key = ?`, key))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		if _, ok := s.names[key]; !ok {
			s.names[key] = row.id
		}
		_, damage, e := readDocuments(ctx, s.from, []int64{key}, func(*loaded) error { return nil })
		if err = e; err == nil && len(damage) > 0 {
			err = errRow
		}
	}
	if isDamage(err) {
		if _, ok := s.names[key]; !ok && row.id != "" {
			s.names[key] = row.id
		}
		return nil
	}
	if err != nil {
		return err
	}
	chunks, err := s.chunks(ctx, key)
	if isDamage(err) || errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	s.names[key] = row.id
	s.saved[key] = true
	var sums []int64
	for _, c := range chunks {
		if err := insertChunk(ctx, s.into, c.key, &c.chunkRow, c.sum); err != nil {
			return err
		}
		if err := insertVector(ctx, s.into, "vectors", c.key, c.vector); err != nil {
			return err
		}
		sums = append(sums, c.sum)
	}
	return s.fresh.insert(ctx, s.into, &row, sums)
}

// A savedChunk is all that is stored of a chunk.
type savedChunk struct {
	chunkRow
	key, sum int64
	vector   []byte
}

// chunks reads the chunks and vectors of a document that has been found whole,
// each by its key, which fails where the order of the rows is damaged.
func (s *salvager) chunks(ctx context.Context, document int64) (out []savedChunk, err error) {
	first, last := keyRange(document)
	keys, err := column[int64](ctx, s.from, `SELECT key FROM chunks WHERE key BETWEEN ? AND ? ORDER BY key`, first, last)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		c := savedChunk{key: key}
		c.chunkRow, _, err = readChunk(s.from.QueryRowContext(ctx, `SELECT `+chunkColumns+` FROM chunks WHERE key = ?`, key))
		if err != nil {
			return nil, err
		}
		c.sum = chunkSum(key, &c.Chunk, c.terms)
		var stored int64
		err := scanned(s.from.QueryRowContext(ctx, `SELECT vector, sum FROM vectors WHERE key = ?`, key).Scan(&c.vector, &stored))
		if err == nil && vectorSum(key, c.vector) != stored {
			err = errRow
		}
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// unnamed tells of documents that are lost with their names, by the number
// that there should be.
func (s *salvager) unnamed(ctx context.Context) {
	text, err := getMeta(ctx, s.from, metaLibrary)
	if err == nil {
		var all library
		if all, err = parseLibrary(text); err == nil {
			if n := all.documents - int64(len(s.names)); n > 0 {
				s.lost = append(s.lost, Damage{Reason: fmt.Sprintf("%d documents are lost, whose names cannot be read either: ingest the folders again", n)})
			}
			return
		}
	}
	s.lost = append(s.lost, Damage{Reason: "how many documents there were can no longer be read: ingest the folders again"})
}
