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

// PlaceAt returns the heading path and the anchor of the section that contains the given byte
// offset in the document's text.
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

// PageAt returns the page that contains the given byte offset in the document's text, or 0 if the
// document has no pages.
func (p *Passage) PageAt(offset int) int {
	page := p.Page
	for _, at := range p.Pages {
		if at.Start <= offset {
			page = at.Number
		}
	}
	return page
}

// setPlaces sets the places and pages of the passages, which all belong to one document.
func setPlaces(passages []*Passage, o Outline) {
	for _, p := range passages {
		for _, page := range o.Pages {
			if page.Start < p.End && p.Start < page.End {
				p.Pages = append(p.Pages, page)
			}
		}
	}
	passages = slices.DeleteFunc(passages, (*Passage).isRow)
	slices.SortFunc(passages, func(p, q *Passage) int { return p.Start - q.Start })
	var trail ingest.Trail
	for i, s := range o.Sections {
		trail.Enter(s)
		end := math.MaxInt
		if i+1 < len(o.Sections) {
			end = o.Sections[i+1].Start
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

// isRow reports whether the passage is one row of a table: its anchor names a single row, and its
// heading is empty or the name of a sheet.
func (p *Passage) isRow() bool {
	sheet, rows, ok := ingest.RowAnchor(p.Anchor)
	return ok && (p.Heading == "" || sheet != "") && !strings.Contains(rows, "-")
}

// An Outline is the part of a document that is stored together with its text.
type Outline struct {
	Sections []ingest.Section `json:"sections,omitempty"`
	Pages    []ingest.Page    `json:"pages,omitempty"`
}

// maxOutlines is the largest number of sections and pages in the cache, about 10 MB.
const maxOutlines = 1 << 16

// outlines caches the outlines of recently found documents. Reading them takes as long as a search.
type outlines struct {
	mu        sync.Mutex
	byVersion map[Version]Outline
	count     int
}

func (o *outlines) get(v Version) (outline Outline, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	outline, ok = o.byVersion[v]
	return outline, ok
}

func (o *outlines) put(v Version, outline Outline) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(outline.Sections) + len(outline.Pages) + 1
	if o.byVersion == nil || o.count+n > maxOutlines {
		o.byVersion, o.count = make(map[Version]Outline), 0
	}
	o.byVersion[v] = outline
	o.count += n
}

// forget empties the cache after a change by this process, because the cache must not keep deleted
// documents, and because a server that lost changes may reuse their versions.
func (o *outlines) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byVersion, o.count = nil, 0
}
