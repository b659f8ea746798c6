package kernel

import "golang.org/x/sys/cpu"

// assembled returns the assembly kernels that this processor supports, slowest first.
func assembled() []*Kernel {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		return nil
	}
	avx2 := &Kernel{
		Name: "AVX2", LayerTokens: 12 * 8 * 256,
		quantise: func(out []byte, x []float32) float32 {
			scale, inverse := scaleOf(largestAVX2(&x[0], len(x)))
			roundAVX2(&out[0], &x[0], len(x), inverse)
			return scale
		},
		multiply: func(out []float32, r *Rows, w *Weights, at int) {
			for half := 0; half < Panel; half += Panel / 2 { // as many columns as fit into the registers
				multiplyAVX2(&out[half], w.Out, &r.Bytes[0], &r.Scale[0], r.Width, len(r.Scale)/2,
					&w.Levels[at*w.In+half*quad], &w.Start[at+half], &w.Scale[at+half], &w.Bias[at+half])
			}
		},
		product: func(c, a, b Matrix, rows, inner, columns int) {
			for j := 0; j < columns; j += Lane {
				for i := 0; i < rows; i += Tile {
					from := &a.Data[i*a.Stride]
					for at := j; at < j+Lane; at += Lane / 2 {
						productAVX2(&c.Data[i*c.Stride+at], c.Stride, from, a.Stride, &b.Data[at], b.Stride, inner)
					}
				}
			}
		},
		softmax: func(row []float32) { softmaxAVX2(&row[0], len(row)) },
		gelu:    func(x []float32) { geluAVX2(&x[0], len(x)) },
		normalise: func(x, y, gain, shift []float32, epsilon float32) {
			n := len(x)
			normaliseAVX2(&x[0], &y[:n][0], &gain[:n][0], &shift[:n][0], n, epsilon)
		},
	}
	if !cpu.X86.HasAVX512F || !cpu.X86.HasAVX512BW || !cpu.X86.HasAVX512VNNI {
		return []*Kernel{avx2}
	}
	vnni := *avx2
	vnni.Name, vnni.LayerTokens = "AVX-512 VNNI", 12*15*256
	vnni.multiply = func(out []float32, r *Rows, w *Weights, at int) {
		multiplyVNNI(&out[0], w.Out, &r.Bytes[0], &r.Scale[0], r.Width, len(r.Scale)/Tile,
			&w.Levels[at*w.In], &w.Start[at], &w.Scale[at], &w.Bias[at])
	}
	vnni.product = func(c, a, b Matrix, rows, inner, columns int) {
		for j := 0; j < columns; j += Lane {
			for i := 0; i < rows; i += Tile {
				productAVX512(&c.Data[i*c.Stride+j], c.Stride, &a.Data[i*a.Stride], a.Stride, &b.Data[j], b.Stride, inner)
			}
		}
	}
	vnni.softmax = func(row []float32) { softmaxAVX512(&row[0], len(row)) }
	vnni.gelu = func(x []float32) { geluAVX512(&x[0], len(x)) }
	return []*Kernel{avx2, &vnni}
}

// multiplyVNNI computes 64 columns of a product with weights, for blocks of 6
// rows. The stride of out is in elements; k is not 0.
//
//go:noescape
func multiplyVNNI(out *float32, stride int, a *byte, rows *float32, k, blocks int, w *int8, start *int32, columns, bias *float32)

// multiplyAVX2 computes 32 columns, for blocks of 2 rows. k is a multiple of 16.
//
//go:noescape
func multiplyAVX2(out *float32, stride int, a *byte, rows *float32, k, blocks int, w *int8, start *int32, columns, bias *float32)

// productAVX512 computes 6 rows and 32 columns of a product. Strides are in
// elements; k is not 0.
//
//go:noescape
func productAVX512(c *float32, cs int, a *float32, as int, b *float32, bs, k int)

// productAVX2 computes 6 rows and 16 columns.
//
//go:noescape
func productAVX2(c *float32, cs int, a *float32, as int, b *float32, bs, k int)

// In the following functions, n is a positive multiple of 8.

//go:noescape
func largestAVX2(x *float32, n int) float32

// roundAVX2 stores x·inverse + 128, rounded to unsigned bytes.
//
//go:noescape
func roundAVX2(out *byte, x *float32, n int, inverse float32)

//go:noescape
func normaliseAVX2(x, y, gain, shift *float32, n int, epsilon float32)

// In the following functions, n is a positive multiple of 16.

//go:noescape
func softmaxAVX2(x *float32, n int)

//go:noescape
func softmaxAVX512(x *float32, n int)

//go:noescape
func geluAVX2(x *float32, n int)

//go:noescape
func geluAVX512(x *float32, n int)
