//go:build !amd64 && !arm64

package kernel

// assembled returns the assembly kernels.
func assembled() []*Kernel { return nil }
