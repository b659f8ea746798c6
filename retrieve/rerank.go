package retrieve

import (
	"context"
	"fmt"
)

// A Reranker scores texts by reading them together with the question, which is slower and more
// accurate than comparing vectors and terms. It is safe for concurrent use.
type Reranker interface {
	// Rerank returns a finite score for each text, in order; a higher score means more relevant.
	// Only scores of one call can be compared.
	Rerank(ctx context.Context, question string, texts []string) ([]float64, error)
}

// rerank scores the best candidates with the reranker and drops all other candidates. If the
// reranker fails, it warns and leaves the candidates unchanged.
func (x *Index) rerank(r *reading, q Query, all []*scored) ([]*scored, error) {
	if x.opts.Reranker == nil || len(all) == 0 {
		return all, nil
	}
	best, texts, err := r.best(all, max(q.K, DefaultCandidates))
	if err != nil {
		return nil, err
	}
	scores, err := x.opts.Reranker.Rerank(r.ctx, q.Text, texts)
	if err == nil && len(scores) != len(best) {
		err = fmt.Errorf("the reranker returned %d scores for %d passages", len(scores), len(best))
	}
	if r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	if err != nil {
		q.warn("reranking failed, so the passages keep the order of the search: %w", err)
		return all, nil
	}
	for i, score := range scores {
		best[i].Score, best[i].Scores.Rerank = score, &score
	}
	rescale(best, 0, 1)
	return best, nil
}
