package scan

import "golang.org/x/sys/cpu"

func init() {
	if cpu.ARM64.HasASIMDDP {
		dotKernels = append(dotKernels, func(q *Query, out []int32, rows []byte) {
			dotsNEON(&out[0], &rows[0], &q.planes[0], len(out)/group, len(q.words), q.offset)
		})
	}
}

//go:noescape
func dotsNEON(out *int32, rows *byte, planes *int8, groups, stride int, offset int32)
