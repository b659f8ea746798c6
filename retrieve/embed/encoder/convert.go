package encoder

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"ibid/retrieve/embed/encoder/kernel"
)

// maxFile is the size of the largest file that is read.
const maxFile = 1 << 30

// A tensor is an entry of a safetensors file.
type tensor struct {
	Type    string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// A checkpoint is a safetensors file: the length of a JSON object as u64, the
// object with the tensors by name, and their data.
type checkpoint struct {
	from    io.ReaderAt
	data    int64 // offset of the data
	size    int64 // of the file
	tensors map[string]tensor
}

func readCheckpoint(from io.ReaderAt, size int64) (*checkpoint, error) {
	var start [8]byte
	if _, err := from.ReadAt(start[:], 0); err != nil {
		return nil, fmt.Errorf("reading the weights: %w", err)
	}
	length := binary.LittleEndian.Uint64(start[:])
	if length > 1<<20 || int64(length)+8 > size {
		return nil, fmt.Errorf("the weights are not a safetensors file: its header would have %d bytes", length)
	}
	c := &checkpoint{from: from, data: 8 + int64(length), size: size}
	var raw map[string]json.RawMessage
	if err := json.NewDecoder(io.NewSectionReader(from, 8, int64(length))).Decode(&raw); err != nil {
		return nil, fmt.Errorf("the weights are not a safetensors file: %w", err)
	}
	delete(raw, "__metadata__")
	c.tensors = make(map[string]tensor, len(raw))
	for name, entry := range raw {
		var t tensor
		if err := json.Unmarshal(entry, &t); err != nil {
			return nil, fmt.Errorf("the tensor %.100q of the weights: %w", name, err)
		}
		c.tensors[strings.TrimPrefix(name, "bert.")] = t
	}
	return c, nil
}

// dims returns the dimensions of the named matrix, or 0 if there is no such matrix.
func (c *checkpoint) dims(name string) (rows, columns int) {
	if t := c.tensors[name]; len(t.Shape) == 2 {
		return t.Shape[0], t.Shape[1]
	}
	return 0, 0
}

func (c *checkpoint) slice(name string, first, n int) ([]float32, error) {
	t, known := c.tensors[name]
	if !known {
		return nil, fmt.Errorf("the weights have no tensor %s", name)
	}
	all := 1
	for _, d := range t.Shape {
		if d < 0 || d > maxFile || all > maxFile {
			return nil, fmt.Errorf("the tensor %s has the shape %v", name, t.Shape)
		}
		all *= d
	}
	from, to := t.Offsets[0], t.Offsets[1]
	if t.Type != "F32" || all < first+n || from < 0 || to < from || to > c.size-c.data || to-from != 4*int64(all) {
		return nil, fmt.Errorf("the tensor %s is %s %v at %v, instead of %d float32", name, t.Type, t.Shape, t.Offsets, first+n)
	}
	return readFloats(c.from, name, c.data+from+4*int64(first), n)
}

// readFloats returns n numbers of a tensor.
func readFloats(from io.ReaderAt, name string, at int64, n int) ([]float32, error) {
	data := make([]byte, 4*n)
	if _, err := io.ReadFull(io.NewSectionReader(from, at, int64(len(data))), data); err != nil {
		return nil, fmt.Errorf("reading the tensor %s: %w", name, err)
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out, nil
}

// shape derives the model's size from the tensors.
func (c *checkpoint) shape() (s Shape) {
	s.Words, s.Width = c.dims(wordVectors)
	s.Positions, _ = c.dims("embeddings.position_embeddings.weight")
	s.Inner, _ = c.dims("encoder.layer.0.intermediate.dense.weight")
	for c.tensors[fmt.Sprintf("encoder.layer.%d.output.dense.weight", s.Layers)].Type != "" {
		s.Layers++
	}
	return s
}

// tensors are the weights of a model in a file, by the names of Hugging Face's BertModel.
type tensors interface {
	shape() Shape
	// slice returns n numbers of a tensor of any shape, starting at index first.
	slice(name string, first, n int) ([]float32, error)
}

const wordVectors = "embeddings.word_embeddings.weight"

// A converter reads the arrays of a model and keeps the first error.
type converter struct {
	tensors
	err error
}

// floats returns n numbers of a tensor, starting at index first. They must be finite.
func (c *converter) floats(name string, first, n int) (out []float32) {
	if c.err == nil {
		out, c.err = c.slice(name, first, n)
	}
	for _, x := range out {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			c.err = fmt.Errorf("the tensor %s has a number that is not finite", name)
		}
	}
	if c.err != nil {
		return make([]float32, n)
	}
	return out
}

func (c *converter) norm(name string, width int) layerNorm {
	return layerNorm{c.floats(name+".weight", 0, width), c.floats(name+".bias", 0, width)}
}

// weights reads and rounds layers with the same input, and concatenates their columns.
func (c *converter) weights(w *product, names ...string) {
	var matrix []float32
	for _, name := range names {
		matrix = append(matrix, c.floats(name+".weight", 0, w.In*w.Out/len(names))...)
		w.Bias = append(w.Bias, c.floats(name+".bias", 0, w.Out/len(names))...)
	}
	w.Pack(matrix)
	p, _ := c.tensors.(*packed)
	for _, name := range names {
		if p == nil || c.err != nil {
			return
		}
		var blocks []byte
		blocks, c.err = p.blocks(name+".weight", 0, w.In*w.Out/len(names))
		w.blocks = append(w.blocks, blocks...)
	}
}

// The formats of weights other than safetensors, by file extension.
const (
	onnxFile    = ".onnx"
	packedModel = ".bin"
)

// Convert writes the model file of weights in one of the formats. Words is the vocabulary ordered
// by id; a packed model has its own. The weights may come from anywhere: a damaged or hostile file
// is an error.
func Convert(to io.Writer, facts Facts, format string, weights io.ReaderAt, size int64, words []string) error {
	if size > maxFile {
		return fmt.Errorf("the weights have %d bytes, and the limit is %d", size, maxFile)
	}
	var from tensors
	var scores []float32
	var err error
	switch format {
	case onnxFile:
		from, err = readONNX(weights, size)
	case packedModel:
		var p *packed
		if p, err = readPacked(weights, size); err == nil {
			from, words, scores = p, p.words, p.scores
		}
	default: // safetensors
		from, err = readCheckpoint(weights, size)
	}
	if err != nil {
		return err
	}
	return convert(to, facts, from, newLexicon(words, scores))
}

func convert(to io.Writer, facts Facts, from tensors, words lexicon) error {
	p, _ := from.(*packed)
	m := &Model{Header: Header{facts, from.shape(), len(words.text), p != nil}}
	if err := m.check(); err != nil {
		return err
	}
	if n := len(words.ends); n != m.Words {
		return fmt.Errorf("the vocabulary has %d words, and the weights have vectors for %d", n, m.Words)
	}
	if _, err := newTokenizer(facts.Tokenizer, words); err != nil {
		return err
	}
	sections := m.sections()
	m.lexicon = words
	if err := m.fill(&converter{tensors: from}); err != nil {
		return err
	}
	return m.write(to, sections)
}

// fill sets the arrays of a model from the tensors.
func (m *Model) fill(c *converter) error {
	const embeddings = "embeddings."
	m.roundWords(c)
	m.positions = c.floats(embeddings+"position_embeddings.weight", 0, m.Positions*m.Width)
	segment := c.floats(embeddings+"token_type_embeddings.weight", 0, m.Width) // the first segment's vector
	for i := range m.positions {
		m.positions[i] += segment[i%m.Width]
	}
	m.norm = c.norm(embeddings+"LayerNorm", m.Width)
	for i := range m.layers {
		l, name := &m.layers[i], fmt.Sprintf("encoder.layer.%d.", i)
		c.weights(&l.attend, name+"attention.self.query", name+"attention.self.key", name+"attention.self.value")
		root := float32(math.Sqrt(float64(m.Width / m.Heads)))
		for j := range m.Width { // the columns of the queries
			l.attend.Scale[j] /= root
			l.attend.Bias[j] /= root
		}
		c.weights(&l.join, name+"attention.output.dense")
		l.joined = c.norm(name+"attention.output.LayerNorm", m.Width)
		c.weights(&l.widen, name+"intermediate.dense")
		c.weights(&l.narrow, name+"output.dense")
		l.narrowed = c.norm(name+"output.LayerNorm", m.Width)
	}
	return c.err
}

// roundWords rounds each word's vector to int8, unless the vectors are in blocks.
func (m *Model) roundWords(c *converter) {
	if m.Blocks {
		m.wordBlocks, c.err = c.tensors.(*packed).blocks(wordVectors, 0, m.Words*m.Width)
		return
	}
	m.words, m.wordScale = make([]int8, m.Words*m.Width), make([]float32, m.Words)
	for i := 0; i < m.Words && c.err == nil; i++ {
		m.wordScale[i] = kernel.Round(m.words[i*m.Width:][:m.Width], c.floats(wordVectors, i*m.Width, m.Width))
	}
}
