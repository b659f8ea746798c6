// Package index is the embedded [retrieve.Searcher]: immutable segments in memory-mapped files, and
// segments in memory with new documents.
//
// [Index.Apply] makes a small segment in memory of the changed documents, and marks them as deleted
// in older segments. Several segments in memory of similar size are merged. When they have some
// thousand chunks, they are written to a file, and files are merged in the background in the same
// way. A manifest names the segment files with their deleted documents. Files never change:
// segments and manifests are written under a temporary name, made durable and renamed. Segments in
// memory are lost when the process ends; the revision in the manifest says which changes must be
// applied again.
//
// Several processes may use one directory. The process that has locked the lock file writes; other
// processes map its segments, and keep documents newer than the manifest in memory. If the
// directory cannot be written, all new documents remain in memory.
//
// Each block of a segment has a checksum, which is checked before the block is used for the first
// time. After damage is found, all methods return an error that wraps [retrieve.ErrIndexDamaged]
// until [Index.Reset].
package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"ibid/retrieve"
	"ibid/retrieve/disk"
)

// Options identify and configure an index. A directory with the index of another library, another
// space, another [retrieve.Analysis] or another format is treated as empty.
type Options struct {
	Library string // of [retrieve.State.Library]
	Space   string // of [retrieve.State.Space]
	// Flush is the number of chunks that are collected in memory before they are written to a file;
	// 0 means 8192.
	Flush int
	// Exact makes the dense search compare all chunks. If it is not set and there are more than two
	// million chunks, the search compares only those likely to be the nearest.
	Exact bool
	// Unwritten, if not nil, is called by Close with the reason why the index could not be written.
	// No data is lost: the next process applies the changes after the manifest again.
	Unwritten func(error)
}

// An Index is a [retrieve.Searcher] in a directory. It is safe for concurrent use by several
// goroutines and processes.
type Index struct {
	dir      string
	identity identity
	options  Options
	sieve    sieve

	current      atomic.Pointer[snapshot]
	fault        atomic.Pointer[damage]      // kept until Reset
	lastManifest atomic.Pointer[fs.FileInfo] // the manifest that was last read

	// mu must be held to change the fields below and current, but not to search.
	mu   sync.Mutex
	base struct { // the content of the manifest
		position
		files []part
	}
	recent []deletion // deletions by the changes after base.revision
	memory []part     // with the documents of those changes
	lock   *os.File
	closed bool
	worker
}

// Open opens the index in a directory, which it creates if possible. If the index is damaged or
// cannot be read, the methods return the error until [Index.Reset].
func Open(dir string, o Options) *Index {
	if o.Flush <= 0 {
		o.Flush = 8192
	}
	x := &Index{dir: dir, identity: identity{formatVersion, retrieve.Analysis, o.Library, o.Space}, options: o, sieve: defaultSieve}
	if o.Exact {
		x.sieve.above = math.MaxInt
	}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	x.next = o.Flush
	x.current.Store(new(snapshot))
	if err := os.MkdirAll(dir, 0o700); err == nil || disk.IsReadOnly(err) {
		_ = x.recordFault(catchDamage(x.follow)) // the methods return the error
	} else {
		x.failed = err // everything remains in memory
	}
	return x
}

var errClosed = errors.New("the search index is closed")

// recordFault records an error that reports damage.
func (x *Index) recordFault(err error) error {
	if d := (*damage)(nil); errors.As(err, &d) {
		x.fault.CompareAndSwap(nil, d)
		err = fmt.Errorf("the search index in %s: %w", x.dir, d)
	}
	return err
}

// read calls f with a snapshot that includes all changes applied by this process or by the writing
// process.
func (x *Index) read(ctx context.Context, f func(s *snapshot) error) error {
	if d := x.fault.Load(); d != nil {
		return x.recordFault(d)
	}
	if err := cmp.Or(ctx.Err(), x.refresh()); err != nil {
		return err
	}
	s := x.current.Load()
	if s == nil {
		return errClosed
	}
	defer runtime.KeepAlive(s) // its memory is unmapped once it is unreachable
	return x.recordFault(catchDamage(func() error { return f(s) }))
}

// refresh reads the manifest if another process has replaced it.
func (x *Index) refresh() error {
	info, err := os.Stat(filepath.Join(x.dir, manifestName))
	if err != nil {
		return nil // the manifest that was read remains valid
	}
	if last := x.lastManifest.Load(); last != nil && os.SameFile(*last, info) && (*last).ModTime().Equal(info.ModTime()) &&
		(*last).Size() == info.Size() {
		return nil
	}
	if !x.mu.TryLock() {
		return nil // a change is being applied; a later search reads the manifest
	}
	defer x.mu.Unlock()
	if x.closed || x.lock != nil {
		return nil
	}
	return x.recordFault(catchDamage(x.follow))
}

// follow reads the manifest and adopts its segments, unless it belongs to another index or is older
// than the current one. The caller must hold x.mu.
func (x *Index) follow() error {
	for attempt := 0; ; attempt++ {
		m, info, err := readManifest(x.dir)
		if info != nil {
			x.lastManifest.Store(&info)
		}
		if err != nil {
			return unreadable(manifestName, err)
		}
		if m == nil || m.identity != x.identity || m.Revision < x.base.Revision {
			return nil
		}
		files := make([]part, len(m.Segments))
		for i := 0; i < len(files) && err == nil; i++ {
			files[i], err = m.Segments[i].open(x.dir, x.base.files)
		}
		switch {
		case err == nil:
			x.setBase(m.position, files)
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			return unreadable(manifestName, err)
		case attempt == 10:
			return &damage{file: manifestName, what: err.Error()}
		}
		// The file was merged after the manifest was read.
	}
}

// setBase makes files, which contain the changes up to a position, the base of the index, and keeps
// later changes in memory. The caller must hold x.mu.
func (x *Index) setBase(at position, files []part) {
	recent := slices.DeleteFunc(slices.Clone(x.recent), func(d deletion) bool { return d.revision <= at.Revision })
	var memory []part
	for _, p := range x.memory {
		p = p.withoutDocuments(p.selectDocuments(func(document int) bool { return p.generation(document) <= at.Revision }))
		if p.liveChunks() > 0 {
			memory = append(memory, p)
		}
	}
	latest := x.current.Load().position
	if latest.Revision < at.Revision {
		latest = at
	}
	next := newSnapshot(latest, applyDeletions(files, recent), memory)
	x.base.position, x.base.files, x.recent, x.memory = at, files, recent, memory
	x.current.Store(next)
}

// Revision implements [retrieve.Searcher].
func (x *Index) Revision(ctx context.Context) (revision, era int64, err error) {
	err = x.read(ctx, func(s *snapshot) error {
		revision, era = s.Revision, s.Era
		return nil
	})
	return revision, era, err
}

// Check compares every block of the segments with its checksum. Searches check only the blocks that
// they read.
func (x *Index) Check(ctx context.Context) error {
	return x.read(ctx, func(s *snapshot) error {
		for _, p := range s.parts {
			if err := p.checkAll(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// Apply implements [retrieve.Searcher]. If ctx ends or a change is refused, no change is applied.
func (x *Index) Apply(ctx context.Context, changes []retrieve.Change) error {
	revision, _, err := x.Revision(ctx)
	if err != nil {
		return err
	}
	for len(changes) > 0 && changes[0].Revision <= revision {
		changes = changes[1:]
	}
	all, err := prepare(ctx, changes)
	if err == nil {
		err = x.waitForRoom(ctx)
	}
	if err == nil {
		err = x.recordFault(catchDamage(func() error { return x.apply(all) }))
	}
	return err
}

// apply applies prepared changes.
func (x *Index) apply(changes []prepared) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return errClosed
	}
	s := x.current.Load()
	at := s.position
	latest := make(map[int64]int)
	var deaths []deletion
	for i, c := range changes {
		if c.Revision <= s.Revision {
			continue // a new manifest already includes the change
		}
		if c.Revision > at.Revision {
			at = position{c.Revision, c.Era}
		}
		if c.Document != 0 {
			latest[c.Document] = i
			deaths = append(deaths, deletion{c.Document, c.Revision})
		}
	}
	var documents []prepared
	dims := s.dims
	for _, i := range latest {
		if c := changes[i]; c.dims > 0 {
			if dims = cmp.Or(dims, c.dims); c.dims != dims {
				return fmt.Errorf("indexing %s: its vectors have %d dimensions, but the other vectors have %d", c.Info.ID, c.dims, dims)
			}
			documents = append(documents, c)
		}
	}
	memory, err := applyDeletions(x.memory, deaths), error(nil)
	if len(documents) > 0 {
		fresh, err := build(documents)
		if err != nil {
			return err
		}
		memory = append(memory, part{segment: fresh})
	}
	if memory, err = mergeMemory(memory); err != nil {
		return err
	}
	files := s.parts[:0:0]
	for _, p := range s.parts {
		if p.file != "" {
			files = append(files, p)
		}
	}
	next := newSnapshot(at, applyDeletions(files, deaths), memory)
	x.memory, x.recent = memory, append(x.recent, deaths...)
	x.current.Store(next)
	x.startWork()
	return nil
}

// maxMerged is the largest number of chunks that are merged in memory.
const maxMerged = 1 << 15

// mergeMemory merges segments in memory until no merge is due.
func mergeMemory(memory []part) ([]part, error) {
	for {
		from, rest := splitParts(memory, partsToMerge(memory, maxMerged))
		if from == nil {
			return memory, nil
		}
		if c := merged(from); c != nil {
			s, err := c.segment()
			if err != nil {
				return nil, err
			}
			rest = append(rest, part{segment: s})
		}
		memory = rest
	}
}

// Reset implements [retrieve.Searcher]. In a process that cannot write to the
// directory it ignores the files until another process has replaced the manifest.
func (x *Index) Reset(ctx context.Context) error {
	x.pause()
	defer x.resume()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return errClosed
	}
	x.base.position, x.base.files, x.recent, x.memory = position{}, nil, nil, nil
	x.next, x.failed = x.options.Flush, nil
	x.current.Store(new(snapshot))
	if info, err := os.Stat(filepath.Join(x.dir, manifestName)); err == nil {
		x.lastManifest.Store(&info)
	}
	if x.lockForWriting(false) {
		x.failed = x.publish(position{}, nil) // after an error everything remains in memory
	}
	x.fault.Store(nil)
	return ctx.Err()
}

// worthwhile is the smallest number of chunks and deleted documents that Close writes to a file.
// Applying fewer again takes less time.
const worthwhile = 64

// Close implements [retrieve.Searcher]. It writes segments in memory to a file if they have at
// least worthwhile chunks.
func (x *Index) Close() error {
	x.pause()
	defer x.resume()
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return nil
	}
	x.closed = true
	var err error
	worth := x.fault.Load() == nil && x.countUnwritten() >= worthwhile
	if worth && !x.lockForWriting(true) {
		worth, err = false, x.failed
	}
	x.mu.Unlock()
	if worth {
		err = catchDamage(func() error { return x.compact(context.Background(), nil) })
	}
	if err != nil && x.options.Unwritten != nil {
		x.options.Unwritten(fmt.Errorf("writing the search index in %s: %w", x.dir, err))
		err = nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.base.files, x.memory, x.recent = nil, nil, nil
	x.current.Store(nil)
	if x.lock != nil {
		err = errors.Join(err, x.lock.Close())
		x.lock = nil
	}
	if err != nil {
		return fmt.Errorf("closing the search index in %s: %w", x.dir, err)
	}
	return nil
}
