package format

import (
	"regexp"
	"strings"
)

// A lineReader reads a markup language line by line: it gathers the lines of
// paragraphs and list items, which a reader for the language finds.
type lineReader struct {
	b         *builder
	doc       *Document
	lines     []string
	at        int                      // index of the current line
	skipped   int                      // lines of the file before the first of lines
	inline    func(text string) string // removes the markup from a block
	slugs     map[string]int
	paragraph []string
	began     int // index of the paragraph's first line
	item      listItem
}

func newLineReader(doc *Document, src string, inline func(text string) string) lineReader {
	return lineReader{b: new(builder), doc: doc, lines: strings.Split(src, "\n"), inline: inline, slugs: make(map[string]int)}
}

// read passes each line to next, which may read more of them and leaves at on
// the last one that it read. The first heading is the title of the document.
func (r *lineReader) read(next func(line string)) {
	for ; r.at < len(r.lines); r.at++ {
		next(strings.TrimRight(r.lines[r.at], " \t"))
	}
	r.flush()
	r.b.into(r.doc)
	r.doc.titleFromHeading(anyLevel)
}

// line returns a line without the space at its end; empty outside the file.
func (r *lineReader) line(i int) string {
	if i < 0 || i >= len(r.lines) {
		return ""
	}
	return strings.TrimRight(r.lines[i], " \t")
}

// mark says in which line the next block begins.
func (r *lineReader) mark(at int) { r.b.line = r.skipped + at + 1 }

// add adds a line to the current paragraph or list item.
func (r *lineReader) add(line string) {
	if len(r.paragraph) == 0 {
		r.began = r.at
	}
	r.paragraph = append(r.paragraph, strings.TrimSpace(line))
}

// begin begins a list item, or a paragraph if the item has no marker.
func (r *lineReader) begin(item listItem, text string) {
	r.flush()
	r.item = item
	r.add(text)
}

// flush ends the current paragraph or list item.
func (r *lineReader) flush() {
	if len(r.paragraph) == 0 {
		return
	}
	text := r.inline(strings.Join(r.paragraph, "\n"))
	r.mark(r.began)
	if r.item.marker != "" {
		r.b.Item(r.item.depth, r.item.marker, text)
	} else {
		r.b.Paragraph(text)
	}
	r.paragraph, r.item = r.paragraph[:0], listItem{}
}

// heading adds a heading in the current line. Its anchor is made of its words
// if there is none.
func (r *lineReader) heading(level int, text, anchor string) {
	r.flush()
	text = oneLine(Clean(r.inline(text)))
	if anchor == "" {
		anchor = slug(r.slugs, text)
	}
	r.mark(r.at)
	r.b.Heading(level, text, anchor)
}

// until returns the lines after the current one up to the line that ends a
// block, which becomes the current one.
func (r *lineReader) until(ends func(line string) bool) []string {
	r.flush()
	start := r.at + 1
	for r.at++; r.at < len(r.lines) && !ends(r.line(r.at)); r.at++ {
	}
	r.mark(start)
	return r.lines[min(start, len(r.lines)):r.at]
}

// indented returns the lines after the current one that are blank or indented by
// at least n, without their common indentation and blank lines around them. The
// last becomes the current one.
func (r *lineReader) indented(n int) string {
	lines := r.until(func(line string) bool { return line != "" && leading(line) < n })
	r.at--
	least := -1
	for _, l := range lines {
		if n := leading(l); strings.TrimSpace(l) != "" && (least < 0 || n < least) {
			least = n
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			out[i] = l[least:]
		}
	}
	return strings.Trim(strings.Join(out, "\n"), "\n")
}

// replaceMatches replaces each match of a pattern, given its groups.
func replaceMatches(pattern *regexp.Regexp, text string, replace func(whole string, groups []string) string) string {
	return pattern.ReplaceAllStringFunc(text, func(whole string) string {
		return replace(whole, pattern.FindStringSubmatch(whole))
	})
}
