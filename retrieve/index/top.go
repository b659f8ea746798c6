package index

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"

	"ibid/retrieve"
)

// A best keeps the k best of the added values in a heap with the worst at its root.
type best[T any] struct {
	k     int
	worse func(a, b T) bool
	heap  []T
}

func (b *best[T]) Len() int           { return len(b.heap) }
func (b *best[T]) Less(i, j int) bool { return b.worse(b.heap[i], b.heap[j]) }
func (b *best[T]) Swap(i, j int)      { b.heap[i], b.heap[j] = b.heap[j], b.heap[i] }
func (b *best[T]) Push(v any)         { b.heap = append(b.heap, v.(T)) }
func (b *best[T]) Pop() any           { panic("index: Pop is not used") }

func (b *best[T]) add(v T) {
	switch {
	case len(b.heap) < b.k:
		heap.Push(b, v)
	case b.worse(b.heap[0], v):
		b.heap[0] = v
		heap.Fix(b, 0)
	}
}

// A scored is a chunk with a score.
type scored[T cmp.Ordered] struct {
	part, slot int32
	score      T
}

// sortScored sorts by descending score.
func sortScored[T cmp.Ordered](all []scored[T]) {
	slices.SortFunc(all, func(a, b scored[T]) int { return cmp.Compare(b.score, a.score) })
}

// A top keeps the k chunks with the highest scores. Among equal scores, the smaller chunk id comes
// first.
type top struct {
	best[scored[float64]]
	snapshot *snapshot
}

func newTop(k int, s *snapshot) *top {
	t := &top{snapshot: s}
	t.k, t.worse = min(k, s.chunks), func(a, b scored[float64]) bool { return t.compare(a, b) > 0 }
	return t
}

// compare returns a negative number if a comes before b in the result.
func (t *top) compare(a, b scored[float64]) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return strings.Compare(t.snapshot.idOf(a), t.snapshot.idOf(b))
}

// isBelow reports whether no chunk with a score of at most upper can be among the k best.
func (t *top) isBelow(upper float64) bool { return len(t.heap) == t.k && upper < t.heap[0].score }

// rankedHits returns the hits, best first.
func (t *top) rankedHits() []retrieve.Hit {
	slices.SortFunc(t.heap, t.compare)
	out := make([]retrieve.Hit, len(t.heap))
	for i, h := range t.heap {
		s := t.snapshot.parts[h.part].segment
		document, first := s.documentOf(h.slot)
		out[i] = retrieve.Hit{Document: s.number(document), Generation: s.generation(document), Ordinal: int(h.slot-first) + 1}
	}
	return out
}

// idOf returns the id of a chunk.
func (v *snapshot) idOf(c scored[float64]) string {
	s := v.parts[c.part].segment
	document, first := s.documentOf(c.slot)
	return retrieve.ChunkID(s.id(document), int(c.slot-first)+1)
}
