package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ibid/ingest"
	"ibid/retrieve"
)

// A prepared document is checked and encoded before its transaction begins.
type prepared struct {
	doc     *ingest.Document
	row     documentRow // without number, collection and sums
	outline []byte
	chunks  []chunkRow       // without keys
	vectors map[string][]any // by digest: digest, vector; without space
	// dimensions of the vectors, 0 without chunks.
	dimensions int
}

func prepare(doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) (*prepared, error) {
	if len(chunks) > maxChunks {
		return nil, fmt.Errorf("it has %d chunks, and the limit is %d: split it", len(chunks), maxChunks)
	}
	if len(doc.Text) > math.MaxInt32/4 {
		return nil, fmt.Errorf("its text has %d bytes, and the limit is %d: split it", len(doc.Text), math.MaxInt32/4)
	}
	units, err := retrieve.CheckDocument(doc, chunks, vectors)
	if err != nil {
		return nil, err
	}
	p := &prepared{doc: doc, chunks: make([]chunkRow, len(chunks)), vectors: make(map[string][]any, len(chunks))}
	for i, c := range chunks {
		digest := retrieve.DigestOf(ingest.EmbeddingText(doc.Title, c))
		p.chunks[i] = chunkRow{digest: digest[:], Chunk: c}
		p.vectors[string(digest[:])] = []any{digest, retrieve.PackVector(units[i])}
		p.dimensions = len(units[i])
	}
	if err := p.row.describe(doc, ""); err != nil {
		return nil, err
	}
	p.row.title, p.row.format, p.row.digest = doc.Title, doc.Format, doc.Digest
	p.row.chunks, p.row.pages, p.row.bytes = len(chunks), len(doc.Pages), len(doc.Text)
	p.outline, err = json.Marshal(outline{doc.Sections, doc.Pages})
	return p, err
}

// Replace stores one whole document in place of the one with its id.
func (s *Store) Replace(ctx context.Context, space string, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) error {
	p, err := prepare(doc, chunks, vectors)
	if err != nil {
		return err
	}
	return s.update(ctx, func(t *tx) error { return t.replace(space, p) })
}

func (t *tx) replace(name string, p *prepared) error {
	if err := t.lockDocuments(p.doc.ID); err != nil {
		return err
	}
	row := p.row
	var err error
	if row.collection, err = t.collectionOf(p.doc.Root); err != nil {
		return err
	}
	if err := t.useSpace(name); err != nil {
		return err
	}
	changes, err := t.eraseID(p.doc.ID, p.vectors)
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		row.number, changes = changes[0].document, changes[1:]
	} else if err := t.row(t.s.dialect.nextNumber).Scan(&row.number); err != nil {
		return err
	}
	outlineSum := rowSum(row.number, p.outline)
	row.textSum = rowSum(row.number, p.outline, outlineSum, p.doc.Text)
	if err := t.insert("texts", "number, outline, outline_sum, text", "", []any{row.number, p.outline, outlineSum, p.doc.Text}); err != nil {
		return err
	}
	if row.chunkSum, err = t.insertChunks(row.number, p.chunks); err != nil {
		return err
	}
	if err := t.insert("documents", documentValues, "", row.dest()); err != nil {
		return err
	}
	if len(p.chunks) > 0 {
		if err := t.insertVectors(name, p.dimensions, p.vectors); err != nil {
			return err
		}
	}
	return t.changed(append(changes, change{document: row.number, id: row.id})...)
}

// insertChunks stores the chunks of a document, and returns the checksum over
// their sums.
func (t *tx) insertChunks(document int64, chunks []chunkRow) (int64, error) {
	rows, sums := make([][]any, len(chunks)), make([]int64, len(chunks))
	for i := range chunks {
		c := chunks[i] // the transaction may run again
		c.placed(document)
		rows[i] = c.dest()
		sums[i] = rowSum(rows[i]...)
	}
	return sumOf(sums), t.insert("chunks", "key, digest, start, stop, place, tokens, heading, anchor, text", "", rows...)
}

// insertVectors stores vectors of a space by their digests. One that is stored is
// replaced if it differs. In PostgreSQL this locks it in any case, so that no
// other transaction deletes it with the chunk that it thinks is the last.
func (t *tx) insertVectors(space string, dimensions int, vectors map[string][]any) error {
	of, err := t.spaceFor(space, dimensions)
	if err != nil {
		return err
	}
	rows := make([][]any, 0, len(vectors))
	for _, digest := range slices.Sorted(maps.Keys(vectors)) { // in one order, so that no two wait for each other
		rows = append(rows, append([]any{of.Number}, vectors[digest]...))
	}
	return t.insert("vectors", "space, digest, vector",
		`ON CONFLICT (digest, space) DO UPDATE SET vector = excluded.vector, sum = excluded.sum
		WHERE vectors.sum <> excluded.sum OR vectors.vector <> excluded.vector`, rows...)
}

// lockDocuments keeps others from changing the documents, and from changing roots
// and spaces, until the transaction ends.
func (t *tx) lockDocuments(ids ...string) error {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = "document " + id
	}
	slices.Sort(names) // in one order, so that no two wait for each other
	return t.s.dialect.lock(t, []string{"library"}, slices.Compact(names))
}

// eraseID removes the document of an id with all its rows, except vectors that
// are still needed. It returns the changes that the caller must write: one for
// each number that had the id. There are two only if the row of one is damaged.
func (t *tx) eraseID(id string, needed map[string][]any) (changes []change, err error) {
	numbers, err := column[int64](t, `SELECT number FROM ibid.documents WHERE key = ?
		UNION SELECT document FROM ibid.damage WHERE id = ?`, keyOf(id), id)
	if err != nil {
		return nil, err
	}
	for _, number := range numbers {
		if err := t.erase(number, needed); err != nil {
			return nil, err
		}
		changes = append(changes, change{document: number, deleted: true})
	}
	return changes, nil
}

// confirmAbsent reads the whole list of documents for one that is not found by its
// key. If it is there, the file is damaged: its index has lost the row.
func (t *tx) confirmAbsent(id string) error {
	var there bool
	err := t.row(`SELECT EXISTS (SELECT 1 FROM ibid.documents WHERE id = ?)`, id).Scan(&there)
	if err == nil && there {
		return t.s.unfound(id)
	}
	return err
}

// erase removes all rows of a document, except vectors that are still needed.
func (t *tx) erase(number int64, needed map[string][]any) error {
	first, last := keyRange(number)
	digests, err := column[string](t, `SELECT digest FROM ibid.chunks WHERE key BETWEEN ? AND ?`, first, last)
	if err != nil {
		return err
	}
	if _, err := t.exec(`DELETE FROM ibid.chunks WHERE key BETWEEN ? AND ?`, first, last); err != nil {
		return err
	}
	for _, table := range []string{"documents WHERE number", "texts WHERE number", "damage WHERE document"} {
		if _, err := t.exec(`DELETE FROM ibid.`+table+` = ?`, number); err != nil {
			return err
		}
	}
	unused := make(map[string]bool, len(digests))
	for _, d := range digests {
		if _, ok := needed[d]; !ok {
			unused[d] = true
		}
	}
	return t.eraseVectors(slices.Sorted(maps.Keys(unused)))
}

// eraseVectors removes the vectors of digests that no chunk has any more.
func (t *tx) eraseVectors(digests []string) error {
	for part := range slices.Chunk(digests, maxList) {
		list, args := in(part)
		// Another transaction may be adding a chunk with one of them.
		if err := t.s.dialect.lockVectors(t, list, args); err != nil {
			return err
		}
		_, err := t.exec(`DELETE FROM ibid.vectors WHERE digest IN `+list+`
			AND NOT EXISTS (SELECT 1 FROM ibid.chunks WHERE chunks.digest = vectors.digest)`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// Rename gives the stored document from the id, root, path and metadata of to.
// The document that had the new id is replaced.
func (s *Store) Rename(ctx context.Context, from string, to *ingest.Document) error {
	return within(ctx, s.update, func(t *tx) error { return t.rename(from, to) }, "renaming %s to %s", from, to.ID)
}

func (t *tx) rename(from string, to *ingest.Document) error {
	if to.ID != to.Root+"/"+to.Path {
		return fmt.Errorf("the new id is not its root %q followed by its path %q", to.Root, to.Path)
	}
	if err := t.lockDocuments(from, to.ID); err != nil {
		return err
	}
	row, err := t.document(from)
	if err != nil {
		return err
	}
	if row.digest != to.Digest {
		return errors.New("the file has another content")
	}
	if row.title != to.Title {
		return errors.New("the document has another title")
	}
	collection, err := t.collectionOf(to.Root)
	if err != nil {
		return err
	}
	var changes []change
	if to.ID != from {
		if changes, err = t.eraseID(to.ID, nil); err != nil {
			return err
		}
		if err := t.renameInRecords(from, to.ID); err != nil {
			return err
		}
	}
	if err := row.describe(to, collection); err != nil {
		return err
	}
	if _, err := t.exec(`DELETE FROM ibid.documents WHERE number = ?`, row.number); err != nil {
		return err
	}
	if err := t.insert("documents", documentValues, "", row.dest()); err != nil {
		return err
	}
	return t.changed(append(changes, change{document: row.number, id: row.id})...)
}

// Delete removes a document. The records that quote it remain.
func (s *Store) Delete(ctx context.Context, document string) error {
	return s.update(ctx, func(t *tx) error {
		if err := t.lockDocuments(document); err != nil {
			return err
		}
		changes, err := t.eraseID(document, nil)
		if err != nil {
			return err
		}
		if len(changes) == 0 {
			return t.confirmAbsent(document)
		}
		return t.changed(changes...)
	})
}
