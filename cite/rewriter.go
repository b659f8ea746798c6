package cite

import (
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
	// Source says where it comes from: an address or a file name. Documents
	// with the same source share a number; one without is a source of its own.
	Source string `json:"source"`
	Title  string `json:"title"`
}

// A Profile says which forms of markers are understood.
type Profile = marker.Profile

// The profiles.
const (
	// Default understands the seed form [1](id=3) with liberties, bare
	// brackets like [3] or [1, 2-4], and 【3】.
	Default = marker.Default
	// Strict understands the seed form alone.
	Strict = marker.Strict
)

// ProfileByName gives the profile called "default" or "strict".
func ProfileByName(name string) (Profile, bool) {
	switch name {
	case "default":
		return Default, true
	case "strict":
		return Strict, true
	}
	return 0, false
}

// A NumberedSource is one entry of the reference list.
type NumberedSource struct {
	Number int `json:"number"`
	// Source and Title are those of the first cited document.
	Source string `json:"source"`
	Title  string `json:"title"`
	// IDs are all documents cited under the number, in order of first citation.
	IDs []int `json:"ids"`
}

// A Rewriter turns the markers of one text into numbered citations while the
// text streams through it. Numbers are given 1, 2, 3 … by first citation of a
// source and never change. Everything outside markers passes unchanged, but for
// the spaces before markers that leave nothing behind.
type Rewriter struct {
	documents []Document
	style     Style
	scanner   *marker.Scanner

	numbers map[string]int // by source
	sources []NumberedSource

	out     []byte       // what is being appended to, during a call
	written int          // length of the rewritten text, less what out holds
	mark    []byte       // scratch
	record  bool         // keep uses and code
	neutral *neutralizer // what all text goes through; nil for none
	uses    []use
	code    []span // what stands in code spans and fenced blocks of the rewritten text
	inCode  bool   // the last token was code

	// The end of the text so far. Spaces are held until it is known whether
	// a marker that shows nothing takes them away.
	spaces int
	run    run
	before int   // spaces before a silent run
	shown  []int // numbers printed in the run
}

// A run is a sequence of markers with nothing but spaces between them.
type run uint8

const (
	runNone    run = iota
	runSilent      // has printed nothing yet
	runPrinted     // has printed something
)

// A use is one citation of a document.
type use struct {
	number int
	id     int
	// start and end are the byte range of the printed reference in the
	// rewritten text; empty where the number had been printed in the run before.
	start, end int
}

// NewRewriter gives a rewriter for one text that cites the documents, whose
// ids are their places from 1 on.
func NewRewriter(documents []Document, s Style, p Profile) *Rewriter {
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
	return &Rewriter{
		documents: documents,
		style:     s,
		scanner:   marker.NewScanner(p, len(documents)),
		numbers:   map[string]int{},
	}
}

// Append takes the next piece of the text, cut anywhere, appends to dst what is
// decided by now, and gives the extended slice.
func (r *Rewriter) Append(dst, piece []byte) []byte {
	r.start(dst)
	r.scanner.Feed(piece, r.take)
	return r.stop()
}

// Close ends the text and appends what was held back. The rewriter takes no
// more text then; what it counted stays.
func (r *Rewriter) Close(dst []byte) []byte {
	r.start(dst)
	r.scanner.Close(r.take)
	r.settle(-1)
	if r.neutral != nil {
		r.out = r.neutral.close(r.out)
	}
	return r.stop()
}

func (r *Rewriter) start(dst []byte) {
	r.out = dst
	r.written -= len(dst)
}

func (r *Rewriter) stop() []byte {
	out := r.out
	r.out = nil
	r.written += len(out)
	return out
}

// offset is the length of the rewritten text so far.
func (r *Rewriter) offset() int { return r.written + len(r.out) }

// Held says how many characters are held back.
func (r *Rewriter) Held() int { return r.scanner.Held() + r.before + r.spaces }

// Sources gives the sources cited so far, by number.
func (r *Rewriter) Sources() []NumberedSource {
	sources := slices.Clone(r.sources)
	for i := range sources {
		sources[i].IDs = slices.Clone(sources[i].IDs)
	}
	return sources
}

// List gives the reference list of the sources cited so far, in the style.
func (r *Rewriter) List() string {
	refs := make([]Reference, len(r.sources))
	for i, s := range r.sources {
		refs[i] = r.reference(s)
	}
	return string(r.style.List(nil, refs))
}

func (r *Rewriter) reference(s NumberedSource) Reference {
	return Reference{Number: s.Number, Document: r.documents[s.IDs[0]-1]}
}

// take takes what the scanner found.
func (r *Rewriter) take(t marker.Token) {
	if t.Marker {
		r.inCode = false
		r.cite(t.IDs)
		return
	}
	text := t.Text
	if t.Code {
		c, _ := utf8.DecodeRune(text)
		r.settle(c)
		if r.neutral != nil && !r.inCode {
			r.out = r.neutral.before(r.out, text[0])
		}
		r.inCode = true
		start := r.offset()
		r.write(text)
		if r.record {
			r.coded(span{start, r.offset()})
		}
		return
	}
	r.inCode = false
	lead := 0
	for lead < len(text) && text[lead] == ' ' {
		lead++
	}
	r.spaces += lead
	if text = text[lead:]; len(text) == 0 {
		return
	}
	if r.spaces > 0 || r.run != runNone {
		c, _ := utf8.DecodeRune(text)
		r.settle(c)
	}
	tail := len(text)
	for text[tail-1] == ' ' {
		tail--
	}
	r.spaces = len(text) - tail
	r.write(text[:tail])
}

// write writes text.
func (r *Rewriter) write(text []byte) {
	if r.neutral == nil {
		r.out = append(r.out, text...)
		return
	}
	r.out = r.neutral.append(r.out, text)
}

// coded records code, with what stands directly before it as one.
func (r *Rewriter) coded(s span) {
	if n := len(r.code); n > 0 && r.code[n-1].end == s.start {
		r.code[n-1].end = s.end
		return
	}
	r.code = append(r.code, s)
}

// settle ends a run and writes the spaces held. next is the character behind
// them, negative at the end of the text.
func (r *Rewriter) settle(next rune) {
	if r.run == runSilent && r.spaces == 0 && next >= 0 && !marker.Closes(next) {
		r.space(r.before)
	}
	r.space(r.spaces)
	r.spaces, r.before, r.run = 0, 0, runNone
	r.shown = r.shown[:0]
}

func (r *Rewriter) space(n int) {
	const blank = "                                "
	for ; n > len(blank); n -= len(blank) {
		r.write([]byte(blank))
	}
	r.write([]byte(blank[:n]))
}

// cite records the citations of one marker and prints their numbers.
func (r *Rewriter) cite(ids []int) {
	printed := false
	for _, id := range ids {
		d := r.documents[id-1]
		if r.style.Exclude(d) {
			continue
		}
		s := r.source(d)
		u := use{number: s.Number, id: id, start: r.offset(), end: r.offset()}
		if !slices.Contains(r.shown, s.Number) {
			r.shown = append(r.shown, s.Number)
			r.mark = r.style.Inline(r.mark[:0], r.reference(*s))
			if len(r.mark) > 0 {
				if !printed {
					printed = true
					r.open()
				}
				if r.neutral != nil {
					r.out = r.neutral.before(r.out, r.mark[0])
				}
				u.start = r.offset()
				if r.neutral != nil {
					r.out = r.neutral.print(r.out, r.mark)
				} else {
					r.out = append(r.out, r.mark...)
				}
				u.end = r.offset()
			}
		}
		if r.record {
			r.uses = append(r.uses, u)
		}
	}
	if printed {
		return
	}
	if r.run == runNone {
		r.run, r.before = runSilent, r.spaces
	}
	r.spaces = 0
}

// open writes the spaces that belong before a marker that prints something.
func (r *Rewriter) open() {
	if r.run == runSilent {
		r.spaces = r.before
	}
	r.space(r.spaces)
	r.spaces, r.before, r.run = 0, 0, runPrinted
}

// source gives the source of a document, under the next number if it is new.
func (r *Rewriter) source(d Document) *NumberedSource {
	key := d.Source
	if key == "" {
		key = "\x00" + strconv.Itoa(d.ID) // a source of its own
	}
	n, ok := r.numbers[key]
	if !ok {
		n = len(r.sources) + 1
		r.numbers[key] = n
		r.sources = append(r.sources, NumberedSource{Number: n, Source: d.Source, Title: d.Title})
	}
	s := &r.sources[n-1]
	if !slices.Contains(s.IDs, d.ID) {
		s.IDs = append(s.IDs, d.ID)
	}
	return s
}
