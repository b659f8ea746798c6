package kernel

import (
	"math"

	"golang.org/x/sys/cpu"
)

// assembled returns the assembly kernels that this processor supports.
func assembled() []*Kernel {
	if !cpu.ARM64.HasASIMDDP {
		return nil
	}
	return []*Kernel{{
		Name: "NEON", LayerTokens: 12 * 8 * 256, // assumed to equal that of AVX2
		quantise: func(out []byte, x []float32) float32 {
			scale, inverse := scaleOf(largestNEON(&x[0], len(x)))
			roundNEON(&out[0], &x[0], len(x), inverse)
			return scale
		},
		multiply: func(out []float32, r *Rows, w *Weights, at int) {
			for half := 0; half < Panel; half += Panel / 2 { // as many columns as fit into the registers
				multiplyNEON(&out[half], w.Out, &r.Bytes[0], &r.Scale[0], r.Width, len(r.Scale)/3,
					&w.Levels[at*w.In+half*quad], &w.Scale[at+half], &w.Bias[at+half])
			}
		},
		product: func(c, a, b Matrix, rows, inner, columns int) {
			for j := 0; j < columns; j += Lane {
				for i := 0; i < rows; i += Tile / 2 {
					productNEON(&c.Data[i*c.Stride+j], c.Stride, &a.Data[i*a.Stride], a.Stride, &b.Data[j], b.Stride, inner)
				}
			}
		},
		softmax: softmaxNEON, gelu: geluNEON, normalise: normalisePlain,
	}}
}

func softmaxNEON(row []float32) {
	highest := row[0]
	for _, x := range row {
		highest = max(highest, x)
	}
	var sum float32
	for i, x := range row {
		row[i] = exp(x - highest)
		sum += row[i]
	}
	for i := range row {
		row[i] *= 1 / sum
	}
}

// geluNEON uses Abramowitz and Stegun, "Handbook of mathematical functions", 7.1.26.
func geluNEON(x []float32) {
	for i, v := range x {
		z := float32(math.Abs(float64(v))) * (1 / math.Sqrt2)
		t := 1 / (1 + .3275911*z)
		tail := .5 * t * (.254829592 + t*(-.284496736+t*(1.421413741+t*(-1.453152027+t*1.061405429)))) * exp(-z*z)
		if v < 0 {
			x[i] = v * tail
		} else {
			x[i] = v - v*tail
		}
	}
}

// exp returns the exponential of a number up to 88 as row_amd64.s computes it: 2^n·e^r with six
// terms of the series, and an error of 2e-7. Numbers below -87 are treated as -87.
func exp(x float32) float32 {
	x = max(x, -87)
	n := float32(math.RoundToEven(float64(x * math.Log2E)))
	r := x - n*0.693359375 - n*-2.12194440e-4
	y := 1 + r*(1+r*(1./2+r*(1./6+r*(1./24+r*(1./120+r*(1./720))))))
	return y * math.Float32frombits(uint32(int32(n)+127)<<23)
}

// multiplyNEON computes 32 columns of a product with weights, for blocks of 3 rows of signed bytes.
// The stride of out is in elements; k is a positive multiple of 16.
//
//go:noescape
func multiplyNEON(out *float32, stride int, a *byte, rows *float32, k, blocks int, w *int8, columns, bias *float32)

// productNEON computes 3 rows and 32 columns of a product. Strides are in elements;
// k is not 0.
//
//go:noescape
func productNEON(c *float32, cs int, a *float32, as int, b *float32, bs, k int)

// In the following functions, n is a positive multiple of 8.

//go:noescape
func largestNEON(x *float32, n int) float32

// roundNEON stores x·inverse, rounded to signed bytes.
//
//go:noescape
func roundNEON(out *byte, x *float32, n int, inverse float32)
