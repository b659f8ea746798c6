package retrieve

import "context"

// Stats counts, over everything stored, the chunks that have each of the terms
// (made by [Terms]). It distinguishes a question's rare words from its common ones.
func (x *Index) Stats(ctx context.Context, terms []string) (stats Stats, err error) {
	err = x.follower.run(ctx, func() (err error) {
		stats, err = x.searcher.Stats(ctx, terms)
		return err
	})
	return stats, err
}
