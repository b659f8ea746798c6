package index

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"maps"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"ibid/retrieve"
	"ibid/retrieve/index/scan"
)

// A prepared is a change with the data that a segment stores about it.
type prepared struct {
	*retrieve.Change
	dims    int // dimensions of the vectors, if any
	info    []byte
	rows    [secLengths][]byte
	terms   [][]retrieve.TermCount // of each chunk
	lengths []int32
}

// prepare prepares changes, on all processors.
func prepare(ctx context.Context, changes []retrieve.Change) ([]prepared, error) {
	all := make([]prepared, len(changes))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range changes {
		all[i].Change = &changes[i]
		g.Go(func() error { return cmp.Or(ctx.Err(), all[i].prepare()) })
	}
	return all, g.Wait()
}

// prepare counts the terms of the chunks and rounds their vectors.
func (p *prepared) prepare() error {
	if p.Deleted || len(p.Chunks) == 0 {
		return nil
	}
	p.dims, p.info = len(p.Chunks[0].Vector), packInfo(&p.Info)
	row := make([]byte, scan.Stride(p.dims))
	for i, c := range p.Chunks {
		unit, err := retrieve.Unit(c.Vector, p.dims)
		if err != nil {
			return fmt.Errorf("indexing %s: its chunk %d: %w", p.Info.ID, i+1, err)
		}
		scale, residual := scan.Quantise(row, unit)
		for section, b := range [...][]byte{
			secCodes: row, secScales: bytesOf([]float32{scale}), secResiduals: bytesOf([]float32{residual}), secVectors: bytesOf(unit),
		} {
			p.rows[section] = append(p.rows[section], b...)
		}
		terms, length := retrieve.CountTerms(c.Text)
		p.terms, p.lengths = append(p.terms, terms), append(p.lengths, int32(length))
	}
	return nil
}

// build returns a segment in memory of documents with at least one chunk each.
func build(documents []prepared) (*segment, error) {
	slices.SortFunc(documents, func(a, b prepared) int { return cmp.Compare(a.Document, b.Document) })
	c := content{dims: documents[0].dims, firsts: []uint32{0}}
	found := make(map[string][]occurrence)
	for _, d := range documents {
		c.revision = max(c.revision, d.Revision)
		for i, terms := range d.terms {
			for _, t := range terms {
				found[t.Term] = append(found[t.Term], occurrence{int32(len(c.lengths)), int32(t.Count)})
			}
			c.lengths = append(c.lengths, d.lengths[i])
		}
		c.numbers, c.generations, c.firsts = append(c.numbers, d.Document), append(c.generations, d.Revision),
			append(c.firsts, uint32(len(c.lengths)))
	}
	c.info = func(document int) []byte { return documents[document].info }
	c.rows = func(section, document int) []byte { return documents[document].rows[section] }
	c.terms = func(yield func([]byte, []occurrence) bool) {
		for _, term := range slices.Sorted(maps.Keys(found)) {
			if !yield([]byte(term), found[term]) {
				return
			}
		}
	}
	return c.segment()
}

// segment returns the content as a segment in memory.
func (c *content) segment() (*segment, error) {
	var b bytes.Buffer
	if _, err := c.write(context.Background(), &b); err != nil {
		return nil, err
	}
	return newSegment("", b.Bytes())
}

// merged returns the content of the parts without deleted chunks, or nil if no chunks remain.
func merged(parts []part) *content {
	type origin struct {
		part, document int
		number         int64
	}
	var all []origin
	for i := range parts {
		p := &parts[i]
		for _, document := range p.selectDocuments(func(int) bool { return true }) {
			all = append(all, origin{i, document, p.number(document)})
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b origin) int { return cmp.Compare(a.number, b.number) })
	c := &content{dims: int(parts[0].Dims), firsts: []uint32{0}}
	moved := make([][]int32, len(parts)) // the new slot of each slot, or -1 for a deleted chunk
	for i := range parts {
		c.revision = max(c.revision, parts[i].Revision)
		moved[i] = slices.Repeat([]int32{-1}, int(parts[i].Chunks))
	}
	for _, o := range all {
		s := parts[o.part].segment
		first, end := s.chunksOf(o.document)
		for slot := first; slot < end; slot++ {
			moved[o.part][slot] = int32(len(c.lengths))
			c.lengths = append(c.lengths, int32(s.length(slot)))
		}
		c.numbers, c.generations = append(c.numbers, o.number), append(c.generations, s.generation(o.document))
		c.firsts = append(c.firsts, uint32(len(c.lengths)))
	}
	c.info = func(document int) []byte { return parts[all[document].part].info(all[document].document) }
	c.rows = func(section, document int) []byte {
		s := parts[all[document].part].segment
		first, end := s.chunksOf(all[document].document)
		return s.rows(section, first, int(end-first))
	}
	c.terms = mergedTerms(parts, moved)
	return c
}

// mergedTerms returns the terms of the parts, with their new slots.
func mergedTerms(parts []part, moved [][]int32) iter.Seq2[[]byte, []occurrence] {
	return func(yield func([]byte, []occurrence) bool) {
		open := make([]*dictionary, len(parts))
		for i := range parts {
			open[i] = &dictionary{list: list{segment: parts[i].segment}}
			open[i].next()
		}
		var found []occurrence
		for {
			var least []byte
			for _, d := range open {
				if d.term != nil && (least == nil || bytes.Compare(d.term, least) < 0) {
					least = d.term
				}
			}
			if least == nil {
				return
			}
			found = found[:0]
			for i, d := range open {
				if !bytes.Equal(d.term, least) || d.term == nil {
					continue
				}
				d.each(func(slot, count int32) {
					if slot = moved[i][slot]; slot >= 0 {
						found = append(found, occurrence{slot, count})
					}
				})
				d.next()
			}
			ascending := func(a, b occurrence) int { return int(a.slot - b.slot) }
			if !slices.IsSortedFunc(found, ascending) {
				slices.SortFunc(found, ascending)
			}
			if len(found) > 0 && !yield(least, found) {
				return
			}
		}
	}
}

// A content is the input of a segment's writer: the documents, and functions that return their data
// piece by piece.
type content struct {
	revision int64
	dims     int
	// The documents, ordered by number. Document i has the slots from firsts[i] up to but not
	// including firsts[i+1].
	numbers, generations []int64
	firsts               []uint32
	info                 func(document int) []byte
	lengths              []int32 // by slot
	// rows returns the bytes of a document in one of the sections secCodes to secVectors.
	rows func(section, document int) []byte
	// terms yields the terms in ascending order, each with the chunks that contain it, ordered by
	// slot. The slices are valid until the next iteration.
	terms iter.Seq2[[]byte, []occurrence]
}

// An occurrence is the number of times that a term occurs in the chunk of a slot.
type occurrence struct{ slot, count int32 }

// write writes the segment, and returns the checksum of its trailer. It panics with a *damage if
// its sources are damaged.
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
	block []byte // not written yet
	size  uint64 // number of bytes so far, including block
	sums  []uint32
	err   error // the first error
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

// align writes zeros up to a multiple of n, which is at most 64.
func (w *writer) align(n uint64) {
	var zeros [64]byte
	w.write(zeros[:-w.size%n])
}

func (w *writer) begin(section int) {
	w.align(64)
	w.Starts[section] = w.size
}

// finish writes the checksums and the trailer, and returns the trailer's checksum.
func (w *writer) finish() (sum uint32, err error) {
	if len(w.block) > 0 {
		w.flush()
	}
	if len(w.sums)%2 != 0 {
		w.sums = append(w.sums, 0) // the trailer starts at a multiple of 8
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
