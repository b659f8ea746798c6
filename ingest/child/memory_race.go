//go:build race

package child

// Memory is the memory limit of a child in bytes. The race detector needs several times as much.
const Memory = 2 << 30
