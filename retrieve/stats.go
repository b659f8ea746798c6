package retrieve

import "context"

// Stats counts, over everything stored, in how many chunks each of the terms
// (made by [Terms]) stands: what tells a rare word of a question from a common one.
func (x *Index) Stats(ctx context.Context, terms []string) (Stats, error) {
	return x.engine.Stats(ctx, terms)
}
