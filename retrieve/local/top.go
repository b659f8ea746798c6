package local

import (
	"cmp"
	"slices"
)

// A hit is a slot with the score one search gave it.
type hit struct {
	slot  int32
	score float64
}

// A top keeps the k best hits: a heap with the worst at its root. Equal scores
// are ordered by the id of the chunk, the smaller first.
type top struct {
	k      int
	hits   []hit
	memory *memory
}

// before says whether a stands before b in the result.
func (t *top) before(a, b hit) bool {
	if a.score != b.score {
		return a.score > b.score
	}
	return t.memory.compareIDs(a.slot, b.slot) < 0
}

func (t *top) push(h hit) {
	if len(t.hits) < t.k {
		t.hits = append(t.hits, h)
		for i := len(t.hits) - 1; i > 0; {
			up := (i - 1) / 2
			if !t.before(t.hits[up], t.hits[i]) {
				break
			}
			t.hits[up], t.hits[i] = t.hits[i], t.hits[up]
			i = up
		}
		return
	}
	if h.score < t.hits[0].score || !t.before(h, t.hits[0]) {
		return
	}
	t.hits[0] = h
	for i := 0; ; {
		worst := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < len(t.hits) && t.before(t.hits[worst], t.hits[down]) {
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

// ids empties the heap, best first.
func (t *top) ids() []string {
	slices.SortFunc(t.hits, func(a, b hit) int {
		if byScore := cmp.Compare(b.score, a.score); byScore != 0 {
			return byScore
		}
		return t.memory.compareIDs(a.slot, b.slot)
	})
	out := make([]string, len(t.hits))
	for i, h := range t.hits {
		out[i] = t.memory.id(h.slot)
	}
	return out
}

// A lowest keeps the k highest of the values added: a heap with the least at
// its root.
type lowest[T cmp.Ordered] struct {
	k    int
	heap []T
}

// add takes in a value. It gives the k-th highest one, when there are as many.
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
