package index

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"
)

// The lexicon of a segment is, in secPostings, for each 64 terms in ascending
// order their posting lists and then a block: the number of terms, the number of
// bytes of their lists, and for each term its length, its bytes, the number of
// its postings and the number of bytes of its list; all as varints. A termBlock
// in secBlocks says where a block is.
//
// A posting list begins with a skip for each 128 postings. Then follow the
// postings: for each 128 a byte with the width of the gaps, the gaps between
// their slots, their codes, and the counts of those with the code of manyTimes as
// varints. It is padded to a multiple of 4 bytes.
type termBlock struct {
	Start uint64 // offset in secPostings
	Size  uint64 // in bytes
}

const (
	blockTerms    = 64
	blockPostings = 128
)

// A skip is what a search needs to know of 128 postings to pass over them.
type skip struct {
	First uint32 // slot of the first
	End   uint32 // offset, after all skips, of the end of its bytes
	bound
}

const skipSize = int(unsafe.Sizeof(skip{}))

// A bound says how much a term can weigh in any of some chunks, whatever the mean
// length is.
type bound struct {
	Count  float32 // the highest
	Length float32 // the lowest length of a chunk for each time the term occurs in it
}

// A posting is the slot of a chunk with a term and its code, in 24 bits and 8.
type posting uint32

func (p posting) slot() int32 { return int32(p >> 8) }

// A code is the byte of a posting that says how much its term may weigh there:
// how often it occurs in the chunk, and a class of the chunk's length. Most terms
// occur once or twice in a chunk, so low counts have many classes. Counts of
// manyTimes and more have the same codes.
const (
	codes     = 256
	manyTimes = 15
	// endless is the length from which all chunks are of the last class.
	endless = 2048
)

// classes is how many classes of length a count has. No count has more than 1, and
// all together are codes.
var classes = [manyTimes + 1]int{1: 92, 60, 32, 16, 10, 6, 6, 4, 4, 4, 4, 4, 4, 4, 6}

// A codebook says what codes mean.
type codebook struct {
	class [endless + 1]uint8   // of a length, for a count of 1
	first [manyTimes + 1]uint8 // the code of a count in the shortest chunks

	// By code: the count, and the shortest and the longest chunk that has it.
	count             [codes]uint8
	shortest, longest [codes]float64
}

// book is the same on every machine: it is computed with whole numbers.
var book = newCodebook()

func newCodebook() *codebook {
	b := new(codebook)
	// The weight of a term is proportional to 1 / (length + a constant). So classes
	// are intervals of equal ratio of that: each class is longer by a 25th. The
	// constant is right for short chunks.
	const constant, parts = 64, 25
	class, next := 0, 0
	for length := range b.class {
		if length == next && length > 0 {
			class++
		}
		if length == next {
			next = length + max(1, (length+constant+parts-1)/parts)
		}
		b.class[length] = uint8(min(class, classes[1]-1))
	}
	code := 0
	for count := 1; count <= manyTimes; count++ {
		b.first[count] = uint8(code)
		for i := code; i < code+classes[count]; i++ {
			b.count[i], b.shortest[i] = uint8(count), math.Inf(1)
		}
		for length := range b.class {
			i := b.of(int32(count), int32(length))
			b.shortest[i] = min(b.shortest[i], float64(length))
			b.longest[i] = max(b.longest[i], float64(length))
		}
		b.longest[b.of(int32(count), endless)] = math.Inf(1)
		code += classes[count]
	}
	return b
}

// of returns the code of a count of at least 1, in a chunk of the length.
func (b *codebook) of(count, length int32) uint8 {
	count = min(count, manyTimes)
	class := int(b.class[min(length, endless)])
	return b.first[count] + uint8(class*classes[count]/classes[1])
}

// A lexiconWriter writes the lexicon of a segment, term by term.
type lexiconWriter struct {
	w       *writer
	start   uint64  // of the section
	lengths []int32 // by slot
	blocks  []termBlock

	terms  []byte // of the block begun
	n      int
	lists  uint64 // bytes of its lists
	buffer []byte
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
	l.blocks = append(l.blocks, termBlock{Start: l.w.size - l.start, Size: uint64(len(b))})
	l.w.write(b)
	l.w.pad(-int64(len(b)) & 3)
	l.terms, l.n, l.lists = l.terms[:0], 0, 0
}

// appendList appends a posting list.
func appendList(b []byte, list []occurrence, lengths []int32) []byte {
	skips := (len(list) + blockPostings - 1) / blockPostings
	b = slices.Grow(b, skips*skipSize+len(list)*3)[:skips*skipSize]
	body := len(b)
	for i := range skips {
		part := list[i*blockPostings : min((i+1)*blockPostings, len(list))]
		s := skip{First: uint32(part[0].slot), bound: bound{Length: float32(math.Inf(1))}}
		width, last := 1, part[0].slot
		for _, o := range part {
			switch gap := o.slot - last; {
			case gap > math.MaxUint16:
				width = 4
			case gap > math.MaxUint8:
				width = max(width, 2)
			}
			last = o.slot
			s.Count = max(s.Count, float32(o.count))
			s.Length = min(s.Length, float32(lengths[o.slot])/float32(o.count))
		}
		b = append(b, byte(width))
		last = part[0].slot
		for _, o := range part[1:] {
			gap := uint32(o.slot - last)
			switch width {
			case 1:
				b = append(b, byte(gap))
			case 2:
				b = binary.LittleEndian.AppendUint16(b, uint16(gap))
			default:
				b = binary.LittleEndian.AppendUint32(b, gap)
			}
			last = o.slot
		}
		for _, o := range part {
			b = append(b, book.of(o.count, lengths[o.slot]))
		}
		for _, o := range part {
			if o.count >= manyTimes {
				b = binary.AppendUvarint(b, uint64(o.count))
			}
		}
		s.End = uint32(len(b) - body)
		copy(b[i*skipSize:], bytesOf([]skip{s}))
	}
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// A list is the posting list of a term in a segment, unread.
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

// decode reads the i-th 128 postings into out, and returns how many there are and
// the counts of those with the code of manyTimes.
func (l *list) decode(skips []skip, i int, out *[blockPostings]posting) (n int, many []byte) {
	n = min(blockPostings, l.n-i*blockPostings)
	from := uint32(0)
	if i > 0 {
		from = skips[i-1].End
	}
	body := uint64(len(skips) * skipSize)
	if skips[i].End < from || body+uint64(skips[i].End) > uint64(l.size) {
		l.segment.fail("a posting list is malformed")
	}
	b := l.segment.view(secPostings, l.start+body+uint64(from), int(skips[i].End-from))
	if len(b) < 1 || (b[0] != 1 && b[0] != 2 && b[0] != 4) || len(b) < 1+int(b[0])*(n-1)+n {
		l.segment.fail("a posting list is malformed")
	}
	width := int(b[0])
	gaps, codes := b[1:1+width*(n-1)], b[1+width*(n-1):][:n]
	slot := skips[i].First
	out[0] = posting(slot<<8 | uint32(codes[0]))
	rest := out[1:n]
	codes = codes[1:]
	switch width {
	case 1:
		for j := range rest {
			slot += uint32(gaps[j])
			rest[j] = posting(slot<<8 | uint32(codes[j]))
		}
	case 2:
		for j := range rest {
			slot += uint32(binary.LittleEndian.Uint16(gaps[2*j:]))
			rest[j] = posting(slot<<8 | uint32(codes[j]))
		}
	default:
		for j := range rest {
			slot += binary.LittleEndian.Uint32(gaps[4*j:])
			rest[j] = posting(slot<<8 | uint32(codes[j]))
		}
	}
	if slot >= l.segment.Chunks {
		l.segment.fail("a posting list is malformed")
	}
	return n, b[1+width*(n-1)+n:]
}

// each calls f with every occurrence, in the order of their slots.
func (l *list) each(f func(o occurrence)) {
	var buffer [blockPostings]posting
	skips := l.skips()
	for i := range skips {
		n, many := l.decode(skips, i, &buffer)
		for _, p := range buffer[:n] {
			var count int32
			count, many = nextCount(p, many)
			f(occurrence{p.slot(), count})
		}
	}
}

// nextCount returns how often the term of a posting occurs in its chunk. many are
// the counts for it and the postings after it; those after it are returned.
func nextCount(p posting, many []byte) (int32, []byte) {
	if c := int32(book.count[uint8(p)]); c < manyTimes {
		return c, many
	}
	u := unpacker{rest: many}
	return int32(u.number()), u.rest
}

// lookup returns the posting list of a term.
func (s *segment) lookup(term string) (l list, ok bool) {
	low, high := 0, int(s.Blocks)
	for low < high { // find the first block that begins after the term
		middle := (low + high) / 2
		t := s.termsOf(middle)
		t.next()
		if string(t.term) <= term {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 {
		return list{}, false
	}
	for t := s.termsOf(low - 1); t.next(); {
		if string(t.term) == term {
			return t.list, true
		}
	}
	return list{}, false
}

// terms are those of one block of a lexicon, one after the other.
type terms struct {
	unpacker
	left int
	at   uint64 // offset of the next list
	term []byte
	list list
}

// termsOf returns the terms of a block.
func (s *segment) termsOf(block int) terms {
	b := cast[termBlock](s.view(secBlocks, uint64(block)*uint64(unsafe.Sizeof(termBlock{})), int(unsafe.Sizeof(termBlock{}))))[0]
	if b.Size > math.MaxInt32 {
		s.fail("a block of terms has an impossible size")
	}
	t := terms{unpacker: unpacker{rest: s.view(secPostings, b.Start, int(b.Size))}, list: list{segment: s}}
	t.left = int(min(t.number(), blockTerms))
	t.at = b.Start - t.number()
	return t
}

func (t *terms) next() bool {
	if t.left == 0 {
		return false
	}
	t.left--
	t.term = t.bytes()
	n, size := t.number(), t.number()
	if n == 0 || n > uint64(t.list.segment.Chunks) || size > math.MaxUint32 || t.at%4 != 0 {
		t.list.segment.fail("a posting list is malformed")
	}
	t.list.n, t.list.size, t.list.start = int(n), int(size), t.at
	t.at += size
	return true
}

// A dictionary goes through all terms of a segment.
type dictionary struct {
	terms
	segment *segment
	block   int
}

// next moves to the next term; it reports whether there is one.
func (d *dictionary) next() bool {
	for !d.terms.next() {
		if d.block == int(d.segment.Blocks) {
			return false
		}
		d.terms = d.segment.termsOf(d.block)
		d.block++
	}
	return true
}
