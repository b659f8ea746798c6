package scan

import "golang.org/x/sys/cpu"

func init() {
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VNNI {
		dotKernels = append(dotKernels, func(q *Query, out []int32, rows []byte) {
			dotsVNNI(&out[0], &rows[0], &q.planes[0], len(out)/group, len(q.words))
		})
		if cpu.X86.HasAVX512VL && cpu.X86.HasAVX512BITALG {
			estimateKernels = append(estimateKernels, func(p *Probe, out []int32, rows []byte) {
				estimatesBITALG(&out[0], &rows[0], &p.planes[0], len(out)/group, p.stride)
			})
		}
	}
	if cpu.X86.HasAVX2 {
		dotKernels = append(dotKernels, func(q *Query, out []int32, rows []byte) {
			dotsAVX2(&out[0], &rows[0], &q.words[0], len(out)/group, len(q.words))
		})
	}
}

//go:noescape
func dotsVNNI(out *int32, rows *byte, planes *int8, groups, stride int)

//go:noescape
func dotsAVX2(out *int32, rows *byte, words *int16, groups, stride int)

//go:noescape
func estimatesBITALG(out *int32, rows, planes *byte, groups, stride int)
