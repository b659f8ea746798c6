package local

import (
	"cmp"
	"context"
	"slices"

	"ibid/retrieve"
)

// A hit is a slot with the score one search gave it.
type hit struct {
	slot  int32
	score float64
}

// A top keeps the k best hits: a heap with the worst at its root. Equal scores
// are ordered by the id of the chunk, the smaller first.
type top struct {
	k    int
	hits []hit
	id   func(slot int32) string
}

// before says whether a stands before b in the result.
func (t *top) before(a, b hit) bool {
	if a.score != b.score {
		return a.score > b.score
	}
	return t.id(a.slot) < t.id(b.slot)
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
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(t.id(a.slot), t.id(b.slot)))
	})
	out := make([]string, len(t.hits))
	for i, h := range t.hits {
		out[i] = t.id(h.slot)
	}
	return out
}

// Dense gives the ids of the k chunks nearest to the vector by cosine, by a
// scan of all that the filter lets through.
func (e *Engine) Dense(ctx context.Context, vector []float32, k int, f retrieve.Filter) ([]string, error) {
	if err := e.refresh(ctx); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	m := e.memory
	if m.live() == 0 || k <= 0 {
		return nil, nil
	}
	unit, err := normalise(vector, m.dims)
	if err != nil {
		return nil, err
	}
	t := top{k: min(k, m.live()), id: m.id}
	through := m.passes(f)
	for block, rows := range m.arena {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		first := block * blockRows
		for i := range min(blockRows, len(m.slots)-first) {
			s := int32(first + i)
			if !through(s) {
				continue
			}
			row := rows[i*m.dims : (i+1)*m.dims]
			t.push(hit{s, float64(dot(row, unit))})
		}
	}
	return t.ids(), nil
}

// dot has eight sums so that the processor need not wait for each addition.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		s4 += a[4] * b[4]
		s5 += a[5] * b[5]
		s6 += a[6] * b[6]
		s7 += a[7] * b[7]
		a, b = a[8:], b[8:]
	}
	for i := range min(len(a), len(b)) {
		s0 += a[i] * b[i]
	}
	return (s0 + s4) + (s1 + s5) + (s2 + s6) + (s3 + s7)
}

// Lexical gives the ids of the k chunks with the highest BM25 score over the terms.
func (e *Engine) Lexical(ctx context.Context, terms []string, k int, f retrieve.Filter) ([]string, error) {
	if err := e.refresh(ctx); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	m := e.memory
	if m.live() == 0 || k <= 0 {
		return nil, nil
	}
	held, ok := e.scores.Get().(*[]float64)
	if !ok || len(*held) < len(m.slots) {
		fresh := make([]float64, len(m.slots)+len(m.slots)/4)
		held = &fresh
	}
	defer e.scores.Put(held)
	scores := *held
	mean := float64(m.index.length) / float64(m.live())
	var touched []int32
	seen := make(map[string]bool, len(terms))
	for _, term := range terms {
		n, known := m.index.ids[term]
		if !known || seen[term] {
			continue
		}
		seen[term] = true
		idf := retrieve.IDF(m.live(), m.index.frequency(term))
		p := &m.index.lists[n]
		for i, s := range p.slots {
			sl := &m.slots[s]
			if sl.document == nil {
				continue
			}
			if scores[s] == 0 {
				touched = append(touched, s)
			}
			scores[s] += idf * retrieve.Saturation(int(p.counts[i]), int(sl.length), mean)
		}
	}
	through := m.passes(f)
	t := top{k: min(k, m.live()), id: m.id}
	for _, s := range touched {
		if through(s) {
			t.push(hit{s, scores[s]})
		}
		scores[s] = 0
	}
	return t.ids(), nil
}

// Stats counts what BM25 needs, over everything stored.
func (e *Engine) Stats(ctx context.Context, terms []string) (retrieve.Stats, error) {
	if err := e.refresh(ctx); err != nil {
		return retrieve.Stats{}, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.memory.index.stats(terms, e.memory.live()), nil
}
