package retrieve

import "context"

// Stats counts, over everything stored, the chunks that have each of the terms
// (made by [Terms]). It distinguishes a question's rare words from its common ones.
func (x *Index) Stats(ctx context.Context, terms []string) (Stats, error) {
	return x.engine.Stats(ctx, terms)
}
