//go:build !amd64 && !arm64

package scan

func best() kernel { return portable }

func (k kernel) available() bool { return k == portable }

func (q *Query) run(kernel, []int32, []byte) { panic("scan: no such kernel on this processor") }
