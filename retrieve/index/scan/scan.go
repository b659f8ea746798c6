// Package scan multiplies one vector with many rows of bytes: the part of an exhaustive search
// whose speed is limited only by reading memory.
//
// A row is a vector rounded to a byte per component, with a scale and the length of the rounding
// error ([Quantise]). A [Query] computes the dot products with such rows as integers, and
// [Query.Bounds] returns how far they can be from the products of the vectors. A search that
// recomputes every row that could be among the best within these bounds misses nothing.
//
// The products are the same on every processor. They are computed with AVX-512 VNNI or AVX2 on
// amd64, with the byte products of Armv8.2 on arm64, and otherwise in Go.
package scan

import "math"

const (
	// lane is the number of bytes that the widest kernel processes at once. Rows are padded to a
	// multiple of it.
	lane = 64
	// centre is the byte that means 0.
	centre = 128
	// steps is the largest absolute value of a rounded component of a row.
	steps = 127
	// maxWord is the largest rounded component of a query: 128*127 + 63, so that it can be split
	// into two signed bytes.
	maxWord = 16319
	// maxSum is the largest sum of the absolute values of a query's rounded components for which no
	// product with a row exceeds 32 bits.
	maxSum = math.MaxInt32 / 255
)

// Stride returns the number of bytes of the row for a vector with the given dimensions.
func Stride(dims int) int { return (dims + lane - 1) / lane * lane }

// Quantise rounds a unit vector into a row of [Stride] bytes: component i is approximately
// scale*(row[i]-128). Residual is the Euclidean length of the difference, rounded up.
func Quantise(row []byte, v []float32) (scale, residual float32) {
	var largest float32
	for _, x := range v {
		largest = max(largest, x, -x)
	}
	for i := len(v); i < len(row); i++ {
		row[i] = centre
	}
	scale = largest / steps
	var square float64
	inverse := 1 / float64(scale)
	for i, x := range v {
		n := min(steps, max(-steps, int32(math.RoundToEven(float64(x)*inverse))))
		row[i] = byte(n + centre)
		d := float64(x) - float64(scale)*float64(n)
		square += d * d
	}
	return scale, float32(math.Sqrt(square) * (1 + 1e-6)) // larger than the rounding error of the sums
}

// A Query is a vector prepared for multiplying it with rows.
type Query struct {
	words  []int16 // rounded to 15 bits, padded with zeros to the stride
	planes []int8  // words as 128*high + low: 64 high bytes, 64 low bytes, and so on
	offset int32   // contribution of the rows' centre to every product

	scale    float64 // of the words
	length   float64 // of the vector
	residual float64 // length of the rounding error
}

// NewQuery prepares a unit vector.
func NewQuery(v []float32) *Query {
	q := &Query{words: make([]int16, Stride(len(v)))}
	var largest, sum, square, removed float64
	for _, x := range v {
		a := math.Abs(float64(x))
		largest, sum, square = max(largest, a), sum+a, square+a*a
	}
	// Rounding adds at most a half to each component.
	q.scale = 1 / min(maxWord/largest, (maxSum-float64(len(v))/2-1)/sum)
	var total int32
	for i, x := range v {
		q.words[i] = int16(min(maxWord, max(-maxWord, math.Round(float64(x)/q.scale))))
		total += int32(q.words[i])
		d := float64(x) - q.scale*float64(q.words[i])
		removed += d * d
	}
	q.length, q.residual = math.Sqrt(square), math.Sqrt(removed)
	q.offset = centre * total
	q.planes = split(q.words)
	return q
}

// split splits words into bytes.
func split(words []int16) []int8 {
	planes := make([]int8, 2*len(words))
	for i, w := range words {
		low := (w+64)&127 - 64
		at := i/lane*2*lane + i%lane
		planes[at], planes[at+lane] = int8((w-low)>>7), int8(low)
	}
	return planes
}

// Bounds returns three factors for a row with a product n from [Query.Dots]: the dot product of the
// vectors differs from scale*n*unit by at most residual*spread + slack, where scale and residual
// belong to the row. This holds for vectors up to slightly more than unit length, and in float32
// arithmetic too.
func (q *Query) Bounds() (unit, spread, slack float64) {
	// With row = scale*n + e and query = q + f: row*query = scale*n*q + scale*n*f + e*query, and
	// the length of scale*n is at most the sum of the lengths of row and e. Five roundings to 24
	// bits, of numbers up to 2, are below 1e-6.
	return q.scale, (q.length + q.residual) * (1 + 1e-6), q.residual*(1+1e-3) + 1e-6
}

// Dots fills out with the products of the query and len(out) consecutive rows.
func (q *Query) Dots(out []int32, rows []byte) { q.dots(dotKernels, out, rows) }

func (q *Query) dots(kernels []kernel[Query], out []int32, rows []byte) {
	runKernels(kernels, q, q.dotRow, len(q.words), out, rows)
	for i := range out {
		out[i] -= q.offset
	}
}

// A kernel computes the result of a vector and each row, before any offset is subtracted. The
// number of rows is a positive multiple of group.
type kernel[V any] func(vector *V, out []int32, rows []byte)

// group is the number of rows that kernels process at once.
const group = 4

// The kernels that this processor supports, fastest first.
var (
	dotKernels      []kernel[Query]
	estimateKernels []kernel[Probe]
)

// runKernels fills out by the first kernel, and by plain for the remaining rows.
func runKernels[V any](kernels []kernel[V], vector *V, plain func(row []byte) int32, stride int, out []int32, rows []byte) {
	if len(rows) < len(out)*stride {
		panic("scan: fewer rows than products wanted")
	}
	whole := 0
	if len(kernels) > 0 && len(rows) > 0 {
		whole = len(out) / group * group
	}
	if whole > 0 {
		kernels[0](vector, out[:whole], rows)
	}
	for i := whole; i < len(out); i++ {
		out[i] = plain(rows[i*stride:][:stride])
	}
}

// dotRow returns the product of one row. The kernels are tested against it.
func (q *Query) dotRow(row []byte) int32 {
	var sum int32
	row = row[:len(q.words)]
	for i, w := range q.words {
		sum += int32(w) * int32(row[i])
	}
	return sum
}
