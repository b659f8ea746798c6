package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
)

// A Syncer keeps a [Sink] in step with folders. One that is used again looks
// only at files whose size or time has changed since.
type Syncer struct {
	Sink   Sink
	Reader *Reader // nil means one with the defaults
	Split  SplitOptions
	// Workers is the number of files read at a time; 0 means one for each
	// processor.
	Workers int
	// Writers is the number of documents stored at a time; 0 means one, which a
	// sink with one writer is best served by. Those behind one that waits for its
	// turn are then stored before it.
	Writers int
	// Include, where there are any, are patterns of the files that belong to a
	// folder, or of folders in it; Exclude are those of what does not. They are
	// written as in a .gitignore file at the root, and checked by [CheckGlob].
	// Hidden files and what an ignore file names belong to no folder.
	Include, Exclude []string
	// Force reads every file anew, also those that are stored as they are: for
	// what a reader that has become better makes of them.
	Force bool
	// Enter, where it is set, is called with the path of each folder in the
	// root before it is listed, "." first.
	Enter func(dir string)

	remembered stamps
}

// maxSinkFailures in a row are the sink's fault, not the documents'.
const maxSinkFailures = 3

// Sync reads what changed below fsys and brings the sink in step with it,
// yielding what became of each file in order of path, and of each removed
// document after that. Only documents of this root are touched.
//
// Files are compared by digest and only changed ones are read; a file whose
// text is stored under a path that is gone is renamed and keeps its vectors.
// A file that cannot be read keeps its stored version, and so do the documents
// below a folder that cannot be listed. What [LeftOut] names is no part of the
// folder: names that begin with a dot are hidden. Symbolic
// links are not followed and special files never opened. Open the folder with
// [os.Root.FS], so that nothing outside it can be reached.
//
// The sequence is lazy and single-use. When ctx is done the documents in
// hand are stored first, then the sequence ends with the context's error; what was
// yielded is durable. An error ends the sequence; trouble with one file is a
// [Change] in it.
func (s *Syncer) Sync(ctx context.Context, root Root, fsys fs.FS) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		run, end := s.run(root, fsys)
		defer end()
		if err := run.prepare(ctx); err != nil {
			yield(Change{}, err)
			return
		}
		run.all(ctx, yield)
	}
}

// SyncFile is Sync for one file, of which the others need not be looked at. A
// path where no file is gives an error that wraps [fs.ErrNotExist]. An archive,
// or a mail with what is attached to it, is synced with all that is in it.
func (s *Syncer) SyncFile(ctx context.Context, root Root, fsys fs.FS, name string) (Change, error) {
	run, end := s.run(root, fsys)
	defer end()
	known, err := s.Sink.Known(ctx, root)
	if err != nil {
		return Change{}, fmt.Errorf("reading what is stored of %s: %w", root.Name, err)
	}
	run.known = known
	if !fs.ValidPath(name) || name == "." {
		return Change{}, &fs.PathError{Op: "sync", Path: name, Err: fs.ErrInvalid}
	}
	info, err := fs.Lstat(fsys, name)
	if err != nil {
		return Change{}, fmt.Errorf("looking at the file: %w", err)
	}
	f := run.look(name, fs.FileInfoToDirEntry(info))
	if f.err == nil && isContainer(name) {
		return run.syncContainer(ctx, f)
	}
	run.files, run.done = []file{f}, 1
	return run.act(ctx, f, run.readFile(ctx, f))
}

// run begins a run over a folder; end ends what only it uses.
func (s *Syncer) run(root Root, fsys fs.FS) (run *syncRun, end func()) {
	run = &syncRun{Syncer: s, root: root, fsys: fsys, reader: s.Reader, workers: s.Workers}
	run.include, run.exclude = parseIgnore(".", strings.Join(s.Include, "\n")), parseIgnore(".", strings.Join(s.Exclude, "\n"))
	if run.workers <= 0 {
		run.workers = runtime.NumCPU()
	}
	end = func() {}
	if run.reader == nil {
		run.reader = new(Reader)
		end = run.reader.Close
	}
	return run, end
}

// A syncRun is one sync of one folder.
type syncRun struct {
	*Syncer
	root             Root
	fsys             fs.FS
	reader           *Reader
	workers          int
	include, exclude ignoreRules

	files []file // in order of path
	// What the sink held, which the workers read too: documents by path, and path
	// by digest of those whose file is gone.
	known   map[string]Stored
	gone    map[string]string
	moved   map[string]bool // paths whose document was renamed in this run
	broken  []string        // folders that could not be listed
	done    int
	failing int // failures of the sink in a row
}

// all reads and prepares the files, several at a time and a few ahead, and acts
// on them one by one in their order. When ctx is done, what others have stored of
// the files behind is told as well.
func (run *syncRun) all(ctx context.Context, yield func(Change, error) bool) {
	ahead, end := run.ahead(ctx)
	defer end()
	for _, f := range run.files {
		r, ok := ahead.next()
		if !ok {
			break
		}
		if ctx.Err() != nil && !r.stored {
			continue
		}
		run.done++
		change, err := run.act(ctx, f, r)
		ahead.finished(r)
		if err != nil {
			yield(Change{}, err)
			return
		}
		if !yield(change, nil) {
			return
		}
	}
	if err := ctx.Err(); err != nil {
		yield(Change{}, err)
		return
	}
	run.remove(ctx, yield)
}

// act brings the sink in step with one file. The error is the sink's.
func (run *syncRun) act(ctx context.Context, f file, r reading) (Change, error) {
	c := Change{
		Document: run.root.Name + "/" + f.path, Root: run.root.Name, Path: f.path,
		Done: run.done, Total: len(run.files),
	}
	before, stored := run.known[f.path]
	// What is begun is finished, however the sync ends.
	ctx = context.WithoutCancel(ctx)
	var skip *SkipError
	switch {
	case errors.As(r.err, &skip):
		c.Action, c.Reason = Skipped, skip.Reason
		if stored {
			if err := run.Sink.Delete(ctx, c.Document); err != nil {
				return run.sinkFailed(c, err)
			}
			c.Reason += "; the version stored before was removed"
		}
		return c, nil
	case r.err != nil:
		c.Action, c.Reason = Failed, r.err.Error()
		if stored {
			c.Reason += "; the version stored before stays"
		}
		return c, nil
	case r.doc == nil:
		c.Action = Unchanged
		return c, nil
	}
	c.Chunks, c.Pages, c.Reason = len(r.chunks), len(r.doc.Pages), r.doc.Partial
	var err error
	if from, ok := run.gone[r.digest]; ok && !stored && !run.moved[from] {
		c.Action, c.From = Renamed, from
		if reader := run.known[from].Reader; reader != "" {
			r.doc.SetReader(reader) // whose text it keeps
		}
		if err = run.Sink.Rename(ctx, run.root.Name+"/"+from, r.doc); err == nil {
			run.moved[from] = true
		}
	} else {
		c.Action = Added
		if stored {
			c.Action = Updated
			if before.Digest == r.digest && c.Reason == "" {
				c.Reason = "the same file, read anew"
			}
		}
		err = r.store(ctx)
	}
	if err != nil {
		return run.sinkFailed(c, err)
	}
	run.failing = 0
	return c, nil
}

// sinkFailed makes a failure of the sink one of the file, until it fails for
// several in a row.
func (run *syncRun) sinkFailed(c Change, err error) (Change, error) {
	if run.failing++; run.failing >= maxSinkFailures {
		return c, fmt.Errorf("storing %s: %w", c.Document, err)
	}
	c.Action, c.From, c.Chunks, c.Pages = Failed, "", 0, 0
	c.Reason = fmt.Sprintf("storing it: %v", err)
	return c, nil
}

// remove deletes the documents whose files are gone.
func (run *syncRun) remove(ctx context.Context, yield func(Change, error) bool) {
	seen := make(map[string]bool, len(run.files))
	for _, f := range run.files {
		seen[f.path] = true
	}
	for _, p := range slices.Sorted(maps.Keys(run.known)) {
		if seen[p] || run.moved[p] || run.belowBroken(p) {
			continue
		}
		if err := ctx.Err(); err != nil {
			yield(Change{}, err)
			return
		}
		c := Change{Document: run.root.Name + "/" + p, Root: run.root.Name, Path: p, Action: Removed, Done: run.done, Total: len(run.files)}
		if err := run.Sink.Delete(context.WithoutCancel(ctx), c.Document); err != nil {
			yield(Change{}, fmt.Errorf("removing %s: %w", c.Document, err))
			return
		}
		if !yield(c, nil) {
			return
		}
	}
}

// plainError takes the operation and path off an error, which the sentence
// around it names already.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
