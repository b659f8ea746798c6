package kernel

import "golang.org/x/sys/cpu"

// Best is the fastest kernel of this processor.
func Best() Kernel {
	for _, k := range []Kernel{VNNI, AVX2} {
		if k.Available() {
			return k
		}
	}
	return Portable
}

// Available reports whether this processor has the kernel.
func (k Kernel) Available() bool {
	switch k {
	case VNNI:
		return AVX2.Available() && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VNNI
	case AVX2:
		return cpu.X86.HasAVX2 && cpu.X86.HasFMA
	}
	return k == Portable
}

func (k Kernel) quantise(out []byte, x []float32) float32 {
	if k == Portable || len(x) == 0 {
		return Round(out, x)
	}
	scale, inverse := scaleOf(largestAVX2(&x[0], len(x)))
	roundAVX2(&out[0], &x[0], len(x), inverse)
	return scale
}

func (k Kernel) multiply(out []float32, r *Rows, w *Weights, at int) {
	blocks := len(r.Scale) / Tile
	switch {
	case k == Portable:
		multiplyPlain(out, r, w, at)
	case blocks == 0 || r.Width == 0:
	case k == VNNI:
		multiplyVNNI(&out[0], w.Out, &r.Bytes[0], &r.Scale[0], r.Width, blocks,
			&w.Levels[at*w.In], &w.Start[at], &w.Scale[at], &w.Bias[at])
	default:
		for half := 0; half < Panel; half += Panel / 2 { // as many columns as there are registers for
			multiplyAVX2(&out[half], w.Out, &r.Bytes[0], &r.Scale[0], r.Width, 3*blocks,
				&w.Levels[at*w.In+half*quad], &w.Start[at+half], &w.Scale[at+half], &w.Bias[at+half])
		}
	}
}

func (k Kernel) product(c, a, b Matrix, rows, inner, columns int) {
	if k == Portable {
		productPlain(c, a, b, rows, inner, columns)
		return
	}
	for j := 0; j < columns; j += Lane {
		for i := 0; i < rows; i += Tile {
			to, from := &c.Data[i*c.Stride+j], &a.Data[i*a.Stride]
			if k == VNNI {
				productAVX512(to, c.Stride, from, a.Stride, &b.Data[j], b.Stride, inner)
				continue
			}
			productAVX2(to, c.Stride, from, a.Stride, &b.Data[j], b.Stride, inner)
			productAVX2(&c.Data[i*c.Stride+j+Lane/2], c.Stride, from, a.Stride, &b.Data[j+Lane/2], b.Stride, inner)
		}
	}
}

// Softmax replaces each x by e^x divided by the sum of all. The length is a
// multiple of 16 and not 0.
func (k Kernel) Softmax(row []float32) {
	switch k {
	case Portable:
		softmaxPlain(row)
	case AVX2:
		softmaxAVX2(&row[0], len(row))
	case VNNI:
		softmaxAVX512(&row[0], len(row))
	}
}

// GELU replaces each x by x·Φ(x). The length is a multiple of 16.
func (k Kernel) GELU(x []float32) {
	switch {
	case k == Portable || len(x) == 0:
		geluPlain(x)
	case k == AVX2:
		geluAVX2(&x[0], len(x))
	case k == VNNI:
		geluAVX512(&x[0], len(x))
	}
}

// Normalise replaces x by the layer normalisation of x + y. The length is a
// multiple of 8 and not 0.
func (k Kernel) Normalise(x, y, gain, shift []float32, epsilon float32) {
	n := len(x)
	if k == Portable {
		normalisePlain(x, y, gain, shift, epsilon)
		return
	}
	normaliseAVX2(&x[0], &y[:n][0], &gain[:n][0], &shift[:n][0], n, epsilon)
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

// In the following, n is a multiple of 8 and not 0.

//go:noescape
func largestAVX2(x *float32, n int) float32

// roundAVX2 stores x·inverse + 128, rounded to unsigned bytes.
//
//go:noescape
func roundAVX2(out *byte, x *float32, n int, inverse float32)

//go:noescape
func normaliseAVX2(x, y, gain, shift *float32, n int, epsilon float32)

// In the following, n is a multiple of 16 and not 0.

//go:noescape
func softmaxAVX2(x *float32, n int)

//go:noescape
func softmaxAVX512(x *float32, n int)

//go:noescape
func geluAVX2(x *float32, n int)

//go:noescape
func geluAVX512(x *float32, n int)
