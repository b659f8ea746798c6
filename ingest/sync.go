package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A Syncer keeps a [Sink] in step with folders.
type Syncer struct {
	Sink   Sink
	Reader *Reader // nil means one with the defaults
	Split  SplitOptions
	// Workers is the number of files read at a time; 0 means one for each
	// processor.
	Workers int
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
// The sequence is lazy and single-use. When ctx is done the document in hand
// is stored first, then the sequence ends with the context's error; what was
// yielded is durable. An error ends the sequence; trouble with one file is a
// [Change] in it.
func (s *Syncer) Sync(ctx context.Context, root Root, fsys fs.FS) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		run := syncRun{Syncer: s, root: root, fsys: fsys, reader: s.Reader}
		if run.reader == nil {
			run.reader = new(Reader)
			defer run.reader.Close()
		}
		if err := run.prepare(ctx); err != nil {
			yield(Change{}, err)
			return
		}
		run.all(ctx, yield)
	}
}

// A syncRun is one sync of one folder.
type syncRun struct {
	*Syncer
	root   Root
	fsys   fs.FS
	reader *Reader

	files   []file            // in order of path
	known   map[string]string // digest by path, of what the sink held; the workers read it too
	gone    map[string]string // path by digest, of stored documents whose file is gone
	moved   map[string]bool   // paths whose document was renamed in this run
	broken  []string          // folders that could not be listed
	done    int
	failing int // failures of the sink in a row
}

// A file is one that the walk saw.
type file struct {
	path   string
	size   int64
	err    error       // why it is not read: a *SkipError, or what failed
	in     *container  // that it stands in; nil for one in a folder
	digest string      // of one in a container
	rules  ignoreRules // for what is in it, when it is a container
}

func (run *syncRun) prepare(ctx context.Context) error {
	known, err := run.Sink.Known(ctx, run.root)
	if err != nil {
		return fmt.Errorf("reading what is stored of %s: %w", run.root.Name, err)
	}
	run.known = known
	if err := run.walk(ctx, ".", nil); err != nil {
		return err
	}
	if err := run.openContainers(ctx); err != nil {
		return err
	}
	slices.SortFunc(run.files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	seen := make(map[string]bool, len(run.files))
	for _, f := range run.files {
		seen[f.path] = true
	}
	run.gone, run.moved = make(map[string]string), make(map[string]bool)
	for _, p := range slices.Sorted(maps.Keys(known)) {
		if !seen[p] && !run.belowBroken(p) {
			if _, ok := run.gone[known[p]]; !ok {
				run.gone[known[p]] = p
			}
		}
	}
	return nil
}

func (run *syncRun) belowBroken(p string) bool {
	return slices.ContainsFunc(run.broken, func(dir string) bool { return strings.HasPrefix(p, dir+"/") })
}

// walk notes the files below dir. Only the root itself must be readable.
func (run *syncRun) walk(ctx context.Context, dir string, rules ignoreRules) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := fs.ReadDir(run.fsys, dir)
	if err != nil {
		if dir == "." {
			return fmt.Errorf("listing the folder %s: %w", run.root.Path, plainError(err))
		}
		run.broken = append(run.broken, dir)
		run.files = append(run.files, file{path: dir, err: fmt.Errorf("the folder cannot be listed (%w): what is stored of it stays", plainError(err))})
		return nil
	}
	rules = rules.with(run.fsys, dir)
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || rules.ignored(p, e.IsDir()) {
			continue
		}
		if e.IsDir() {
			if err := run.walk(ctx, p, rules); err != nil {
				return err
			}
			continue
		}
		f := run.look(p, e)
		f.rules = rules
		run.files = append(run.files, f)
	}
	return nil
}

// look decides from its entry whether a file is to be read.
func (run *syncRun) look(p string, e fs.DirEntry) file {
	f := file{path: p}
	info, err := e.Info()
	switch {
	case err != nil:
		f.err = plainError(err)
	case e.Type()&fs.ModeSymlink != 0:
		f.err = &SkipError{"a symbolic link: files in the folder are read where they stand, others not at all"}
	case !e.Type().IsRegular():
		f.err = &SkipError{"a device, pipe or socket, not a file"}
	case strings.ContainsRune(p, '\ufffd') || !fs.ValidPath(p):
		f.err = &SkipError{"its name is not valid UTF-8: rename it"}
	default:
		f.size = info.Size()
		f.err = run.reader.refuse(p, f.size)
	}
	return f
}

// A reading is what came of reading one file.
type reading struct {
	digest string
	doc    *Document
	chunks []Chunk
	err    error
}

// all reads the files, several at a time and a few ahead, and acts on them
// one by one in their order.
func (run *syncRun) all(ctx context.Context, yield func(Change, error) bool) {
	workers := run.Workers
	if workers <= 0 {
		workers = runtime.NumCPU()
	}
	workCtx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()

	results := run.read(workCtx, &wg, workers)
	for _, f := range run.files {
		var r reading
		if out, ok := <-results; ok {
			r = <-out
		}
		if err := ctx.Err(); err != nil {
			yield(Change{}, err)
			return
		}
		run.done++
		change, err := run.act(ctx, f, r)
		if err != nil {
			yield(Change{}, err)
			return
		}
		if !yield(change, nil) {
			return
		}
	}
	run.remove(ctx, yield)
}

// read starts the workers. Each file has a channel of its own, given in order,
// so that results come in order while files are read in parallel.
func (run *syncRun) read(ctx context.Context, wg *sync.WaitGroup, workers int) <-chan chan reading {
	ordered := make(chan chan reading, workers)
	type job struct {
		file
		out chan reading
	}
	jobs := make(chan job)
	wg.Go(func() {
		defer close(ordered)
		defer close(jobs)
		for _, f := range run.files {
			out := make(chan reading, 1)
			select {
			case ordered <- out:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- job{f, out}:
			case <-ctx.Done():
				out <- reading{err: ctx.Err()}
				return
			}
		}
	})
	for range workers {
		wg.Go(func() {
			for j := range jobs {
				j.out <- run.readFile(ctx, j.file)
			}
		})
	}
	return ordered
}

// readFile reads, parses and splits one file unless it is stored as it is.
func (run *syncRun) readFile(ctx context.Context, f file) reading {
	if f.err != nil {
		return reading{err: f.err}
	}
	if f.digest != "" && run.known[f.path] == f.digest {
		return reading{digest: f.digest}
	}
	data, err := run.bytes(ctx, f)
	if err != nil {
		return reading{err: err}
	}
	sum := sha256.Sum256(data)
	r := reading{digest: hex.EncodeToString(sum[:])}
	if run.known[f.path] == r.digest {
		return r
	}
	if r.doc, r.err = run.reader.Read(ctx, f.path, data); r.err != nil {
		return r
	}
	r.doc.Root = run.root.Name
	r.doc.ID = run.root.Name + "/" + f.path
	r.chunks = Split(r.doc, run.Split)
	return r
}

// bytes reads a file that may grow meanwhile, but never more than the limit.
func (run *syncRun) bytes(ctx context.Context, f file) ([]byte, error) {
	if f.in != nil {
		return run.take(ctx, f)
	}
	in, err := run.fsys.Open(f.path)
	if err != nil {
		return nil, fmt.Errorf("it cannot be opened: %w", plainError(err))
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, run.reader.maxBytes()+1))
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", plainError(err))
	}
	return data, run.reader.refuse(f.path, int64(len(data)))
}

// act brings the sink in step with one file. The error is the sink's.
func (run *syncRun) act(ctx context.Context, f file, r reading) (Change, error) {
	c := Change{
		Document: run.root.Name + "/" + f.path, Root: run.root.Name, Path: f.path,
		Done: run.done, Total: len(run.files),
	}
	_, stored := run.known[f.path]
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
	if from, ok := run.gone[r.digest]; ok && !stored {
		c.Action, c.From = Renamed, from
		if err = run.Sink.Rename(ctx, run.root.Name+"/"+from, r.doc); err == nil {
			delete(run.gone, r.digest)
			run.moved[from] = true
		}
	} else {
		c.Action = Added
		if stored {
			c.Action = Updated
		}
		err = run.Sink.Replace(ctx, r.doc, r.chunks)
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
