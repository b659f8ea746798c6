package kernel

// BlockNumbers is the number of weights in a block. A block stores a weight in 4.5 bits on average:
// it has a scale and 32 numbers of 4 bits, the first 16 of which are the lower halves of the bytes.
// A weight is the scale times the number minus 8.
const BlockNumbers = 32

// Expand sets the levels of a block of column j, whose first weight has the index i, to the same
// values as [Weights.Pack], which also computed w.Inverse.
func (w *Weights) Expand(i, j int, scale float32, numbers []byte) {
	var levels [16]int8
	for n := range levels {
		levels[n] = int8(round(scale * float32(n-8) * w.Inverse[j]))
	}
	const four = Panel * quad // distance between two successive quads of a column
	to := w.Levels[w.place(i, j):][:(BlockNumbers/quad-1)*four+quad]
	for n, b := range numbers[:BlockNumbers/2] {
		at := n/quad*four + n%quad
		to[at], to[at+BlockNumbers/2/quad*four] = levels[b&15], levels[b>>4]
	}
}
