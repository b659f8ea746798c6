package library

import (
	"cmp"
	"context"
	"errors"
	"time"

	"ibid/retrieve"
	"ibid/retrieve/state"
	"ibid/retrieve/weaviate"
)

// A Clustered is the search index of a state in a cluster. Until it has been built, searches use
// the latest earlier index of the same space, which may lack newer documents.
type Clustered struct {
	*weaviate.Index // the index that should be searched
	earlier         []*weaviate.Index
	state           *state.Store
	space           string
}

// Cluster opens the search index of a state in a cluster, for the space in use.
func Cluster(ctx context.Context, place Place, s *state.Store) (*Clustered, error) {
	space, err := s.Space(ctx)
	if err != nil {
		return nil, err
	}
	return openCluster(ctx, place, s, space)
}

func openCluster(ctx context.Context, place Place, s *state.Store, space string) (*Clustered, error) {
	name, err := s.Library(ctx)
	if err != nil {
		return nil, err
	}
	o := weaviate.Options{Library: name, Space: space, Size: func(ctx context.Context) (revision int64, chunks int, err error) {
		if revision, _, err = s.Revision(ctx); err == nil {
			_, chunks, err = s.Count(ctx, retrieve.Filter{})
		}
		return revision, chunks, err
	}}
	x := weaviate.Open(*place.Cluster, o)
	return &Clustered{x, x.EarlierLayouts(), s, space}, nil
}

// Lag returns the number of changes that the index lacks.
func (c *Clustered) Lag(ctx context.Context) (int64, error) {
	return retrieve.Lag(ctx, c.state, c.Index)
}

// Searchable returns the reason why the index cannot be searched. While an earlier index is
// searched, the error is a [*retrieve.BuildingError] that says so.
func (c *Clustered) Searchable(ctx context.Context) error {
	_, _, err := c.Index.Revision(ctx)
	if err != nil {
		return err
	}
	_, building, err := c.currentIndex(ctx)
	if building != nil {
		err = building
	}
	return err
}

// A search waits up to buildWait for an index that does not exist yet, if the index will have at
// most soonBuilt chunks.
const (
	soonBuilt = 2000
	buildWait = 10 * time.Second
)

// awaitIndex is like currentIndex, except that it waits for an index that will be built soon.
func (c *Clustered) awaitIndex(ctx context.Context) (x *weaviate.Index, building *retrieve.BuildingError, err error) {
	for began := time.Now(); ; {
		x, building, err = c.currentIndex(ctx)
		missing := (*retrieve.BuildingError)(nil)
		if !errors.As(err, &missing) || missing.Total > soonBuilt || time.Since(began) > buildWait {
			return x, building, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// currentIndex returns the index that searches use now. If that is an earlier index, building is not nil.
func (c *Clustered) currentIndex(ctx context.Context) (x *weaviate.Index, building *retrieve.BuildingError, err error) {
	if _, err = c.Index.Stats(ctx, nil); !errors.As(err, &building) {
		return c.Index, nil, err
	}
	// After 'ibid reembed' this index will never be built.
	if stored, err := c.state.Space(ctx); err != nil || stored != "" && stored != c.space {
		return nil, nil, cmp.Or(err, error(&retrieve.SpaceError{Stored: stored, Wanted: c.space}))
	}
	for _, earlier := range c.earlier {
		if stats, err := earlier.Stats(ctx, nil); err == nil && stats.Chunks > 0 {
			x = earlier
			break
		}
	}
	// The index may have been built since its watermark was read, and the earlier ones deleted.
	if _, _, err = c.Index.Revision(ctx); err == nil {
		_, err = c.Index.Stats(ctx, nil)
	}
	if !errors.As(err, &building) {
		return c.Index, nil, err
	}
	if x == nil {
		return nil, nil, err
	}
	building.Earlier = true
	return x, building, nil
}

// callSearched calls f with the index that searches use now. If that is an earlier index which is deleted
// meanwhile because a later one has been built, it calls f again with the later index.
func callSearched[T any](ctx context.Context, c *Clustered, f func(*weaviate.Index) (T, error)) (out T, err error) {
	for last := (*weaviate.Index)(nil); ; {
		x, _, missing := c.awaitIndex(ctx)
		if missing != nil || x == last {
			return out, cmp.Or(missing, err)
		}
		if out, err = f(x); x == c.Index {
			return out, err
		}
		if stats, failed := x.Stats(ctx, nil); errors.Join(err, failed) == nil && stats.Chunks > 0 {
			return out, nil
		}
		last = x
	}
}

// Revision implements [retrieve.Searcher].
func (c *Clustered) Revision(ctx context.Context) (revision, era int64, err error) {
	if revision, era, err = c.Index.Revision(ctx); err != nil {
		return 0, 0, err
	}
	if x, building, _ := c.awaitIndex(ctx); building != nil {
		return x.Revision(ctx)
	}
	return revision, era, nil
}

// Reset implements [retrieve.Searcher].
func (c *Clustered) Reset(ctx context.Context) error {
	x, _, err := c.awaitIndex(ctx)
	if err != nil {
		return err
	}
	return x.Reset(ctx) // only the earlier index, if that is searched now
}

// Dense implements [retrieve.Searcher].
func (c *Clustered) Dense(ctx context.Context, vector []float32, k int, f retrieve.Filter) ([]retrieve.Hit, error) {
	return callSearched(ctx, c, func(x *weaviate.Index) ([]retrieve.Hit, error) { return x.Dense(ctx, vector, k, f) })
}

// Lexical implements [retrieve.Searcher].
func (c *Clustered) Lexical(ctx context.Context, terms []string, k int, f retrieve.Filter) ([]retrieve.Hit, error) {
	return callSearched(ctx, c, func(x *weaviate.Index) ([]retrieve.Hit, error) { return x.Lexical(ctx, terms, k, f) })
}

// Evidence implements [retrieve.Searcher].
func (c *Clustered) Evidence(ctx context.Context, hits []retrieve.Hit, terms []string) ([]retrieve.Evidence, error) {
	return callSearched(ctx, c, func(x *weaviate.Index) ([]retrieve.Evidence, error) { return x.Evidence(ctx, hits, terms) })
}

// Stats implements [retrieve.Searcher].
func (c *Clustered) Stats(ctx context.Context, terms []string) (retrieve.Stats, error) {
	return callSearched(ctx, c, func(x *weaviate.Index) (retrieve.Stats, error) { return x.Stats(ctx, terms) })
}
