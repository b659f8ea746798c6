package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// A Syncer keeps a [Sink] in step with folders. When it is used again, it reads only files whose
// size or modification time has changed.
type Syncer struct {
	Sink   Sink
	Reader *Reader // nil means a default Reader
	// Writers is the number of documents stored at a time; 0 means one. If there are several,
	// documents may be stored out of order.
	Writers int
	// Include and Exclude are patterns as in a .gitignore file at the root; see [CheckGlob]. If
	// Include is empty, everything is included except hidden files and files excluded by an ignore
	// file.
	Include, Exclude []string
	// Force reads every file again, even if it is stored unchanged.
	Force bool
	// GivenMeta, unless nil, is metadata given to the documents. It takes precedence over the
	// metadata of their files, and replaces any that they were given before.
	GivenMeta map[string]string

	remembered stamps
}

// maxSinkFailures is the number of consecutive failures that end the sync.
const maxSinkFailures = 3

// Sync reads the changed files below fsys and updates the sink. It yields the change of each file
// in path order, then the removed documents. It changes only documents of this root.
//
// Files are compared by digest, and only changed ones are read. A file whose text is stored under a
// path that no longer exists counts as renamed and keeps its vectors. A file that can't be read
// keeps its stored version, and so do the documents below a folder that can't be listed. [LeftOut]
// describes the files that are ignored. Sync does not follow symbolic links and never opens special
// files. Open the folder with [os.Root.FS], so that nothing outside it is reachable.
//
// The sequence is lazy and single-use. When ctx is done, documents already read are stored first,
// and then the sequence ends with the context's error. Yielded changes are durable. An error ends
// the sequence; a failure of one file is a [Change] in it.
func (s *Syncer) Sync(ctx context.Context, root Root, fsys fs.FS) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		folder, end := s.start(root, fsys)
		defer end()
		if err := folder.prepare(ctx); err != nil {
			yield(Change{}, err)
			return
		}
		folder.changes(ctx)(yield)
	}
}

// SyncFile is like Sync for one file. An archive or a mail is synced with the files in it. The
// error wraps [fs.ErrNotExist] if the file does not exist or is ignored.
func (s *Syncer) SyncFile(ctx context.Context, root Root, fsys fs.FS, name string) (Change, error) {
	folder, end := s.start(root, fsys)
	defer end()
	known, err := s.Sink.StoredDocuments(ctx, root)
	if err != nil {
		return Change{}, fmt.Errorf("listing the stored documents of %s: %w", root.Name, err)
	}
	folder.known = known
	if !fs.ValidPath(name) || name == "." {
		return Change{}, &fs.PathError{Op: "sync", Path: name, Err: fs.ErrInvalid}
	}
	rules, err := folder.listing.rulesFor(name)
	if err != nil {
		return Change{}, fmt.Errorf("checking the file: %w", err)
	}
	info, err := fs.Lstat(fsys, name)
	if err != nil {
		return Change{}, fmt.Errorf("checking the file: %w", err)
	}
	f := folder.listing.inspect(name, fs.FileInfoToDirEntry(info))
	f.rules = rules
	if f.err == nil && isContainer(name) {
		return folder.syncContainer(ctx, f)
	}
	folder.listing.files, folder.done = []file{f}, 1
	return folder.apply(ctx, f, folder.readFile(ctx, f))
}

// start prepares a sync of a folder. The caller must call the returned function after the sync.
func (s *Syncer) start(root Root, fsys fs.FS) (*folderSync, func()) {
	reader, end := s.Reader, func() {}
	if reader == nil {
		reader = new(Reader)
		end = reader.Close
	}
	return &folderSync{Syncer: s, root: root, fsys: fsys, reader: reader, first: make(map[string]string), listing: listing{
		root: root, fsys: fsys, reader: reader, all: len(s.Include) == 0,
		include: parseIgnore(".", strings.Join(s.Include, "\n")), exclude: parseIgnore(".", strings.Join(s.Exclude, "\n")),
	}}, end
}

// A folderSync is one sync of one folder.
type folderSync struct {
	*Syncer
	root    Root
	fsys    fs.FS
	reader  *Reader
	listing listing
	// The sink's documents by path, and the paths of documents without a file, by digest. The
	// workers read both.
	known   map[string]Stored
	gone    map[string]string
	moved   map[string]bool // paths of documents renamed in this sync
	done    int
	failing int               // consecutive failures of the sink
	read    sync.Map          // digests of the files read so far
	first   map[string]string // path of the first file by digest
}

// changes reads and prepares files ahead and applies them in order. When ctx is done, it still
// yields the files stored ahead of their turn.
func (s *folderSync) changes(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for r := range s.readAhead(ctx) {
			if ctx.Err() != nil && !r.stored {
				continue
			}
			s.done++
			if change, err := s.apply(ctx, r.file, r); !yield(change, err) || err != nil {
				return
			}
		}
		s.removeGone(ctx, yield)
	}
}

// apply updates the sink for one file. The error is a failure of the sink.
func (s *folderSync) apply(ctx context.Context, f file, r readResult) (Change, error) {
	c := Change{
		Document: s.root.Name + "/" + f.path, Root: s.root.Name, Path: f.path,
		Done: s.done, Total: len(s.listing.files),
	}
	if pages, ok := s.fsys.(webPages); ok {
		c.URL = pages.Address(f.path)
	}
	before, stored := s.known[f.path]
	// Finish a change that was started, even if the sync ends.
	ctx = context.WithoutCancel(ctx)
	var skip *SkipError
	switch {
	case errors.As(r.err, &skip):
		c.Action, c.Reason = Skipped, skip.Reason
		if stored {
			if err := s.Sink.Delete(ctx, c.Document); err != nil {
				return s.sinkFailed(c, err)
			}
			c.Reason += "; the stored version was removed"
		}
		return c, nil
	case r.err != nil:
		c.Action, c.Reason = Failed, r.err.Error()
		if stored {
			c.Reason += "; the stored version is kept"
		}
		return c, nil
	case r.doc == nil:
		c.Action = Unchanged
		s.original(f.path, r.digest)
		return c, nil
	}
	c.Chunks, c.Pages, c.Reason = len(r.chunks), len(r.doc.Pages), r.doc.Partial
	var err error
	if from, ok := s.gone[r.digest]; ok && !stored && !s.moved[from] {
		c.Action, c.From = Renamed, from
		err = s.rename(ctx, from, c.Document, r.doc)
	} else {
		c.Action = Added
		if stored {
			c.Action = Updated
			if before.Digest == r.digest && c.Reason == "" {
				c.Reason = "unchanged, but read again"
			}
		}
		if first := s.original(f.path, r.digest); first != f.path {
			c.CopyOf = first
		}
		err = r.store(ctx)
	}
	if err != nil {
		return s.sinkFailed(c, err)
	}
	s.failing = 0
	return c, nil
}

// rename renames the document stored under the path from to doc, whose ID is renamed. It records
// the former IDs in doc.
func (s *folderSync) rename(ctx context.Context, from, renamed string, doc *Document) error {
	meta, id := s.known[from].Meta, s.root.Name+"/"+from
	setMeta(doc, ReaderKey, meta[ReaderKey]) // its text is not read again
	setGivenMeta(doc, givenMeta(s.known[from]))
	former := slices.DeleteFunc(FormerIDs(meta), func(f string) bool { return f == id || f == renamed })
	former = append([]string{id}, former...)
	setMeta(doc, FormerKey, strings.Join(former[:min(len(former), maxFormer)], "//"))
	err := s.Sink.Rename(ctx, id, doc)
	s.moved[from] = err == nil
	return err
}

// original returns the path of the first file of this sync with the digest.
func (s *folderSync) original(path, digest string) string {
	if first, ok := s.first[digest]; ok {
		return first
	}
	s.first[digest] = path
	return path
}

// sinkFailed turns a failure of the sink into a failure of the file, unless several failed or the
// disk is full.
func (s *folderSync) sinkFailed(c Change, err error) (Change, error) {
	if s.failing++; s.failing >= maxSinkFailures || errors.Is(err, syscall.ENOSPC) {
		return c, fmt.Errorf("storing %s: %w", c.Document, err)
	}
	c.Action, c.From, c.CopyOf, c.Chunks, c.Pages = Failed, "", "", 0, 0
	c.Reason = fmt.Sprintf("storing it: %v", err)
	return c, nil
}

// removeGone deletes the documents whose files no longer exist.
func (s *folderSync) removeGone(ctx context.Context, yield func(Change, error) bool) {
	seen := make(map[string]bool, len(s.listing.files))
	for _, f := range s.listing.files {
		seen[f.path] = true
	}
	for _, p := range slices.Sorted(maps.Keys(s.known)) {
		if ctx.Err() != nil {
			break
		}
		if seen[p] || s.moved[p] || s.listing.isBelowBroken(p) {
			continue
		}
		c := Change{Document: s.root.Name + "/" + p, Root: s.root.Name, Path: p, URL: s.known[p].Meta[AddressKey], Action: Removed,
			Done: s.done, Total: len(s.listing.files)}
		err := s.Sink.Delete(context.WithoutCancel(ctx), c.Document)
		if err != nil {
			err = fmt.Errorf("removing %s: %w", c.Document, err)
		}
		if !yield(c, err) || err != nil {
			return
		}
	}
	if err := ctx.Err(); err != nil {
		yield(Change{}, err)
	}
}

// plainError removes the operation and path from an error.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
