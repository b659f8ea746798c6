package encoder

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"ibid/retrieve/embed/encoder/kernel"
)

// A tensors function returns the elements of a checkpoint's tensor by its name in Hugging Face's
// BertModel, or an empty slice if it does not exist. Each row of a layer's matrix belongs to one
// output.
type tensors func(name string) []float32

const (
	wordVectors     = "embeddings.word_embeddings.weight"
	positionVectors = "embeddings.position_embeddings.weight"
	wordNorm        = "embeddings.LayerNorm"
	layerName       = "encoder.layer.%d."
)

// readCheckpoint reads a safetensors file with numbers of 4 bytes: the length of a JSON object as
// u64, the object with the tensors by name, and their data.
func readCheckpoint(file []byte) (tensors, error) {
	var entries map[string]struct {
		Offsets [2]int `json:"data_offsets"`
	}
	data := file[8+binary.LittleEndian.Uint64(file):]
	if err := json.Unmarshal(file[8:len(file)-len(data)], &entries); err != nil {
		return nil, fmt.Errorf("the weights are not a safetensors file: %w", err)
	}
	byName := make(map[string][]byte, len(entries))
	for name, e := range entries {
		byName[strings.TrimPrefix(name, "bert.")] = data[e.Offsets[0]:e.Offsets[1]]
	}
	return func(name string) []float32 { return readFloats(byName[name]) }, nil
}

// readFloats decodes numbers of 4 bytes.
func readFloats(data []byte) []float32 {
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

// shape derives the size of a model with the given number of words.
func (from tensors) shape(words int) Shape {
	s := Shape{Width: len(from(wordNorm + ".bias")), Words: words}
	s.Positions = len(from(positionVectors)) / max(1, s.Width)
	s.Inner = len(from(fmt.Sprintf(layerName+"intermediate.dense.bias", 0)))
	for len(from(fmt.Sprintf(layerName+"output.dense.bias", s.Layers))) > 0 {
		s.Layers++
	}
	return s
}

// The formats of weights other than safetensors, by file extension.
const (
	onnxFile    = ".onnx"
	packedModel = ".bin"
)

// convert writes the model file of weights in one of the formats. Words is the vocabulary ordered
// by id; a packed model has its own. The file must be intact: [Part.Make] compares its digest.
func convert(to io.Writer, facts Facts, format string, weights []byte, words []string) error {
	var from tensors
	var scores []float32
	var p *packed
	var err error
	switch format {
	case onnxFile:
		from = readONNX(weights).floats
	case packedModel:
		if p, err = readPacked(weights); err == nil {
			from, words, scores = p.floats, p.words, p.scores
		}
	default: // safetensors
		from, err = readCheckpoint(weights)
	}
	if err != nil {
		return err
	}
	lexicon := newLexicon(words, scores)
	m := &Model{Header: Header{facts, from.shape(len(words)), len(lexicon.text), p != nil}}
	_, err = newTokenizer(facts.Tokenizer, lexicon)
	if err := errors.Join(err, m.check()); err != nil {
		return err
	}
	sections := m.sections()
	m.lexicon = lexicon
	m.fill(from, p)
	return m.write(to, sections)
}

// fill sets the arrays of a model from the tensors, which are the tensors of p if p is not nil.
func (m *Model) fill(from tensors, p *packed) {
	if p != nil {
		m.wordBlocks = p.blocks(wordVectors)[:m.Words*m.Width/blockNumbers*blockBytes]
	} else {
		vectors := from(wordVectors)
		m.words, m.wordScale = make([]int8, m.Words*m.Width), make([]float32, m.Words)
		for i := range m.wordScale {
			m.wordScale[i] = kernel.Round(m.words[i*m.Width:][:m.Width], vectors[i*m.Width:][:m.Width])
		}
	}
	m.positions = from(positionVectors)
	segment := from("embeddings.token_type_embeddings.weight") // the first segment's vector is used
	for i := range m.positions {
		m.positions[i] += segment[i%m.Width]
	}
	norm := func(name string) layerNorm { return layerNorm{from(name + ".weight"), from(name + ".bias")} }
	m.norm = norm(wordNorm)
	for i := range m.layers {
		l, name := &m.layers[i], fmt.Sprintf(layerName, i)
		l.attend.fill(from, p, name+"attention.self.query", name+"attention.self.key", name+"attention.self.value")
		root := float32(math.Sqrt(float64(m.Width / m.Heads)))
		for j := range m.Width { // the columns of the queries
			l.attend.Scale[j] /= root
			l.attend.Bias[j] /= root
		}
		l.join.fill(from, p, name+"attention.output.dense")
		l.joined = norm(name + "attention.output.LayerNorm")
		l.widen.fill(from, p, name+"intermediate.dense")
		l.narrow.fill(from, p, name+"output.dense")
		l.narrowed = norm(name + "output.LayerNorm")
	}
}

// fill reads and rounds layers with the same input, and concatenates their columns.
func (w *product) fill(from tensors, p *packed, names ...string) {
	var matrix []float32
	for _, name := range names {
		matrix = append(matrix, from(name+".weight")...)
		w.Bias = append(w.Bias, from(name+".bias")...)
		if p != nil {
			w.blocks = append(w.blocks, p.blocks(name+".weight")...)
		}
	}
	w.Pack(matrix)
}
