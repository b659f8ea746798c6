package scan

import "golang.org/x/sys/cpu"

// best is the fastest kernel of this processor.
func best() kernel {
	for _, k := range []kernel{vnni, avx2} {
		if k.available() {
			return k
		}
	}
	return portable
}

func init() {
	if vnni.available() && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512BITALG {
		estimates = estimatesBITALG
	}
}

func (k kernel) available() bool {
	switch k {
	case vnni:
		return cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VNNI
	case avx2:
		return cpu.X86.HasAVX2
	}
	return k == portable
}

func (q *Query) run(k kernel, out []int32, rows []byte) {
	switch k {
	case vnni:
		dotsVNNI(&out[0], &rows[0], &q.planes[0], len(out)/group, len(q.words))
	case avx2:
		dotsAVX2(&out[0], &rows[0], &q.words[0], len(out)/group, len(q.words))
	}
}

// dotsVNNI computes the products of groups of four rows with the planes of a
// query. Stride is a multiple of 64 and not 0.
//
//go:noescape
func dotsVNNI(out *int32, rows *byte, planes *int8, groups, stride int)

// dotsAVX2 does the same with the words of a query.
//
//go:noescape
func dotsAVX2(out *int32, rows *byte, words *int16, groups, stride int)

// estimatesBITALG is a kernel of [Probe.Estimate].
//
//go:noescape
func estimatesBITALG(out *int32, rows, planes *byte, groups, stride int)
