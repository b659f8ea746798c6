package index

import (
	"context"
	"hash/crc32"
	"io"
	"iter"
	"slices"

	"ibid/retrieve/index/scan"
)

// A content is the input of a segment's writer: the documents, and functions
// that return the rest piece by piece.
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

// write writes the segment, and returns the sum of its trailer. It panics with
// a *damage if its sources are damaged.
func (c *content) write(ctx context.Context, to io.Writer) (sum uint32, err error) {
	w := &writer{ctx: ctx, to: to, block: make([]byte, 0, blockSize)}
	w.Magic, w.Revision, w.Dims, w.Documents, w.Chunks = magic, c.revision, uint32(c.dims), uint32(len(c.numbers)), uint32(len(c.lengths))
	for section := range secLengths {
		w.begin(section)
		for document := 0; document < len(c.numbers) && w.err == nil; document++ {
			w.write(c.rows(section, document))
		}
	}
	for _, n := range c.lengths {
		w.Words += int64(n)
	}
	ends, end := make([]uint64, len(c.numbers)), uint64(0)
	for document := range ends {
		end += uint64(len(c.info(document)))
		ends[document] = end
	}
	for i, column := range [][]byte{bytesOf(c.lengths), bytesOf(c.numbers), bytesOf(c.generations), bytesOf(c.firsts), bytesOf(ends)} {
		w.begin(secLengths + i)
		w.write(column)
	}
	w.begin(secInfo)
	for document := range ends {
		w.write(c.info(document))
	}
	w.begin(secPostings)
	lexicon := lexiconWriter{w: w, lengths: c.lengths}
	for term, list := range c.terms {
		if lexicon.add(term, list); w.err != nil {
			return 0, w.err
		}
	}
	lexicon.endBlock()
	w.begin(secBlocks)
	w.Blocks = uint32(len(lexicon.blocks))
	w.write(bytesOf(lexicon.blocks))
	w.align(64)
	stride, signs := scan.Stride(c.dims), []byte(nil)
	for document := 0; document < len(c.numbers) && w.err == nil; document++ {
		for row := range slices.Chunk(c.rows(secCodes, document), stride) {
			signs = scan.Signs(signs[:0], row, c.dims)
			w.write(signs)
		}
	}
	w.begin(sections)
	return w.finish()
}

// A writer writes a segment and computes the checksums of its blocks.
type writer struct {
	trailer
	ctx   context.Context
	to    io.Writer
	block []byte // begun and not yet written
	size  uint64 // of the written bytes, with the block
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
	w.sums = append(w.sums, crc32.Checksum(w.block, castagnoli))
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err == nil {
		_, w.err = w.to.Write(w.block)
	}
	w.block = w.block[:0]
}

// align writes zeros up to a multiple of n, which is not more than 64.
func (w *writer) align(n uint64) {
	var zeros [64]byte
	w.write(zeros[:-w.size%n])
}

func (w *writer) begin(section int) {
	w.align(64)
	w.Starts[section] = w.size
}

// finish writes the checksums and the trailer, and returns its sum.
func (w *writer) finish() (sum uint32, err error) {
	if len(w.block) > 0 {
		w.flush()
	}
	if len(w.sums)%2 != 0 {
		w.sums = append(w.sums, 0) // the trailer is at a multiple of 8
	}
	table := bytesOf(w.sums)
	w.TableSum = crc32.Checksum(table, castagnoli)
	w.Sum = w.trailer.sum()
	for _, b := range [][]byte{table, bytesOf([]trailer{w.trailer})} {
		if w.err == nil {
			_, w.err = w.to.Write(b)
		}
	}
	return w.Sum, w.err
}
