package local

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"

	"ibid/ingest"
)

// A sum is the checksum of one row: CRC-32C over its columns in order, each
// text with its length before it. It finds every single changed byte, and lies
// beside what it guards.
type sum struct {
	crc uint32
	// buffer is what is summed up next. As a variable of its own each would be
	// on the heap.
	buffer [256]byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (s *sum) number(n int64) {
	binary.LittleEndian.PutUint64(s.buffer[:], uint64(n))
	s.crc = crc32.Update(s.crc, castagnoli, s.buffer[:8])
}

func (s *sum) bytes(b []byte) {
	s.number(int64(len(b)))
	s.crc = crc32.Update(s.crc, castagnoli, b)
}

func (s *sum) text(t string) {
	s.number(int64(len(t)))
	for len(t) > 0 {
		n := copy(s.buffer[:], t)
		s.crc = crc32.Update(s.crc, castagnoli, s.buffer[:n])
		t = t[n:]
	}
}

func (s *sum) value() int64 { return int64(s.crc) }

func chunkSum(key int64, c *ingest.Chunk, terms []byte) int64 {
	var s sum
	s.number(key)
	s.number(int64(c.Start))
	s.number(int64(c.End))
	s.number(placeOf(c))
	s.number(int64(c.Tokens))
	s.text(c.Heading)
	s.text(c.Anchor)
	s.bytes(terms)
	s.text(c.Text)
	return s.value()
}

func vectorSum(key int64, vector []byte) int64 {
	var s sum
	s.number(key)
	s.bytes(vector)
	return s.value()
}

func metaSum(name, value string) int64 {
	var s sum
	s.text(name)
	s.text(value)
	return s.value()
}

func rootSum(r ingest.Root) int64 {
	var s sum
	s.text(r.Name)
	s.text(r.Path)
	s.text(r.Collection)
	return s.value()
}

// documentSum goes over the row of a document and over the sums of its chunks
// in order, so that a chunk that is missing or not its own shows.
func documentSum(r *documentRow, chunks []int64) int64 {
	var s sum
	s.number(r.key)
	for _, t := range []string{r.id, r.root, r.path, r.collection, r.title, r.format, r.digest, r.meta, r.outline, r.text} {
		s.text(t)
	}
	s.number(r.revision)
	s.number(int64(len(chunks)))
	for _, c := range chunks {
		s.number(c)
	}
	return s.value()
}

// A library is the digest over all documents: their number and the exclusive
// or of their sums, spread over 64 bits. A document that vanished shows.
type library struct {
	documents int64
	digest    uint64
}

func (l *library) add(key, sum int64)    { l.documents++; l.digest ^= spread(key, sum) }
func (l *library) remove(key, sum int64) { l.documents--; l.digest ^= spread(key, sum) }

func (l library) String() string { return fmt.Sprintf("%d %016x", l.documents, l.digest) }

func parseLibrary(text string) (l library, err error) {
	_, err = fmt.Sscanf(text, "%d %x", &l.documents, &l.digest)
	if err != nil {
		err = fmt.Errorf("read the digest over all documents %s: %w", strconv.Quote(text), err)
	}
	return l, err
}

// spread is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
func spread(key, sum int64) uint64 {
	z := uint64(key)<<32 ^ uint64(sum) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
