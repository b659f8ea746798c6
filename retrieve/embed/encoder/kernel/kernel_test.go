package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var random = rand.New(rand.NewPCG(7, 11))

func normal(n int, scale float64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(random.NormFloat64() * scale)
	}
	return out
}

// near fails unless the numbers agree within the given fraction of the largest number.
func near(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	most := float64(largest(want))
	for i := range want {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tolerance*most) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// TestExpand compares the levels of weights in blocks with the levels of the same numbers.
func TestExpand(t *testing.T) {
	for _, shape := range [][2]int{{32, 64}, {384, 128}, {1536, 64}} {
		w := &Weights{In: shape[0], Out: shape[1]}
		scales, numbers := normal(w.In*w.Out/BlockNumbers, .1), make([]byte, w.In*w.Out/2)
		var matrix []float32
		for n := range scales {
			scales[n] *= float32(n * n % 7) // a column of zeros, and far ones
			block := make([]float32, BlockNumbers)
			for i := range BlockNumbers / 2 {
				b := byte(random.IntN(256))
				numbers[n*BlockNumbers/2+i] = b
				block[i], block[BlockNumbers/2+i] = scales[n]*float32(int(b&15)-8), scales[n]*float32(int(b>>4)-8)
			}
			matrix = append(matrix, block...)
		}
		w.Pack(matrix)
		want := slices.Clone(w.Levels)
		clear(w.Levels)
		for n, scale := range scales {
			w.Expand(n*BlockNumbers%w.In, n*BlockNumbers/w.In, scale, numbers[n*BlockNumbers/2:])
		}
		if !slices.Equal(w.Levels, want) {
			t.Errorf("%v: levels differ", shape)
		}
	}
}

// TestPackSmallest packs numbers whose inverse scale exceeds float32: they become 0.
func TestPackSmallest(t *testing.T) {
	w := &Weights{In: 64, Out: 64}
	w.Pack(slices.Repeat([]float32{4e-37}, w.In*w.Out))
	if slices.ContainsFunc(w.Scale, func(s float32) bool { return s != 0 }) {
		t.Errorf("scales %v, want 0", w.Scale)
	}
}

// TestMultiply compares results with the definition, in integers and then in float64.
func TestMultiply(t *testing.T) {
	extremes := [][]float32{{}, {127, 2.5, 3.5, -2.5, -3.5, .5, -.5, -127}, {1e-44}, {3e38, -3e38, 1}}
	for _, c := range []struct{ rows, in, out int }{{0, 16, 64}, {1, 16, 64}, {6, 16, 64}, {7, 64, 128}, {13, 384, 64}, {5, 1536, 192}} {
		matrix, x := normal(c.in*c.out, .1), normal(c.rows*c.in, 3)
		for i := range matrix[:len(matrix)/2] { // columns with outlying weights
			matrix[i] *= matrix[i] * matrix[i]
		}
		if c.rows > len(extremes) {
			for row, start := range extremes {
				clear(x[row*c.in : (row+1)*c.in])
				copy(x[row*c.in:], start)
			}
			for i := range c.in { // the largest sums
				x[4*c.in+i] = 1
				matrix[i], matrix[c.in+i], matrix[2*c.in+i] = -1, 1-float32(i%4/2), float32(i%4/2*2-1)
			}
		}
		w := &Weights{In: c.in, Out: c.out, Bias: normal(c.out, 1)}
		w.Pack(matrix)
		checkLimit(t, w)
		for _, k := range Kernels {
			t.Run(fmt.Sprintf("%s/%dx%dx%d", k.Name, c.rows, c.in, c.out), func(t *testing.T) {
				var rows Rows
				k.Quantise(&rows, x, c.rows, c.in)
				out := make([]float32, Pad(c.rows)*c.out)
				k.Multiply(out, &rows, w)
				want, exact := make([]float32, c.rows*c.out), make([]float32, c.rows*c.out)
				signed := make([]byte, c.in)
				for i := range c.rows {
					scale := Round(signed, x[i*c.in:(i+1)*c.in])
					for j := range c.out {
						var sum int32
						var real float64
						for l := range c.in {
							sum += int32(int8(signed[l])) * int32(w.Levels[w.place(l, j)])
							real += float64(x[i*c.in+l]) * float64(matrix[j*c.in+l])
						}
						want[i*c.out+j] = float32(float64(sum)*float64(scale)*float64(w.Scale[j]) + float64(w.Bias[j]))
						exact[i*c.out+j] = float32(real + float64(w.Bias[j]))
					}
				}
				for i := range c.rows {
					row := func(m []float32) []float32 { return m[i*c.out : (i+1)*c.out] }
					near(t, "rounded", row(out), row(want), 1e-6)
					near(t, "true", row(out), row(exact), .05)
				}
			})
		}
	}
}

// checkLimit checks the limits of [Weights.Levels].
func checkLimit(t *testing.T, w *Weights) {
	t.Helper()
	for j := range w.Out {
		var sums [2][2]int // of 16 weights
		for i := range w.In {
			level := int(w.Levels[w.place(i, j)])
			sums[i/2%2][max(0, min(1, level))] += level
			if i%16 == 15 {
				if low, high := min(sums[0][0], sums[1][0]), max(sums[0][1], sums[1][1]); low < -128 || high > 128 {
					t.Fatalf("column %d: levels add up to %d and %d", j, low, high)
				}
				clear(sums[:])
			}
		}
	}
}

func TestProduct(t *testing.T) {
	for _, c := range []struct{ rows, inner, columns, stride int }{{1, 1, 32, 40}, {6, 32, 64, 64}, {20, 33, 96, 100}} {
		a := Matrix{normal(Pad(c.rows)*c.stride, 1), c.stride}
		b := Matrix{normal(c.inner*c.stride, 1), c.stride}
		var want []float32
		for _, k := range Kernels {
			out := Matrix{make([]float32, Pad(c.rows)*c.stride), c.stride}
			k.Product(out, a, b, c.rows, c.inner, c.columns)
			if want == nil { // of plain Go
				want = out.Data
			}
			near(t, k.Name, out.Data, want, 1e-6)
		}
	}
}

// TestRows compares the functions of single rows with plain Go, including the ends of their ranges.
func TestRows(t *testing.T) {
	ends := []float32{0, -1e30, 1e30, 5, -5, 10, -10, .001, -.001, 87, -87, 100, -100, 1, -1, -0.75}
	for _, x := range [][]float32{normal(16, 1), normal(384, 4), normal(1536, 100), ends} {
		n := len(x)
		y, gain, shift := normal(n, 1), normal(n, 1), normal(n, 1)
		for _, k := range Kernels {
			got, want := slices.Clone(x), slices.Clone(x)
			k.Softmax(got)
			softmaxPlain(want)
			near(t, k.Name+" softmax", got, want, 1e-6)

			got, want = slices.Clone(x), slices.Clone(x)
			k.GELU(got)
			geluPlain(want)
			for i := range want {
				if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-6*max(1, math.Abs(float64(want[i])))) {
					t.Fatalf("%s: GELU(%v) = %v, want %v", k.Name, x[i], got[i], want[i])
				}
			}
			if slices.Equal(x, ends) {
				continue // squares leave the range of float32
			}
			got, want = slices.Clone(x), slices.Clone(x)
			k.Normalise(got, y, gain, shift, 1e-12)
			normalisePlain(want, y, gain, shift, 1e-12)
			near(t, k.Name+" layer norm", got, want, 1e-5)
		}
	}
}
