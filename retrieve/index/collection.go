package index

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"strconv"

	"github.com/philippgille/chromem-go"
)

// A collection has the vectors of the chunks that a filter selects in a segment, including deleted
// chunks, by slot.
//
// It contains no vectors in mapped memory, because chromem-go reads vectors in its own goroutines,
// where [catchDamage] cannot turn a fault into an error. Vectors of a segment in memory are shared;
// vectors of a file are copied.
type collection = chromem.Collection

// collect returns the collection of the selected chunks.
func (s *segment) collect(ctx context.Context, f *filtered) (*collection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.collection != nil {
		return f.collection, nil
	}
	// The embedding function is never called, because every chunk has a vector.
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

// eachNear calls f with the chosen chunks, nearest to a unit vector first, until below returns true
// for the cosine.
func (s *segment) eachNear(ctx context.Context, only *chosen, unit []float32, below func(cosine float64) bool, f func(slot int32)) error {
	c, err := s.collect(ctx, only.filtered)
	if err != nil {
		return err
	}
	found, err := c.QueryEmbedding(ctx, unit, c.Count(), nil, nil)
	if err == nil {
		err = ctx.Err() // an interrupted query has not compared everything
	}
	// The similarities are sums of float32, which may be off by a rounding error per dimension, and
	// the vectors may have been scaled.
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
