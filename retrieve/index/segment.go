package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"sync/atomic"
	"unsafe"

	"ibid/retrieve"
	"ibid/retrieve/disk"
	"ibid/retrieve/index/scan"
)

// A segment is a set of documents with all the data that searches need. It never changes. A chunk's
// slot is its index in the segment: documents are ordered by number, and the chunks of a document
// by ordinal.
//
// A segment is one piece of memory, either a mapped file or written by [content.write] and not in a
// file yet. It consists of the sections below, a checksum for each of their blocks, and the
// trailer. Numbers have the byte order of the machine; a machine with the other order does not
// recognise the magic number.
type segment struct {
	trailer
	file string // empty if the segment is in memory
	data []byte

	sums    []uint32        // of the blocks
	checked []atomic.Uint32 // a bit for each block that was read and is undamaged; nil in memory
	selections
}

// The sections of a segment.
const (
	// A row for each slot.
	secCodes     = iota // by [scan.Quantise]
	secScales           // float32
	secResiduals        // float32
	secVectors          // float32 for each dimension
	secLengths          // int32: number of terms
	// For each document.
	secNumbers     // int64, ascending
	secGenerations // int64
	secFirsts      // uint32: first slot; the number of slots at the end
	secInfoEnds    // uint64: the end of its record in secInfo
	secInfo        // records, by [packInfo]
	// The lexicon.
	secPostings // posting lists and blocks of terms, see lexiconWriter
	// A termBlock for each block of terms, followed, at a multiple of 64, by the [scan.Signs] of
	// each slot.
	secBlocks
	sections
)

// A trailer describes a segment, and is its last part.
type trailer struct {
	Magic                           uint64
	Revision                        int64 // of the latest change in the segment
	Words                           int64 // sum of the lengths of all chunks
	Dims, Documents, Chunks, Blocks uint32
	// Starts are the offsets of the sections and, last, of the checksums.
	Starts [sections + 1]uint64
	// TableSum is the checksum of the checksums, Sum the checksum of the trailer's fields before
	// Sum.
	TableSum, Sum uint32
}

const (
	magic       = 0x31_67_65_73_64_69_62_69 // "ibidseg1"
	trailerSize = int(unsafe.Sizeof(trailer{}))
	// blockSize is the number of bytes with one checksum. It is small because a search reads single
	// vectors and must check the whole block of each.
	blockSize = 16 << 10
	// maxChunks is the largest number of chunks in a segment.
	maxChunks = 1 << 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum returns the checksum of the trailer's other fields.
func (t *trailer) sum() uint32 {
	return crc32.Checksum(bytesOf([]trailer{*t})[:unsafe.Offsetof(t.Sum)], castagnoli)
}

// width returns the number of bytes of a slot in a section of rows.
func (t *trailer) width(section int) int {
	switch section {
	case secCodes:
		return scan.Stride(int(t.Dims))
	case secVectors:
		return 4 * int(t.Dims)
	}
	return 4
}

// newSegment returns the segment in data. It reads the trailer and the checksums; an error is a
// *damage.
func newSegment(file string, data []byte) (*segment, error) {
	s := &segment{file: file, data: data}
	fault := func(what string) (*segment, error) { return nil, &damage{file: file, what: what} }
	at := len(data) - trailerSize
	if at < 0 || at%8 != 0 {
		return fault("it is truncated")
	}
	s.trailer = cast[trailer](data[at:])[0]
	if s.Magic != magic || s.Sum != s.trailer.sum() {
		return fault("its trailer is invalid")
	}
	if s.Dims == 0 || s.Documents == 0 || s.Documents > s.Chunks || s.Chunks > maxChunks || !slices.IsSorted(s.Starts[:]) {
		return fault("it has an impossible size")
	}
	table := int64(s.Starts[sections])
	blocks := (table + blockSize - 1) / blockSize
	if table < 0 || table%8 != 0 || table+(4*blocks+7)/8*8 != int64(at) {
		return fault("it is truncated")
	}
	if s.sums = cast[uint32](data[table : table+4*blocks]); crc32.Checksum(data[table:at], castagnoli) != s.TableSum {
		return fault("its checksums are damaged")
	}
	if file != "" {
		s.checked = make([]atomic.Uint32, (blocks+31)/32)
	}
	return s, nil
}

// view returns n bytes of a section, from the offset start. If they are outside the section, or in
// a block whose checksum is wrong, it panics with a *damage, which [catchDamage] returns as an error.
func (s *segment) view(section int, start uint64, n int) []byte {
	from, to := s.Starts[section], s.Starts[section+1]
	if start > to-from || n < 0 || uint64(n) > to-from-start {
		s.panicDamaged("an offset is out of range")
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
		s.panicDamaged(fmt.Sprintf("its bytes %d to %d have the wrong checksum", block*blockSize, end))
	}
	if s.checked != nil {
		s.checked[block/32].Or(1 << (block % 32))
	}
}

// checkAll compares all blocks with their checksums.
func (s *segment) checkAll(ctx context.Context) error {
	for block := range s.sums {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.check(uint64(block))
	}
	return nil
}

func (s *segment) panicDamaged(what string) { panic(&damage{file: s.file, what: what}) }

// rows returns the bytes of n slots in a section of rows.
func (s *segment) rows(section int, first int32, n int) []byte {
	width := s.width(section)
	return s.view(section, uint64(first)*uint64(width), n*width)
}

func (s *segment) vector(slot int32) []float32 { return cast[float32](s.rows(secVectors, slot, 1)) }

func (s *segment) length(slot int32) int { return int(item[int32](s, secLengths, int(slot))) }

// signs returns the signs of n slots.
func (s *segment) signs(first int32, n int) []byte {
	stride := scan.SignStride(int(s.Dims))
	return s.view(secBlocks, s.signsAt()+uint64(first)*uint64(stride), n*stride)
}

func (s *segment) signsAt() uint64 {
	return (uint64(s.Blocks)*uint64(unsafe.Sizeof(termBlock{})) + 63) &^ 63
}

// chunksOf returns the slots of a document, from first up to but not including end.
func (s *segment) chunksOf(document int) (first, end int32) {
	pair := cast[uint32](s.view(secFirsts, 4*uint64(document), 8))
	if pair[0] >= pair[1] || pair[1] > s.Chunks {
		s.panicDamaged("a document has impossible chunks")
	}
	return int32(pair[0]), int32(pair[1])
}

// documentOf returns the document of a slot, and the slot of the document's first chunk.
func (s *segment) documentOf(slot int32) (document int, first int32) {
	document = sort.Search(int(s.Documents), func(i int) bool { return item[uint32](s, secFirsts, i) > uint32(slot) }) - 1
	return document, int32(item[uint32](s, secFirsts, document))
}

// find returns the document with the given number.
func (s *segment) find(number int64) (document int, ok bool) {
	document = sort.Search(int(s.Documents), func(i int) bool { return s.number(i) >= number })
	return document, document < int(s.Documents) && s.number(document) == number
}

func (s *segment) number(document int) int64 { return item[int64](s, secNumbers, document) }

func (s *segment) generation(document int) int64 { return item[int64](s, secGenerations, document) }

// info returns the record of a document.
func (s *segment) info(document int) []byte {
	start := uint64(0)
	if document > 0 {
		start = item[uint64](s, secInfoEnds, document-1)
	}
	end := item[uint64](s, secInfoEnds, document)
	if end < start || end-start > math.MaxInt32 {
		s.panicDamaged("a document's record has an impossible size")
	}
	return s.view(secInfo, start, int(end-start))
}

// id returns the id of a document. It is valid as long as the segment.
func (s *segment) id(document int) string { return (&unpacker{rest: s.info(document)}).text() }

// item returns one number of a section.
func item[T int32 | uint32 | int64 | uint64](s *segment, section, i int) T {
	size := int(unsafe.Sizeof(T(0)))
	return *(*T)(unsafe.Pointer(&s.view(section, uint64(i)*uint64(size), size)[0]))
}

// cast returns the numbers that bytes represent, in the same memory.
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

// openSegment maps the file of a segment, which must have the given size and trailer checksum.
func openSegment(dir, name string, size int64, sum uint32) (s *segment, err error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || info.Size() != size || size == 0 {
		return nil, errors.Join(err, &damage{file: name, what: fmt.Sprintf("it does not have %d bytes", size)})
	}
	data, release, err := disk.Map(f, int(size))
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", name, err)
	}
	err = catchDamage(func() (err error) {
		if s, err = newSegment(name, data); err == nil && s.Sum != sum {
			err = &damage{file: name, what: "it is not the segment that was written"}
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, release())
	}
	runtime.AddCleanup(s, func(release func() error) { _ = release() }, release) // it fails only for memory that is not mapped
	return s, nil
}

// catchDamage calls f, which reads segments, and turns a panic caused by damage into an error that
// wraps [retrieve.ErrIndexDamaged]: a *damage, an index out of range, or a fault in mapped memory
// (the file was truncated, or the disk cannot be read).
//
// f must read mapped memory in this goroutine: a fault in another goroutine ends the process.
func catchDamage(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *damage:
			err = r
		case interface{ Addr() uintptr }:
			err = &damage{what: "the file was truncated, or the disk cannot be read"}
		case runtime.Error:
			err = &damage{what: r.Error()}
		default:
			panic(r)
		}
	}()
	return f()
}

// unreadable turns the error of reading a file into a *damage, since the index can be rebuilt.
func unreadable(file string, err error) error {
	if d := (*damage)(nil); errors.As(err, &d) {
		return err
	}
	return &damage{file: file, what: err.Error()}
}

// A damage is an error that wraps [retrieve.ErrIndexDamaged].
type damage struct{ file, what string }

func (d *damage) Error() string {
	return fmt.Sprintf("%s is damaged: %s", cmp.Or(d.file, "a segment"), d.what)
}

func (d *damage) Unwrap() error { return retrieve.ErrIndexDamaged }
