//go:build !race

package child

// Memory is the memory limit of a child in bytes.
const Memory = 512 << 20
