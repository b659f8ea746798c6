package encoder

import (
	"encoding/binary"
	"slices"

	"ibid/retrieve/embed/encoder/kernel"
)

// A layer of the transformer (Vaswani and others, "Attention is all you need", 2017), with
// normalisation after each sum.
type layer struct {
	attend   product // width → query, key and value, each with the width
	join     product // width → width
	joined   layerNorm
	widen    product // width → inner
	narrow   product // inner → width
	narrowed layerNorm
}

// A product has the weights of one matrix product of a layer.
type product struct {
	kernel.Weights
	blocks []byte // expanded to levels by [Model.expandLayers]; nil if the file has levels
}

// expand computes the levels from the blocks, one panel of columns after another.
func (w *product) expand() {
	w.Levels = make([]int8, w.In*w.Out)
	each := w.In / blockNumbers // blocks of a column
	for panel := 0; panel < w.Out; panel += kernel.Panel {
		for n := range each {
			for j := panel; j < panel+kernel.Panel; j++ {
				block := w.blocks[(j*each+n)*blockBytes:][:blockBytes]
				w.Expand(n*blockNumbers, j, float16(binary.LittleEndian.Uint16(block)), block[2:])
			}
		}
	}
}

func (l *layer) products() [4]*product { return [...]*product{&l.attend, &l.join, &l.widen, &l.narrow} }

// A layerNorm scales the components of a vector after their normalisation.
type layerNorm struct{ gain, shift []float32 }

// A scratch is the memory of one computation. Matrices of n tokens have more than kernel.Pad(n)
// rows, so that the padding of every text is in memory.
type scratch struct {
	x, y    []float32 // tokens × width: the vectors, and the vectors to add
	queries []float32 // tokens × 3 widths: the query, key and value of each token
	inner   []float32 // tokens × inner
	keys    []float32 // dimensions of a head × tokens of a text
	scores  []float32 // tokens × tokens of a text
	rounded kernel.Rows
	word    []int8 // a row of the table of words
}

// grow returns a slice of length n that uses the memory of s if it is enough.
func grow[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// forward sets s.x to the last layer's vectors of the texts' tokens, one text after another.
func (m *Model) forward(s *scratch, texts [][]int32) {
	n := 0
	for _, ids := range texts {
		n += len(ids)
	}
	rows, width := kernel.Pad(n)+kernel.Tile, m.Width
	s.x, s.y = grow(s.x, rows*width), grow(s.y, rows*width)
	s.queries, s.inner = grow(s.queries, rows*3*width), grow(s.inner, rows*m.Inner)
	m.lookUp(s, texts)
	for i := range m.layers {
		l := &m.layers[i]
		m.kernel.Quantise(&s.rounded, s.x, n, width)
		m.kernel.Multiply(s.queries, &s.rounded, &l.attend.Weights)
		m.attention(s, texts)
		m.kernel.Quantise(&s.rounded, s.y, n, width)
		m.kernel.Multiply(s.y, &s.rounded, &l.join.Weights)
		m.addNorm(s, n, l.joined)
		m.kernel.Quantise(&s.rounded, s.x, n, width)
		m.kernel.Multiply(s.inner, &s.rounded, &l.widen.Weights)
		m.kernel.GELU(s.inner[:n*m.Inner])
		m.kernel.Quantise(&s.rounded, s.inner, n, m.Inner)
		m.kernel.Multiply(s.y, &s.rounded, &l.narrow.Weights)
		m.addNorm(s, n, l.narrowed)
	}
}

// lookUp sets s.x to the sum of the vectors of the words and of their positions.
func (m *Model) lookUp(s *scratch, texts [][]int32) {
	at := 0
	for _, ids := range texts {
		for position, id := range ids {
			x, y := s.x[at*m.Width:][:m.Width], s.y[at*m.Width:][:m.Width]
			var scale float32
			if m.Blocks {
				size := m.Width / blockNumbers * blockBytes
				unpack(x, m.wordBlocks[int(id)*size:][:size])
				s.word = grow(s.word, m.Width)
				scale = kernel.Round(s.word, x) // as in a file without blocks, so that the vectors are the same
			} else {
				scale, s.word = m.wordScale[id], append(s.word[:0], m.words[int(id)*m.Width:][:m.Width]...)
			}
			for j, level := range s.word {
				x[j] = scale * float32(level)
			}
			copy(y, m.positions[position*m.Width:])
			at++
		}
	}
	m.addNorm(s, at, m.norm)
}

// addNorm adds y to x, and normalises the rows.
func (m *Model) addNorm(s *scratch, n int, to layerNorm) {
	for at := 0; at < n*m.Width; at += m.Width {
		m.kernel.Normalise(s.x[at:at+m.Width], s.y[at:at+m.Width], to.gain, to.shift, m.Epsilon)
	}
}

// attention sets s.y to the result of attention: softmax(Q·Kᵀ)·V for each head of each text. The
// queries' weights have been divided by the square root of the head's dimensions.
func (m *Model) attention(s *scratch, texts [][]int32) {
	width, dims := m.Width, m.Width/m.Heads
	first := 0
	for _, ids := range texts {
		n := len(ids)
		columns := (n + kernel.Lane - 1) / kernel.Lane * kernel.Lane
		s.keys, s.scores = grow(s.keys, dims*columns), grow(s.scores, kernel.Pad(n)*columns)
		clear(s.keys)
		keys, scores := kernel.Matrix{Data: s.keys, Stride: columns}, kernel.Matrix{Data: s.scores, Stride: columns}
		for head := 0; head < width; head += dims {
			at := first*3*width + head
			queries := kernel.Matrix{Data: s.queries[at:], Stride: 3 * width}
			values := kernel.Matrix{Data: s.queries[at+2*width:], Stride: 3 * width}
			transpose(keys, s.queries[at+width:], 3*width, n, dims)
			m.kernel.Product(scores, queries, keys, n, dims, columns)
			for i := range n {
				row := s.scores[i*columns : (i+1)*columns]
				for j := n; j < columns; j++ {
					row[j] = masked
				}
				m.kernel.Softmax(row)
			}
			m.kernel.Product(kernel.Matrix{Data: s.y[first*width+head:], Stride: width}, scores, values, n, n, dims)
		}
		first += n
	}
}

// masked is a score whose exponential is 0 relative to any other score.
const masked = -1e30

// transpose sets the first n columns of to from the rows of from.
func transpose(to kernel.Matrix, from []float32, stride, n, dims int) {
	for i := range n {
		for j, x := range from[i*stride:][:dims] {
			to.Data[j*to.Stride+i] = x
		}
	}
}
