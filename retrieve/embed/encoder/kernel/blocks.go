package kernel

// Blocks hold weights in 4.5 bits each: a scale, and 32 numbers of 4 bits, of which the
// first 16 are the lower halves of the bytes. A weight is the scale times the number less 8.
const BlockNumbers = 32

// Expand sets the levels of a block of column j, whose first weight is i, as
// [Weights.Pack] did, from which w.Inverse is.
func (w *Weights) Expand(i, j int, scale float32, numbers []byte) {
	var levels [16]int8
	for n := range levels {
		levels[n] = int8(round(scale * float32(n-8) * w.Inverse[j]))
	}
	const four = Panel * quad // from one four of a column to the next
	to := w.Levels[w.place(i, j):][:(BlockNumbers/quad-1)*four+quad]
	for n, b := range numbers[:BlockNumbers/2] {
		at := n/quad*four + n%quad
		to[at], to[at+BlockNumbers/2/quad*four] = levels[b&15], levels[b>>4]
	}
}
