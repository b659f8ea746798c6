package state

import (
	"encoding/json"
	"fmt"

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

// A documentRow is a document as its table has it.
type documentRow struct {
	number                                                  int64
	key                                                     []byte
	id, root, path, collection, title, format, digest, meta string
	chunks, pages, bytes                                    int
	textSum, chunkSum                                       int64
}

const (
	documentValues  = `number, key, id, root, path, collection, title, format, digest, meta, chunks, pages, bytes, text_sum, chunk_sum`
	documentColumns = documentValues + `, sum`
)

func (d *documentRow) dest() []any {
	return []any{&d.number, &d.key, &d.id, &d.root, &d.path, &d.collection, &d.title, &d.format, &d.digest, &d.meta,
		&d.chunks, &d.pages, &d.bytes, &d.textSum, &d.chunkSum}
}

func scanDocument(r scanner) (d documentRow, err error) {
	err = checked(r, d.dest()...)
	return d, err
}

// describe sets the columns that a renaming changes, except the collection.
func (d *documentRow) describe(doc *ingest.Document) error {
	key := retrieve.DigestOf(doc.ID)
	d.key, d.id, d.root, d.path = key[:], doc.ID, doc.Root, doc.Path
	meta, err := json.Marshal(doc.Meta)
	d.meta = string(meta)
	return err
}

func (d *documentRow) info() (retrieve.DocumentInfo, error) {
	info := retrieve.DocumentInfo{
		Document:   ingest.Document{ID: d.id, Root: d.root, Path: d.path, Title: d.title, Format: d.format, Digest: d.digest},
		Collection: d.collection, Chunks: d.chunks, Pages: d.pages, Bytes: d.bytes, Number: d.number,
	}
	if err := json.Unmarshal([]byte(d.meta), &info.Meta); err != nil {
		return info, fmt.Errorf("%w: its metadata: %w", errRow, err)
	}
	return info, nil
}

// A chunkRow is a chunk as its table has it.
type chunkRow struct {
	key    int64
	digest []byte // of its embedding text
	place  int    // the page; the line below zero
	ingest.Chunk
	sum int64
}

const chunkColumns = `key, digest, start, stop, place, tokens, heading, anchor, text, sum`

// scan reads a row and checks it. The document's id is not in it.
func (c *chunkRow) scan(r scanner) error {
	if err := r.Scan(append(c.dest(), &c.sum)...); err != nil {
		return err
	}
	c.at()
	if rowSum(c.dest()...) != c.sum {
		return errRow
	}
	return nil
}

func (c *chunkRow) dest() []any {
	return []any{&c.key, &c.digest, &c.Start, &c.End, &c.place, &c.Tokens, &c.Heading, &c.Anchor, &c.Text}
}

// at sets the ordinal, and the page or line, from the columns.
func (c *chunkRow) at() {
	c.Page, c.Line, c.Ordinal = max(0, c.place), max(0, -c.place), int(c.key&maxChunks)
}

// placed sets the columns of an ordinal, and of a page or line.
func (c *chunkRow) placed(document int64) {
	c.key, c.place = chunkKey(document, c.Ordinal), c.Page
	if c.Page == 0 {
		c.place = -c.Line
	}
}

// of returns the chunk with the fields of its document.
func (c *chunkRow) of(document string) *ingest.Chunk {
	c.Document, c.ID = document, retrieve.ChunkID(document, c.Ordinal)
	return &c.Chunk
}

// sumOf is the checksum over the sums of a document's chunks in order.
func sumOf(sums []int64) int64 {
	columns := make([]any, len(sums)+1)
	columns[0] = len(sums)
	for i, s := range sums {
		columns[i+1] = s
	}
	return rowSum(columns...)
}
