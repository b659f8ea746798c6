package index

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"strconv"

	"github.com/philippgille/chromem-go"
)

// A collection has the vectors of the chunks that a filter selects in a
// segment, including deleted ones, by slot.
//
// It has no vectors in mapped memory: chromem-go reads them in goroutines of its
// own, where [guard] cannot turn a fault into an error. It has those of a segment
// in memory without a copy, and copies of those in a file.
type collection = chromem.Collection

// collect returns the collection of the selected chunks.
func (s *segment) collect(ctx context.Context, f *filtered) (*collection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.collection != nil {
		return f.collection, nil
	}
	// The embedding function is not called: every chunk has a vector.
	c, err := chromem.NewDB().CreateCollection("chunks", nil, func(context.Context, string) ([]float32, error) {
		return nil, errors.New("a chunk has no vector")
	})
	if err != nil {
		return nil, err
	}
	every := chosen{filtered: f, chunks: int(s.Chunks)}
	for i := range every.words() {
		for word := every.word(i); word != 0; word &= word - 1 {
			slot := 64*i + bits.TrailingZeros64(word)
			vector := s.vector(int32(slot))
			if s.file != "" {
				vector = slices.Clone(vector)
			}
			if err := c.AddDocument(ctx, chromem.Document{ID: strconv.Itoa(slot), Embedding: vector}); err != nil {
				return nil, err
			}
		}
	}
	f.collection, s.collected = c, append(s.collected, f)
	if len(s.collected) > maxCollections {
		s.collected[0].collection = nil
		s.collected = s.collected[1:]
	}
	return c, nil
}

// around calls f with the chosen chunks that may be among the nearest to a unit
// vector, the nearest first, as long as below is not true of the cosine.
func (s *segment) around(ctx context.Context, only *chosen, unit []float32, below func(cosine float64) bool, f func(slot int32)) error {
	c, err := s.collect(ctx, only.filtered)
	if err != nil {
		return err
	}
	found, err := c.QueryEmbedding(ctx, unit, c.Count(), nil, nil)
	if err == nil {
		err = ctx.Err() // then not everything was compared
	}
	// The similarities are sums of float32, which are off by up to a rounding for
	// each dimension, and of vectors that may have been scaled.
	off := float64(len(unit)+64) / (1 << 23)
	for _, r := range found {
		if err != nil || below(float64(r.Similarity)+off) {
			break
		}
		if slot, err := strconv.Atoi(r.ID); err == nil && only.has(int32(slot)) {
			f(int32(slot))
		}
	}
	return err
}
