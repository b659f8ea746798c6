//go:build !amd64 && !arm64

package kernel

// Best is the fastest kernel of this processor.
func Best() Kernel { return Portable }

// Available reports whether this processor has the kernel.
func (k Kernel) Available() bool { return k == Portable }

func (Kernel) quantise(out []byte, x []float32) float32 { return Round(out, x) }

func (Kernel) multiply(out []float32, r *Rows, w *Weights, at int) { multiplyPlain(out, r, w, at) }

func (Kernel) product(c, a, b Matrix, rows, inner, columns int) {
	productPlain(c, a, b, rows, inner, columns)
}

// Softmax replaces each x by e^x divided by the sum of all. The length is a
// multiple of 16 and not 0.
func (Kernel) Softmax(row []float32) { softmaxPlain(row) }

// GELU replaces each x by x·Φ(x). The length is a multiple of 16.
func (Kernel) GELU(x []float32) { geluPlain(x) }

// Normalise replaces x by the layer normalisation of x + y. The length is a
// multiple of 8 and not 0.
func (Kernel) Normalise(x, y, gain, shift []float32, epsilon float32) {
	normalisePlain(x, y, gain, shift, epsilon)
}
