package retrieve

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// followBatch is about how many bytes of text and vectors are applied at a time.
const followBatch = 8 << 20

// A follower brings a searcher up to date with a state.
type follower struct {
	state      State
	searcher   Searcher
	space      string
	rebuilding func(done, total int) // may be nil
	damaged    func(error)           // may be nil
	turn       chan struct{}         // holds an element while changes are applied
	known      atomic.Int64          // revision at which the searcher was found to follow this state
	// vectorsOnly leaves out the texts: the searcher is only asked for vectors.
	vectorsOnly bool
}

func newFollower(s State, searcher Searcher, space string, opts Options) *follower {
	return &follower{state: s, searcher: searcher, space: space, rebuilding: opts.Rebuilding, damaged: opts.Damaged,
		turn: make(chan struct{}, 1)}
}

// Follow brings a searcher up to date with a state, whose vectors of the space it
// indexes, as the next search of an [Index] would.
func Follow(ctx context.Context, s State, searcher Searcher, space string) error {
	return newFollower(s, searcher, space, Options{}).run(ctx, func() error { return nil })
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
		if f.damaged != nil {
			f.damaged(err)
		}
		if err := f.searcher.Reset(ctx); err != nil {
			return err
		}
	}
}

// follow applies the changes of the state to the searcher.
func (f *follower) follow(ctx context.Context) error {
	if _, current, err := f.revision(ctx); err != nil || current {
		return err
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	have, current, err := f.revision(ctx)
	if err != nil || current {
		return err
	}
	if have < 0 {
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

// revision returns that of the searcher, and whether it is the state's. It is -1 if
// the searcher has followed changes that the state has lost.
func (f *follower) revision(ctx context.Context) (have int64, current bool, err error) {
	have, era, err := f.searcher.Revision(ctx)
	if err != nil {
		return 0, false, err
	}
	now, err := f.state.Revision(ctx)
	if err != nil || have == now && f.known.Load() == now {
		return have, true, err
	}
	stored, err := f.state.Era(ctx, have)
	switch {
	case err != nil:
		return 0, false, err
	case have > now || stored != era:
		return -1, false, nil
	case have == now:
		f.known.Store(now)
	}
	return have, have == now, nil
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
