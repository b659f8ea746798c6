package pdf

import (
	"strings"

	pdf "github.com/ledongthuc/pdf"
)

// Limits of an outline and of a tree of names: more is an attack.
const (
	maxEntries = 10_000
	maxDepth   = 32
)

// An entry is a bookmark.
type entry struct {
	Title string
	Level int // 1 is the outermost
}

// outline returns the bookmarks of a file. Of a damaged one, the first count.
func outline(root pdf.Value) (entries []entry) {
	defer func() { _ = recover() }() // damage in it costs headings, not the text
	var read func(parent pdf.Value, level int)
	read = func(parent pdf.Value, level int) {
		for e := parent.Key("First"); e.Kind() == pdf.Dict && level <= maxDepth && len(entries) < maxEntries; e = e.Key("Next") {
			entries = append(entries, entry{strings.Join(strings.Fields(e.Key("Title").Text()), " "), level})
			read(e, level+1)
		}
	}
	read(root.Key("Outlines"), 1)
	return entries
}
