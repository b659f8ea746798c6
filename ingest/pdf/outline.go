package pdf

import (
	"strings"

	pdf "github.com/ledongthuc/pdf"
)

// Limits of an outline: more is an attack.
const (
	maxEntries = 10_000
	maxDepth   = 32
)

// An outlineReader reads bookmarks.
type outlineReader struct {
	root    pdf.Value
	numbers map[string]int // of pages
	named   map[string]pdf.Value
	visited int
	out     []entry
}

// outline returns the bookmarks of a file. Of a damaged one, the first count.
func outline(root pdf.Value, pages []pdf.Page) []entry {
	r := outlineReader{root: root, numbers: make(map[string]int, len(pages))}
	for i, p := range pages {
		r.numbers[p.V.String()] = i + 1
	}
	defer func() { _ = recover() }() // damage in it costs headings, not the text
	r.read(root.Key("Outlines"), 1)
	return r.out
}

func (r *outlineReader) read(parent pdf.Value, level int) {
	for e := parent.Key("First"); e.Kind() == pdf.Dict && level <= maxDepth && r.visited < maxEntries; e = e.Key("Next") {
		r.visited++
		title := strings.Join(strings.Fields(e.Key("Title").Text()), " ")
		r.out = append(r.out, entry{Title: title, Level: level, Page: r.page(e)})
		r.read(e, level+1)
	}
}

// page returns the number of the page that a bookmark leads to; 0 for none.
func (r *outlineReader) page(entry pdf.Value) int {
	dest := entry.Key("Dest")
	if dest.Kind() == pdf.Null {
		dest = entry.Key("A").Key("D")
	}
	switch dest.Kind() {
	case pdf.Name:
		dest = r.root.Key("Dests").Key(dest.Name())
	case pdf.String:
		if r.named == nil {
			r.named = make(map[string]pdf.Value)
			r.readNames(r.root.Key("Names").Key("Dests"), 0)
		}
		dest = r.named[dest.RawString()]
	}
	if dest.Kind() == pdf.Dict {
		dest = dest.Key("D")
	}
	return r.numbers[dest.Index(0).String()]
}

// readNames reads a tree of named places.
func (r *outlineReader) readNames(tree pdf.Value, depth int) {
	if r.visited++; depth > maxDepth || r.visited > 2*maxEntries {
		return
	}
	for names, i := tree.Key("Names"), 0; i+1 < names.Len(); i += 2 {
		r.named[names.Index(i).RawString()] = names.Index(i + 1)
	}
	for kids, i := tree.Key("Kids"), 0; i < kids.Len(); i++ {
		r.readNames(kids.Index(i), depth+1)
	}
}
