//go:build !amd64 && !arm64

package kernel

// assembled are the kernels in assembly.
func assembled() []*Kernel { return nil }
