package retrieve_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"

	"ibid/retrieve"
)

// A hashing embedder embeds a text as the signed hashes of its terms: texts that
// share words are near each other.
type hashing struct {
	Dims int
	Name string
}

// Space names the embedder and its dimensions.
func (h hashing) Space() string { return fmt.Sprintf("%s/%d", h.Name, h.Dims) }

// Embed never returns an error.
func (h hashing) Embed(_ context.Context, texts []string) ([][]float32, error) {
	rows := make([][]float32, len(texts))
	for i, text := range texts {
		row := make([]float32, h.Dims)
		row[0] = 1e-3 // a text without words has a row too
		for _, term := range retrieve.Terms(text) {
			f := fnv.New64a()
			_, _ = f.Write([]byte(h.Name + term)) // it never fails
			n := f.Sum64()
			row[n%uint64(h.Dims)] += 1 - 2*float32(n>>63)
		}
		var square float64
		for _, x := range row {
			square += float64(x) * float64(x)
		}
		for j := range row {
			row[j] /= float32(math.Sqrt(square))
		}
		rows[i] = row
	}
	return rows, nil
}
