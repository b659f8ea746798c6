package retrieve

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ibid/ingest"
)

// This file has functions that states and searchers share: ids, checks of documents before they are
// stored, and the packing of vectors.

// ChunkID returns the id of the document's chunk with the given ordinal, which starts at 1.
func ChunkID(document string, ordinal int) string { return document + "#" + strconv.Itoa(ordinal) }

// Uploads is the name of the root for uploaded documents, which has no folder.
const Uploads = "uploads"

// PackVector returns the stored form of a vector: little-endian float32.
func PackVector(v []float32) []byte {
	b, _ := binary.Append(make([]byte, 0, 4*len(v)), binary.LittleEndian, v) // it fails only for other types
	return b
}

// UnpackVector is the inverse of [PackVector].
func UnpackVector(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	_, _ = binary.Decode(b, binary.LittleEndian, v) // it fails only if b is too short
	return v
}

// RootName returns a free name for the root of a path: its base name, or the host of a web address,
// with "-2", "-3" … appended if that is taken. An empty path is the root [Uploads].
func RootName(path string, taken []ingest.Root) string {
	base := Uploads
	if path != "" {
		base = strings.Trim(filepath.Base(strings.TrimPrefix(path, ingest.MadeForUploads)), `/\:`)
	}
	if u, err := url.Parse(path); err == nil && ingest.IsAddress(path) {
		base = u.Hostname()
	}
	// A root's name is the first element of ids, and "#" precedes a chunk's ordinal. A folder named
	// "uploads" must not become the root of uploads.
	base = strings.Map(func(r rune) rune {
		if r == '/' || r == '#' || r < ' ' {
			return '-'
		}
		return r
	}, base)
	if base == "" || base == "." || base == ".." {
		base = "root"
	}
	name := base
	for n := 2; path != "" && name == Uploads || slices.ContainsFunc(taken, func(r ingest.Root) bool { return r.Name == name }); n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return name
}

// CheckDocument checks that a document, its chunks and their vectors fit together, before a state
// stores them, and returns the vectors scaled to unit length.
func CheckDocument(doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) (units [][]float32, err error) {
	if doc.Root == "" || doc.Path == "" || doc.ID != doc.Root+"/"+doc.Path {
		return nil, fmt.Errorf("its id is not its root %q followed by its path %q", doc.Root, doc.Path)
	}
	if len(chunks) != len(vectors) {
		return nil, fmt.Errorf("it has %d chunks and %d vectors", len(chunks), len(vectors))
	}
	units = make([][]float32, len(chunks))
	for i, c := range chunks {
		if c.Document != doc.ID || c.Ordinal != i+1 || c.ID != ChunkID(doc.ID, i+1) {
			return nil, fmt.Errorf("its chunk %d is labelled %s, chunk %d of %s", i+1, c.ID, c.Ordinal, c.Document)
		}
		if c.Start < 0 || c.End > len(doc.Text) || c.Start >= c.End || doc.Text[c.Start:c.End] != c.Text {
			return nil, fmt.Errorf("the text of its chunk %d is not its bytes %d to %d", i+1, c.Start, c.End)
		}
		if units[i], err = Unit(vectors[i], len(vectors[0])); err != nil {
			return nil, fmt.Errorf("its chunk %d: %w", i+1, err)
		}
	}
	return units, nil
}

// unitError is the largest difference from 1 that rounding may cause in the square of a unit
// vector's length.
const unitError = 1e-6

// Unit scales a vector, which must have the given dimensions, to unit length. A vector of length
// zero is an error.
func Unit(v []float32, dims int) ([]float32, error) {
	if len(v) == 0 || len(v) != dims {
		return nil, fmt.Errorf("the vector has %d dimensions, the others have %d", len(v), dims)
	}
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	length := math.Sqrt(square)
	if math.IsNaN(length) || math.IsInf(length, 0) || length < 1e-12 {
		return nil, fmt.Errorf("the vector has length %v and cannot be compared", length)
	}
	unit := make([]float32, len(v))
	if math.Abs(square-1) < unitError {
		copy(unit, v) // storing a vector again must not change it
		return unit, nil
	}
	for i, x := range v {
		unit[i] = float32(float64(x) / length)
	}
	return unit, nil
}
