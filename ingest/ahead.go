package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"ibid/ingest/archive"
)

// Files in progress at a time, and their bytes. There are more of them than
// workers, so that a remote embedder gets many texts at once.
const (
	maxAhead      = 64
	maxAheadBytes = 64 << 20
)

// A reading is the result of reading one file.
type reading struct {
	digest string
	doc    *Document // nil when the file is stored as it is
	chunks []Chunk
	store  func(context.Context) error // stores the document
	stored bool                        // store was called ahead of its turn
	copied bool                        // an equal file was read before it
	err    error
	weight int64 // bytes of the file
}

// A pipeline works on files before their turn.
type pipeline struct {
	sync    *folderSync
	ordered chan chan reading // one for each file, in their order
	memory  *semaphore.Weighted
	writers chan struct{} // one for each document that is being stored
}

// startPipeline starts the work on the files. end stops it and waits for it.
func (s *folderSync) startPipeline(ctx context.Context) (a *pipeline, end func()) {
	ctx, stop := context.WithCancel(ctx)
	a = &pipeline{
		sync: s, ordered: make(chan chan reading, maxAhead), memory: semaphore.NewWeighted(maxAheadBytes),
		writers: make(chan struct{}, max(1, s.Writers)),
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(a.ordered)
		workers := make(chan struct{}, s.workers)
		for _, f := range s.files {
			weight := min(f.size, maxAheadBytes)
			if a.memory.Acquire(ctx, weight) != nil {
				return
			}
			out := make(chan reading, 1)
			select {
			case a.ordered <- out:
			case <-ctx.Done():
				return
			}
			select {
			case workers <- struct{}{}:
			case <-ctx.Done():
				out <- reading{err: ctx.Err()}
				return
			}
			wg.Go(func() {
				r := s.readFile(ctx, f)
				r.weight = weight
				<-workers
				s.prepareDocument(ctx, &r)
				a.storeDocument(ctx, &r)
				out <- r
			})
		}
	})
	return a, func() { stop(); wg.Wait() }
}

// storeDocument stores a document ahead of its turn if several are stored at a
// time. One that may have been renamed waits for its turn.
func (a *pipeline) storeDocument(ctx context.Context, r *reading) {
	if cap(a.writers) == 1 || r.doc == nil || r.copied {
		return
	}
	if _, moved := a.sync.gone[r.digest]; moved {
		return
	}
	select {
	case a.writers <- struct{}{}:
	case <-ctx.Done():
		return
	}
	if ctx.Err() == nil {
		err := r.store(context.WithoutCancel(ctx))
		r.store, r.stored = func(context.Context) error { return err }, true
	}
	<-a.writers
}

// next returns the result of the next file; false when the context is done and
// no more were started.
func (a *pipeline) next() (reading, bool) {
	out, ok := <-a.ordered
	if !ok {
		return reading{}, false
	}
	return <-out, true
}

// release returns the memory that was held for a file.
func (a *pipeline) release(r reading) { a.memory.Release(r.weight) }

// readFile reads, parses and splits one file unless it is stored unchanged.
func (s *folderSync) readFile(ctx context.Context, f file) (r reading) {
	if f.err != nil {
		return reading{err: f.err}
	}
	if r, ok := s.recall(f); ok && !s.Force {
		return r
	}
	if f.digest != "" && s.isStored(f.path, f.digest) && !s.Force {
		return reading{digest: f.digest}
	}
	begun := time.Now()
	data, err := s.bytes(ctx, f)
	if err != nil {
		return reading{err: err}
	}
	sum := sha256.Sum256(data)
	r.digest = hex.EncodeToString(sum[:])
	defer func() {
		if ctx.Err() == nil {
			s.remember(f, begun, func(st *stamp) { st.digest, st.read, st.err = r.digest, begun, r.err })
		}
	}()
	if s.isStored(f.path, r.digest) && !s.Force {
		return r
	}
	pages, fetched := s.fsys.(webPages)
	if r = s.parse(ctx, f.path, r.digest, data, fetched); r.err != nil {
		return r
	}
	if f.partial != "" {
		r.doc.Partial = strings.TrimPrefix(r.doc.Partial+"; "+f.partial, "; ")
	}
	if fetched {
		r.doc.SetAddress(pages.Address(f.path))
	}
	given := s.Given
	if given == nil {
		given = givenTo(s.known[f.path])
	}
	give(r.doc, given)
	_, r.copied = s.read.LoadOrStore(r.digest, true)
	r.store = func(ctx context.Context) error { return s.Sink.Replace(ctx, r.doc, r.chunks) }
	return r
}

// parse reads the content of a file and splits it.
func (s *folderSync) parse(ctx context.Context, path, digest string, data []byte, isolated bool) (r reading) {
	r.digest = digest
	if r.doc, r.err = s.reader.read(ctx, path, data, isolated); r.err != nil {
		r.doc = nil
		return r
	}
	r.doc.Root = s.root.Name
	r.doc.ID = s.root.Name + "/" + path
	if r.chunks = split(ctx, r.doc, targetTokens, maxTokens); ctx.Err() != nil { // not all of them
		return reading{err: ctx.Err()}
	}
	return r
}

// webPages is a file system whose files were fetched from web addresses, which
// their documents get. Strangers wrote them: no parser reads them in this process.
type webPages interface {
	fs.FS
	Address(path string) string
}

// isStored reports whether a file with the digest is stored under the path, read
// as well as it can be now, with the metadata that it is to be given.
func (s *folderSync) isStored(path, digest string) bool {
	known, ok := s.known[path]
	return ok && known.Digest == digest && !s.reader.outdated(known.Meta[ReaderKey]) &&
		(s.Given == nil || maps.Equal(s.Given, givenTo(known)))
}

// prepareDocument prepares storing a document, for example by embedding it. One
// that may have been renamed has vectors already, and waits for its turn; so does
// a copy, until the vectors of the first are stored.
func (s *folderSync) prepareDocument(ctx context.Context, r *reading) {
	p, ok := s.Sink.(Preparer)
	if !ok || r.doc == nil || r.copied {
		return
	}
	if _, moved := s.gone[r.digest]; moved {
		return
	}
	store, err := p.Prepare(ctx, r.doc, r.chunks)
	if err != nil {
		store = func(context.Context) error { return err }
	}
	r.store = store
}

// bytes reads a file, but never more than the limit: it may grow meanwhile.
func (s *folderSync) bytes(ctx context.Context, f file) ([]byte, error) {
	if f.in != nil {
		return s.extract(ctx, f)
	}
	in, err := s.fsys.Open(f.path)
	if err != nil {
		return nil, fmt.Errorf("it cannot be opened: %w", plainError(err))
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, s.reader.maxBytes()+1))
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", plainError(err))
	}
	return data, s.reader.refuse(f.path, int64(len(data)))
}

// stamps are the files that a syncer has seen before, by root and path.
type stamps struct {
	mu    sync.Mutex
	files map[[2]string]stamp
}

// A stamp is a file as it was seen.
type stamp struct {
	size     int64
	modified time.Time
	digest   string
	read     time.Time // zero if it was not
	err      error     // why nothing of it could be read
	listed   bool
	entries  []archive.Entry // the files in it, if listed
}

// tryAgain is how long a file that could not be read is not tried again while it
// is unchanged. The cause may be gone then.
const tryAgain = 10 * time.Minute

// settled is the age from which every later change of a file changes its time:
// the coarsest file systems count in steps of two seconds.
const settled = 2 * time.Second

// stampOf returns what is known of a file that has not changed since.
func (s *folderSync) stampOf(f file) stamp {
	s.remembered.mu.Lock()
	defer s.remembered.mu.Unlock()
	if last := s.remembered.files[[2]string{s.root.Name, f.path}]; last.size == f.size && last.modified.Equal(f.modified) {
		return last
	}
	return stamp{size: f.size, modified: f.modified}
}

// remember notes what is known of a file since it was looked at, unless it was so
// new that its next change may leave its time as it is.
func (s *folderSync) remember(f file, looked time.Time, note func(*stamp)) {
	last := s.stampOf(f)
	note(&last)
	m := &s.remembered
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files = make(map[[2]string]stamp)
	}
	key := [2]string{s.root.Name, f.path}
	if m.files[key] = last; f.modified.IsZero() || looked.Sub(f.modified) < settled {
		delete(m.files, key)
	}
}

// recall returns the earlier result for a file that has not changed since: it is
// stored, or cannot be read.
func (s *folderSync) recall(f file) (reading, bool) {
	last := s.stampOf(f)
	known := last.err != nil && time.Since(last.read) <= tryAgain || last.err == nil && s.isStored(f.path, last.digest)
	return reading{digest: last.digest, err: last.err}, known && !last.read.IsZero()
}
