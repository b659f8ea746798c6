package ingest

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"ibid/ingest/archive"
)

// Limits of the files in progress: their number and their bytes. There are more files than workers,
// so that a remote embedder receives many texts at once.
const (
	maxAhead      = 64
	maxAheadBytes = 64 << 20
)

// A readResult is the result of reading one file.
type readResult struct {
	file   file
	digest string
	doc    *Document // nil if the file is stored unchanged
	chunks []Chunk
	store  func(context.Context) error // stores the document
	stored bool                        // store was called ahead of its turn
	copied bool                        // an identical file was read before
	err    error
}

// readAhead reads files ahead of their turn and yields the results in order. When the context is
// done, it yields only the files already started.
func (s *folderSync) readAhead(ctx context.Context) iter.Seq[readResult] {
	return func(yield func(readResult) bool) {
		ctx, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		ordered := make(chan chan readResult, maxAhead) // one channel per file
		memory, workers := semaphore.NewWeighted(maxAheadBytes), semaphore.NewWeighted(int64(runtime.NumCPU()))
		writers := semaphore.NewWeighted(int64(max(1, s.Writers)))
		weight := func(f file) int64 { return min(f.size, maxAheadBytes) }
		wg.Go(func() {
			defer close(ordered)
			for _, f := range s.listing.files {
				if memory.Acquire(ctx, weight(f)) != nil || workers.Acquire(ctx, 1) != nil {
					return
				}
				out := make(chan readResult, 1)
				select {
				case ordered <- out:
				case <-ctx.Done():
					return
				}
				wg.Go(func() {
					r := s.readFile(ctx, f)
					r.file = f
					workers.Release(1)
					s.prepareDocument(ctx, &r)
					s.storeAhead(ctx, &r, writers)
					out <- r
				})
			}
		})
		for out := range ordered {
			r := <-out
			if !yield(r) {
				return
			}
			memory.Release(weight(r.file))
		}
	}
}

// mustWait reports whether a document must wait for its turn: its file may be a renamed one or a
// copy.
func (s *folderSync) mustWait(r *readResult) bool {
	_, moved := s.gone[r.digest]
	return r.doc == nil || r.copied || moved
}

// prepareDocument does the preparatory part of storing a document, such as embedding it.
func (s *folderSync) prepareDocument(ctx context.Context, r *readResult) {
	p, ok := s.Sink.(Preparer)
	if !ok || s.mustWait(r) {
		return
	}
	store, err := p.Prepare(ctx, r.doc, r.chunks)
	if err != nil {
		store = func(context.Context) error { return err }
	}
	r.store = store
}

// storeAhead stores a document ahead of its turn if several may be stored at a time.
func (s *folderSync) storeAhead(ctx context.Context, r *readResult, writers *semaphore.Weighted) {
	if s.Writers <= 1 || s.mustWait(r) || writers.Acquire(ctx, 1) != nil {
		return
	}
	defer writers.Release(1)
	if ctx.Err() == nil {
		err := r.store(context.WithoutCancel(ctx))
		r.store, r.stored = func(context.Context) error { return err }, true
	}
}

// readFile reads, parses and splits one file unless it is stored unchanged.
func (s *folderSync) readFile(ctx context.Context, f file) (r readResult) {
	if f.err != nil {
		return readResult{err: f.err}
	}
	if r, ok := s.lastResult(f); ok && !s.Force {
		return r
	}
	if f.digest != "" && s.isStored(f.path, f.digest) && !s.Force {
		return readResult{digest: f.digest}
	}
	begun := time.Now()
	data, err := s.readBytes(ctx, f)
	if err != nil {
		return readResult{err: err}
	}
	r.digest = digestOf(data)
	defer func() {
		if ctx.Err() == nil {
			s.remembered.update(s.root, f, begun, func(st *stamp) { st.digest, st.read, st.err = r.digest, begun, r.err })
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
	setMeta(r.doc, UnreadKey, r.doc.Partial)
	if !f.modified.IsZero() {
		setMeta(r.doc, ModifiedKey, f.modified.UTC().Format(time.RFC3339))
	}
	if fetched {
		setMeta(r.doc, AddressKey, pages.Address(f.path))
		delete(r.doc.Meta, "url") // the page's own claim, not where it was fetched
	}
	given := s.GivenMeta
	if given == nil {
		given = givenMeta(s.known[f.path])
	}
	setGivenMeta(r.doc, given)
	setMeta(r.doc, FormerKey, s.known[f.path].Meta[FormerKey]) // no file sets it
	_, r.copied = s.read.LoadOrStore(r.digest, true)
	r.store = func(ctx context.Context) error { return s.Sink.Replace(ctx, r.doc, r.chunks) }
	return r
}

// parse reads the content of a file and splits it.
func (s *folderSync) parse(ctx context.Context, path, digest string, data []byte, isolated bool) (r readResult) {
	r.digest = digest
	if r.doc, r.err = s.reader.read(ctx, path, data, isolated); r.err != nil {
		r.doc = nil
		return r
	}
	r.doc.Root = s.root.Name
	r.doc.ID = s.root.Name + "/" + path
	if r.chunks = split(ctx, r.doc, targetTokens, maxTokens); ctx.Err() != nil { // chunks are missing
		return readResult{err: ctx.Err()}
	}
	return r
}

// webPages is a file system of fetched web pages that also gives their addresses. The pages are
// untrusted, so no parser reads them in this process.
type webPages interface {
	fs.FS
	Pages() iter.Seq[WebPage]
	Address(path string) string
}

// A WebPage is a file fetched from a web address.
type WebPage struct {
	Path    string
	Size    int64
	Fetched time.Time
	Err     error // why it could not be fetched
}

// isStored reports whether a file with the digest is stored under the path, read by the current
// reader, with the metadata that it should have.
func (s *folderSync) isStored(path, digest string) bool {
	known, ok := s.known[path]
	return ok && known.Digest == digest && !s.reader.outdated(known.Meta[ReaderKey]) &&
		(s.GivenMeta == nil || maps.Equal(s.GivenMeta, givenMeta(known)))
}

// readBytes reads a file up to the size limit, since the file may have grown.
func (s *folderSync) readBytes(ctx context.Context, f file) ([]byte, error) {
	if f.container != nil {
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

// stamps holds the stamp of each file that a syncer has seen, by root and path.
type stamps struct {
	mu    sync.Mutex
	files map[[2]string]stamp
}

// A stamp is the state of a file when it was last seen.
type stamp struct {
	size     int64
	modified time.Time
	digest   string
	read     time.Time // zero if it was not read
	err      error     // why it could not be read
	listed   bool
	entries  []archive.Entry // the files in it, if listed
}

// tryAgain is how long an unchanged file that could not be read is left alone.
const tryAgain = 10 * time.Minute

// settled is the age after which any change of a file also changes its modification time, on every
// file system.
const settled = 2 * time.Second

// find returns the stamp of a file, or an empty one if the file has changed.
func (m *stamps) find(root Root, f file) stamp {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.files[[2]string{root.Name, f.path}]; last.size == f.size && last.modified.Equal(f.modified) {
		return last
	}
	return stamp{size: f.size, modified: f.modified}
}

// update calls note with the stamp of a file. It forgets the stamp if, at the time looked, the file
// was so new that another change might leave its modification time unchanged.
func (m *stamps) update(root Root, f file, looked time.Time, note func(*stamp)) {
	last := m.find(root, f)
	note(&last)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files = make(map[[2]string]stamp)
	}
	key := [2]string{root.Name, f.path}
	if m.files[key] = last; f.modified.IsZero() || looked.Sub(f.modified) < settled {
		delete(m.files, key)
	}
}

// keepOnly forgets the stamps of a root's files that are not in paths.
func (m *stamps) keepOnly(root Root, paths map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.files, func(key [2]string, _ stamp) bool { return key[0] == root.Name && !paths[key[1]] })
}

// lastResult returns the earlier result for an unchanged file that is stored or can't be read.
func (s *folderSync) lastResult(f file) (readResult, bool) {
	last := s.remembered.find(s.root, f)
	known := last.err != nil && time.Since(last.read) <= tryAgain
	if s.isStored(f.path, last.digest) { // SyncFile may have read it since
		last.err, known = nil, true
	}
	return readResult{digest: last.digest, err: last.err}, known && !last.read.IsZero()
}
