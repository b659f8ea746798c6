package local

import (
	"context"

	"ibid/retrieve"
)

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
