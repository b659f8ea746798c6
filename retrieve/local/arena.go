package local

import (
	"math"

	"ibid/retrieve/local/scan"
)

// An arena holds the vectors of a memory by slot, in blocks that never move.
type arena struct {
	dims, stride int
	blocks       []*block
}

// blockRows is the number of vectors in a block, and a multiple of 64.
const blockRows = 1024

// A block holds its vectors twice: as they are, and rounded to bytes for the
// scan.
type block struct {
	vectors   []float32 // blockRows of dims
	codes     []byte    // blockRows of stride, by scan.Quantise
	scales    [blockRows]float32
	residuals [blockRows]float32 // minus infinity where no chunk lives
}

// add copies a vector into the slot behind the last one, or anew into an
// earlier one.
func (a *arena) add(slot int32, vector []float32) {
	if len(a.blocks) == 0 {
		a.dims, a.stride = len(vector), scan.Stride(len(vector))
	}
	if int(slot)/blockRows == len(a.blocks) {
		b := &block{vectors: make([]float32, blockRows*a.dims), codes: make([]byte, blockRows*a.stride)}
		for i := range b.residuals {
			b.residuals[i] = float32(math.Inf(-1))
		}
		a.blocks = append(a.blocks, b)
	}
	copy(a.vector(slot), vector)
	b, i := a.blocks[slot/blockRows], int(slot%blockRows)
	b.scales[i], b.residuals[i] = scan.Quantise(b.codes[i*a.stride:(i+1)*a.stride], vector)
}

// remove keeps the scan from finding the slot.
func (a *arena) remove(slot int32) {
	b, i := a.blocks[slot/blockRows], slot%blockRows
	b.scales[i], b.residuals[i] = 0, float32(math.Inf(-1))
}

// vector gives the slot's place in the arena.
func (a *arena) vector(slot int32) []float32 {
	row := int(slot) % blockRows * a.dims
	return a.blocks[slot/blockRows].vectors[row : row+a.dims : row+a.dims]
}
