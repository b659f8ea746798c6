package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// followBatch is the approximate number of bytes of text and vectors that are applied together.
const followBatch = 8 << 20

// A follower brings a searcher up to date with a state.
type follower struct {
	state      State
	searcher   Searcher
	space      string
	rebuilding func(done, total int) // may be nil
	damaged    func(error)           // may be nil
	turn       chan struct{}         // has an element while changes are applied
	// vectorsOnly leaves out the texts, because the searcher is used only for dense searches.
	vectorsOnly bool
	// wait, if not 0, means that a [Feed] updates the searcher, and is how long a search waits for
	// it.
	wait time.Duration
	// stuck, if not 0, is the revision at which the searcher remained throughout a wait.
	stuck atomic.Int64
}

func newFollower(s State, searcher Searcher, space string, opts Options) *follower {
	return &follower{state: s, searcher: searcher, space: space, rebuilding: opts.Rebuilding, damaged: opts.Damaged,
		turn: make(chan struct{}, 1), wait: opts.Wait}
}

// Follow brings a searcher, which indexes vectors of the space, up to date with a state, as the
// next search of an [Index] would.
func Follow(ctx context.Context, s State, searcher Searcher, space string) error {
	return newFollower(s, searcher, space, Options{}).runSearch(ctx, func() error { return nil })
}

// Follow brings the searcher up to date, as the next search would, unless a [Feed] does so.
func (x *Index) Follow(ctx context.Context) error {
	return x.follower.runSearch(ctx, func() error { return nil })
}

// A LagError is passed to [Query.Warn] if the searcher lacks the latest changes.
type LagError struct{ Changes int64 }

func (e *LagError) Error() string {
	return fmt.Sprintf("the search index lags: it lacks the last %d changes of the library", e.Changes)
}

// Lag returns the number of changes of a state that a searcher lacks.
func Lag(ctx context.Context, s State, searcher Searcher) (int64, error) {
	now, _, err := s.Revision(ctx)
	if err != nil {
		return 0, err
	}
	have, _, err := searcher.Revision(ctx)
	return max(0, now-have), err
}

// Intervals at which a searcher that a [Feed] updates is polled, and at which a Feed polls the
// state.
const (
	awaitEvery = 10 * time.Millisecond
	feedEvery  = 100 * time.Millisecond
)

// waitForFeed waits, up to f.wait, until a [Feed] has applied the changes that the state has now, and
// returns the number of changes still missing. It does nothing if f.wait is 0. After a wait without
// any progress it does not wait again until the searcher advances, since the feeding node may be
// down for hours.
func (f *follower) waitForFeed(ctx context.Context) (missing int64, err error) {
	if f.wait == 0 {
		return 0, nil
	}
	now, _, err := f.state.Revision(ctx)
	first := int64(-1)
	for start := time.Now(); err == nil; err = sleep(ctx, awaitEvery) {
		have, _, err := f.searcher.Revision(ctx)
		if err != nil || have >= now || have > 0 && have == f.stuck.Load() {
			return max(0, now-have), err
		}
		if first < 0 {
			first = have
		}
		if time.Since(start) > f.wait {
			if have == first {
				f.stuck.Store(have)
			}
			return now - have, nil
		}
	}
	return 0, err
}

// feedPatience is the longest time that [AwaitFeed] waits without progress.
const feedPatience = 20 * time.Second

// AwaitFeed waits until a [Feed] has brought a searcher up to date. If the searcher makes no
// progress, the error is a [*LagError], or the reason why the searcher is unreachable.
func AwaitFeed(ctx context.Context, s State, searcher Searcher) error {
	least, progress := int64(math.MaxInt64), time.Now()
	for {
		missing, err := Lag(ctx, s, searcher)
		if err == nil && missing == 0 {
			return nil
		}
		if err == nil && missing < least {
			least, progress = missing, time.Now()
		}
		if time.Since(progress) > feedPatience {
			return cmp.Or(err, error(&LagError{missing}))
		}
		if err := sleep(ctx, awaitEvery); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// feedKind is the kind of Feed's jobs. Their claims are short: while no process feeds the searcher,
// new documents are not found, but two processes that feed it at once only repeat each other's
// work.
const (
	feedKind  = "index"
	feedClaim = 4 * time.Second
)

// Feed keeps a searcher that several processes share, and which indexes vectors of the space, up to
// date with a state until ctx ends. One process at a time works, the holder of the claim on the
// named job; the other processes wait. Feed calls failed with each error before it tries again, and
// with nil after it has recovered. It calls current whenever the searcher has all changes.
func Feed(ctx context.Context, s State, searcher Searcher, space, job string, failed func(error), current func(context.Context) error) {
	f := newFollower(s, searcher, space, Options{})
	var reported time.Time // of the current outage; zero if there is no outage
	for ctx.Err() == nil {
		held, release, err := holdJob(ctx, ctx, s.Ledger(), job, feedKind, feedClaim, nil)
		for err == nil {
			err = f.runSearch(held, func() error {
				if !reported.IsZero() {
					reported = time.Time{}
					failed(nil)
				}
				return current(held)
			})
			if err == nil {
				err = sleep(held, feedEvery)
			}
		}
		if release != nil {
			if held.Err() != nil {
				err = context.Cause(held)
			}
			release()
		}
		if ctx.Err() == nil && !IsLost(err) && time.Since(reported) > reportEvery {
			reported = time.Now()
			failed(err)
		}
		_ = sleep(ctx, time.Second) // the loop checks ctx
	}
}

// reportEvery is the shortest time between two reports of one outage.
const reportEvery = time.Minute

// runSearch brings the searcher up to date and runs a search on it. If the searcher is damaged,
// runSearch resets it and tries once more.
func (f *follower) runSearch(ctx context.Context, search func() error) error {
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

// follow applies the changes of the state to the searcher, unless a [Feed] does so.
func (f *follower) follow(ctx context.Context) error {
	if f.wait > 0 {
		return nil
	}
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

// revision returns the searcher's revision and whether it is the state's latest. The revision is -1
// if the searcher has changes that the state has lost.
func (f *follower) revision(ctx context.Context) (have int64, current bool, err error) {
	have, era, err := f.searcher.Revision(ctx)
	if err != nil {
		return 0, false, err
	}
	now, latest, err := f.state.Revision(ctx)
	switch {
	case err != nil:
		return 0, false, err
	case have > now || have == now && era != latest:
		return -1, false, nil
	case have == now:
		return have, true, nil
	}
	stored, err := f.state.Era(ctx, have)
	if err == nil && stored != era {
		have = -1
	}
	return have, false, err
}

// apply applies all changes after a revision.
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
