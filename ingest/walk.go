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

	"ibid/ingest/archive"
)

// A file is an entry of the folder or of a container.
type file struct {
	path      string
	size      int64
	modified  time.Time
	err       error       // why it is not read
	container *container  // nil for a file of the folder
	digest    string      // of a file in a container
	rules     ignoreRules // for the files in a container
	partial   string      // why the files in it are not read
}

func byPath(a, b file) int { return strings.Compare(a.path, b.path) }

// prepare lists the folder and compares it with the sink.
func (s *folderSync) prepare(ctx context.Context) error {
	known, err := s.Sink.Known(ctx, s.root)
	if err != nil {
		return fmt.Errorf("listing the stored documents of %s: %w", s.root.Name, err)
	}
	s.known = known
	if pages, ok := s.fsys.(webPages); ok {
		s.addPages(pages)
	} else if err := s.walk(ctx, ".", nil); err != nil {
		return err
	}
	listed := s.files
	if err := s.openContainers(ctx); err != nil {
		return err
	}
	slices.SortFunc(s.files, byPath)
	seen := make(map[string]bool, len(s.files))
	for _, f := range s.files {
		seen[f.path] = true
	}
	inFolder := maps.Clone(seen)
	for _, f := range listed {
		inFolder[f.path] = true // includes archives
	}
	s.remembered.mu.Lock()
	maps.DeleteFunc(s.remembered.files, func(key [2]string, _ stamp) bool { return key[0] == s.root.Name && !inFolder[key[1]] })
	s.remembered.mu.Unlock()
	s.gone, s.moved = make(map[string]string), make(map[string]bool)
	for _, p := range slices.Sorted(maps.Keys(known)) {
		if !seen[p] && !s.isBelowBroken(p) {
			// Renaming a document that would be read again saves nothing.
			if _, ok := s.gone[known[p].Digest]; !ok && !s.reader.outdated(known[p].Meta[ReaderKey]) {
				s.gone[known[p].Digest] = p
			}
		}
	}
	return nil
}

func (s *folderSync) isBelowBroken(p string) bool {
	return slices.ContainsFunc(s.broken, func(dir string) bool { return strings.HasPrefix(p, dir+"/") })
}

// addPages lists the pages of a web site.
func (s *folderSync) addPages(pages webPages) {
	for p := range pages.Pages() {
		if s.exclude.matchBelow("", p.Path) || !s.isIncluded(p.Path) {
			continue
		}
		f := file{path: p.Path, size: p.Size, modified: p.Fetched, err: p.Err}
		if f.err == nil {
			f.err = s.reader.refuse(p.Path, p.Size)
		}
		s.files = append(s.files, f)
	}
}

// walk lists the files below dir. Only the root must be readable.
func (s *folderSync) walk(ctx context.Context, dir string, rules ignoreRules) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := fs.ReadDir(s.fsys, dir)
	if err != nil {
		if dir == "." {
			return fmt.Errorf("listing the folder %s: %w", s.root.Path, plainError(err))
		}
		s.broken = append(s.broken, dir)
		err = fmt.Errorf("the folder cannot be listed (%w); its stored documents are kept", plainError(err))
		s.files = append(s.files, file{path: dir, err: err})
		return nil
	}
	rules = rules.withFolder(s.fsys, dir)
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if s.isLeftOut(p, e.IsDir(), rules) {
			continue
		}
		if e.IsDir() {
			if err := s.walk(ctx, p, rules); err != nil {
				return err
			}
			continue
		}
		if archive.Is(p) || s.isIncluded(p) {
			f := s.inspect(p, e)
			f.rules = rules
			s.files = append(s.files, f)
		}
	}
	return nil
}

// isLeftOut reports whether a file or folder is hidden, ignored or excluded, or a program's own:
// "~$" begins the names of Office's lock files.
func (s *folderSync) isLeftOut(p string, dir bool, rules ignoreRules) bool {
	name := path.Base(p)
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "~$") || strings.EqualFold(name, "desktop.ini") ||
		rules.excludes(p, dir) || s.exclude.excludes(p, dir)
}

// rulesFor returns the ignore rules for a file. The error is [fs.ErrNotExist] if a walk would not
// reach the file.
func (s *folderSync) rulesFor(name string) (rules ignoreRules, err error) {
	at, parts := ".", strings.Split(name, "/")
	for i, part := range parts {
		rules = rules.withFolder(s.fsys, at)
		at = path.Join(at, part)
		above := i < len(parts)-1
		info, err := fs.Lstat(s.fsys, at)
		if s.isLeftOut(at, above, rules) || above && err == nil && !info.IsDir() {
			return nil, fs.ErrNotExist
		}
	}
	if !archive.Is(name) && !s.isIncluded(name) {
		return nil, fs.ErrNotExist
	}
	return rules, nil
}

// isIncluded reports whether the patterns include a file or a folder above it.
func (s *folderSync) isIncluded(p string) bool {
	return len(s.Include) == 0 || s.include.matchBelow("", p)
}

// inspect decides from its directory entry whether a file is read.
func (s *folderSync) inspect(p string, e fs.DirEntry) file {
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
		f.err = s.reader.refuse(p, f.size)
	}
	return f
}
