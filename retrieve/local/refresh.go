package local

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ibid/ingest"
	"ibid/retrieve"
)

// A documentRow is a row of the table of documents.
type documentRow struct {
	key                                               int64
	id, root, path, collection, title, format, digest string
	meta                                              string // JSON object
	chunks                                            int
	revision                                          int64
	sum                                               int64
	outline                                           string // JSON of outline
	text                                              string
}

// An outline is the part of a document beside its text that is read with it.
type outline struct {
	Sections []ingest.Section `json:"sections,omitempty"`
	Pages    []ingest.Page    `json:"pages,omitempty"`
}

const documentColumns = `key, id, root, path, collection, title, format, digest, meta, chunks, revision, sum, outline, text`

func (r *documentRow) scan(row interface{ Scan(...any) error }) error {
	return scanned(row.Scan(&r.key, &r.id, &r.root, &r.path, &r.collection, &r.title, &r.format, &r.digest,
		&r.meta, &r.chunks, &r.revision, &r.sum, &r.outline, &r.text))
}

// document puts the row's columns together again.
func (r *documentRow) document() (*ingest.Document, error) {
	var o outline
	if err := json.Unmarshal([]byte(r.outline), &o); err != nil {
		return nil, fmt.Errorf("read the outline of %s: %w", r.id, err)
	}
	d := &ingest.Document{
		ID: r.id, Root: r.root, Path: r.path, Title: r.title, Format: r.format, Digest: r.digest,
		Text: r.text, Sections: o.Sections, Pages: o.Pages,
	}
	if err := json.Unmarshal([]byte(r.meta), &d.Meta); err != nil {
		return nil, fmt.Errorf("read the metadata of %s: %w", r.id, err)
	}
	return d, nil
}

// revision reads the number of the newest change.
func revision(ctx context.Context, q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) (int64, error) {
	var n int64
	err := q.QueryRowContext(ctx, `SELECT coalesce(max(revision), 0) FROM changes`).Scan(&n)
	return n, err
}

// Revision grows with every durable change, by whichever process.
func (e *Engine) Revision(ctx context.Context) (n int64, err error) {
	err = e.retry(ctx, func() (err error) {
		n, err = revision(ctx, e.read)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the revision of %s: %w", e.path, err)
	}
	return n, nil
}

// refresh brings the memory up to date with the database.
func (e *Engine) refresh(ctx context.Context) error {
	beat, ok := e.pulse.read()
	if known := e.known.Load(); ok && known != nil && *known == beat {
		return nil
	}
	newest, err := e.Revision(ctx)
	if err != nil {
		return err
	}
	if e.at() == newest {
		if ok {
			e.known.Store(&beat)
		}
		return nil
	}
	e.refreshing.Lock()
	defer e.refreshing.Unlock()
	err = e.view(ctx, func(tx *sql.Tx) error { return e.catchUp(ctx, tx) })
	if err != nil {
		return fmt.Errorf("read what has changed in %s: %w", e.path, err)
	}
	return nil
}

// at is the revision of the memory.
func (e *Engine) at() int64 {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.memory.revision
}

// reload fills a new memory from the whole database.
func (e *Engine) reload(ctx context.Context) error {
	e.refreshing.Lock()
	defer e.refreshing.Unlock()
	return e.view(ctx, func(tx *sql.Tx) error { return e.readAll(ctx, tx) })
}

// catchUp reads the documents that have changed since the memory's revision.
func (e *Engine) catchUp(ctx context.Context, tx *sql.Tx) error {
	since := e.at()
	rows, err := tx.QueryContext(ctx, `SELECT revision, document FROM changes WHERE revision > ? ORDER BY revision`, since)
	if err != nil {
		return err
	}
	newest, all, changed := since, false, make(map[int64]bool)
	for rows.Next() {
		var document int64
		if err := scanned(rows.Scan(&newest, &document)); err != nil {
			return errors.Join(err, rows.Close())
		}
		switch document {
		case changedAll:
			all = true
		case changedRoots:
		default:
			changed[document] = true
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	e.mu.RLock()
	all = all || e.memory.wasteful()
	e.mu.RUnlock()
	if all {
		return e.readAll(ctx, tx)
	}
	keys := slices.Sorted(maps.Keys(changed))
	var documents []*loaded
	space, damage, err := readDocuments(ctx, tx, keys, func(d *loaded) error {
		documents = append(documents, d)
		return nil
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, key := range keys {
		if err := e.memory.remove(ctx, key); err != nil {
			return err
		}
		delete(e.damaged, key)
	}
	if e.memory.live() == 0 && e.memory.arena.dims != 0 {
		// The last chunk went, and the next may belong to another space.
		fresh, err := newMemory()
		if err != nil {
			return err
		}
		fresh.documents, fresh.byID = e.memory.documents, e.memory.byID
		e.memory = fresh
	}
	e.memory.space = space
	for _, d := range documents {
		if err := e.memory.add(ctx, d); err != nil {
			return err
		}
	}
	maps.Copy(e.damaged, damage)
	e.memory.revision = newest
	return nil
}

// readAll reads everything into a new memory and compares it with the digest
// over all documents.
func (e *Engine) readAll(ctx context.Context, tx *sql.Tx) error {
	newest, err := revision(ctx, tx)
	if err != nil {
		return err
	}
	keys, names, err := documentKeys(ctx, tx)
	if err != nil {
		return err
	}
	fresh, err := newMemory()
	if err != nil {
		return err
	}
	fresh.index.filling = true
	// One reads, one enters what has been read into the index, and one keeps the
	// vectors.
	var space string
	var damage map[int64]Damage
	var found library
	read, entered := make(chan *loaded, 16), make(chan *loaded, 16)
	g, still := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		defer close(read)
		space, damage, err = readDocuments(ctx, tx, keys, func(d *loaded) error {
			return send(still, read, d)
		})
		return err
	})
	g.Go(func() error {
		defer close(entered)
		for d := range read {
			if names[d.key] != d.info.ID {
				return fmt.Errorf("%w: the list of names disagrees about %s", ErrDamaged, names[d.key])
			}
			found.add(d.key, d.sum)
			if err := fresh.enter(d); err != nil {
				return err
			}
			if err := send(still, entered, d); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		for d := range entered {
			if err := fresh.keep(ctx, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return err
	}
	fresh.revision, fresh.space = newest, space
	seen := int(found.documents)
	for key, d := range damage {
		if key > 0 && names[key] != d.Document {
			return fmt.Errorf("%w: the list of names disagrees about %s", ErrDamaged, names[key])
		}
		if key > 0 {
			seen++
		}
	}
	if seen != len(keys) {
		return fmt.Errorf("%w: %d documents are listed, and %d are where their keys lead", ErrDamaged, len(keys), seen)
	}
	// What is read at no other time would be found broken by the next writer.
	for _, table := range []string{"changes", "vectors_next", "meta", "meta_copy", "sqlite_sequence"} {
		var rows int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM `+table+` NOT INDEXED`).Scan(&rows); err != nil {
			return err
		}
	}
	if text, err := getMeta(ctx, tx, metaLibrary); err != nil {
		damage[damagedWhole] = Damage{Reason: err.Error()}
	} else if expected, err := parseLibrary(text); err != nil {
		damage[damagedWhole] = Damage{Reason: err.Error()}
	} else if len(damage) == 0 && expected != found {
		damage[damagedWhole] = Damage{Reason: fmt.Sprintf("there should be %d documents and there are %d, or they are not as they were stored: ingest the folders again", expected.documents, found.documents)}
	}
	if err := e.checkRoots(ctx, tx, damage); err != nil {
		return err
	}
	fresh.index.complete()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.memory, e.damaged = fresh, damage
	return nil
}

func send(ctx context.Context, to chan<- *loaded, d *loaded) error {
	select {
	case to <- d:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// documentKeys lists the documents by key, with their names by the index of names.
func documentKeys(ctx context.Context, tx *sql.Tx) (keys []int64, names map[int64]string, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT key FROM documents NOT INDEXED ORDER BY key`)
	if err != nil {
		return nil, nil, err
	}
	for rows.Next() {
		var key int64
		if err := scanned(rows.Scan(&key)); err != nil {
			return nil, nil, errors.Join(err, rows.Close())
		}
		if len(keys) > 0 && key <= keys[len(keys)-1] {
			return nil, nil, errors.Join(fmt.Errorf("%w: the table of documents is not in order", ErrDamaged), rows.Close())
		}
		keys = append(keys, key)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, nil, err
	}
	names = make(map[int64]string, len(keys))
	rows, err = tx.QueryContext(ctx, `SELECT id, key FROM documents INDEXED BY sqlite_autoindex_documents_1 ORDER BY id`)
	if err != nil {
		return nil, nil, err
	}
	for rows.Next() {
		var id string
		var key int64
		if err := scanned(rows.Scan(&id, &key)); err != nil {
			return nil, nil, errors.Join(err, rows.Close())
		}
		names[key] = id
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, nil, err
	}
	for _, key := range keys {
		if _, ok := names[key]; !ok {
			return nil, nil, fmt.Errorf("%w: a document is not in the list of names", ErrDamaged)
		}
	}
	if len(names) != len(keys) {
		return nil, nil, fmt.Errorf("%w: the list of names has %d documents, the table has %d", ErrDamaged, len(names), len(keys))
	}
	return keys, names, nil
}

// readDocuments reads documents with their chunks and vectors, in order, checks
// every sum, and hands each on. Keys that are not stored are passed over; damage
// is told by document.
func readDocuments(ctx context.Context, tx *sql.Tx, keys []int64, take func(*loaded) error) (space string, damage map[int64]Damage, err error) {
	damage = make(map[int64]Damage)
	if space, err = spaceOf(ctx, tx); errors.Is(err, errRow) {
		damage[damagedWhole], err = Damage{Reason: err.Error()}, nil
	}
	if err != nil || len(keys) == 0 {
		return space, damage, err
	}
	r := newReader(ctx, tx)
	defer func() { err = errors.Join(err, r.close()) }()
	if r.err != nil {
		return "", nil, r.err
	}
	dims := 0
	for _, key := range keys {
		var row documentRow
		err := row.scan(r.documents.QueryRowContext(ctx, key))
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if errors.Is(err, errRow) {
			damage[key] = Damage{Document: row.id, Reason: "it cannot be read: ingest it again"}
			continue
		}
		if err != nil {
			return "", nil, err
		}
		l, reason, err := r.document(&row, &dims)
		if err != nil {
			return "", nil, err
		}
		if reason != "" {
			damage[key] = Damage{Document: row.id, Reason: reason}
			continue
		}
		if err := take(l); err != nil {
			return "", nil, err
		}
	}
	return space, damage, nil
}

// A reader holds the statements of one bulk read.
type reader struct {
	ctx               context.Context
	documents, chunks *sql.Stmt
	statements        []*sql.Stmt
	err               error
	// check, where there is one, looks at each chunk whose sums fit, and says
	// what is wrong with it.
	check func(*documentRow, *ingest.Chunk, *loadedChunk) (reason string)
}

func newReader(ctx context.Context, tx *sql.Tx) *reader {
	r := &reader{ctx: ctx}
	r.documents = r.prepare(tx, `SELECT `+documentColumns+` FROM documents WHERE key = ?`)
	r.chunks = r.prepare(tx, `SELECT c.key, c.start, c.end, c.page, c.tokens, c.sum, c.heading, c.anchor, c.terms, c.text, v.sum, v.vector
		FROM chunks c LEFT JOIN vectors v ON v.key = c.key WHERE c.key BETWEEN ? AND ? ORDER BY c.key`)
	return r
}

func (r *reader) prepare(tx *sql.Tx, query string) *sql.Stmt {
	if r.err != nil {
		return nil
	}
	s, err := tx.PrepareContext(r.ctx, query)
	if err != nil {
		r.err = err
		return nil
	}
	r.statements = append(r.statements, s)
	return s
}

func (r *reader) close() error {
	var err error
	for _, s := range r.statements {
		err = errors.Join(err, s.Close())
	}
	return err
}

// document reads the chunks of a document. A reason says what is damaged.
func (r *reader) document(row *documentRow, dims *int) (l *loaded, reason string, err error) {
	first, last := keyRange(row.key)
	rows, err := r.chunks.QueryContext(r.ctx, first, last)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	l = &loaded{}
	var sums []int64
	var unfit string // what the check says
	var stale bool
	for rows.Next() {
		var key, stored, place int64
		var c ingest.Chunk
		var terms, vector sql.RawBytes // read before the next row
		var vectorStored sql.NullInt64
		err := scanned(rows.Scan(&key, &c.Start, &c.End, &place, &c.Tokens, &stored, &c.Heading, &c.Anchor, &terms, &c.Text, &vectorStored, &vector))
		setPlace(&c, place)
		if err != nil && !errors.Is(err, errRow) {
			return nil, "", err
		}
		if reason != "" {
			continue // the rows must be read to their end
		}
		number := len(sums) + 1
		// A row that is missing, or in a wrong place, is the fault of the
		// tables, which must be made anew.
		if err == nil && (key != chunkKey(row.key, number) || !vectorStored.Valid) {
			return nil, "", fmt.Errorf("%w: chunk %d of %s is not where it should be", ErrDamaged, number, row.id)
		}
		if err != nil || chunkSum(key, &c, terms) != stored {
			reason = fmt.Sprintf("its chunk %d is damaged: ingest it again", number)
			continue
		}
		sums = append(sums, stored)
		if vectorSum(key, vector) != vectorStored.Int64 {
			reason = fmt.Sprintf("the vector of its chunk %d is damaged: ingest it again", number)
			continue
		}
		lc := loadedChunk{sum: stored, vector: retrieve.UnpackVector(vector)}
		if *dims == 0 {
			*dims = len(lc.vector)
		}
		if len(lc.vector) != *dims {
			reason = fmt.Sprintf("the vector of its chunk %d has %d dimensions, others have %d: ingest it again", number, len(lc.vector), *dims)
			continue
		}
		var current bool
		if lc.counts, lc.length, current, err = retrieve.UnpackTerms(terms); err != nil {
			return nil, "", fmt.Errorf("chunk %d of %s: %w", number, row.id, err)
		} else if !current {
			lc.counts, lc.length = retrieve.CountTerms(ingest.EmbeddingText(row.title, c))
			stale = true
		}
		if r.check != nil {
			if wrong := r.check(row, &c, &lc); wrong != "" && unfit == "" {
				unfit = fmt.Sprintf("its chunk %d %s: ingest it again", number, wrong)
			}
		}
		l.chunks = append(l.chunks, lc)
	}
	if err := rows.Err(); err != nil {
		return nil, "", err
	}
	if reason != "" {
		return nil, reason, nil
	}
	if len(sums) != row.chunks {
		return nil, "", fmt.Errorf("%w: %s has %d chunks, and there are %d", ErrDamaged, row.id, row.chunks, len(sums))
	}
	if documentSum(row, sums) != row.sum {
		return nil, "its text or its list of chunks is damaged: ingest it again", nil
	}
	if unfit != "" {
		return nil, unfit, nil
	}
	d, err := row.document()
	if err != nil {
		return nil, "", err
	}
	info := retrieve.DocumentInfo{Document: *d, Collection: row.collection, Chunks: row.chunks, Pages: len(d.Pages), Bytes: len(d.Text)}
	info.Document.Text, info.Document.Sections, info.Document.Pages = "", nil, nil
	l.document = document{key: row.key, info: info, sum: row.sum, stale: stale}
	return l, "", nil
}

func asJSON(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}
