//go:build race

package ingest

// childMemory is the memory that a child may use, in bytes; the race detector
// needs several times as much.
const childMemory = 2 << 30
