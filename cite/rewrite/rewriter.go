// Package rewrite turns the citation markers in a text into numbers while the
// text streams through it.
//
// A [Rewriter] takes documents, a [Style] and a text in pieces. It returns the
// text with numbers, given by first use of a source, and the list of sources.
// Package marker decides what counts as a marker.
package rewrite

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ibid/cite/marker"
)

// A Document is something that can be cited.
type Document struct {
	// ID is the document's 1-based position, by which the text cites it.
	ID int `json:"id"`
	// Source is an address or a file name. Documents with the same source share a number. A
	// document without a source is a separate source.
	Source string `json:"source"`
	Title  string `json:"title"`
	// Metadata is passed through to the source.
	Metadata map[string]any `json:"metadata,omitempty"`
}

// A Source is one entry of the reference list.
type Source struct {
	Number int `json:"number"`
	// Source, Title and Metadata come from the first cited document.
	Source   string         `json:"source"`
	Title    string         `json:"title"`
	Metadata map[string]any `json:"metadata,omitempty"`
	// IDs are all documents cited under the number, in order of first citation.
	IDs []int `json:"ids"`
}

// A Span is a byte range of a text.
type Span struct{ Start, End int }

// A Use is one citation of a document.
type Use struct {
	Number int
	ID     int
	First  bool // use of its source
	// Span is the range of the printed number in the rewritten text, empty if the same
	// number was printed directly before.
	Span
}

// A Rewriter turns the markers of one text into numbered citations. Numbers are 1, 2, 3 … by
// first citation of a source, except reserved ones, and never change. Text outside markers is
// unchanged, except that spaces before markers that print nothing are dropped.
type Rewriter struct {
	documents []Document
	style     Style
	scanner   *marker.Scanner
	take      func(marker.Token) // rewrite

	numbers map[string]int // by source
	sources []Source       // by number
	highest int            // largest number that was not reserved

	out     []byte // the caller's slice, during a call
	written int    // length of the rewritten text without out
	uses    []Use
	code    []Span
	number  []byte // the last one printed

	// The end of the text so far. Spaces are held until it is known whether they are
	// dropped with a marker that prints nothing.
	spaces       int
	group        group
	spacesBefore int   // spaces before a silent group
	printed      []int // numbers printed in the group
}

// A group is a sequence of markers with only spaces between them.
type group uint8

const (
	groupNone    group = iota
	groupSilent        // has printed nothing yet
	groupPrinted       // has printed a number
)

// New returns a rewriter for one text that cites the documents, whose ids are their 1-based
// positions.
func New(documents []Document, s Style, p marker.Profile) *Rewriter {
	documents = slices.Clone(documents)
	for i := range documents {
		d := &documents[i]
		d.ID = i + 1
		if strings.TrimSpace(d.Source) == "" {
			d.Source = ""
		}
		if strings.TrimSpace(d.Title) == "" {
			d.Title = ""
		}
	}
	scanner := marker.NewScanner(p, len(documents))
	if s.Exclude != nil {
		scanner.Excluded = func(id int) bool { return s.Exclude(documents[id-1]) }
	}
	r := &Rewriter{documents: documents, style: s, scanner: scanner, numbers: map[string]int{}}
	r.take = r.rewrite
	return r
}

// Reserve assigns a number to the source of a document before it is cited.
func (r *Rewriter) Reserve(id, number int) { r.numbers[keyOf(r.documents[id-1])] = number }

// Append rewrites the next piece of the text, cut anywhere, and appends the text decided so far
// to dst.
func (r *Rewriter) Append(dst, piece []byte) []byte {
	r.begin(dst)
	r.scanner.Feed(piece, r.take)
	return r.end()
}

// Close ends the text and appends the text held back. Only results may be read afterwards.
func (r *Rewriter) Close(dst []byte) []byte {
	r.begin(dst)
	r.scanner.Close(r.take)
	r.endGroup(-1)
	return r.end()
}

func (r *Rewriter) begin(dst []byte) {
	r.out = dst
	r.written -= len(dst)
}

func (r *Rewriter) end() []byte {
	out := r.out
	r.out = nil
	r.written += len(out)
	return out
}

// offset returns the length of the rewritten text so far.
func (r *Rewriter) offset() int { return r.written + len(r.out) }

// Held returns the number of characters held back.
func (r *Rewriter) Held() int { return r.scanner.Held() + r.spacesBefore + r.spaces }

// Uses returns the citations so far. The caller must not change them.
func (r *Rewriter) Uses() []Use { return r.uses }

// Code returns the code spans and fenced blocks of the rewritten text so far, including fences.
// The caller must not change them.
func (r *Rewriter) Code() []Span { return r.code }

// Sources returns the sources cited so far, by number.
func (r *Rewriter) Sources() []Source {
	sources := append([]Source{}, r.sources...)
	for i := range sources {
		sources[i].IDs = slices.Clone(sources[i].IDs)
	}
	return sources
}

// List returns the reference list of the sources cited so far, in the style.
func (r *Rewriter) List() string { return r.style.List(r.sources) }

// rewrite rewrites one token.
func (r *Rewriter) rewrite(t marker.Token) {
	switch {
	case t.Marker:
		r.citeSources(t.IDs)
	case t.Boundary:
		r.endGroup(0)
	case t.Code:
		r.writeCode(t)
	default:
		r.writeText(t.Text)
	}
}

func (r *Rewriter) writeCode(t marker.Token) {
	c, _ := utf8.DecodeRune(t.Text)
	r.endGroup(c)
	if t.Begins {
		r.code = append(r.code, Span{Start: r.offset()})
	}
	r.out = append(r.out, t.Text...)
	r.code[len(r.code)-1].End = r.offset()
}

func (r *Rewriter) writeText(text []byte) {
	lead := 0
	for lead < len(text) && text[lead] == ' ' {
		lead++
	}
	r.spaces += lead
	if text = text[lead:]; len(text) == 0 {
		return
	}
	if r.spaces > 0 || r.group != groupNone {
		c, _ := utf8.DecodeRune(text)
		r.endGroup(c)
	}
	tail := len(text)
	for text[tail-1] == ' ' {
		tail--
	}
	r.spaces = len(text) - tail
	r.out = append(r.out, text[:tail]...)
}

// endGroup ends a group and writes the spaces held. next is the character after them, negative
// at the end of the text.
func (r *Rewriter) endGroup(next rune) {
	if r.group == groupSilent && r.spaces == 0 && next >= 0 && !marker.IsClosing(next) {
		r.writeSpaces(r.spacesBefore)
	}
	r.writeSpaces(r.spaces)
	r.spaces, r.spacesBefore, r.group = 0, 0, groupNone
	r.printed = r.printed[:0]
}

func (r *Rewriter) writeSpaces(n int) { r.out = append(r.out, strings.Repeat(" ", n)...) }

// citeSources records the citations of one marker and prints their numbers.
func (r *Rewriter) citeSources(ids []int) {
	printed := false
	for _, id := range ids {
		d := r.documents[id-1]
		if r.style.Exclude != nil && r.style.Exclude(d) {
			continue
		}
		s, first := r.source(d)
		u := Use{Number: s.Number, ID: id, First: first, Span: Span{r.offset(), r.offset()}}
		if !slices.Contains(r.printed, s.Number) {
			r.printed = append(r.printed, s.Number)
			if number := r.inlineNumber(*s); len(number) > 0 {
				if !printed {
					printed = true
					r.openGroup()
				}
				u.Start = r.offset()
				r.out = append(r.out, number...)
				u.End = r.offset()
			}
		}
		r.uses = append(r.uses, u)
	}
	if printed {
		return
	}
	if r.group == groupNone {
		r.group, r.spacesBefore = groupSilent, r.spaces
	}
	r.spaces = 0
}

// inlineNumber returns the number of a source as the text shows it. The next call overwrites
// the result.
func (r *Rewriter) inlineNumber(s Source) []byte {
	if r.number = r.number[:0]; r.style.Inline != nil {
		r.number = r.style.Inline(r.number, s)
	}
	return r.number
}

// openGroup writes the spaces that belong before a marker that prints a number.
func (r *Rewriter) openGroup() {
	if r.group == groupSilent {
		r.spaces = r.spacesBefore
	}
	r.writeSpaces(r.spaces)
	r.spaces, r.spacesBefore, r.group = 0, 0, groupPrinted
}

// source returns the source of a document, assigns the next number to a new one, and reports
// whether it is new.
func (r *Rewriter) source(d Document) (s *Source, first bool) {
	key := keyOf(d)
	n, ok := r.numbers[key]
	if !ok {
		taken := slices.Collect(maps.Values(r.numbers))
		for n = r.highest + 1; slices.Contains(taken, n); n++ {
		}
		r.numbers[key], r.highest = n, n
	}
	i, cited := slices.BinarySearchFunc(r.sources, n, func(s Source, n int) int { return s.Number - n })
	if !cited {
		r.sources = slices.Insert(r.sources, i, Source{Number: n, Source: d.Source, Title: d.Title, Metadata: d.Metadata})
	}
	s = &r.sources[i]
	if !slices.Contains(s.IDs, d.ID) {
		s.IDs = append(s.IDs, d.ID)
	}
	return s, !cited
}

// keyOf returns a key that is equal for documents of the same source only.
func keyOf(d Document) string {
	if d.Source == "" {
		return "\x00" + strconv.Itoa(d.ID)
	}
	return d.Source
}
