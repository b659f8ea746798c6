// Package kernel has the arithmetic of a transformer encoder: products of int8 matrices with
// dynamic quantisation, products of small float32 matrices, and the functions between them. It has
// assembly for AVX-512 VNNI and AVX2 on amd64 and for the byte products of Armv8.2 on arm64, and
// plain Go for other processors. The tests compare each kernel with plain Go.
//
// Matrices are in row-major order. Their rows are padded to a multiple of [Tile], so that no kernel
// needs a special case for the last rows; results for the padding are meaningless.
package kernel

import "math"

const (
	// Tile is the number of rows that the matrix products compute at a time.
	Tile = 6
	// Panel is the number of columns that a product with [Weights] computes at a time. The number
	// of columns is a multiple of it.
	Panel = 64
	// Lane is the number of columns that [Kernel.Product] computes at a time.
	Lane = 32
	// Inner is a divisor of the inner dimension of every product with weights.
	Inner = 16
	// quad is the number of byte products that an instruction adds to one sum.
	quad = 4
	// limit bounds the sums described at [Weights.Levels].
	limit = 128
	// steps is the largest absolute rounded value.
	steps = 127
	// bias makes rounded activations unsigned, as VNNI needs them.
	bias = 128
)

// A Kernel is one implementation of all the functions.
type Kernel struct {
	Name string
	// LayerTokens is the number of tokens that one core processes in one layer in 0.4 seconds.
	LayerTokens int

	quantise      func(out []byte, x []float32) (scale float32)
	multiply      func(out []float32, r *Rows, w *Weights, at int) // the columns at … at+Panel
	product       func(c, a, b Matrix, rows, inner, columns int)
	softmax, gelu func(x []float32)
	normalise     func(x, y, gain, shift []float32, epsilon float32)
}

// Kernels are the kernels of this processor, slowest first.
var Kernels = append([]*Kernel{{
	Name: "portable", LayerTokens: 6 * 128, quantise: Round[byte], multiply: multiplyPlain, product: productPlain,
	softmax: softmaxPlain, gelu: geluPlain, normalise: normalisePlain,
}}, assembled()...)

// Best returns the fastest kernel of this processor.
func Best() *Kernel { return Kernels[len(Kernels)-1] }

// Pad returns the number of rows that a stored matrix of n rows has.
func Pad(n int) int { return (n + Tile - 1) / Tile * Tile }

// Weights are the matrix W and the vector b of a layer that computes x·W + b. Each column of W is
// rounded to int8 with its own scale.
type Weights struct {
	In, Out int
	// Levels are the rounded weights, in panels of 64 columns: weight (i, j) is at ((j/64 * In/4 +
	// i/4) * 64 + j%64) * 4 + i%4, so that the four weights that VPDPBUSD adds up are adjacent and
	// a vector has 16 columns.
	//
	// AVX2 adds up eight products in a lane of 16 bits. The lanes divide 16 weights of a column
	// into two groups of eight: i modulo 4 is 0 or 1 in the first, and 2 or 3 in the second. An
	// activation is at most 255, so the positive levels of a group may add up to at most 128, and
	// the negative levels to at least -128.
	Levels []int8
	Scale  []float32 // of each column
	Bias   []float32 // of each column
	// Inverse is the inverse of each scale, for [Weights.Expand].
	Inverse []float32
	// Start is -128 times the sum of each column's levels, which corrects for the bias of the
	// activations.
	Start []int32
}

// Pack rounds a matrix stored as Out rows of In weights, as in checkpoints, into the other arrays
// of w.
func (w *Weights) Pack(matrix []float32) {
	w.Levels = make([]int8, w.In*w.Out)
	w.Scale, w.Inverse, w.Start = make([]float32, w.Out), make([]float32, w.Out), make([]int32, w.Out)
	for j := range w.Out {
		column := matrix[j*w.In : (j+1)*w.In]
		scale, inverse := scaleOf(largest(column))
		for sum := largestSum(column, inverse); sum > limit; sum = largestSum(column, inverse) {
			scale, inverse = scale*sum/limit, inverse*limit/sum
			if math.IsInf(float64(inverse), 0) { // in a damaged file: numbers near the smallest become 0
				scale, inverse = 0, 0
			}
		}
		w.Scale[j], w.Inverse[j] = scale, inverse
		for i, x := range column {
			level := round(x * inverse)
			w.Levels[w.place(i, j)] = int8(level)
			w.Start[j] -= bias * level
		}
	}
}

// largestSum returns the largest of a column's sums that [Weights.Levels] limits.
func largestSum(column []float32, inverse float32) (most float32) {
	var sums [2][2]int32 // the positive and the negative sum of each lane
	for i, x := range column {
		if i%Inner == 0 {
			clear(sums[:])
		}
		level, lane := round(x*inverse), &sums[i%quad/2]
		lane[0] += max(level, 0)
		lane[1] -= min(level, 0)
		most = max(most, float32(lane[0]), float32(lane[1]))
	}
	return most
}

func (w *Weights) place(i, j int) int {
	return ((j/Panel*(w.In/quad)+i/quad)*Panel+j%Panel)*quad + i%quad
}

// Rows are the rounded rows of a matrix. Different kernels may represent a value by different
// bytes.
type Rows struct {
	Width int
	Bytes []byte    // for a padded number of rows
	Scale []float32 // of each row
}

// Quantise rounds the n rows of x, each of the given width, into r, whose memory it reuses. The
// width is a multiple of 8.
func (k *Kernel) Quantise(r *Rows, x []float32, n, width int) {
	padded := Pad(n)
	if cap(r.Bytes) < padded*width || cap(r.Scale) < padded {
		r.Bytes, r.Scale = make([]byte, padded*width), make([]float32, padded)
	}
	r.Width, r.Bytes, r.Scale = width, r.Bytes[:padded*width], r.Scale[:padded]
	for i := range n {
		r.Scale[i] = k.quantise(r.Bytes[i*width:(i+1)*width], x[i*width:(i+1)*width])
	}
}

// Multiply computes out = r·W + b. The rows of out have w.Out columns.
func (k *Kernel) Multiply(out []float32, r *Rows, w *Weights) {
	if r.Width != w.In || len(out) < len(r.Scale)*w.Out || w.In%Inner != 0 || w.Out%Panel != 0 || len(w.Levels) < w.In*w.Out {
		panic("kernel: the shapes of a product do not fit")
	}
	for at := 0; at < w.Out && len(r.Bytes) > 0; at += Panel {
		k.multiply(out[at:], r, w, at)
	}
}

// multiplyPlain is multiply in plain Go. One multiplication of 64 bits computes two byte products:
// a row's activation and sum are in the lower half, and the next row's in the upper half.
func multiplyPlain(out []float32, r *Rows, w *Weights, at int) {
	levels := w.Levels[at*w.In : (at+Panel)*w.In]
	pairs := make([][Tile / 2]int64, w.In)
	for first := 0; first < len(r.Scale); first += Tile {
		for i := range pairs {
			for p := range pairs[i] {
				row := first + 2*p
				pairs[i][p] = int64(int8(r.Bytes[row*w.In+i])) + int64(int8(r.Bytes[(row+1)*w.In+i]))<<32
			}
		}
		for j := range Panel {
			var a, b, c int64
			for i := 0; i < len(pairs); i += quad {
				four, weights := pairs[i:][:quad], levels[(i/quad*Panel+j)*quad:][:quad]
				v, w, x, y := int64(weights[0]), int64(weights[1]), int64(weights[2]), int64(weights[3])
				a += v*four[0][0] + w*four[1][0] + x*four[2][0] + y*four[3][0]
				b += v*four[0][1] + w*four[1][1] + x*four[2][1] + y*four[3][1]
				c += v*four[0][2] + w*four[1][2] + x*four[2][2] + y*four[3][2]
			}
			for p, s := range [Tile / 2]int64{a, b, c} {
				low := int32(s)
				for k, total := range [2]int32{low, int32((s - int64(low)) >> 32)} {
					row := first + 2*p + k
					out[row*w.Out+j] = float32(total)*(r.Scale[row]*w.Scale[at+j]) + w.Bias[at+j]
				}
			}
		}
	}
}

// A Matrix is a part of a larger matrix whose rows are Stride apart.
type Matrix struct {
	Data   []float32
	Stride int
}

// Product computes c = a·b. a has the given numbers of rows and inner columns, and c has the given
// number of columns, a multiple of [Lane]. The padding rows of a and c must be in memory.
func (k *Kernel) Product(c, a, b Matrix, rows, inner, columns int) {
	rows = Pad(rows)
	if rows == 0 || inner == 0 || columns == 0 {
		return
	}
	// The last element of each must exist.
	_ = c.Data[(rows-1)*c.Stride+columns-1]
	_ = a.Data[(rows-1)*a.Stride+inner-1]
	_ = b.Data[(inner-1)*b.Stride+columns-1]
	k.product(c, a, b, rows, inner, columns)
}

func productPlain(c, a, b Matrix, rows, inner, columns int) {
	for i := range rows {
		out := c.Data[i*c.Stride:][:columns]
		clear(out)
		for l, x := range a.Data[i*a.Stride:][:inner] {
			for j, y := range b.Data[l*b.Stride:][:columns] {
				out[j] += x * y
			}
		}
	}
}

// Softmax replaces each x by e^x divided by the sum of all e^x. The length is a positive multiple
// of 16.
func (k *Kernel) Softmax(row []float32) { k.softmax(row) }

func softmaxPlain(row []float32) {
	highest := row[0]
	for _, x := range row {
		highest = max(highest, x)
	}
	var sum float32
	for i, x := range row {
		row[i] = float32(math.Exp(float64(x - highest)))
		sum += row[i]
	}
	for i := range row {
		row[i] /= sum
	}
}

// GELU replaces each x by x·Φ(x), where Φ is the distribution function of the standard normal
// distribution (Hendrycks and Gimpel, "Gaussian error linear units", 2016). The length is a
// multiple of 16.
func (k *Kernel) GELU(x []float32) {
	if len(x) > 0 {
		k.gelu(x)
	}
}

func geluPlain(x []float32) {
	for i, v := range x {
		x[i] = float32(float64(v) * .5 * math.Erfc(-float64(v)/math.Sqrt2))
	}
}

// Normalise adds y to x, scales x to mean 0 and variance 1, and then applies gain and shift (Ba,
// Kiros and Hinton, "Layer normalization", 2016). The length is a positive multiple of 8.
func (k *Kernel) Normalise(x, y, gain, shift []float32, epsilon float32) {
	k.normalise(x, y, gain, shift, epsilon)
}

func normalisePlain(x, y, gain, shift []float32, epsilon float32) {
	var sum float32
	for i := range x {
		x[i] += y[i]
		sum += x[i]
	}
	mean := sum / float32(len(x))
	var square float32
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	inverse := 1 / float32(math.Sqrt(float64(square/float32(len(x))+epsilon)))
	for i, v := range x {
		x[i] = (v-mean)*inverse*gain[i] + shift[i]
	}
}

func largest(x []float32) (most float32) {
	for _, v := range x {
		most = max(most, v, -v)
	}
	return most
}

// scaleOf returns the scale of numbers up to most, and its inverse. Both are 0 if the scale or its
// inverse would not be finite.
func scaleOf(most float32) (scale, inverse float32) {
	scale, inverse = most/steps, steps/most
	if !(most > 0) || math.IsInf(float64(inverse), 0) || math.IsInf(float64(most), 0) {
		return 0, 0
	}
	return scale, inverse
}

// round returns the nearest integer, rounding halves to even.
func round(x float32) int32 {
	return max(-steps, min(steps, int32(math.RoundToEven(float64(x)))))
}

// Round rounds a row to signed bytes with the returned scale.
func Round[B int8 | byte](levels []B, row []float32) (scale float32) {
	scale, inverse := scaleOf(largest(row))
	for i, x := range row {
		levels[i] = B(int8(round(x * inverse)))
	}
	return scale
}
