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

// A Syncer keeps a [Sink] in step with folders. One that is used again looks
// only at files whose size or time has changed since.
type Syncer struct {
	Sink   Sink
	Reader *Reader // nil means one with the defaults
	// Writers is the number of documents stored at a time; 0 means one. With
	// several, a document may be stored before one that precedes it.
	Writers int
	// Include and Exclude are patterns as in a .gitignore file at the root, which
	// [CheckGlob] checks. Without Include everything is included except hidden
	// files and those that an ignore file names.
	Include, Exclude []string
	// Force reads every file again, even if it is stored unchanged.
	Force bool
	// GivenMeta, unless it is nil, is metadata that documents get over that of their files,
	// in place of any that they were given before.
	GivenMeta map[string]string

	remembered stamps
}

// maxSinkFailures is how many failures in a row end the sync.
const maxSinkFailures = 3

// Sync reads the files below fsys that changed and updates the sink. It yields
// the change of each file in order of path, then the removed documents. Only
// documents of this root are touched.
//
// Files are compared by digest and only changed ones are read; a file whose
// text is stored under a path that is gone is renamed and keeps its vectors.
// A file that cannot be read keeps its stored version, and so do the documents
// below a folder that cannot be listed. [LeftOut] names the files that are not
// part of the folder. Symbolic links are not followed and special files never
// opened. Open the folder with [os.Root.FS], so that nothing outside it can be
// reached.
//
// The sequence is lazy and single-use. When ctx is done, documents that were read
// are stored first, then the sequence ends with the context's error; yielded
// changes are durable. An error ends the sequence; a failure of one file is a
// [Change] in it.
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

// SyncFile is Sync for one file, without looking at the others. If there is no
// such file in the folder, or it is left out of it, the error wraps
// [fs.ErrNotExist]. An archive or a mail is synced with the files in it.
func (s *Syncer) SyncFile(ctx context.Context, root Root, fsys fs.FS, name string) (Change, error) {
	folder, end := s.start(root, fsys)
	defer end()
	known, err := s.Sink.Known(ctx, root)
	if err != nil {
		return Change{}, fmt.Errorf("listing the stored documents of %s: %w", root.Name, err)
	}
	folder.known = known
	if !fs.ValidPath(name) || name == "." {
		return Change{}, &fs.PathError{Op: "sync", Path: name, Err: fs.ErrInvalid}
	}
	rules, err := folder.rulesFor(name)
	if err != nil {
		return Change{}, fmt.Errorf("looking at the file: %w", err)
	}
	info, err := fs.Lstat(fsys, name)
	if err != nil {
		return Change{}, fmt.Errorf("looking at the file: %w", err)
	}
	f := folder.inspect(name, fs.FileInfoToDirEntry(info))
	f.rules = rules
	if f.err == nil && isContainer(name) {
		return folder.syncContainer(ctx, f)
	}
	folder.files, folder.done = []file{f}, 1
	return folder.apply(ctx, f, folder.readFile(ctx, f))
}

// start prepares a sync of a folder. Call end after it.
func (s *Syncer) start(root Root, fsys fs.FS) (folder *folderSync, end func()) {
	folder = &folderSync{Syncer: s, root: root, fsys: fsys, reader: s.Reader, first: make(map[string]string)}
	folder.include, folder.exclude = parseIgnore(".", strings.Join(s.Include, "\n")), parseIgnore(".", strings.Join(s.Exclude, "\n"))
	end = func() {}
	if folder.reader == nil {
		folder.reader = new(Reader)
		end = folder.reader.Close
	}
	return folder, end
}

// A folderSync is one sync of one folder.
type folderSync struct {
	*Syncer
	root             Root
	fsys             fs.FS
	reader           *Reader
	include, exclude ignoreRules

	files []file // in order of path
	// The sink's documents by path, and the paths of those whose file is gone by
	// digest. The workers read both.
	known   map[string]Stored
	gone    map[string]string
	moved   map[string]bool // paths whose document was renamed in this sync
	broken  []string        // folders that could not be listed
	done    int
	failing int               // failures of the sink in a row
	read    sync.Map          // digests of the files that were read
	first   map[string]string // path of the first file, by digest
}

// changes reads and prepares files ahead and acts on them in order. When ctx is
// done, it still yields the files that were stored ahead of their turn.
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

// apply updates the sink for one file. The error is the sink's.
func (s *folderSync) apply(ctx context.Context, f file, r readResult) (Change, error) {
	c := Change{
		Document: s.root.Name + "/" + f.path, Root: s.root.Name, Path: f.path,
		Done: s.done, Total: len(s.files),
	}
	if pages, ok := s.fsys.(webPages); ok {
		c.URL = pages.Address(f.path)
	}
	before, stored := s.known[f.path]
	// A change that was started is finished, however the sync ends.
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

// rename makes the document of the file from that of doc, whose id is renamed, and
// records its former ids.
func (s *folderSync) rename(ctx context.Context, from, renamed string, doc *Document) error {
	meta, id := s.known[from].Meta, s.root.Name+"/"+from
	setMeta(doc, ReaderKey, meta[ReaderKey]) // whose text it keeps
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

// sinkFailed makes a failure of the sink one of the file, unless several failed or its disk is full.
func (s *folderSync) sinkFailed(c Change, err error) (Change, error) {
	if s.failing++; s.failing >= maxSinkFailures || errors.Is(err, syscall.ENOSPC) {
		return c, fmt.Errorf("storing %s: %w", c.Document, err)
	}
	c.Action, c.From, c.CopyOf, c.Chunks, c.Pages = Failed, "", "", 0, 0
	c.Reason = fmt.Sprintf("storing it: %v", err)
	return c, nil
}

// removeGone deletes the documents whose files are gone.
func (s *folderSync) removeGone(ctx context.Context, yield func(Change, error) bool) {
	seen := make(map[string]bool, len(s.files))
	for _, f := range s.files {
		seen[f.path] = true
	}
	for _, p := range slices.Sorted(maps.Keys(s.known)) {
		if ctx.Err() != nil {
			break
		}
		if seen[p] || s.moved[p] || s.isBelowBroken(p) {
			continue
		}
		c := Change{Document: s.root.Name + "/" + p, Root: s.root.Name, Path: p, URL: s.known[p].Meta[AddressKey], Action: Removed,
			Done: s.done, Total: len(s.files)}
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
