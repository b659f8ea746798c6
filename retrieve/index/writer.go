package index

import (
	"context"
	"hash/crc32"
	"io"
	"iter"
	"unsafe"
)

// A content is what a segment is written from: the documents, and functions that
// return the rest piece by piece.
type content struct {
	revision int64
	dims     int
	// The documents, in the order of their numbers. A document has the slots from
	// firsts[i] to before firsts[i+1].
	numbers, generations []int64
	firsts               []uint32
	info                 func(document int) []byte
	lengths              []int32 // by slot
	// rows returns the bytes of a document in one of the sections secCodes to
	// secVectors.
	rows func(section, document int) []byte
	// terms are in ascending order, and each has the chunks with it in the order
	// of their slots. The slices are valid until the next.
	terms iter.Seq2[[]byte, []occurrence]
}

// An occurrence is how often a term occurs in the chunk of a slot.
type occurrence struct{ slot, count int32 }

// write writes the segment. It panics with a *damage if what it is made from is
// damaged.
func (c *content) write(ctx context.Context, to io.Writer) (err error) {
	w := &writer{to: to, block: make([]byte, 0, blockSize)}
	t := trailer{Magic: magic, Revision: c.revision, Dims: uint32(c.dims), Documents: uint32(len(c.numbers)), Chunks: uint32(len(c.lengths))}
	for _, n := range c.lengths {
		t.Words += int64(n)
	}
	for section := range secLengths {
		t.Starts[section] = w.section()
		for document := range c.numbers {
			w.write(c.rows(section, document))
			if document%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
		}
		w.pad(t.least(section) - int64(len(c.lengths)*t.width(section)))
	}
	t.Starts[secLengths] = w.section()
	w.write(bytesOf(c.lengths))
	t.Starts[secNumbers] = w.section()
	w.write(bytesOf(c.numbers))
	t.Starts[secGenerations] = w.section()
	w.write(bytesOf(c.generations))
	t.Starts[secFirsts] = w.section()
	w.write(bytesOf(c.firsts))
	c.records(w, &t)
	t.Starts[secPostings] = w.section()
	lexicon := lexiconWriter{w: w, start: w.size, lengths: c.lengths}
	n := 0
	for term, list := range c.terms {
		lexicon.add(term, list)
		if n++; n%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	lexicon.endBlock()
	t.Blocks = uint32(len(lexicon.blocks))
	t.Starts[secBlocks] = w.section()
	w.write(bytesOf(lexicon.blocks))
	t.Starts[sections] = w.section()
	return w.finish(&t)
}

// records writes the documents' records.
func (c *content) records(w *writer, t *trailer) {
	ends, end := make([]uint64, len(c.numbers)), uint64(0)
	for document := range ends {
		end += uint64(len(c.info(document)))
		ends[document] = end
	}
	t.Starts[secInfoEnds] = w.section()
	w.write(bytesOf(ends))
	t.Starts[secInfo] = w.section()
	for document := range ends {
		w.write(c.info(document))
	}
}

// A writer writes a segment and computes the checksums of its blocks.
type writer struct {
	to    io.Writer
	block []byte // begun and not yet written
	size  uint64 // of what was written, with the block
	sums  []uint32
	err   error // the first
}

func (w *writer) write(p []byte) {
	w.size += uint64(len(p))
	for len(p) > 0 {
		n := min(len(p), blockSize-len(w.block))
		w.block = append(w.block, p[:n]...)
		if p = p[n:]; len(w.block) == blockSize {
			w.flush()
		}
	}
}

func (w *writer) flush() {
	if len(w.block) == 0 {
		return
	}
	w.sums = append(w.sums, crc32.Checksum(w.block, castagnoli))
	if w.err == nil {
		_, w.err = w.to.Write(w.block)
	}
	w.block = w.block[:0]
}

var zeros [blockSize]byte

// pad writes n zeros.
func (w *writer) pad(n int64) {
	for n > 0 {
		m := min(n, blockSize)
		w.write(zeros[:m])
		n -= m
	}
}

// section begins a section, and returns where.
func (w *writer) section() uint64 {
	w.pad(int64(-w.size % 64))
	return w.size
}

// finish writes the checksums and the trailer.
func (w *writer) finish(t *trailer) error {
	w.flush()
	if len(w.sums)%2 != 0 {
		w.sums = append(w.sums, 0) // the trailer is at a multiple of 8
	}
	table := bytesOf(w.sums)
	t.TableSum = crc32.Checksum(table, castagnoli)
	t.Sum = t.sum()
	for _, b := range [][]byte{table, unsafe.Slice((*byte)(unsafe.Pointer(t)), trailerSize)} {
		if w.err == nil {
			_, w.err = w.to.Write(b)
		}
	}
	return w.err
}
