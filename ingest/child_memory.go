//go:build !race

package ingest

// childMemory is the memory that a child may use, in bytes.
const childMemory = 512 << 20
