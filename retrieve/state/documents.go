package state

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"unsafe"

	"ibid/ingest"
	"ibid/retrieve"
)

// ordinalBits is the number of bits of a chunk's key that contain its ordinal.
const ordinalBits = 20

// maxChunks is the largest number of chunks of one document.
const maxChunks = 1<<ordinalBits - 1

func chunkKey(document int64, ordinal int) int64 { return document<<ordinalBits | int64(ordinal) }

// keyRange returns the first and the last possible key of the document's chunks.
func keyRange(document int64) (first, last int64) {
	return document << ordinalBits, (document+1)<<ordinalBits - 1
}

// A documentRow is a document as stored in its table.
type documentRow struct {
	retrieve.DocumentInfo
	key               []byte
	meta              []byte // in JSON
	textSum, chunkSum int64
}

const (
	documentValues  = `number, key, id, root, path, collection, title, format, digest, meta, chunks, pages, bytes, text_sum, chunk_sum`
	documentColumns = documentValues + `, sum`
)

func (d *documentRow) dest() []any {
	return []any{&d.Number, &d.key, &d.ID, &d.Root, &d.Path, &d.Collection, &d.Title, &d.Format, &d.Digest, &d.meta,
		&d.Chunks, &d.Pages, &d.Bytes, &d.textSum, &d.chunkSum}
}

func scanDocument(r scanner) (d documentRow, err error) {
	if err = scanChecked(r, d.dest()...); err == nil {
		err = d.decode()
	}
	return d, err
}

// decode decodes the metadata.
func (d *documentRow) decode() error {
	if err := json.Unmarshal(d.meta, &d.Meta); err != nil {
		return fmt.Errorf("%w: its metadata: %w", errRow, err)
	}
	return nil
}

// describe sets the columns that a renaming changes, except the collection.
func (d *documentRow) describe(doc *ingest.Document) (err error) {
	key := retrieve.DigestOf(doc.ID)
	d.key, d.ID, d.Root, d.Path, d.Meta = key[:], doc.ID, doc.Root, doc.Path, doc.Meta
	d.meta, err = json.Marshal(doc.Meta)
	return err
}

// A chunkRow is a chunk as stored in its table.
type chunkRow struct {
	key    int64
	digest []byte // of its embedding text
	place  int    // the page, or the negated line
	ingest.Chunk
	sum int64
}

const chunkColumns = `key, digest, start, stop, place, tokens, heading, anchor, text, sum`

// scan reads a row and checks it. The row does not contain the document's id.
func (c *chunkRow) scan(r scanner) error {
	if err := r.Scan(append(c.dest(), &c.sum)...); err != nil {
		return err
	}
	c.decodePlace()
	if rowSum(c.dest()...) != c.sum {
		return errRow
	}
	return nil
}

func (c *chunkRow) dest() []any {
	return []any{&c.key, &c.digest, &c.Start, &c.End, &c.place, &c.Tokens, &c.Heading, &c.Anchor, &c.Text}
}

// decodePlace sets the ordinal, and the page or line, from the columns.
func (c *chunkRow) decodePlace() {
	c.Page, c.Line, c.Ordinal = max(0, c.place), max(0, -c.place), int(c.key&maxChunks)
}

// encodePlace sets the columns from the ordinal, and from the page or line.
func (c *chunkRow) encodePlace(document int64) {
	c.key, c.place = chunkKey(document, c.Ordinal), c.Page
	if c.Page == 0 {
		c.place = -c.Line
	}
}

// chunkOf returns the chunk with its id and the id of its document.
func (c *chunkRow) chunkOf(document string) *ingest.Chunk {
	c.Document, c.ID = document, retrieve.ChunkID(document, c.Ordinal)
	return &c.Chunk
}

// sumOf returns the checksum over the sums of a document's chunks in order.
func sumOf(sums []int64) int64 {
	columns := make([]any, len(sums)+1)
	columns[0] = len(sums)
	for i, s := range sums {
		columns[i+1] = s
	}
	return rowSum(columns...)
}

// errRow reports that a row differs from what was stored.
var errRow = errors.New("its checksum does not match")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// rowSum returns the checksum of a row: CRC-32C over its columns in order, with the length before
// each text. It detects every changed byte.
func rowSum(columns ...any) int64 {
	var sum uint32
	var buffer [8]byte
	number := func(n int64) {
		binary.LittleEndian.PutUint64(buffer[:], uint64(n))
		sum = crc32.Update(sum, castagnoli, buffer[:])
	}
	for _, c := range columns {
		switch c := plainValue(c).(type) {
		case int64:
			number(c)
		case []byte:
			number(int64(len(c)))
			sum = crc32.Update(sum, castagnoli, c)
		case string:
			number(int64(len(c)))
			sum = crc32.Update(sum, castagnoli, unsafe.Slice(unsafe.StringData(c), len(c)))
		}
	}
	return int64(sum)
}

// plainValue returns the value of a column, or of a pointer to a column, as an int64, a string or bytes.
// It panics for any other type.
func plainValue(v any) any {
	switch v := v.(type) {
	case int64, string, []byte:
		return v
	case int:
		return int64(v)
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case [32]byte:
		return v[:]
	case retrieve.Digest:
		return v[:]
	case *int64:
		return *v
	case *string:
		return *v
	case *[]byte:
		return *v
	case *int:
		return int64(*v)
	case *bool:
		return plainValue(*v)
	}
	panic(fmt.Sprintf("a column of type %T", v))
}

// A scanner is a row of a result.
type scanner interface{ Scan(dest ...any) error }

// scanChecked scans a row whose last column is the checksum over the preceding columns, which are
// scanned into dest in order. If the checksum differs, the error wraps errRow.
func scanChecked(r scanner, dest ...any) error {
	var sum int64
	if err := r.Scan(append(dest[:len(dest):len(dest)], &sum)...); err != nil {
		return err
	}
	if rowSum(dest...) != sum {
		return errRow
	}
	return nil
}
