package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"ibid/ingest"
	"ibid/retrieve"
)

// Space is the embedding space of the stored vectors, empty while there are no
// documents.
func (e *Engine) Space(ctx context.Context) (string, error) {
	if err := e.refresh(ctx); err != nil {
		return "", err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.memory.space, nil
}

// SetSpace sets the space of an engine without documents. Where documents are,
// a space other than theirs is a [*retrieve.SpaceError].
func (e *Engine) SetSpace(ctx context.Context, space string) error {
	if space == "" {
		return errors.New("set the embedding space: its name is empty")
	}
	return e.update(ctx, func(tx *sql.Tx) error {
		stored, err := spaceOf(ctx, tx)
		if err != nil {
			return fmt.Errorf("set the embedding space: %w", err)
		}
		if stored != "" && stored != space {
			return &retrieve.SpaceError{Stored: stored, Wanted: space}
		}
		return setMeta(ctx, tx, metaSpace, space)
	})
}

// AddRoot gives the root stored for the absolute folder path, and makes it
// under a free name when there is none. An empty path is the root "uploads".
// The collection of a root that is there already stays what it was; empty means
// [ingest.DefaultCollection].
func (e *Engine) AddRoot(ctx context.Context, path, collection string) (root ingest.Root, err error) {
	if path != "" && !filepath.IsAbs(path) {
		return ingest.Root{}, fmt.Errorf("add a root: the path %q is not absolute", path)
	}
	if collection == "" {
		collection = ingest.DefaultCollection
	}
	err = e.update(ctx, func(tx *sql.Tx) error {
		roots, damaged, err := readRoots(ctx, tx)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(roots, func(r ingest.Root) bool { return r.Path == path }); i >= 0 {
			root = roots[i]
			return nil
		}
		root = ingest.Root{Name: retrieve.RootName(path, roots), Path: path, Collection: collection}
		return insertRoot(ctx, tx, root, damaged)
	})
	if err != nil {
		return ingest.Root{}, fmt.Errorf("add the root of %q: %w", path, err)
	}
	return root, nil
}

// KeepRoot makes a root as another store has it, if it is not there.
func (e *Engine) KeepRoot(ctx context.Context, root ingest.Root) error {
	err := e.update(ctx, func(tx *sql.Tx) error {
		roots, damaged, err := readRoots(ctx, tx)
		if err != nil {
			return err
		}
		if there, err := retrieve.CheckRoot(root, roots); err != nil || there {
			return err
		}
		return insertRoot(ctx, tx, root, damaged)
	})
	if err != nil {
		return fmt.Errorf("keep the root %q: %w", root.Name, err)
	}
	return nil
}

// insertRoot writes the row of a root. Damaged ones say nothing: their names are
// free for their folders again.
func insertRoot(ctx context.Context, tx *sql.Tx, root ingest.Root, damaged []string) error {
	for _, name := range damaged {
		if _, err := tx.ExecContext(ctx, `DELETE FROM roots WHERE name = ?`, name); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO roots (name, path, collection, sum) VALUES (?, ?, ?, ?)`,
		root.Name, root.Path, root.Collection, rootSum(root))
	if err != nil {
		return err
	}
	_, err = changed(ctx, tx, changedRoots, false)
	return err
}

// Roots lists the roots by name.
func (e *Engine) Roots(ctx context.Context) (roots []ingest.Root, err error) {
	err = e.view(ctx, func(tx *sql.Tx) (err error) {
		roots, _, err = readRoots(ctx, tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the roots: %w", err)
	}
	return roots, nil
}

// DeleteRoot removes a root and all its documents in one step.
func (e *Engine) DeleteRoot(ctx context.Context, name string) (documents int, err error) {
	err = e.update(ctx, func(tx *sql.Tx) error {
		documents = 0
		gone, err := tx.ExecContext(ctx, `DELETE FROM roots WHERE name = ?`, name)
		if err != nil {
			return err
		}
		keys, err := column[int64](ctx, tx, `SELECT key FROM documents WHERE root = ?`, name)
		if err != nil {
			return err
		}
		if n, err := gone.RowsAffected(); err != nil {
			return err
		} else if n == 0 && len(keys) == 0 {
			return retrieve.ErrNotFound
		}
		for _, key := range keys {
			if err := e.erase(ctx, tx, key); err != nil {
				return err
			}
		}
		documents = len(keys)
		if err := errors.Join(forgetReplies(ctx, tx), forgetListings(ctx, tx, "root", name)); err != nil {
			return err
		}
		if err := forgetRecordsBelow(ctx, tx, name); err != nil {
			return err
		}
		_, err = changed(ctx, tx, changedRoots, true)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("forget the root %q: %w", name, err)
	}
	return documents, nil
}

// Replace stores one document whole, in place of what had its id, in one
// durable transaction.
func (e *Engine) Replace(ctx context.Context, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) error {
	store, err := e.Prepare("", doc, chunks, vectors)
	if err != nil {
		return err
	}
	return store(ctx)
}

// Prepare is Replace up to its transaction, which store is, for vectors of a
// space; an empty space is not compared.
func (e *Engine) Prepare(space string, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) (store func(context.Context) error, err error) {
	rows, units, err := prepare(doc, chunks, vectors)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", doc.ID, err)
	}
	return func(ctx context.Context) error {
		err := e.update(ctx, func(tx *sql.Tx) error { return e.store(ctx, tx, space, doc, rows, units) })
		if err != nil {
			return fmt.Errorf("store %s: %w", doc.ID, err)
		}
		return nil
	}, nil
}

// A chunkRow is a chunk with its terms as they are stored.
type chunkRow struct {
	ingest.Chunk
	terms []byte
}

// prepare checks a document at the door, before the database is held.
func prepare(doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) ([]chunkRow, [][]float32, error) {
	if len(chunks) > maxChunks {
		return nil, nil, fmt.Errorf("it has %d chunks, and %d is the most: split it", len(chunks), maxChunks)
	}
	units, err := retrieve.CheckDocument(doc, chunks, vectors)
	if err != nil {
		return nil, nil, err
	}
	rows := make([]chunkRow, len(chunks))
	for i, c := range chunks {
		rows[i] = chunkRow{c, retrieve.PackTerms(retrieve.CountTerms(ingest.EmbeddingText(doc.Title, c)))}
	}
	return rows, units, nil
}

func (e *Engine) store(ctx context.Context, tx *sql.Tx, space string, doc *ingest.Document, rows []chunkRow, units [][]float32) error {
	collection, err := collectionOf(ctx, tx, doc.Root)
	if err != nil {
		return err
	}
	stored, err := getMeta(ctx, tx, metaSpace)
	if err != nil {
		return err
	}
	if stored == "" {
		return errors.New("the embedding space has not been set")
	}
	if space != "" && space != stored {
		return &retrieve.SpaceError{Stored: stored, Wanted: space}
	}
	if len(units) > 0 {
		if err := checkDims(ctx, tx, len(units[0])); err != nil {
			return err
		}
	}
	row, err := rowOf(doc, collection)
	if err != nil {
		return err
	}
	if row.key, err = keyOf(ctx, tx, doc.ID); err != nil {
		return err
	}
	if row.key != 0 {
		if err := e.erase(ctx, tx, row.key); err != nil {
			return err
		}
	}
	if row.key, err = newKey(ctx, tx); err != nil {
		return err
	}
	sums := make([]int64, len(rows))
	for i, c := range rows {
		key := chunkKey(row.key, i+1)
		sums[i] = chunkSum(key, &c.Chunk, c.terms)
		if err := insertChunk(ctx, tx, key, &c, sums[i]); err != nil {
			return err
		}
		if err := insertVector(ctx, tx, "vectors", key, retrieve.PackVector(units[i])); err != nil {
			return err
		}
	}
	return e.insert(ctx, tx, row, sums)
}

func insertChunk(ctx context.Context, tx *sql.Tx, key int64, c *chunkRow, sum int64) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO chunks (key, start, end, page, tokens, sum, heading, anchor, terms, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		key, c.Start, c.End, placeOf(&c.Chunk), c.Tokens, sum, c.Heading, c.Anchor, c.terms, c.Text)
	return err
}

// insertVector puts a packed vector into the table, in place of what is there.
func insertVector(ctx context.Context, tx *sql.Tx, table string, key int64, vector []byte) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO `+table+` (key, sum, vector) VALUES (?, ?, ?)`, key, vectorSum(key, vector), vector)
	return err
}

// rowOf is the row of a document; its key is not set yet.
func rowOf(doc *ingest.Document, collection string) (*documentRow, error) {
	row := &documentRow{
		id: doc.ID, root: doc.Root, path: doc.Path, collection: collection, title: doc.Title,
		format: doc.Format, digest: doc.Digest, text: doc.Text,
	}
	var err error
	if row.outline, err = asJSON(outline{doc.Sections, doc.Pages}); err != nil {
		return nil, err
	}
	row.meta, err = asJSON(doc.Meta)
	return row, err
}

// insert writes the row of a document under a new revision, enters it into the
// digest over all and tells the change. Sums are those of its chunks.
func (e *Engine) insert(ctx context.Context, tx *sql.Tx, row *documentRow, sums []int64) (err error) {
	if row.revision, err = changed(ctx, tx, row.key, false); err != nil {
		return err
	}
	row.chunks, row.sum = len(sums), documentSum(row, sums)
	_, err = tx.ExecContext(ctx, `INSERT INTO documents (`+documentColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		row.key, row.id, row.root, row.path, row.collection, row.title, row.format, row.digest,
		row.meta, row.chunks, row.revision, row.sum, row.outline, row.text)
	if err != nil {
		return err
	}
	return e.count(ctx, tx, func(l *library) { l.add(row.key, row.sum) })
}

// erase removes a document with all its rows.
func (e *Engine) erase(ctx context.Context, tx *sql.Tx, key int64) error {
	if err := e.eraseRow(ctx, tx, key); err != nil {
		return err
	}
	first, last := keyRange(key)
	for _, table := range []string{"chunks", "vectors", "vectors_next"} {
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE key BETWEEN ? AND ?`, first, last); err != nil {
			return err
		}
	}
	_, err := changed(ctx, tx, key, true)
	return err
}

// eraseRow removes the row of a document, and takes it out of the digest.
func (e *Engine) eraseRow(ctx context.Context, tx *sql.Tx, key int64) error {
	var sum, told int64
	err := tx.QueryRowContext(ctx, `SELECT sum, revision FROM documents WHERE key = ?`, key).Scan(&sum, &told)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM documents WHERE key = ?`, key); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM changes WHERE revision = ? AND document = ?`, told, key); err != nil {
		return err
	}
	return e.count(ctx, tx, func(l *library) { l.remove(key, sum) })
}

// count changes the digest over all documents. Where damage has been found, the
// digest is made anew from the rows, since the sum of one may be what is damaged.
func (e *Engine) count(ctx context.Context, tx *sql.Tx, change func(*library)) error {
	text, err := getMeta(ctx, tx, metaLibrary)
	if err != nil && !errors.Is(err, errRow) {
		return err
	}
	e.mu.RLock()
	damaged := len(e.damaged) > 0
	e.mu.RUnlock()
	var l library
	if damaged || err != nil {
		rows, err := tx.QueryContext(ctx, `SELECT key, sum FROM documents`)
		if err != nil {
			return err
		}
		for rows.Next() {
			var key, sum int64
			if err := rows.Scan(&key, &sum); err != nil {
				return errors.Join(err, rows.Close())
			}
			l.add(key, sum)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
	} else {
		if l, err = parseLibrary(text); err != nil {
			return err
		}
		change(&l)
	}
	return setMeta(ctx, tx, metaLibrary, l.String())
}

// changed tells a change to other processes, and gives its revision.
func changed(ctx context.Context, tx *sql.Tx, document int64, deleted bool) (int64, error) {
	r, err := tx.ExecContext(ctx, `INSERT INTO changes (document, deleted) VALUES (?, ?)`, document, deleted)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// newKey gives a key that no document ever had.
func newKey(ctx context.Context, tx *sql.Tx) (key int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT max(
		coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'documents'), 0),
		coalesce((SELECT max(key) FROM documents), 0)) + 1`).Scan(&key)
	return key, err
}

// keyOf gives the key of a document, 0 when there is none.
func keyOf(ctx context.Context, tx *sql.Tx, id string) (key int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT key FROM documents WHERE id = ?`, id).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return key, err
}

func collectionOf(ctx context.Context, tx *sql.Tx, root string) (string, error) {
	var collection string
	err := tx.QueryRowContext(ctx, `SELECT collection FROM roots WHERE name = ?`, root).Scan(&collection)
	if errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("its root %q is not known: add the root first: %w", root, retrieve.ErrNotFound)
	}
	return collection, err
}

// checkDims compares a number of dimensions with that of the stored vectors.
func checkDims(ctx context.Context, tx *sql.Tx, dims int) error {
	var size int
	err := tx.QueryRowContext(ctx, `SELECT length(vector) FROM vectors LIMIT 1`).Scan(&size)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil && size != 4*dims {
		err = fmt.Errorf("its vectors have %d dimensions, and the stored ones have %d", dims, size/4)
	}
	return err
}

// Rename gives the stored document from the id, root, path, title and metadata
// of to, and keeps its text and vectors. What had the new id is replaced.
func (e *Engine) Rename(ctx context.Context, from string, to *ingest.Document) error {
	err := e.update(ctx, func(tx *sql.Tx) error { return e.rename(ctx, tx, from, to) })
	if err != nil {
		return fmt.Errorf("rename %s to %s: %w", from, to.ID, err)
	}
	return nil
}

func (e *Engine) rename(ctx context.Context, tx *sql.Tx, from string, to *ingest.Document) error {
	if to.ID != to.Root+"/"+to.Path {
		return fmt.Errorf("the new id is not its root %q and its path %q", to.Root, to.Path)
	}
	row, err := readRow(ctx, tx, from)
	if err != nil {
		return err
	}
	if row.digest != to.Digest {
		return errors.New("the file has another content")
	}
	collection, err := collectionOf(ctx, tx, to.Root)
	if err != nil {
		return err
	}
	if to.ID != from {
		taken, err := keyOf(ctx, tx, to.ID)
		if err != nil {
			return err
		}
		if taken != 0 {
			if err := e.erase(ctx, tx, taken); err != nil {
				return err
			}
		}
		if err := renameInRecords(ctx, tx, from, to.ID); err != nil {
			return err
		}
	}
	if err := e.eraseRow(ctx, tx, row.key); err != nil {
		return err
	}
	retitled := row.title != to.Title
	row.id, row.root, row.path, row.title, row.collection = to.ID, to.Root, to.Path, to.Title, collection
	if row.meta, err = asJSON(to.Meta); err != nil {
		return err
	}
	if retitled {
		if err := analyse(ctx, tx, row); err != nil {
			return err
		}
	}
	return e.reinsert(ctx, tx, row)
}

// reinsert stores the row of a document whose chunks are stored.
func (e *Engine) reinsert(ctx context.Context, tx *sql.Tx, row *documentRow) error {
	first, last := keyRange(row.key)
	sums, err := column[int64](ctx, tx, `SELECT sum FROM chunks WHERE key BETWEEN ? AND ? ORDER BY key`, first, last)
	if err != nil {
		return err
	}
	return e.insert(ctx, tx, row, sums)
}

// analyse stores the terms of a document's chunks anew, under the row's title.
func analyse(ctx context.Context, tx *sql.Tx, row *documentRow) error {
	first, last := keyRange(row.key)
	keys, err := column[int64](ctx, tx, `SELECT key FROM chunks WHERE key BETWEEN ? AND ? ORDER BY key`, first, last)
	if err != nil {
		return err
	}
	for _, key := range keys {
		c, _, err := readChunk(tx.QueryRowContext(ctx, `SELECT `+chunkColumns+` FROM chunks WHERE key = ?`, key))
		if err != nil {
			return err
		}
		c.terms = retrieve.PackTerms(retrieve.CountTerms(ingest.EmbeddingText(row.title, c.Chunk)))
		_, err = tx.ExecContext(ctx, `UPDATE chunks SET terms = ?, sum = ? WHERE key = ?`, c.terms, chunkSum(key, &c.Chunk, c.terms), key)
		if err != nil {
			return err
		}
	}
	return nil
}

// Delete removes a document and every trace of it.
func (e *Engine) Delete(ctx context.Context, document string) error {
	err := e.update(ctx, func(tx *sql.Tx) error {
		if err := forgetListings(ctx, tx, "id", document); err != nil {
			return err
		}
		key, err := keyOf(ctx, tx, document)
		if err != nil || key == 0 {
			return err
		}
		if err := forgetRecordsOf(ctx, tx, document); err != nil {
			return err
		}
		return e.erase(ctx, tx, key)
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", document, err)
	}
	return nil
}

// column reads the one column of a query.
func column[T any](ctx context.Context, tx *sql.Tx, query string, args ...any) (out []T, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}
