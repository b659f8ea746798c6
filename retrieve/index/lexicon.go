package index

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"unsafe"
)

// The lexicon of a segment is in secPostings. For each 64 terms in ascending order it has their
// posting lists, followed by a block: the number of terms, the number of bytes of their lists, and
// for each term its length, its bytes, the number of its postings and the number of bytes of its
// list; all as varints. A termBlock in secBlocks gives the place of a block.
//
// A posting list begins with a skip for each 128 postings. The postings follow as varints: the
// difference of the slot from the previous one, or from the skip's first, and the number of
// occurrences of the term. The list is padded to a multiple of 4 bytes.
type termBlock struct {
	Start uint64 // offset in secPostings
	Size  uint64 // in bytes
}

const (
	blockTerms    = 64
	blockPostings = 128
)

// A skip summarizes 128 postings, so that a search can pass over them.
type skip struct {
	First uint32 // slot of the first posting
	End   uint32 // offset, after all skips, of the end of the postings
	// Count is the highest count, and Length the lowest length of a chunk per occurrence of the
	// term. They bound the weight of the term in any of the chunks, whatever the mean length is.
	Count, Length float32
}

const skipSize = int(unsafe.Sizeof(skip{}))

// A lexiconWriter writes the lexicon of a segment, term by term.
type lexiconWriter struct {
	w       *writer
	lengths []int32 // by slot
	blocks  []termBlock

	terms  []byte // of the current block
	n      int
	lists  uint64 // bytes of the current block's lists
	buffer []byte // for encoding a list
}

func (l *lexiconWriter) add(term []byte, list []occurrence) {
	l.buffer = appendList(l.buffer[:0], list, l.lengths)
	l.w.write(l.buffer)
	l.lists += uint64(len(l.buffer))
	l.terms = binary.AppendUvarint(l.terms, uint64(len(term)))
	l.terms = append(l.terms, term...)
	l.terms = binary.AppendUvarint(l.terms, uint64(len(list)))
	l.terms = binary.AppendUvarint(l.terms, uint64(len(l.buffer)))
	if l.n++; l.n == blockTerms {
		l.endBlock()
	}
}

func (l *lexiconWriter) endBlock() {
	if l.n == 0 {
		return
	}
	b := binary.AppendUvarint(nil, uint64(l.n))
	b = binary.AppendUvarint(b, l.lists)
	b = append(b, l.terms...)
	l.blocks = append(l.blocks, termBlock{Start: l.w.size - l.w.Starts[secPostings], Size: uint64(len(b))})
	l.w.write(b)
	l.w.align(4)
	l.terms, l.n, l.lists = l.terms[:0], 0, 0
}

// appendList appends a posting list.
func appendList(b []byte, list []occurrence, lengths []int32) []byte {
	skips := (len(list) + blockPostings - 1) / blockPostings
	b = slices.Grow(b, skips*skipSize+2*len(list))[:skips*skipSize]
	body := len(b)
	for i := range skips {
		part := list[i*blockPostings : min((i+1)*blockPostings, len(list))]
		s := skip{First: uint32(part[0].slot), Length: math.MaxFloat32}
		last := part[0].slot
		for _, o := range part {
			b = binary.AppendUvarint(b, uint64(o.slot-last))
			b = binary.AppendUvarint(b, uint64(o.count))
			last = o.slot
			s.Count = max(s.Count, float32(o.count))
			s.Length = min(s.Length, float32(lengths[o.slot])/float32(o.count))
		}
		s.End = uint32(len(b) - body)
		copy(b[i*skipSize:], bytesOf([]skip{s}))
	}
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// A list locates the posting list of a term in a segment.
type list struct {
	segment *segment
	start   uint64 // offset in secPostings
	n       int    // number of postings
	size    int    // in bytes
}

// skips returns the skips of the list.
func (l *list) skips() []skip {
	return cast[skip](l.segment.view(secPostings, l.start, (l.n+blockPostings-1)/blockPostings*skipSize))
}

// A postings is the decoded part of a list that one skip describes.
type postings struct {
	n             int
	slots, counts [blockPostings]int32
}

// decode decodes the postings of the i-th skip.
func (l *list) decode(skips []skip, i int, out *postings) {
	out.n = min(blockPostings, l.n-i*blockPostings)
	from := uint32(0)
	if i > 0 {
		from = skips[i-1].End
	}
	body := uint64(len(skips) * skipSize)
	if skips[i].End <= from || body+uint64(skips[i].End) > uint64(l.size) {
		l.segment.panicDamaged("a posting list is malformed")
	}
	b := l.segment.view(secPostings, l.start+body+uint64(from), int(skips[i].End-from))
	slot := int32(skips[i].First)
	for j := range out.n {
		gap, count, n := uint64(b[0]), uint64(b[1]), 2
		if gap|count >= 0x80 { // not both are single bytes
			gap, n = binary.Uvarint(b)
			value, m := binary.Uvarint(b[n:])
			count, n = value, n+m
		}
		b = b[n:]
		slot += int32(gap)
		out.slots[j], out.counts[j] = slot, int32(count)
	}
	if slot < 0 || slot >= int32(l.segment.Chunks) {
		l.segment.panicDamaged("a posting list is malformed")
	}
}

// each calls f with every occurrence, ordered by slot.
func (l *list) each(f func(slot, count int32)) {
	var p postings
	skips := l.skips()
	for i := range skips {
		l.decode(skips, i, &p)
		for j, slot := range p.slots[:p.n] {
			f(slot, p.counts[j])
		}
	}
}

// lookup returns the posting list of a term.
func (s *segment) lookup(term string) (l list, ok bool) {
	block := sort.Search(int(s.Blocks), func(i int) bool { // the first block that begins after the term
		d := dictionary{list: list{segment: s}, block: i}
		return d.next() && string(d.term) > term
	})
	if block == 0 {
		return list{}, false
	}
	d := dictionary{list: list{segment: s}, block: block - 1}
	for d.next() && string(d.term) < term {
	}
	return d.list, d.term != nil && string(d.term) == term
}

// A dictionary iterates over the terms of a segment and their lists, from the beginning of a block.
type dictionary struct {
	block  int // the next block
	terms  unpacker
	left   int    // remaining terms of the block
	offset uint64 // offset of the next list
	term   []byte
	list
}

// next moves to the next term. It reports whether there is one.
func (d *dictionary) next() bool {
	s := d.segment
	for d.left == 0 {
		if d.block == int(s.Blocks) {
			d.term = nil
			return false
		}
		b := cast[termBlock](s.view(secBlocks, uint64(d.block)*uint64(unsafe.Sizeof(termBlock{})), int(unsafe.Sizeof(termBlock{}))))[0]
		d.terms.rest = s.view(secPostings, b.Start, int(b.Size))
		d.block, d.left = d.block+1, int(d.terms.number())
		d.offset = b.Start - d.terms.number()
	}
	d.left--
	d.term = d.terms.bytes()
	n, size := d.terms.number(), d.terms.number()
	if n == 0 || n > uint64(s.Chunks) || size > math.MaxUint32 || d.offset%4 != 0 {
		s.panicDamaged("a posting list is malformed")
	}
	d.n, d.size, d.start = int(n), int(size), d.offset
	d.offset += size
	return true
}
