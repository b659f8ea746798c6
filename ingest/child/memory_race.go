//go:build race

package child

// Memory is the memory that a child may use, in bytes; the race detector
// needs several times as much.
const Memory = 2 << 30
