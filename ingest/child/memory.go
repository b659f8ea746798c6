//go:build !race

package child

// Memory is the memory that a child may use, in bytes.
const Memory = 512 << 20
