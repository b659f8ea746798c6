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

// A prepared document has been checked and encoded before its transaction begins.
type prepared struct {
	doc     *ingest.Document
	row     documentRow // without number, collection and sums
	outline []byte
	chunks  []chunkRow       // without keys
	vectors map[string][]any // digest and vector by digest; without space
	// dimensions of the vectors, or 0 without chunks
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
	if err := p.row.describe(doc); err != nil {
		return nil, err
	}
	p.row.Title, p.row.Format, p.row.Digest = doc.Title, doc.Format, doc.Digest
	p.row.Chunks, p.row.Pages, p.row.Bytes = len(chunks), len(doc.Pages), len(doc.Text)
	p.outline, err = json.Marshal(retrieve.Outline{Sections: doc.Sections, Pages: doc.Pages})
	return p, err
}

// Replace stores a document in place of the one with the same id.
func (s *Store) Replace(ctx context.Context, space string, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) error {
	p, err := prepare(doc, chunks, vectors)
	if err != nil {
		return err
	}
	return s.update(ctx, func(t *tx) { t.replace(space, p) })
}

func (t *tx) replace(name string, p *prepared) {
	t.lockDocuments(p.doc.ID)
	row := p.row
	row.Collection = t.collectionOf(p.doc.Root)
	t.useSpace(name)
	changes := t.eraseID(p.doc.ID, p.vectors)
	if len(changes) > 0 {
		row.Number, changes = changes[0].document, changes[1:]
	} else {
		row.Number = value[int64](t, t.s.dialect.nextNumber)
	}
	outlineSum := rowSum(row.Number, p.outline)
	row.textSum = rowSum(row.Number, p.outline, outlineSum, p.doc.Text)
	t.insert("texts", "number, outline, outline_sum, text", "", []any{row.Number, p.outline, outlineSum, p.doc.Text})
	rows, sums := make([][]any, len(p.chunks)), make([]int64, len(p.chunks))
	for i := range p.chunks {
		c := p.chunks[i] // a copy, because the transaction may run again
		c.encodePlace(row.Number)
		rows[i] = c.dest()
		sums[i] = rowSum(rows[i]...)
	}
	t.insert("chunks", "key, digest, start, stop, place, tokens, heading, anchor, text", "", rows...)
	row.chunkSum = sumOf(sums)
	t.insert("documents", documentValues, "", row.dest())
	if len(p.chunks) > 0 {
		t.insertVectors(name, p.dimensions, p.vectors)
	}
	t.recordChanges(append(changes, change{document: row.Number, id: row.ID})...)
}

// insertVectors stores vectors of a space by their digests. It replaces a stored vector if it
// differs. In PostgreSQL this always locks the vector, so that no other transaction deletes it with
// its last known chunk.
func (t *tx) insertVectors(space string, dimensions int, vectors map[string][]any) {
	of := t.spaceFor(space, dimensions)
	rows := make([][]any, 0, len(vectors))
	for _, digest := range slices.Sorted(maps.Keys(vectors)) { // in one order, to avoid deadlocks
		rows = append(rows, append([]any{of.Number}, vectors[digest]...))
	}
	t.insert("vectors", "space, digest, vector",
		`ON CONFLICT (digest, space) DO UPDATE SET vector = excluded.vector, sum = excluded.sum
		WHERE vectors.sum <> excluded.sum OR vectors.vector <> excluded.vector`, rows...)
}

// lockDocuments prevents other transactions from changing the documents, and from changing roots
// and spaces, until the transaction ends.
func (t *tx) lockDocuments(ids ...string) {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = "document " + id
	}
	slices.Sort(names) // in one order, to avoid deadlocks
	t.s.dialect.lock(t, []string{"library"}, slices.Compact(names))
}

// eraseID removes the document with the given id and all its rows, except vectors that are still
// needed. It returns the changes that the caller must write, one for each number with that id.
// There are two numbers only if the row of one is damaged.
func (t *tx) eraseID(id string, needed map[string][]any) (changes []change) {
	for _, number := range column[int64](t, `SELECT number FROM ibid.documents WHERE key = ?
		UNION SELECT document FROM ibid.damage WHERE id = ?`, retrieve.DigestOf(id), id) {
		t.erase(number, needed)
		changes = append(changes, change{document: number, deleted: true})
	}
	return changes
}

// erase removes all rows of a document, except vectors that are still needed.
func (t *tx) erase(number int64, needed map[string][]any) {
	first, last := keyRange(number)
	digests := column[string](t, `SELECT digest FROM ibid.chunks WHERE key BETWEEN ? AND ?`, first, last)
	t.exec(`DELETE FROM ibid.chunks WHERE key BETWEEN ? AND ?`, first, last)
	for _, table := range []string{"documents WHERE number", "texts WHERE number", "damage WHERE document"} {
		t.exec(`DELETE FROM ibid.`+table+` = ?`, number)
	}
	digests = slices.DeleteFunc(digests, func(d string) bool { return needed[d] != nil })
	slices.Sort(digests)
	for part := range slices.Chunk(slices.Compact(digests), maxList) {
		list, args := inList(part)
		// Another transaction may be adding a chunk with one of these vectors.
		t.s.dialect.lockVectors(t, list, args)
		t.exec(`DELETE FROM ibid.vectors WHERE digest IN `+list+`
			AND NOT EXISTS (SELECT 1 FROM ibid.chunks WHERE chunks.digest = vectors.digest)`, args...)
	}
}

// Rename gives the stored document named from the id, root, path and metadata of to, and replaces
// the document that had the new id.
func (s *Store) Rename(ctx context.Context, from string, to *ingest.Document) error {
	return inTransaction(ctx, s.update, func(t *tx) { t.rename(from, to) }, "renaming %s to %s", from, to.ID)
}

func (t *tx) rename(from string, to *ingest.Document) {
	if to.ID != to.Root+"/"+to.Path {
		check(fmt.Errorf("the new id is not its root %q followed by its path %q", to.Root, to.Path))
	}
	t.lockDocuments(from, to.ID)
	row := t.document(from)
	if row.Digest != to.Digest {
		check(errors.New("the content of the file differs"))
	}
	if row.Title != to.Title {
		check(errors.New("the document has another title"))
	}
	row.Collection = t.collectionOf(to.Root)
	var changes []change
	if to.ID != from {
		changes = t.eraseID(to.ID, nil)
		t.renameInRecords(from, to.ID)
	}
	check(row.describe(to))
	t.replaceRow(row)
	t.recordChanges(append(changes, change{document: row.Number, id: row.ID})...)
}

// Delete deletes a document. The records that quote it remain.
func (s *Store) Delete(ctx context.Context, document string) error {
	return s.update(ctx, func(t *tx) {
		t.lockDocuments(document)
		changes := t.eraseID(document, nil)
		// If it is listed nevertheless, the file's index has lost the row.
		if len(changes) == 0 && value[bool](t, `SELECT EXISTS (SELECT 1 FROM ibid.documents WHERE id = ?)`, document) {
			check(t.s.unfoundError(document))
		}
		t.recordChanges(changes...)
	})
}
