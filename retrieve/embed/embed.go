// Package embed is the embedding model that is built into the program: a table of vectors for words
// and pieces of words, made by distilling a sentence transformer (see README.md and train/). A
// text's vector is the sum of its words' rows, scaled to unit length. It needs no service, no key
// and no file.
//
// [New] reads the table and [Model.Embed] uses it; *Model is a retrieve.Embedder.
//
// The same text has the same vector, to the last bit, in every process and on every platform,
// because stored vectors are compared with vectors of questions that other builds compute: all sums
// are sums of integers, and the floating-point operations that follow are single, correctly rounded
// and in a fixed order.
package embed

import (
	"context"
	"fmt"
	"math"
)

// name is the table's version. It changes with every table, because vectors of different tables
// must never be compared.
const name = "ibid-static-2"

// A Model makes vectors. It never changes and is safe for concurrent use.
type Model struct {
	dims   int
	table  []int8  // rows of dims levels
	scales []int32 // one for each row
	// magnitude is the absolute value of every component of a hashed word.
	magnitude     int64
	words, pieces map[string]uint32
}

// New reads the built-in table, about 6 MB, and verifies its checksum. It needs tens of
// milliseconds and 15 MB of memory; a program needs only one Model.
func New() (*Model, error) { return parse(file) }

// Space returns the name of the table and its dimensions: "ibid-static-2/256".
func (m *Model) Space() string { return fmt.Sprintf("%s/%d", name, m.dims) }

// Embed returns one row of unit length for each text, in order. A row depends only on its text.
// Words outside the table count by their pieces and by a hash of the word, and scripts other than
// Latin by hashes of runs of characters; equal words then match, but words with the same meaning do
// not. The row of a text without letters and digits is the first axis. The only error is the
// context's.
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	rows := make([][]float32, len(texts))
	sum := make([]int64, m.dims)
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("embedding text %d of %d: %w", i+1, len(texts), err)
		}
		clear(sum)
		m.features(text,
			func(row uint32) { m.addRow(sum, row) },
			func(hash uint64, parts int) { m.addHash(sum, hash, parts) })
		rows[i] = unit(sum)
	}
	return rows, nil
}

// KnownShare returns the share, 0 to 1, of a text's words for which the table has rows, whole or in
// pieces. Other words count by hashes, which do not represent their meaning. The share is 1 for a
// text without words.
func (m *Model) KnownShare(text string) float64 {
	rows, hashes := 0, 0.0
	m.features(text, func(uint32) { rows++ }, func(_ uint64, parts int) { hashes += 1 / float64(parts) })
	if rows == 0 && hashes == 0 {
		return 1
	}
	return float64(rows) / (float64(rows) + hashes)
}

// addRow adds a row of the table. A component is at most 127*65535, so that a sum fits in an int64
// for more than 10^12 words.
func (m *Model) addRow(sum []int64, row uint32) {
	scale := int64(m.scales[row])
	levels := m.table[int(row)*m.dims:][:len(sum)]
	// Eight at a time through array pointers avoid bounds checks within a block.
	for ; len(sum) >= 8; sum, levels = sum[8:], levels[8:] {
		s, l := (*[8]int64)(sum), (*[8]int8)(levels)
		s[0] += int64(l[0]) * scale
		s[1] += int64(l[1]) * scale
		s[2] += int64(l[2]) * scale
		s[3] += int64(l[3]) * scale
		s[4] += int64(l[4]) * scale
		s[5] += int64(l[5]) * scale
		s[6] += int64(l[6]) * scale
		s[7] += int64(l[7]) * scale
	}
}

// addHash adds a row of random signs derived from the hash. The parts of one word are nearly
// orthogonal: each is divided by the square root of their number, so that together they have the
// length of one row.
func (m *Model) addHash(sum []int64, hash uint64, parts int) {
	size := m.magnitude
	if parts > 1 {
		// Square root and division are correctly rounded on every platform.
		size = int64(float64(size) / math.Sqrt(float64(parts)))
	}
	for at := 0; at < len(sum); at += 64 {
		var bits uint64
		hash, bits = splitMix(hash)
		lane := sum[at:][:64]
		for i := range lane {
			// A set bit adds size, a clear bit subtracts it.
			lane[i] += (int64(bits&1)*2 - 1) * size
			bits >>= 1
		}
	}
}

// splitMix performs one step of SplitMix64 (Steele, Lea and Flood, 2014).
func splitMix(state uint64) (next, bits uint64) {
	state += 0x9E3779B97F4A7C15
	z := state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return state, z ^ z>>31
}

// unit scales a sum to unit length.
func unit(sum []int64) []float32 {
	var square float64
	for _, x := range sum {
		f := float64(x)
		// The conversion forbids fusing product and sum into one operation, which only some
		// processors would do.
		square += float64(f * f)
	}
	row := make([]float32, len(sum))
	if square == 0 {
		row[0] = 1
		return row
	}
	length := math.Sqrt(square)
	for i, x := range sum {
		row[i] = float32(float64(x) / length)
	}
	return row
}
