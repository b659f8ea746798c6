// Package library opens a library: its state, the searcher that follows the state, and the index
// over both.
package library

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ibid/retrieve"
	"ibid/retrieve/disk"
	"ibid/retrieve/index"
	"ibid/retrieve/state"
	"ibid/retrieve/weaviate"
)

// A Place says where a library is stored.
type Place struct {
	// Data is the data directory.
	Data string
	// URL is the address of the PostgreSQL database with the state. If it is empty, the state is in
	// the data directory.
	URL string
	// Cluster is the Weaviate cluster with the search index. If it is nil, the index is in the data
	// directory. The index of an encoder's vectors is always there.
	Cluster *weaviate.Address
}

// Options configure a library. Ibid uses the zero value by default.
type Options struct {
	State  state.Options
	Search retrieve.Options
}

// A Library is an open library.
type Library struct {
	*retrieve.Index
	State     *state.Store
	place     Place
	options   retrieve.Options
	Clustered *Clustered          // the search index, if it is in a cluster
	searchers []retrieve.Searcher // the first belongs to the embedder's space
	feeding   func()              // stops feeding an index in a cluster
}

// Open opens a library, and creates it if it does not exist. If its documents were embedded in
// another space than the embedder's, the error is a [*retrieve.SpaceError].
func Open(ctx context.Context, place Place, m retrieve.Embedder, opts Options) (*Library, error) {
	s, err := OpenState(ctx, place, opts.State)
	if err != nil {
		return nil, err
	}
	l, err := OpenWithState(ctx, place, s, m, opts.Search)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return l, nil
}

// OpenState opens only the state of a library.
func OpenState(ctx context.Context, place Place, opts state.Options) (*state.Store, error) {
	if place.URL != "" {
		return state.Open(ctx, place.URL, opts)
	}
	return state.Open(ctx, place.Data, opts)
}

// OpenWithState opens the library of an open state, which the library's Close closes.
func OpenWithState(ctx context.Context, place Place, s *state.Store, m retrieve.Embedder, opts retrieve.Options) (*Library, error) {
	if err := retrieve.CheckSpace(ctx, s, m); err != nil {
		return nil, err
	}
	l := &Library{State: s, place: place, options: opts}
	err := l.openSearcher(ctx, place, m.Space(), opts)
	if err != nil {
		return nil, err
	}
	if l.Index, err = l.NewIndex(ctx, m, opts); err == nil && opts.Encoder != nil {
		err = l.ChangeEncoder(ctx, opts.Encoder)
	}
	if err != nil {
		return nil, errors.Join(err, l.closeSearchers())
	}
	return l, nil
}

func (l *Library) openSearcher(ctx context.Context, place Place, space string, opts retrieve.Options) error {
	if place.Cluster == nil {
		x, err := openIndex(ctx, place, l.State, "", index.Options{Space: space, Exact: opts.Exact, Unwritten: opts.Unwritten})
		l.searchers = []retrieve.Searcher{x}
		return err
	}
	x, err := openCluster(ctx, place, l.State, space)
	if err != nil {
		return err
	}
	l.searchers, l.Clustered = []retrieve.Searcher{x.Index}, x
	l.feeding = feed(l.State, x.Index, space, opts.Feeding)
	return nil
}

// Build builds the search index of a state in a cluster for another space, in addition to the index
// in use: see [retrieve.Reembed]. It does nothing if the index is in the data directory.
func Build(ctx context.Context, place Place, s *state.Store, space string) error {
	if place.Cluster == nil {
		return nil
	}
	return withIndex(ctx, place, s, space, retrieve.Options{}, func(retrieve.Searcher) error { return nil })
}

// withIndex calls f with the search index of a state. An index in a cluster is brought up to date
// first.
func withIndex(ctx context.Context, place Place, s *state.Store, space string, o retrieve.Options, f func(retrieve.Searcher) error) error {
	l := &Library{State: s}
	err := l.openSearcher(ctx, place, space, o)
	if err != nil {
		return err
	}
	if l.Clustered != nil && space != "" {
		err = retrieve.AwaitFeed(ctx, s, l.searchers[0])
	}
	if err == nil {
		err = f(l.searchers[0])
	}
	return errors.Join(err, l.closeSearchers())
}

// followWait is how long a search waits for an index in a cluster.
const followWait = time.Second

// feedJob returns the name of the job of feeding a collection with the vectors of a space. Servers
// of other versions feed other collections of the same space.
func feedJob(collection, space string) string { return "index " + collection + " of " + space }

// feed brings an index in a cluster up to date, unless another process does, until stop is called.
// It deletes the indexes that this one replaces as soon as no server feeds them.
func feed(s *state.Store, x *weaviate.Index, space string, failed func(error)) (stop func()) {
	if failed == nil {
		failed = func(error) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	alone, again := false, time.Time{}
	done.Go(func() {
		retrieve.Feed(ctx, s, x, space, feedJob(x.Collection(), space), failed, func(ctx context.Context) error {
			if alone || time.Now().Before(again) {
				return nil
			}
			again = time.Now().Add(time.Second)
			spaces, err := s.Spaces(ctx) // a process may be filling one of them
			if err != nil {
				return err
			}
			used := false
			err = x.DropOthers(ctx, spaces, func(collection string) bool {
				fed := isFed(ctx, s, collection, spaces)
				used = used || fed
				return fed
			})
			alone = err == nil && !used
			return err
		})
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// isFed reports whether a server feeds, or may feed, a collection with the vectors of one of the
// spaces.
func isFed(ctx context.Context, s *state.Store, collection string, spaces []string) bool {
	return slices.ContainsFunc(spaces, func(space string) bool {
		job, err := s.Ledger().Job(ctx, feedJob(collection, space))
		return err == nil && job.Left > 0 || err != nil && !errors.Is(err, retrieve.ErrNotFound)
	})
}

// Follow brings the search index up to date, or waits for the process that does.
func (l *Library) Follow(ctx context.Context) error {
	if l.Clustered != nil {
		return retrieve.AwaitFeed(ctx, l.State, l.searchers[0])
	}
	return l.Index.Follow(ctx)
}

// OpenEncoded returns an index over the same library that also searches by the encoder of the options.
// The library closes the searcher that this opens.
func (l *Library) OpenEncoded(ctx context.Context, m retrieve.Embedder, opts retrieve.Options) (_ *retrieve.Index, err error) {
	if opts.Encoded, err = l.openEncoded(ctx, opts.Encoder); err != nil {
		return nil, err
	}
	return l.NewIndex(ctx, m, opts)
}

// ChangeEncoder changes the encoder of the library's index, which may be in use.
func (l *Library) ChangeEncoder(ctx context.Context, m retrieve.Encoder) error {
	return l.Index.ChangeEncoder(m, func() (retrieve.Searcher, error) {
		var err error
		for _, x := range l.searchers[1:] {
			err = errors.Join(err, x.Close()) // the new searcher uses the same directory
		}
		l.searchers = l.searchers[:1]
		if err != nil {
			return nil, err
		}
		return l.openEncoded(ctx, m)
	})
}

func (l *Library) openEncoded(ctx context.Context, m retrieve.Encoder) (retrieve.Searcher, error) {
	x, err := openIndex(ctx, l.place, l.State, encodedSuffix,
		index.Options{Space: retrieve.EncodedSpace(m), Exact: l.options.Exact, Unwritten: l.options.Unwritten})
	if err != nil {
		return nil, err
	}
	l.searchers = append(l.searchers, x)
	return x, nil
}

// CheckIndex compares the search index of a state with the state.
func CheckIndex(ctx context.Context, place Place, s *state.Store, progress func(done, total int)) (r retrieve.SearcherReport, err error) {
	space, err := s.Space(ctx)
	if err != nil {
		return r, err
	}
	// A failure to write the index is ignored: the disk may be full.
	err = withIndex(ctx, place, s, space, retrieve.Options{Unwritten: func(error) {}}, func(x retrieve.Searcher) (err error) {
		r, err = retrieve.CheckSearcher(ctx, s, x, progress)
		return err
	})
	return r, err
}

// encodedSuffix ends the name of the directory with the vectors of an encoder.
const encodedSuffix = ".encoded"

// openIndex opens a search index of a state, in the directory with this suffix.
func openIndex(ctx context.Context, place Place, s *state.Store, suffix string, opts index.Options) (*index.Index, error) {
	dir, name, err := indexOf(ctx, place, s)
	if err != nil {
		return nil, err
	}
	opts.Library = name
	return index.Open(dir+suffix, opts), nil
}

// indexOf returns the directory of the search index of a state, and the state's name.
func indexOf(ctx context.Context, place Place, s *state.Store) (dir, name string, err error) {
	name, err = s.Library(ctx)
	dir = filepath.Join(place.Data, "index")
	if place.URL != "" {
		dir += "-" + name // libraries on servers share a data directory
	}
	return dir, name, err
}

// CheckWritable returns the reason why the search index of a state cannot be written, or nil.
func CheckWritable(ctx context.Context, place Place, s *state.Store) error {
	dir, _, err := indexOf(ctx, place, s)
	if err != nil || place.Cluster != nil {
		return err
	}
	if err = disk.Probe(dir); errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return err
}

// NewIndex returns an index over the same state and searcher with other options.
func (l *Library) NewIndex(ctx context.Context, m retrieve.Embedder, opts retrieve.Options) (*retrieve.Index, error) {
	if l.Clustered != nil {
		opts.Wait = followWait
		return retrieve.NewIndex(ctx, l.State, l.Clustered, m, opts)
	}
	return retrieve.NewIndex(ctx, l.State, l.searchers[0], m, opts)
}

// Close closes the library.
func (l *Library) Close() error { return errors.Join(l.closeSearchers(), l.State.Close()) }

func (l *Library) closeSearchers() (err error) {
	if l.Clustered != nil {
		l.feeding()
	}
	for _, x := range l.searchers {
		err = errors.Join(err, x.Close())
	}
	return err
}

// Purge removes all data of deleted documents from the search index of a state, which takes about
// as long as copying the index. A cluster deletes the documents' chunks; their terms leave its
// files when it merges them. The index of an encoder's vectors is emptied, and
// [retrieve.Index.Encode] fills it again from the stored vectors.
func Purge(ctx context.Context, place Place, s *state.Store) error {
	dir, _, err := indexOf(ctx, place, s)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir + encodedSuffix); err == nil {
		encoded, err := openIndex(ctx, place, s, encodedSuffix, index.Options{})
		if err != nil {
			return err
		}
		if err := errors.Join(encoded.Reset(ctx), encoded.Close()); err != nil {
			return err
		}
	}
	space, err := s.Space(ctx)
	if err != nil {
		return err
	}
	return withIndex(ctx, place, s, space, retrieve.Options{}, func(x retrieve.Searcher) error {
		embedded, ok := x.(*index.Index)
		if !ok {
			return nil
		}
		if space == "" { // the library has no documents
			return embedded.Reset(ctx)
		}
		if err := retrieve.Follow(ctx, s, embedded, space); err != nil {
			return err
		}
		return embedded.Purge(ctx)
	})
}
