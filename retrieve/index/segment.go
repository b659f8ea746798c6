package index

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"

	"ibid/retrieve"
	"ibid/retrieve/index/scan"
)

// A segment is a set of documents with everything that searches need of their
// chunks. It never changes. A chunk's slot is its place in the segment: the
// documents are in the order of their numbers, and the chunks of a document in
// theirs.
//
// A segment is one piece of memory: a mapped file, or made by [content.write] and
// not yet in a file. It has these sections, then a checksum for each block of
// them, then the trailer. Numbers have the byte order of the machine; a machine
// with the other order finds a magic number that it does not know.
type segment struct {
	trailer
	file   string // name of the file; empty in memory
	data   []byte
	mapped bool // data is a mapped file
	stride int

	sums    []uint32        // of the blocks
	checked []atomic.Uint32 // a bit for each block that was read and is undamaged; nil in memory
	selections
}

// The sections of a segment.
const (
	// Rows for each slot.
	secCodes     = iota // by [scan.Quantise]
	secScales           // float32, padded with zeros to a multiple of 64
	secResiduals        // float32, padded likewise
	secVectors          // float32 for each dimension
	secLengths          // int32: number of terms
	// For each document.
	secNumbers     // int64, ascending
	secGenerations // int64
	secFirsts      // uint32: first slot, and at the end the number of slots
	secInfoEnds    // uint64: where its record ends in secInfo
	secInfo        // records, by [packInfo]
	// The lexicon.
	secPostings // posting lists and blocks of terms, see lexiconWriter
	secBlocks   // a termBlock for each block of terms
	sections
)

// A trailer describes a segment. It is at the end of it.
type trailer struct {
	Magic                           uint64
	Revision                        int64 // the segment has no later change
	Words                           int64 // sum of the lengths of all chunks
	Dims, Documents, Chunks, Blocks uint32
	// Starts are the offsets of the sections and, last, of the checksums.
	Starts [sections + 1]uint64
	// TableSum is the checksum of the checksums, Sum of the trailer up to itself.
	TableSum, Sum uint32
}

const (
	magic       = 0x31_67_65_73_64_69_62_69 // "ibidseg1"
	trailerSize = int(unsafe.Sizeof(trailer{}))
	// blockSize is the number of bytes with one checksum: few, because a search
	// reads a vector here and there, and must check all of its block.
	blockSize = 16 << 10
	// maxChunks is the largest number of chunks in a segment: a posting has 24 bits
	// for the slot.
	maxChunks = 1 << 24
	maxDims   = 1 << 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is the checksum of the trailer's other fields.
func (t *trailer) sum() uint32 {
	return crc32.Checksum(unsafe.Slice((*byte)(unsafe.Pointer(t)), unsafe.Offsetof(t.Sum)), castagnoli)
}

// width is the number of bytes for each slot in a section of rows.
func (t *trailer) width(section int) int {
	switch section {
	case secCodes:
		return scan.Stride(int(t.Dims))
	case secVectors:
		return 4 * int(t.Dims)
	}
	return 4
}

// newSegment returns the segment in data. It reads the trailer and the
// checksums; the error is a *damage.
func newSegment(file string, data []byte, mapped bool) (*segment, error) {
	s := &segment{file: file, data: data, mapped: mapped}
	fault := func(what string) (*segment, error) { return nil, &damage{file: file, what: what} }
	at := len(data) - trailerSize
	if at < 0 || at%8 != 0 {
		return fault("it is cut short")
	}
	s.trailer = *(*trailer)(unsafe.Pointer(&data[at]))
	if s.Magic != magic || s.Sum != s.trailer.sum() {
		return fault("its end is not that of a segment")
	}
	if s.Dims == 0 || s.Dims > maxDims || s.Chunks == 0 || s.Chunks > maxChunks || s.Documents == 0 || s.Documents > s.Chunks {
		return fault("it has an impossible size")
	}
	for section := range sections {
		size := int64(s.Starts[section+1] - s.Starts[section])
		if s.Starts[section] > s.Starts[section+1] || s.Starts[section]%64 != 0 || size < s.least(section) {
			return fault("its sections do not follow one another")
		}
	}
	table := int64(s.Starts[sections])
	blocks := (table + blockSize - 1) / blockSize
	if table < 0 || table%8 != 0 || table+(4*blocks+7)/8*8 != int64(at) {
		return fault("it is cut short")
	}
	if s.sums = cast[uint32](data[table : table+4*blocks]); crc32.Checksum(data[table:at], castagnoli) != s.TableSum {
		return fault("its checksums are damaged")
	}
	if file != "" {
		s.checked = make([]atomic.Uint32, (blocks+31)/32)
	}
	s.stride = scan.Stride(int(s.Dims))
	return s, nil
}

// least is the least number of bytes in a section.
func (t *trailer) least(section int) int64 {
	documents := int64(t.Documents)
	switch section {
	case secNumbers, secGenerations, secInfoEnds:
		return 8 * documents
	case secFirsts:
		return 4 * (documents + 1)
	case secInfo, secPostings:
		return 0
	case secBlocks:
		return int64(t.Blocks) * int64(unsafe.Sizeof(termBlock{}))
	}
	rows := int64(t.Chunks)
	if section == secScales || section == secResiduals {
		rows = (rows + 63) / 64 * 64
	}
	return rows * int64(t.width(section))
}

// view returns n bytes of a section, from the offset start. It panics with a
// *damage if they are outside the section, or in a block whose checksum is wrong.
// [guard] returns that as an error.
func (s *segment) view(section int, start uint64, n int) []byte {
	from, to := s.Starts[section], s.Starts[section+1]
	if start > to-from || n < 0 || uint64(n) > to-from-start {
		s.fail("an offset is outside it")
	}
	from += start
	to = from + uint64(n)
	if s.checked != nil && n > 0 {
		for b := from / blockSize; b <= (to-1)/blockSize; b++ {
			if s.checked[b/32].Load()>>(b%32)&1 == 0 {
				s.check(b)
			}
		}
	}
	return s.data[from:to:to]
}

// check compares a block with its checksum.
func (s *segment) check(block uint64) {
	end := min((block+1)*blockSize, s.Starts[sections])
	if crc32.Checksum(s.data[block*blockSize:end], castagnoli) != s.sums[block] {
		s.fail(fmt.Sprintf("its bytes %d to %d have the wrong checksum", block*blockSize, end))
	}
	s.checked[block/32].Or(1 << (block % 32))
}

func (s *segment) fail(what string) { panic(&damage{file: s.file, what: what}) }

// rows returns the bytes of n slots in a section of rows.
func (s *segment) rows(section int, first int32, n int) []byte {
	width := s.width(section)
	return s.view(section, uint64(first)*uint64(width), n*width)
}

func (s *segment) vector(slot int32) []float32 { return cast[float32](s.rows(secVectors, slot, 1)) }

func (s *segment) length(slot int32) int { return int(item[int32](s, secLengths, int(slot))) }

// chunksOf returns the slots of a document: from first to before end.
func (s *segment) chunksOf(document int) (first, end int32) {
	pair := cast[uint32](s.view(secFirsts, 4*uint64(document), 8))
	if pair[0] >= pair[1] || pair[1] > s.Chunks {
		s.fail("a document has impossible chunks")
	}
	return int32(pair[0]), int32(pair[1])
}

// documentOf returns the document of a slot, and the slot of its first chunk.
func (s *segment) documentOf(slot int32) (document int, first int32) {
	low, high := 0, int(s.Documents)
	for high-low > 1 {
		middle := (low + high) / 2
		if item[uint32](s, secFirsts, middle) <= uint32(slot) {
			low = middle
		} else {
			high = middle
		}
	}
	return low, int32(item[uint32](s, secFirsts, low))
}

// find returns the document with a number.
func (s *segment) find(number int64) (document int, ok bool) {
	low, high := 0, int(s.Documents)
	if number > item[int64](s, secNumbers, high-1) {
		return 0, false
	}
	for low < high {
		middle := (low + high) / 2
		if item[int64](s, secNumbers, middle) < number {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < int(s.Documents) && item[int64](s, secNumbers, low) == number
}

func (s *segment) generation(document int) int64 { return item[int64](s, secGenerations, document) }

// info returns the record of a document.
func (s *segment) info(document int) []byte {
	start := uint64(0)
	if document > 0 {
		start = item[uint64](s, secInfoEnds, document-1)
	}
	end := item[uint64](s, secInfoEnds, document)
	if end < start || end-start > math.MaxInt32 {
		s.fail("a document's record has an impossible size")
	}
	return s.view(secInfo, start, int(end-start))
}

// id returns the id of a document. It is valid as long as the segment.
func (s *segment) id(document int) string { return (&unpacker{rest: s.info(document)}).text() }

// number is what sections other than the records consist of.
type number interface {
	~int32 | ~uint32 | ~int64 | ~uint64 | ~float32
}

// item returns one number of a section.
func item[T number](s *segment, section, i int) T {
	size := int(unsafe.Sizeof(T(0)))
	return *(*T)(unsafe.Pointer(&s.view(section, uint64(i)*uint64(size), size)[0]))
}

// cast returns bytes as the numbers that they are, in the same memory.
func cast[T any](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(t)))
}

// bytesOf is the inverse of cast.
func bytesOf[T any](numbers []T) []byte {
	if len(numbers) == 0 {
		return nil
	}
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(&numbers[0])), len(numbers)*int(unsafe.Sizeof(t)))
}

// openSegment maps the file of a segment, which must have the size and, unless it
// is nil, the sum of the trailer.
func openSegment(path, name string, size int64, sum *uint32) (*segment, error) {
	data, mapped, err := mapFile(path, size)
	if err != nil {
		return nil, err
	}
	var s *segment
	err = guard(func() (err error) {
		if s, err = newSegment(name, data, mapped); err == nil && sum != nil && s.Sum != *sum {
			err = &damage{file: name, what: "it is not the segment that was written"}
		}
		return err
	})
	if err != nil {
		unmap(data, mapped)
		return nil, err
	}
	if mapped {
		runtime.AddCleanup(s, func(data []byte) { unmap(data, true) }, data)
	}
	return s, nil
}

// A damage is an error that wraps [retrieve.ErrIndexDamaged].
type damage struct{ file, what string }

func (d *damage) Error() string {
	return fmt.Sprintf("%v: %s: %s", retrieve.ErrIndexDamaged, cmp.Or(d.file, "in memory"), d.what)
}

func (d *damage) Unwrap() error { return retrieve.ErrIndexDamaged }
