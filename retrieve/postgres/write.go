package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"ibid/ingest"
	"ibid/retrieve"
)

// ordinalBits is how many bits of a chunk's key hold its ordinal.
const ordinalBits = 20

// maxChunks is the largest number of chunks of one document.
const maxChunks = 1<<ordinalBits - 1

func chunkKey(document int64, ordinal int) int64 { return document<<ordinalBits | int64(ordinal) }

// keyRange is the first and the last key that a chunk of the document can have.
func keyRange(document int64) (first, last int64) {
	return document << ordinalBits, (document+1)<<ordinalBits - 1
}

// placeOf is the page of a chunk; of one without a page its line in the file,
// below zero; 0 when it has neither.
func placeOf(c *ingest.Chunk) int32 {
	if c.Page == 0 {
		return -int32(c.Line)
	}
	return int32(c.Page)
}

func setPlace(c *ingest.Chunk, place int32) {
	c.Page, c.Line = int(max(0, place)), int(max(0, -place))
}

// An outline is the part of a document beside its text that is read with it.
type outline struct {
	Sections []ingest.Section `json:"sections,omitempty"`
	Pages    []ingest.Page    `json:"pages,omitempty"`
}

// A row is a document as its table has it.
type documentRow struct {
	key                                               int64
	id, root, path, collection, title, format, digest []byte
	meta                                              []byte
	chunks, pages, bytes                              int32
	analysis                                          int32
	labels
}

// describe sets what stands of a document itself.
func (r *documentRow) describe(doc *ingest.Document, collection []byte) (err error) {
	r.id, r.root, r.path, r.collection, r.title = []byte(doc.ID), []byte(doc.Root), []byte(doc.Path), collection, []byte(doc.Title)
	r.labels = labelsOf(doc.Meta)
	r.meta, err = json.Marshal(doc.Meta)
	return err
}

const documentColumns = `id, root, path, collection, title, format, digest, meta, chunks, pages, bytes, analysis, tags, authors, languages, first_day, last_day`

func (r *documentRow) values() []any {
	return []any{r.id, r.root, r.path, r.collection, r.title, r.format, r.digest, r.meta, r.chunks, r.pages, r.bytes, r.analysis,
		r.tags, r.authors, r.languages, r.firstDay, r.lastDay}
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

// writers are as many as two processors of a server keep busy.
const writers = 4

// Writers is how many documents are best stored at a time: half of the
// connections are left for those who search.
func (e *Engine) Writers() int { return max(1, min(writers, int(e.pool.Config().MaxConns)/2)) }

// Prepare is Replace up to its transaction, which store is, for vectors of a
// space; an empty space is not compared.
func (e *Engine) Prepare(space string, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) (store func(context.Context) error, err error) {
	p, err := prepare(doc, chunks, vectors)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", doc.ID, err)
	}
	return func(ctx context.Context) error {
		if err := e.replace(ctx, space, p); err != nil {
			return fmt.Errorf("store %s: %w", doc.ID, err)
		}
		return nil
	}, nil
}

// A prepared document is checked and has its terms counted.
type prepared struct {
	doc     *ingest.Document
	row     documentRow
	outline []byte
	chunks  []ingest.Chunk
	terms   []chunkTerms
	// vectors are those of all chunks, one after the other.
	vectors    []float32
	dimensions int
}

func prepare(doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) (*prepared, error) {
	if len(chunks) > maxChunks {
		return nil, fmt.Errorf("it has %d chunks, and %d is the most: split it", len(chunks), maxChunks)
	}
	if len(doc.Text) > math.MaxInt32/4 {
		return nil, fmt.Errorf("its text has %d bytes, and %d is the most: split it", len(doc.Text), math.MaxInt32/4)
	}
	units, err := retrieve.CheckDocument(doc, chunks, vectors)
	if err != nil {
		return nil, err
	}
	p := &prepared{doc: doc, chunks: chunks, terms: make([]chunkTerms, len(chunks))}
	for i, c := range chunks {
		p.terms[i].counts, p.terms[i].length = retrieve.CountTerms(ingest.EmbeddingText(doc.Title, c))
		p.vectors = append(p.vectors, units[i]...)
		p.dimensions = len(units[i])
	}
	if err := p.row.describe(doc, nil); err != nil {
		return nil, err
	}
	p.row.format, p.row.digest = []byte(doc.Format), []byte(doc.Digest)
	p.row.chunks, p.row.pages, p.row.bytes, p.row.analysis = int32(len(chunks)), int32(len(doc.Pages)), int32(len(doc.Text)), retrieve.Analysis
	p.outline, err = json.Marshal(outline{doc.Sections, doc.Pages})
	return p, err
}

// What stands in the way of storing vectors.
var (
	errTable = errors.New("the vectors have no table of their dimensions yet")
	errIndex = errors.New("the vectors have no index yet, and have become many")
)

func (e *Engine) replace(ctx context.Context, space string, p *prepared) error {
	return e.withTable(ctx, false, p.dimensions, func() error {
		return e.update(ctx, func(s *session) error { return e.store(ctx, s, space, p) })
	})
}

// withTable calls f, which stores vectors of a space, again after it has made
// what f lacks.
func (e *Engine) withTable(ctx context.Context, next bool, dimensions int, f func() error) error {
	for range 3 {
		err := f()
		switch {
		case errors.Is(err, errTable):
			err = e.lay(ctx, next, dimensions)
		case errors.Is(err, errIndex):
			err = e.index(ctx, next)
		default:
			return err
		}
		if err != nil {
			return err
		}
	}
	return f()
}

func (e *Engine) store(ctx context.Context, s *session, space string, p *prepared) error {
	if err := e.lockDocuments(ctx, s, p.doc.ID); err != nil {
		return err
	}
	row := p.row
	var err error
	if row.collection, err = collectionOf(ctx, s, p.doc.Root); err != nil {
		return err
	}
	spaces, err := readSpaces(ctx, s)
	if err != nil {
		return err
	}
	used, ok := pick(spaces, false)
	switch {
	case !ok:
		return errors.New("the embedding space has not been set")
	case space != "" && space != used.name:
		return &retrieve.SpaceError{Stored: used.name, Wanted: space}
	case len(p.chunks) > 0 && p.dimensions != used.dimensions:
		return errTable
	}
	if wanted, err := e.wantsIndex(ctx, s, used); err != nil {
		return err
	} else if wanted {
		return errIndex
	}
	var by totals
	if old, err := keyOf(ctx, s, p.doc.ID); err != nil {
		return err
	} else if old != 0 {
		if by, err = e.erase(ctx, s, spaces, old); err != nil {
			return err
		}
	}
	if row.key, err = insertDocument(ctx, s, &row); err != nil {
		return err
	}
	if _, err := s.exec(ctx, `INSERT INTO ibid.texts (document, outline, text) VALUES ($1, $2, $3)`, row.key, p.outline, []byte(p.doc.Text)); err != nil {
		return err
	}
	if err := insertChunks(ctx, s, row.key, p.chunks, p.terms); err != nil {
		return err
	}
	if err := insertPostings(ctx, s, row.key, p.terms); err != nil {
		return err
	}
	keys := make([]int64, len(p.chunks))
	for i := range keys {
		keys[i] = chunkKey(row.key, i+1)
	}
	if err := insertVectors(ctx, s, used, keys, p.vectors); err != nil {
		return err
	}
	by.add(totals{1, int64(len(p.chunks)), lengthOf(p.terms)})
	return e.changed(ctx, s, by)
}

// keyOf gives the key of a document, 0 when there is none.
func keyOf(ctx context.Context, s *session, id string) (key int64, err error) {
	err = s.row(ctx, `SELECT key FROM ibid.documents WHERE sha256(id) = sha256($1)`, []byte(id)).Scan(&key)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return key, err
}

func insertDocument(ctx context.Context, s *session, row *documentRow) (key int64, err error) {
	err = s.row(ctx, `INSERT INTO ibid.documents (`+documentColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) RETURNING key`,
		row.values()...).Scan(&key)
	return key, err
}

// insertBatch is how many rows one statement inserts.
const insertBatch = 2000

func insertChunks(ctx context.Context, s *session, document int64, chunks []ingest.Chunk, terms []chunkTerms) error {
	for from := 0; from < len(chunks); from += insertBatch {
		n := min(insertBatch, len(chunks)-from)
		keys, starts, ends, places, tokens := make([]int64, n), make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
		headings, anchors, packed := make([][]byte, n), make([][]byte, n), make([][]byte, n)
		for i := range n {
			c := &chunks[from+i]
			keys[i], starts[i], ends[i], places[i], tokens[i] = chunkKey(document, c.Ordinal), int32(c.Start), int32(c.End), placeOf(c), int32(c.Tokens)
			headings[i], anchors[i], packed[i] = []byte(c.Heading), []byte(c.Anchor), terms[from+i].pack()
		}
		_, err := s.exec(ctx, `INSERT INTO ibid.chunks (key, start, "end", place, tokens, heading, anchor, terms)
			SELECT * FROM unnest($1::bigint[], $2::int[], $3::int[], $4::int[], $5::int[], $6::bytea[], $7::bytea[], $8::bytea[])`,
			keys, starts, ends, places, tokens, headings, anchors, packed)
		if err != nil {
			return err
		}
	}
	return nil
}

// insertVectors keeps vectors, which stand one after the other, under keys. One
// that is there already is replaced.
func insertVectors(ctx context.Context, s *session, v vectorSpace, keys []int64, vectors []float32) error {
	for from := 0; from < len(keys); from += insertBatch {
		to := min(from+insertBatch, len(keys))
		_, err := s.exec(ctx, `INSERT INTO `+v.table()+` (key, vector)
			SELECT key, ($2::real[])[(i - 1) * $3::int + 1 : i * $3::int]::vec.vector FROM unnest($1::bigint[]) WITH ORDINALITY AS t (key, i)
			ON CONFLICT (key) DO UPDATE SET vector = excluded.vector`,
			keys[from:to], vectors[from*v.dimensions:to*v.dimensions], v.dimensions)
		if err != nil {
			return err
		}
	}
	return nil
}

// erase removes a document with all its rows, and says by how much that changes
// the totals.
func (e *Engine) erase(ctx context.Context, s *session, spaces []vectorSpace, key int64) (by totals, err error) {
	first, last := keyRange(key)
	terms, err := readTerms(ctx, s, key)
	if err != nil {
		return by, err
	}
	if err := deletePostings(ctx, s, key, terms); err != nil {
		return by, err
	}
	by = totals{-1, -int64(len(terms)), -lengthOf(terms)}
	var b pgx.Batch
	b.Queue(`DELETE FROM ibid.documents WHERE key = $1`, key)
	b.Queue(`DELETE FROM ibid.texts WHERE document = $1`, key)
	b.Queue(`DELETE FROM ibid.chunks WHERE key BETWEEN $1 AND $2`, first, last)
	for _, v := range spaces {
		if v.dimensions > 0 {
			b.Queue(`DELETE FROM `+v.table()+` WHERE key BETWEEN $1 AND $2`, first, last)
		}
	}
	return by, s.send(ctx, &b)
}

// Rename gives the stored document from the id, root, path, title and metadata
// of to, and keeps its text and vectors. What had the new id is replaced.
func (e *Engine) Rename(ctx context.Context, from string, to *ingest.Document) error {
	err := e.update(ctx, func(s *session) error { return e.rename(ctx, s, from, to) })
	if err != nil {
		return fmt.Errorf("rename %s to %s: %w", from, to.ID, err)
	}
	return nil
}

func (e *Engine) rename(ctx context.Context, s *session, from string, to *ingest.Document) error {
	if to.ID != to.Root+"/"+to.Path {
		return fmt.Errorf("the new id is not its root %q and its path %q", to.Root, to.Path)
	}
	if err := e.lockDocuments(ctx, s, from, to.ID); err != nil {
		return err
	}
	var row documentRow
	err := s.row(ctx, `SELECT key, title, digest FROM ibid.documents WHERE sha256(id) = sha256($1)`, []byte(from)).Scan(&row.key, &row.title, &row.digest)
	if errors.Is(err, pgx.ErrNoRows) {
		return retrieve.ErrNotFound
	}
	if err != nil {
		return err
	}
	if string(row.digest) != to.Digest {
		return errors.New("the file has another content")
	}
	collection, err := collectionOf(ctx, s, to.Root)
	if err != nil {
		return err
	}
	var by totals
	if to.ID != from {
		if taken, err := keyOf(ctx, s, to.ID); err != nil {
			return err
		} else if taken != 0 {
			spaces, err := readSpaces(ctx, s)
			if err != nil {
				return err
			}
			if by, err = e.erase(ctx, s, spaces, taken); err != nil {
				return err
			}
		}
		if err := e.renameInRecords(ctx, s, from, to.ID); err != nil {
			return err
		}
	}
	retitled := string(row.title) != to.Title
	if err := row.describe(to, collection); err != nil {
		return err
	}
	_, err = s.exec(ctx, `UPDATE ibid.documents SET id = $2, root = $3, path = $4, collection = $5, title = $6, meta = $7,
		tags = $8, authors = $9, languages = $10, first_day = $11, last_day = $12 WHERE key = $1`,
		row.key, row.id, row.root, row.path, row.collection, row.title, row.meta, row.tags, row.authors, row.languages, row.firstDay, row.lastDay)
	if err != nil {
		return err
	}
	if retitled {
		change, err := e.analyse(ctx, s, row.key)
		if err != nil {
			return err
		}
		by.add(change)
	}
	return e.changed(ctx, s, by)
}

// Delete removes a document and every trace of it.
func (e *Engine) Delete(ctx context.Context, document string) error {
	err := e.update(ctx, func(s *session) error {
		if err := e.lockDocuments(ctx, s, document); err != nil {
			return err
		}
		if _, err := s.exec(ctx, `DELETE FROM ibid.listings WHERE sha256(id) = sha256($1)`, []byte(document)); err != nil {
			return err
		}
		key, err := keyOf(ctx, s, document)
		if err != nil || key == 0 {
			return err
		}
		if err := e.forgetRecordsOf(ctx, s, document); err != nil {
			return err
		}
		spaces, err := readSpaces(ctx, s)
		if err != nil {
			return err
		}
		by, err := e.erase(ctx, s, spaces, key)
		if err != nil {
			return err
		}
		return e.changed(ctx, s, by)
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", document, err)
	}
	return nil
}

// successor is the least byte string above all that begin with the prefix; nil
// where there is none.
func successor(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		return nil
	}
	end[len(end)-1]++
	return end
}
