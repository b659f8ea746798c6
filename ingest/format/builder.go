package format

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A builder assembles a document's text from blocks. It separates paragraphs by blank lines, and
// items, rows and lines of code by single line ends.
type builder struct {
	text     strings.Builder
	sections []Section
	pages    []Page
	lines    []Line
	line     int // line of the file where the next block begins; 0 if unknown
	last     kind
	// continues is set if the next block continues the last one.
	continues bool
	nameBytes int // bytes of repeated column names
}

// maxNamed limits the bytes of column names that are repeated in the rows of a document: long names
// over many short cells are a bomb.
const maxNamed = 128 << 20

type kind uint8

const (
	kindNone kind = iota
	kindParagraph
	kindHeading
	kindItem
	kindRow
	kindCode
)

// add appends one block. Blocks of the same kind are on consecutive lines, except paragraphs and
// headings.
func (b *builder) add(k kind, text string) (start int) {
	text = strings.Trim(text, "\n")
	if b.text.Len() > 0 {
		if b.continues || k == b.last && k != kindParagraph && k != kindHeading {
			b.text.WriteString("\n")
		} else {
			b.text.WriteString("\n\n")
		}
	}
	b.last, b.continues = k, false
	start = b.text.Len()
	if n := len(b.pages); n > 0 && b.pages[n-1].Start < 0 {
		b.pages[n-1].Start = start
	}
	if b.line > 0 {
		b.lines = append(b.lines, Line{start, b.line})
	}
	b.text.WriteString(text)
	return start
}

func (b *builder) Paragraph(text string) {
	if text = strings.TrimSpace(Clean(withoutLeaders(text))); text != "" {
		b.add(kindParagraph, text)
	}
}

// Item adds a list item; depth 0 is the outermost list.
func (b *builder) Item(depth int, marker, text string) {
	if text = strings.TrimSpace(Clean(withoutLeaders(text))); text != "" {
		indent := strings.Repeat("  ", min(depth, 8))
		b.add(kindItem, indent+marker+" "+strings.ReplaceAll(text, "\n", "\n"+indent+"  "))
	}
}

// Heading adds a heading, on one line, and begins its section. It ignores a blank heading.
func (b *builder) Heading(level int, text, anchor string) {
	text = oneLine(Clean(withoutLeaders(text)))
	if text == "" {
		return
	}
	start := b.add(kindHeading, text)
	b.Section(Section{Heading: text, Level: level, Anchor: oneLine(Clean(anchor)), Start: start})
}

func (b *builder) Section(s Section) {
	if n := len(b.sections); n > 0 && b.sections[n-1].End == 0 {
		b.sections[n-1].End = s.Start
	}
	b.sections = append(b.sections, s)
}

// begin begins a section at the first block that write adds, and reports whether write added one.
func (b *builder) begin(s Section, write func()) bool {
	before := b.text.Len()
	write()
	added := b.text.String()[before:]
	if added != "" {
		s.Start = before + len(added) - len(strings.TrimLeft(added, "\n"))
		b.Section(s)
	}
	return added != ""
}

// mergeNames appends a further row of names to the column names.
func mergeNames(header, row []string) []string {
	for i, name := range row {
		if name = oneLine(Clean(name)); i == len(header) {
			header = append(header, name)
		} else if name != header[i] {
			header[i] = oneLine(header[i] + " " + name)
		}
	}
	return header
}

// Code adds preformatted text, indented by four spaces to mark it as code.
func (b *builder) Code(text string) {
	text = strings.Trim(Clean(text), "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = "    " + l
		}
	}
	b.last = kindNone // the next block of code is separate
	b.add(kindCode, strings.Join(lines, "\n"))
}

// Row adds a row of a table. The name of its column precedes each cell, so that the row can be read
// alone.
func (b *builder) Row(header, cells []string) (start int, ok bool) {
	for i := range min(len(header), len(cells)) {
		if cells[i] != "" {
			b.nameBytes += len(header[i])
		}
	}
	if b.nameBytes > maxNamed {
		header = nil
	}
	text := rowText(header, cells)
	if text == "" {
		return 0, false
	}
	return b.add(kindRow, text), true
}

func rowText(header, cells []string) string {
	var parts []string
	for i, c := range cells {
		c = oneLine(Clean(c))
		if c == "" {
			continue
		}
		if i < len(header) {
			c = labelText(header[i], c)
		}
		parts = append(parts, c)
	}
	return strings.Join(parts, " | ")
}

// Page begins a page and ends the previous one.
func (b *builder) Page(number int) {
	b.endPage()
	// The first block of the page sets its start.
	b.pages = append(b.pages, Page{Number: number, Start: -1, End: -1})
}

func (b *builder) endPage() {
	if n := len(b.pages); n > 0 && b.pages[n-1].End < 0 {
		p := &b.pages[n-1]
		p.End = b.text.Len()
		if p.Start < 0 { // the page is empty
			p.Start = p.End
		}
	}
}

// moveTo moves the text into the document.
func (b *builder) moveTo(doc *Document) {
	b.endPage()
	doc.Text = b.text.String()
	if n := len(b.sections); n > 0 && b.sections[n-1].End == 0 {
		b.sections[n-1].End = len(doc.Text)
	}
	for i := range b.sections {
		// The blank line before the next heading belongs to no section.
		s := &b.sections[i]
		s.End = s.Start + len(strings.TrimRight(doc.Text[s.Start:s.End], "\n"))
	}
	if b.nameBytes > maxNamed {
		doc.Partial = "the names of its columns are very long, and are missing in some rows"
	}
	doc.Sections = b.sections
	doc.Pages = b.pages
	doc.Lines = b.lines
}

// leaders matches the dots between an entry of a table of contents and its page number, or after
// the name of a field. Columns of single dots, which have wider gaps, are values and don't match.
var leaders = regexp.MustCompile(`(?:[.·…][ \x{a0}]?){4,}[.·…]`)

// withoutLeaders replaces dots that lead from one word to another, or to the end of the line, by a
// space.
func withoutLeaders(text string) string {
	const blanks = " \t\u00a0"
	var out []byte
	end := 0
	for _, at := range leaders.FindAllStringIndex(text, -1) {
		before := strings.TrimRight(text[end:at[0]], blanks)
		after := strings.TrimLeft(text[at[1]:], blanks)
		last, size := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(text[at[1]:])
		begins := size == 0 && at[0] > 0 || unicode.IsSpace(last) // a line of only dots is a rule
		if !begins && (after == "" || unicode.IsSpace(next) || unicode.IsLetter(next) || unicode.IsDigit(next)) {
			out = append(append(out, before...), ' ')
			end = len(text) - len(after)
		}
	}
	return string(append(out, text[end:]...))
}

// oneLine replaces every run of white space with one space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
