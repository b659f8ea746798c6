package index

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"ibid/retrieve"
)

// A hit is a chunk with the score that one search gave it.
type hit struct {
	part, slot int32
	score      float64
}

// A top keeps the k best hits: a heap with the worst at its root. Equal scores
// are ordered by the id of the chunk, the smaller first.
type top struct {
	k        int
	hits     []hit
	snapshot *snapshot
}

// compare is negative if a comes before b in the result.
func (t *top) compare(a, b hit) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return t.snapshot.compareIDs(a, b)
}

func (t *top) push(h hit) {
	if len(t.hits) < t.k {
		t.hits = append(t.hits, h)
		for i := len(t.hits) - 1; i > 0; {
			up := (i - 1) / 2
			if t.compare(t.hits[up], t.hits[i]) >= 0 {
				break
			}
			t.hits[up], t.hits[i] = t.hits[i], t.hits[up]
			i = up
		}
		return
	}
	if h.score < t.hits[0].score || t.compare(h, t.hits[0]) >= 0 {
		return
	}
	t.hits[0] = h
	for i := 0; ; {
		worst := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < len(t.hits) && t.compare(t.hits[worst], t.hits[down]) < 0 {
				worst = down
			}
		}
		if worst == i {
			return
		}
		t.hits[worst], t.hits[i] = t.hits[i], t.hits[worst]
		i = worst
	}
}

// below reports whether nothing with a score of at most upper can be among the k
// best.
func (t *top) below(upper float64) bool { return len(t.hits) == t.k && upper < t.hits[0].score }

// ranked empties the heap, best first.
func (t *top) ranked() []retrieve.Hit {
	slices.SortFunc(t.hits, t.compare)
	out := make([]retrieve.Hit, len(t.hits))
	for i, h := range t.hits {
		s := t.snapshot.parts[h.part].segment
		document, first := s.documentOf(h.slot)
		out[i] = retrieve.Hit{Document: item[int64](s, secNumbers, document), Generation: s.generation(document), Ordinal: int(h.slot-first) + 1}
	}
	return out
}

// compareIDs orders the ids of two chunks, which are those of their documents
// with "#" and their ordinals.
func (v *snapshot) compareIDs(a, b hit) int {
	s, t := v.parts[a.part].segment, v.parts[b.part].segment
	d, dFirst := s.documentOf(a.slot)
	e, eFirst := t.documentOf(b.slot)
	if s == t && d == e {
		var x, y [20]byte
		return bytes.Compare(strconv.AppendInt(x[:0], int64(a.slot-dFirst)+1, 10), strconv.AppendInt(y[:0], int64(b.slot-eFirst)+1, 10))
	}
	x, y := s.id(d), t.id(e)
	n := min(len(x), len(y))
	if c := strings.Compare(x[:n], y[:n]); c != 0 {
		return c
	}
	return strings.Compare(retrieve.ChunkID(x, int(a.slot-dFirst)+1), retrieve.ChunkID(y, int(b.slot-eFirst)+1))
}

// A lowest keeps the k highest of the values added: a heap with the least at
// its root.
type lowest[T cmp.Ordered] struct {
	k    int
	heap []T
}

// add adds a value. It returns the k-th highest one if there are as many.
func (l *lowest[T]) add(v T) (least T, full bool) {
	h := l.heap
	switch {
	case len(h) < l.k:
		h = append(h, v)
		for i := len(h) - 1; i > 0; {
			up := (i - 1) / 2
			if h[up] <= h[i] {
				break
			}
			h[up], h[i] = h[i], h[up]
			i = up
		}
		l.heap = h
	case v > h[0]:
		h[0] = v
		for i := 0; ; {
			least := i
			for _, down := range [2]int{2*i + 1, 2*i + 2} {
				if down < len(h) && h[down] < h[least] {
					least = down
				}
			}
			if least == i {
				break
			}
			h[least], h[i] = h[i], h[least]
			i = least
		}
	}
	return h[0], len(h) == l.k
}
