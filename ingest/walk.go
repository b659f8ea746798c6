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

// A listing is the list of the files in a folder, with the rules by which files are left out.
type listing struct {
	root             Root
	fsys             fs.FS
	reader           *Reader
	all              bool // no patterns to include were given
	include, exclude ignoreRules

	files  []file   // in path order
	broken []string // folders that could not be listed
}

func byPath(a, b file) int { return strings.Compare(a.path, b.path) }

// prepare lists the folder and compares it with the sink.
func (s *folderSync) prepare(ctx context.Context) error {
	known, err := s.Sink.StoredDocuments(ctx, s.root)
	if err != nil {
		return fmt.Errorf("listing the stored documents of %s: %w", s.root.Name, err)
	}
	s.known = known
	if pages, ok := s.fsys.(webPages); ok {
		s.listing.addPages(pages)
	} else if err := s.listing.walk(ctx, ".", nil); err != nil {
		return err
	}
	listed := s.listing.files
	if err := s.openContainers(ctx); err != nil {
		return err
	}
	slices.SortFunc(s.listing.files, byPath)
	seen := make(map[string]bool, len(s.listing.files))
	for _, f := range s.listing.files {
		seen[f.path] = true
	}
	inFolder := maps.Clone(seen)
	for _, f := range listed {
		inFolder[f.path] = true // includes archives
	}
	s.remembered.keepOnly(s.root, inFolder)
	s.gone, s.moved = make(map[string]string), make(map[string]bool)
	for _, p := range slices.Sorted(maps.Keys(known)) {
		if !seen[p] && !s.listing.isBelowBroken(p) {
			// Renaming a document that would be read again saves nothing.
			if _, ok := s.gone[known[p].Digest]; !ok && !s.reader.outdated(known[p].Meta[ReaderKey]) {
				s.gone[known[p].Digest] = p
			}
		}
	}
	return nil
}

func (l *listing) isBelowBroken(p string) bool {
	return slices.ContainsFunc(l.broken, func(dir string) bool { return strings.HasPrefix(p, dir+"/") })
}

// addPages lists the pages of a web site.
func (l *listing) addPages(pages webPages) {
	for p := range pages.Pages() {
		if l.exclude.matchBelow("", p.Path) || !l.isIncluded(p.Path) {
			continue
		}
		f := file{path: p.Path, size: p.Size, modified: p.Fetched, err: p.Err}
		if f.err == nil {
			f.err = l.reader.refuse(p.Path, p.Size)
		}
		l.files = append(l.files, f)
	}
}

// walk lists the files below dir. Only the root must be readable.
func (l *listing) walk(ctx context.Context, dir string, rules ignoreRules) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := fs.ReadDir(l.fsys, dir)
	if err != nil {
		if dir == "." {
			return fmt.Errorf("listing the folder %s: %w", l.root.Path, plainError(err))
		}
		l.broken = append(l.broken, dir)
		err = fmt.Errorf("the folder cannot be listed (%w); its stored documents are kept", plainError(err))
		l.files = append(l.files, file{path: dir, err: err})
		return nil
	}
	rules = rules.withFolder(l.fsys, dir)
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if l.isLeftOut(p, e.IsDir(), rules) {
			continue
		}
		if e.IsDir() {
			if err := l.walk(ctx, p, rules); err != nil {
				return err
			}
			continue
		}
		if archive.Is(p) || l.isIncluded(p) {
			f := l.inspect(p, e)
			f.rules = rules
			l.files = append(l.files, f)
		}
	}
	return nil
}

// isLeftOut reports whether a file or folder is hidden, ignored or excluded, or belongs to a
// program: the names of Office's lock files begin with "~$".
func (l *listing) isLeftOut(p string, dir bool, rules ignoreRules) bool {
	name := path.Base(p)
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "~$") || strings.EqualFold(name, "desktop.ini") ||
		rules.excludes(p, dir) || l.exclude.excludes(p, dir)
}

// rulesFor returns the ignore rules for a file. The error is [fs.ErrNotExist] if a walk would not
// reach the file.
func (l *listing) rulesFor(name string) (rules ignoreRules, err error) {
	at, parts := ".", strings.Split(name, "/")
	for i, part := range parts {
		rules = rules.withFolder(l.fsys, at)
		at = path.Join(at, part)
		above := i < len(parts)-1
		info, err := fs.Lstat(l.fsys, at)
		if l.isLeftOut(at, above, rules) || above && err == nil && !info.IsDir() {
			return nil, fs.ErrNotExist
		}
	}
	if !archive.Is(name) && !l.isIncluded(name) {
		return nil, fs.ErrNotExist
	}
	return rules, nil
}

// isIncluded reports whether the patterns include a file or a folder above it.
func (l *listing) isIncluded(p string) bool {
	return l.all || l.include.matchBelow("", p)
}

// inspect decides whether to read a file, by its directory entry.
func (l *listing) inspect(p string, e fs.DirEntry) file {
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
		f.err = l.reader.refuse(p, f.size)
	}
	return f
}
