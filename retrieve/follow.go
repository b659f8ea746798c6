package retrieve

import (
	"context"
	"errors"
	"fmt"
)

// followBatch is about how many bytes of text and vectors are applied at a time.
const followBatch = 8 << 20

// A follower brings a searcher up to date with a state.
type follower struct {
	state      State
	searcher   Searcher
	space      string
	rebuilding func(done, total int) // may be nil
	turn       chan struct{}         // holds an element while changes are applied
	// vectorsOnly leaves out the texts: the searcher is only asked for vectors.
	vectorsOnly bool
}

func newFollower(s State, searcher Searcher, space string, rebuilding func(done, total int)) *follower {
	return &follower{state: s, searcher: searcher, space: space, rebuilding: rebuilding, turn: make(chan struct{}, 1)}
}

// Follow brings a searcher up to date with a state, whose vectors of the space it
// indexes, as the next search of an [Index] would.
func Follow(ctx context.Context, s State, searcher Searcher, space string) error {
	return newFollower(s, searcher, space, nil).run(ctx, func() error { return nil })
}

// Follow brings the searcher up to date, as the next search would.
func (x *Index) Follow(ctx context.Context) error {
	return x.follower.run(ctx, func() error { return nil })
}

// run runs a search on a searcher that is up to date. If the searcher is damaged,
// it is rebuilt and the search runs again.
func (f *follower) run(ctx context.Context, search func() error) error {
	for attempt := 0; ; attempt++ {
		err := f.follow(ctx)
		if err == nil {
			err = search()
		}
		if !errors.Is(err, ErrIndexDamaged) || attempt > 0 {
			return err
		}
		if err := f.searcher.Reset(ctx); err != nil {
			return err
		}
	}
}

// follow applies the changes of the state to the searcher.
func (f *follower) follow(ctx context.Context) error {
	if have, now, err := f.revisions(ctx); err != nil || have == now {
		return err
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	have, now, err := f.revisions(ctx)
	if err != nil {
		return err
	}
	if have > now { // the state was restored from an older backup
		if err := f.searcher.Reset(ctx); err != nil {
			return err
		}
		have = 0
	}
	if err := f.apply(ctx, have); err != nil {
		return fmt.Errorf("updating the search index: %w", err)
	}
	return nil
}

// revisions returns those of the searcher and of the state.
func (f *follower) revisions(ctx context.Context) (have, now int64, err error) {
	if have, err = f.searcher.Revision(ctx); err == nil {
		now, err = f.state.Revision(ctx)
	}
	return have, now, err
}

// apply applies the changes after a revision.
func (f *follower) apply(ctx context.Context, have int64) error {
	rebuilding := func(int) {}
	if have == 0 && f.rebuilding != nil {
		documents, _, err := f.state.Count(ctx, Filter{})
		if err != nil {
			return err
		}
		rebuilding = func(done int) { f.rebuilding(min(done, documents), documents) }
	}
	var batch []Change
	size, done := 0, 0
	apply := func() error {
		err := f.searcher.Apply(ctx, batch)
		done += len(batch)
		batch, size = nil, 0 // the searcher may keep the vectors
		return err
	}
	for c, err := range f.state.Changes(ctx, f.space, have) {
		if err != nil {
			return err
		}
		batch = append(batch, c)
		for i, chunk := range c.Chunks {
			if f.vectorsOnly {
				c.Chunks[i].Text = ""
			}
			size += len(chunk.Text) + 4*len(chunk.Vector)
		}
		if size >= followBatch {
			if err := apply(); err != nil {
				return err
			}
			rebuilding(done)
		}
	}
	err := apply()
	rebuilding(done)
	return err
}
