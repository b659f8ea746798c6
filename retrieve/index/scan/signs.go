package scan

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// The signs of a vector are the signs of its components after a rotation that makes the components
// about equally large: it flips signs at random and applies the Hadamard transform. A [Probe]
// estimates products from them, as RaBitQ does (Gao and Long, 2024); with 256 dimensions the error
// is some hundredths.

// signLane is the number of bytes of signs that kernels process at once.
const signLane = 32

// SignStride returns the number of bytes of the signs of a vector with the given dimensions.
func SignStride(dims int) int {
	return max(signLane, 1<<bits.Len(uint(dims-1))/8)
}

// rotate replaces a vector, whose number of dimensions is a power of two, by the rotated vector
// times a constant. It only adds, so the result is the same on every processor.
func rotate(v []float32) {
	state := uint64(1)
	for i, x := range v {
		state ^= state << 13 // xorshift
		state ^= state >> 7
		state ^= state << 17
		if state>>32&1 != 0 {
			v[i] = -x
		}
	}
	for half := 1; half < len(v); half *= 2 {
		for at := 0; at < len(v); at += 2 * half {
			low := v[at : at+half]
			high := v[at+half:][:len(low)]
			for i, x := range low {
				low[i], high[i] = x+high[i], x-high[i]
			}
		}
	}
}

// Signs appends the [SignStride] bytes of the signs of a vector to b. Row is the vector as rounded
// by [Quantise].
func Signs(b, row []byte, dims int) []byte {
	rotated := make([]float32, 8*SignStride(dims))
	for i, x := range row[:dims] {
		rotated[i] = float32(x) - centre
	}
	rotate(rotated)
	for group := range slices.Chunk(rotated, 8) {
		var signs byte
		for bit, x := range group {
			signs |= byte(^math.Float32bits(x)>>31) << bit
		}
		b = append(b, signs)
	}
	return b
}

// A Probe is a vector prepared for estimating its products with other vectors from their signs.
type Probe struct {
	// planes has four planes for each signLane bytes of signs. The rotated components are rounded
	// to four bits: the first plane has their lowest bits, and the last their highest bits, of
	// weight -8.
	planes []byte
	stride int
	// Least and Most bound the estimates.
	Least, Most int32
}

// planesOf is the number of planes of a Probe.
const planesOf = 4

// NewProbe prepares a unit vector.
func NewProbe(v []float32) *Probe {
	p := &Probe{stride: SignStride(len(v))}
	p.planes = make([]byte, planesOf*p.stride)
	rotated := append(make([]float32, 0, 8*p.stride), v...)[:8*p.stride]
	rotate(rotated)
	var largest float32
	for _, x := range rotated {
		largest = max(largest, x, -x)
	}
	for i, x := range rotated {
		level := int32(math.Round(float64(x/largest) * 7))
		p.Least, p.Most = p.Least+min(level, 0), p.Most+max(level, 0)
		at := i / 8 / signLane * planesOf * signLane
		for plane := range planesOf {
			p.planes[at+plane*signLane+i/8%signLane] |= byte(level>>plane&1) << (i % 8)
		}
	}
	return p
}

// Estimate fills out with estimates of the products with len(out) vectors, whose signs are
// consecutive in rows. An estimate is the sum of the rounded components at which the other vector
// is positive. Among unit vectors, a greater estimate means a nearer vector.
func (p *Probe) Estimate(out []int32, rows []byte) {
	runKernels(estimateKernels, p, p.estimateRow, p.stride, out, rows)
}

// estimateRow returns the estimate of one row. Kernels are tested against it.
func (p *Probe) estimateRow(row []byte) int32 {
	sum := 0
	for at := 0; at < len(row); at += signLane {
		for plane, counts := range [planesOf]int{1, 2, 4, -8} {
			ones := p.planes[planesOf*at+plane*signLane:]
			for i := 0; i < signLane; i += 8 {
				sum += counts * bits.OnesCount64(binary.LittleEndian.Uint64(row[at+i:])&binary.LittleEndian.Uint64(ones[i:]))
			}
		}
	}
	return int32(sum)
}
