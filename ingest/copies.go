package ingest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
)

// A copier has equal files of a sync read once. Files of one size may be equal, so
// what was read is kept until the last of that size, or until it is too much.
type copier struct {
	mu    sync.Mutex
	left  map[int64]int // files that are not read yet, by size
	reads map[copyKey]*firstRead
	held  int // bytes of text
}

type copyKey struct {
	size           int64
	digest, ending string
}

// A firstRead is the reading of the first of some equal files.
type firstRead struct {
	path string
	read func() reading // once
}

// expect says which files will be read.
func (c *copier) expect(files []file) {
	c.left, c.reads = make(map[int64]int), make(map[copyKey]*firstRead)
	for _, f := range files {
		c.left[f.size]++
	}
}

// pass says that a file was read, or needs not be.
func (c *copier) pass(f file) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left[f.size]--; c.left[f.size] <= 0 {
		maps.DeleteFunc(c.reads, func(k copyKey, _ *firstRead) bool { return k.size == f.size })
	}
}

// read reads a file, unless an equal one was read or is being read: then it is a
// copy of that.
func (c *copier) read(f file, digest string, read func() reading) reading {
	key := copyKey{f.size, digest, endingOf(f.path)}
	c.mu.Lock()
	first := c.reads[key]
	if first == nil {
		first = &firstRead{path: f.path, read: sync.OnceValue(read)}
		if c.left[f.size] > 1 {
			c.reads[key] = first
		}
	}
	c.mu.Unlock()
	r := first.read()
	if first.path != f.path {
		return r.copyFor(f, first.path)
	}
	if r.doc != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.held += len(r.doc.Text); c.held > maxAheadBytes {
			c.held = 0
			clear(c.reads)
		}
	}
	return r
}

// copyFor returns the reading for a copy of the file at original.
func (r reading) copyFor(f file, original string) reading {
	if r.doc == nil {
		return r
	}
	doc := *r.doc
	doc.Path, doc.Meta = f.path, maps.Clone(doc.Meta)
	switch doc.Title {
	case titleOf(original):
		doc.Title = titleOf(f.path)
	case path.Base(original):
		doc.Title = path.Base(f.path)
	}
	doc.ID = doc.Root + "/" + f.path
	r.doc, r.chunks, r.copied = &doc, slices.Clone(r.chunks), true
	for i := range r.chunks {
		r.chunks[i].ID, r.chunks[i].Document = fmt.Sprintf("%s#%d", doc.ID, r.chunks[i].Ordinal), doc.ID
	}
	return r
}
