package ingest

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// A file is an entry found in the folder or in a container.
type file struct {
	path     string
	size     int64
	modified time.Time
	err      error       // why it is not read
	in       *container  // nil for a file of the folder
	digest   string      // of a file in a container
	rules    ignoreRules // for the files in a container
}

// prepare lists the folder and compares it with the sink.
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
	run.remembered.forget(run.root.Name, func(path string) bool { return !seen[path] })
	run.gone, run.moved = make(map[string]string), make(map[string]bool)
	for _, p := range slices.Sorted(maps.Keys(known)) {
		if !seen[p] && !run.belowBroken(p) {
			// A rename keeps nothing of a document that would be read again.
			if _, ok := run.gone[known[p].Digest]; !ok && !run.reader.outdated(p, known[p].Reader) {
				run.gone[known[p].Digest] = p
			}
		}
	}
	return nil
}

func (run *syncRun) belowBroken(p string) bool {
	return slices.ContainsFunc(run.broken, func(dir string) bool { return strings.HasPrefix(p, dir+"/") })
}

// walk lists the files below dir. Only the root itself must be readable.
func (run *syncRun) walk(ctx context.Context, dir string, rules ignoreRules) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if run.Enter != nil {
		run.Enter(dir)
	}
	entries, err := fs.ReadDir(run.fsys, dir)
	if err != nil {
		if dir == "." {
			return fmt.Errorf("listing the folder %s: %w", run.root.Path, plainError(err))
		}
		run.broken = append(run.broken, dir)
		err = fmt.Errorf("the folder cannot be listed (%w); its stored documents are kept", plainError(err))
		run.files = append(run.files, file{path: dir, err: err})
		return nil
	}
	rules = rules.with(run.fsys, dir)
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || rules.ignored(p, e.IsDir()) || run.exclude.ignored(p, e.IsDir()) {
			continue
		}
		if e.IsDir() {
			if err := run.walk(ctx, p, rules); err != nil {
				return err
			}
			continue
		}
		if isContainer(p) || run.included(p) {
			f := run.look(p, e)
			f.rules = rules
			run.files = append(run.files, f)
		}
	}
	return nil
}

// included reports whether the patterns include a file or a folder above it.
func (run *syncRun) included(p string) bool {
	if len(run.Include) == 0 || run.include.ignored(p, false) {
		return true
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if run.include.ignored(dir, true) {
			return true
		}
	}
	return false
}

// look decides from its entry whether a file is read.
func (run *syncRun) look(p string, e fs.DirEntry) file {
	f := file{path: p}
	info, err := e.Info()
	switch {
	case err != nil:
		f.err = plainError(err)
	case e.Type()&fs.ModeSymlink != 0:
		f.err = &SkipError{Reason: "a symbolic link: only files in the folder itself are read"}
	case !e.Type().IsRegular():
		f.err = &SkipError{Reason: "a device, pipe or socket, not a file"}
	case strings.ContainsRune(p, '\ufffd') || !fs.ValidPath(p):
		f.err = &SkipError{Reason: "its name is not valid UTF-8: rename it"}
	default:
		f.size, f.modified = info.Size(), info.ModTime()
		f.err = run.reader.refuse(p, f.size)
	}
	return f
}
