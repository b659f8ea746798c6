//go:build !amd64

package scan

func best() kernel { return portable }

func (k kernel) available() bool { return k == portable }

func (q *Query) run(kernel, []int32, []byte) { panic("scan: no such kernel on this processor") }

func runReaching(kernel, []uint64, []int32, []float32, []float32, float32, float32, float32) bool {
	return false
}
