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
	t := m.matching(terms, k, m.selected(f))
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
