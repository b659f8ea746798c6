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
	for i := range (int(s.Chunks) + 63) / 64 {
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
	f.collection = c
	return c, nil
}

// around returns chunks among which are the k nearest to a unit vector, or all if
// there are fewer.
func (s *segment) around(ctx context.Context, only *chosen, unit []float32, k int) (slots []int32, err error) {
	c, err := s.collect(ctx, only.filtered)
	if err != nil {
		return nil, err
	}
	// The similarities are sums of float32, which are off by up to a rounding for
	// each dimension, and of vectors that may have been scaled. Chunks that are so
	// near to the k-th one may be among the k nearest.
	off := float32(len(unit)+64) / (1 << 23)
	for n := k + only.dead + 8; ; n *= 2 {
		n = min(n, c.Count()) // more are an error
		found, err := c.QueryEmbedding(ctx, unit, n, nil, nil)
		if err == nil {
			err = ctx.Err() // then not everything was compared
		}
		if err != nil {
			return nil, err
		}
		slots = slots[:0]
		least := float32(-2)
		for _, r := range found {
			if slot, err := strconv.Atoi(r.ID); err == nil && only.has(int32(slot)) && r.Similarity >= least {
				if slots = append(slots, int32(slot)); len(slots) == k {
					least = r.Similarity - 2*off
				}
			}
		}
		if n == c.Count() || found[len(found)-1].Similarity < least {
			return slots, nil
		}
	}
}
