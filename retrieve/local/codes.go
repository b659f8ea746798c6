package local

import "math"

// A code is the byte of a posting that says how much its term may weigh there:
// how often it stands in the chunk, and a class of the chunk's length. Most
// terms stand once or twice in a chunk, so low counts have many classes. Counts
// of manyTimes and more share one.
const (
	codes     = 256
	codeBits  = 8
	manyTimes = 15
	// endless is the length from which on all chunks are of the last class.
	endless = 2048
)

// classes is how many classes of length a count has; all together are codes.
// No count has more than 1.
func classes(count int) int {
	return [manyTimes + 1]int{1: 92, 60, 32, 16, 10, 6, 6, 4, 4, 4, 4, 4, 4, 4, 6}[count]
}

// A codebook says what codes stand for.
type codebook struct {
	class [endless + 1]uint8   // of a length, for a count of 1
	first [manyTimes + 1]uint8 // the code of a count in the shortest chunks
	wide  [manyTimes + 1]int   // classes of a count

	// By code: the count, and the shortest and the longest chunk that has it.
	count             [codes]uint8
	shortest, longest [codes]float64
}

func newCodebook() *codebook {
	b := new(codebook)
	// The weight of a term goes with 1 / (length + some constant), so that
	// classes of equal ratio of that lose equally much. This one is right for
	// short chunks; long ones lose a little more.
	const constant = 64
	widest := math.Log(float64(endless+1+constant) / constant)
	for length := range b.class {
		b.class[length] = uint8(float64(classes(1)) * math.Log(float64(length+constant)/constant) / widest)
	}
	code := 0
	for count := 1; count <= manyTimes; count++ {
		b.first[count], b.wide[count] = uint8(code), classes(count)
		for i := code; i < code+classes(count); i++ {
			b.count[i], b.shortest[i] = uint8(count), math.Inf(1)
		}
		// What a code stands for is what is given it, whatever the rounding above.
		for length := range b.class {
			i := b.of(count, length)
			b.shortest[i] = min(b.shortest[i], float64(length))
			b.longest[i] = max(b.longest[i], float64(length))
		}
		b.longest[b.of(count, endless)] = math.Inf(1)
		code += classes(count)
	}
	return b
}

// of gives the code of a count of at least 1, in a chunk of the length.
func (b *codebook) of(count, length int) uint8 {
	count = min(count, manyTimes)
	class := int(b.class[min(length, endless)])
	return b.first[count] + uint8(class*b.wide[count]/b.wide[1])
}

// shares gives the least and the most that a term with each code has of its
// weight.
func (b *codebook) shares(by saturation) (lower, upper [codes]float64) {
	for code, count := range b.count {
		lower[code] = by.share(float64(count), b.longest[code])
		upper[code] = by.share(float64(count), b.shortest[code])
		if count == manyTimes {
			upper[code] = 1
		}
	}
	return lower, upper
}
