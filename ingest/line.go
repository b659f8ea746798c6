package ingest

import (
	"cmp"
	"slices"
	"strings"
)

// LineAt gives the 1-based line of the file in which the byte of the text at
// the offset stands; 0 when it is not known.
func (doc *Document) LineAt(offset int) int {
	counter := lineCounter{doc: doc}
	return counter.at(offset)
}

// A lineCounter finds the lines of rising offsets, counting each line end of
// the text once.
type lineCounter struct {
	doc   *Document
	known Line // the last one found
}

func (c *lineCounter) at(offset int) int {
	lines := c.doc.Lines
	i, found := slices.BinarySearchFunc(lines, offset, func(l Line, at int) int { return cmp.Compare(l.Start, at) })
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	if c.known.Start < lines[i].Start || c.known.Start > offset || c.known.Number == 0 {
		c.known = lines[i]
	}
	c.known = Line{offset, c.known.Number + strings.Count(c.doc.Text[c.known.Start:offset], "\n")}
	return c.known.Number
}
