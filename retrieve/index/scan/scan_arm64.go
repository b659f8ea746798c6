package scan

import "golang.org/x/sys/cpu"

// best is the fastest kernel of this processor.
func best() kernel {
	if neon.available() {
		return neon
	}
	return portable
}

func (k kernel) available() bool { return k == portable || k == neon && cpu.ARM64.HasASIMDDP }

func (q *Query) run(_ kernel, out []int32, rows []byte) {
	dotsNEON(&out[0], &rows[0], &q.planes[0], len(out)/group, len(q.words), q.offset)
}

// dotsNEON computes the products of groups of four rows with the planes of a query.
// Stride is a multiple of 64 and not 0.
//
//go:noescape
func dotsNEON(out *int32, rows *byte, planes *int8, groups, stride int, offset int32)
