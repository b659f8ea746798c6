package encoder

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"unsafe"

	"ibid/retrieve/disk"
	"ibid/retrieve/embed/encoder/kernel"
)

// A model file, all little endian, with each part padded to a multiple of 64 bytes:
//
//	magic     "IBIDENC3", and the length of the header as u32
//	header    a JSON object: [Header], with the licence and the source
//	words     the vocabulary: every word in the order of the ids
//	sections  the arrays of [Model.sections], in that order
//	digest    SHA-256 of all the bytes before it, for [Model.Verify]
//	checksum  CRC-32C of all the bytes before it, as u32, for [Open]
const (
	magic     = "IBIDENC3"
	align     = 64
	maxHeader = 64 << 10
	maxFile   = 1 << 30 // bytes of a file
	sumBytes  = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Header describes the content of a model file.
type Header struct {
	Facts
	Shape
	WordBytes int `json:"word_bytes"` // length of the vocabulary
	// Blocks means that the words' vectors are blocks of 4 bits ([unpack]) instead of bytes with a
	// scale for each word, and that the layers' weights are blocks, which are expanded when the
	// model is first used.
	Blocks bool `json:"layer_blocks,omitempty"`
}

// A Shape is the size of a model.
type Shape struct {
	Layers    int `json:"layers"`
	Width     int `json:"width"`     // of a vector
	Inner     int `json:"inner"`     // of the layers' hidden vectors
	Words     int `json:"words"`     // in the vocabulary
	Positions int `json:"positions"` // number of positions that have a vector
}

// check limits what a damaged or hostile header can request.
func (h Header) check() error {
	switch {
	case h.Layers < 1 || h.Layers > 48, h.Width < 1 || h.Width > 2048, h.Inner < 1 || h.Inner > 8192,
		h.Words < 1 || h.Words > 1<<19, h.Positions < 3 || h.Positions > 8192, h.WordBytes < 1 || h.WordBytes > 64<<20,
		h.Width%kernel.Panel != 0, h.Inner%kernel.Panel != 0, h.PassageTokens < 0,
		h.Heads < 1 || h.Width%h.Heads != 0 || h.Width/h.Heads%kernel.Lane != 0,
		h.MaxTokens < 3 || h.MaxTokens > h.Positions, h.Pooling != meanPooling && h.Pooling != firstPooling, !(h.Epsilon > 0):
		return fmt.Errorf("its header describes no model that can be run: %+v", h)
	}
	return nil
}

// A section is an array of a model.
type section struct {
	size  int               // in bytes
	bytes func() []byte     // the array's memory
	view  func(data []byte) // makes data the array's memory, which begins at a multiple of 64
}

func sectionOf[T byte | int8 | int32 | float32](array *[]T, n int) section {
	size := n * int(unsafe.Sizeof(*new(T)))
	return section{size,
		func() []byte { return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(*array))), size) },
		func(data []byte) { *array = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), n) }}
}

// sections returns the arrays of a model with m's shape.
func (m *Model) sections() []section {
	h := m.Header
	all := []section{sectionOf(&m.lexicon.ends, h.Words), sectionOf(&m.lexicon.slots, slotCount(h.Words))}
	if h.Blocks {
		all = append(all, sectionOf(&m.wordBlocks, h.Words*h.Width/blockNumbers*blockBytes))
	} else {
		all = append(all, sectionOf(&m.words, h.Words*h.Width), sectionOf(&m.wordScale, h.Words))
	}
	all = append(all, sectionOf(&m.positions, h.Positions*h.Width))
	if h.Tokenizer == unigramPieces {
		all = append(all, sectionOf(&m.lexicon.scores, h.Words))
	}
	all = append(all, m.norm.sections(h.Width)...)
	m.layers = make([]layer, h.Layers)
	for i := range m.layers {
		l := &m.layers[i]
		l.attend.In, l.attend.Out = h.Width, 3*h.Width
		l.join.In, l.join.Out = h.Width, h.Width
		l.widen.In, l.widen.Out = h.Width, h.Inner
		l.narrow.In, l.narrow.Out = h.Inner, h.Width
		for _, w := range l.products() {
			if h.Blocks {
				all = append(all, sectionOf(&w.blocks, w.In*w.Out/blockNumbers*blockBytes), sectionOf(&w.Inverse, w.Out))
			} else {
				all = append(all, sectionOf(&w.Levels, w.In*w.Out))
			}
			all = append(all, sectionOf(&w.Scale, w.Out), sectionOf(&w.Bias, w.Out), sectionOf(&w.Start, w.Out))
		}
		all = append(all, l.joined.sections(h.Width)...)
		all = append(all, l.narrowed.sections(h.Width)...)
	}
	return all
}

func (n *layerNorm) sections(width int) []section {
	return []section{sectionOf(&n.gain, width), sectionOf(&n.shift, width)}
}

func padSize(n int) int { return (n + align - 1) / align * align }

// ErrFile is wrapped by the errors of [Open] about a file that is not a complete model.
var ErrFile = errors.New("this is not a complete model file: run 'ibid setup' again")

// parse checks the data of a file and makes a model that uses its memory.
func parse(data []byte) (*Model, error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, errors.New("the encoder does not run on big-endian processors")
	}
	const start = len(magic) + 4
	if len(data) < start+sha256.Size+sumBytes {
		return nil, fmt.Errorf("%w (%d bytes)", ErrFile, len(data))
	}
	if string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w (it is not in the format of this version)", ErrFile)
	}
	body, sum := data[:len(data)-sumBytes], data[len(data)-sumBytes:]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return nil, fmt.Errorf("%w (its checksum does not match)", ErrFile)
	}
	body, digest := body[:len(body)-sha256.Size], body[len(body)-sha256.Size:]
	m := &Model{kernel: kernel.Best(), content: body, digest: digest}
	length := int(binary.LittleEndian.Uint32(data[len(magic):]))
	if length > maxHeader || start+length > len(body) {
		return nil, fmt.Errorf("%w (its header has %d bytes)", ErrFile, length)
	}
	err := json.Unmarshal(body[start:start+length], &m.Header)
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrFile, err)
	}
	at := padSize(start + length)
	words, sections := at, m.sections()
	at += padSize(m.WordBytes)
	total := at
	for _, s := range sections {
		total += padSize(s.size)
	}
	if total != len(body) {
		return nil, fmt.Errorf("%w (%d bytes instead of %d)", ErrFile, len(body), total)
	}
	for _, s := range sections {
		s.view(body[at : at+s.size])
		at += padSize(s.size)
	}
	m.lexicon.text = unsafe.String(&body[words], m.WordBytes)
	if m.vocabulary, err = newTokenizer(m.Tokenizer, m.lexicon); err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrFile, err)
	}
	return m, nil
}

// Open maps a model file into memory and verifies its checksum. The caller closes
// the model.
func Open(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile || info.Size() == 0 {
		return nil, fmt.Errorf("%s: %w (%d bytes)", path, ErrFile, info.Size())
	}
	data, unmap, err := disk.Map(f, int(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", path, err)
	}
	m, err := parse(data)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), unmap())
	}
	m.unmap = unmap
	return m, nil
}

// Close releases the memory of a model that is no longer used.
func (m *Model) Close() error { return m.unmap() }

// Verify reads the whole file and compares it with its digest, which [Open] does not check.
func (m *Model) Verify() error {
	if sum := sha256.Sum256(m.content); string(sum[:]) != string(m.digest) {
		return fmt.Errorf("%s: %w (its SHA-256 does not match)", m.Name, ErrFile)
	}
	return nil
}

// write writes a model as a file.
func (m *Model) write(to io.Writer, sections []section) error {
	header, err := json.Marshal(m.Header)
	if err != nil {
		return err
	}
	out, digest, sum := bufio.NewWriter(to), sha256.New(), crc32.New(castagnoli)
	content := io.MultiWriter(out, digest, sum)
	put := func(part []byte) {
		_, _ = content.Write(part) // out keeps the first error
		_, _ = content.Write(make([]byte, padSize(len(part))-len(part)))
	}
	put(append(binary.LittleEndian.AppendUint32([]byte(magic), uint32(len(header))), header...))
	put([]byte(m.lexicon.text))
	for _, part := range sections {
		put(part.bytes())
	}
	_, _ = io.MultiWriter(out, sum).Write(digest.Sum(nil))
	_, _ = out.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return out.Flush()
}
