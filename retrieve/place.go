package retrieve

import (
	"math"
	"slices"
	"strings"
	"sync"

	"ibid/ingest"
)

// A Place is the section that a part of a passage is in.
type Place struct {
	Start   int    // byte offset in the document's text
	Heading string // path of headings, as in [ingest.Chunk]
	Anchor  string // as in [ingest.Section]
}

// PlaceAt returns the heading path and the anchor of the section that contains
// the byte at the offset of the document's text.
func (p *Passage) PlaceAt(offset int) (heading, anchor string) {
	heading, anchor = p.Heading, p.Anchor
	for _, at := range p.Places {
		if at.Start > offset {
			break
		}
		heading, anchor = at.Heading, at.Anchor
	}
	return heading, anchor
}

// place sets the places of one document's passages.
func place(passages []*Passage, sections []ingest.Section) {
	passages = slices.DeleteFunc(passages, (*Passage).isRow)
	slices.SortFunc(passages, func(p, q *Passage) int { return p.Start - q.Start })
	var trail ingest.Trail
	for i, s := range sections {
		trail.Enter(s)
		end := math.MaxInt
		if i+1 < len(sections) {
			end = sections[i+1].Start
		}
		for len(passages) > 0 && passages[0].End <= s.Start {
			passages = passages[1:]
		}
		for _, p := range passages {
			if p.Start >= end {
				break
			}
			if s.Start < p.End {
				p.Places = append(p.Places, Place{s.Start, strings.Join(trail.Path(), ingest.HeadingSeparator), s.Anchor})
			}
		}
	}
}

// isRow reports whether the passage is one row of a table, a section without a
// heading or with that of its sheet: its anchor is its place.
func (p *Passage) isRow() bool {
	sheet, rows, ok := ingest.RowAnchor(p.Anchor)
	return ok && (p.Heading == "" || sheet != "") && !strings.Contains(rows, "-")
}

// maxOutlines is how many sections are cached: about ten megabytes.
const maxOutlines = 1 << 16

// outlines cache the sections of recently found documents. Reading them takes as
// long as a search.
type outlines struct {
	mu    sync.Mutex
	of    map[Version][]ingest.Section
	count int
}

func (o *outlines) get(v Version) (sections []ingest.Section, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sections, ok = o.of[v]
	return sections, ok
}

func (o *outlines) put(v Version, sections []ingest.Section) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(sections) + 1
	if _, ok := o.of[v]; ok {
		return
	}
	if o.of == nil || o.count+n > maxOutlines {
		o.of, o.count = make(map[Version][]ingest.Section), 0
	}
	if n <= maxOutlines {
		o.of[v] = sections
		o.count += n
	}
}

// forget is called after every change, so that nothing deleted stays cached.
func (o *outlines) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of, o.count = nil, 0
}
