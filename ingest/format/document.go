package format

import (
	"cmp"
	"slices"
	"strings"
)

// A Document is one file as its author wrote it, read into text.
type Document struct {
	// ID is Root + "/" + Path. It is stable between runs.
	ID string `json:"document"`
	// Root is the name of the [Root] the document belongs to.
	Root string `json:"root"`
	// Path is slash-separated and relative to the root.
	Path string `json:"path"`
	// Title is the document's own title, or else its file name.
	Title string `json:"title"`
	// Format names the reader: "markdown", "rst", "text", "html", "csv", "pdf", "docx" …; "office"
	// if the name has the ending of an older office format.
	Format string `json:"format"`
	// Digest is the SHA-256 of the file's bytes in lower-case hexadecimal.
	Digest string `json:"digest"`
	// Text is the extracted text: valid UTF-8, NFC, lines ended by LF, no invisible or control
	// characters except LF, tab and the joiners of some scripts. All offsets in this package are
	// byte offsets into it.
	Text string `json:"-"`
	// Sections lists the headings in order of Start. Text before the first heading belongs to no
	// section.
	Sections []Section `json:"-"`
	// Pages lists the pages in order; nil if the format has no pages.
	Pages []Page `json:"-"`
	// Lines maps the text to lines of the file, in order of Start; nil if lines have no meaning in
	// the format.
	Lines []Line `json:"-"`
	// Partial describes the parts of the file that could not be read; empty if none.
	Partial string `json:"-"`
	// Meta is the document's own metadata (author, date, tags …) as inert text, and the reader
	// under [ReaderKey].
	Meta map[string]string `json:"meta,omitempty"`
}

// A Section is the text from one heading to the next heading of any level, or one row of a table
// file or sheet.
type Section struct {
	Heading string // empty for a row; input of [Envelope] for a message
	Level   int    // 1 is the outermost
	Anchor  string // fragment of the heading in the original, without "#"; may be empty
	Start   int    // byte offset of the heading's line in Document.Text
	End     int    // byte offset after the section
}

// sheetPrefix is the prefix of the anchors of sheets and their rows.
const sheetPrefix = "sheet="

// RowAnchor parses the anchor of rows: "row=12" (RFC 7111) or "row=3-7" in a table file,
// "sheet=NAME&row=12" in a workbook. It parses from the end, since a sheet name may contain any
// character. ok is false for all other anchors.
func RowAnchor(anchor string) (sheet, rows string, ok bool) {
	if name, inSheet := strings.CutPrefix(anchor, sheetPrefix); inSheet {
		at := strings.LastIndex(name, "&row=")
		if at < 0 {
			return "", "", false
		}
		return name[:at], name[at+len("&row="):], true
	}
	rows, ok = strings.CutPrefix(anchor, "row=")
	return "", rows, ok
}

// A Page is one page's range of the text.
type Page struct {
	Number int // 1-based position in the file
	Start  int
	End    int
}

// A Line says that the byte at Start is in line Number of the file, 1-based. Up to the next Line,
// each line of the text is a line of the file.
type Line struct {
	Start  int
	Number int
}

// PageAt returns the 1-based number of the page at a byte offset, or 0 if the document has no
// pages.
func (doc *Document) PageAt(offset int) int {
	// Pages without text have the same start as the next page.
	i, _ := slices.BinarySearchFunc(doc.Pages, offset+1, func(p Page, at int) int { return cmp.Compare(p.Start, at) })
	if i == 0 {
		return 0
	}
	return doc.Pages[i-1].Number
}

// A LineCounter finds the lines of increasing offsets. It counts each line end of the text once.
type LineCounter struct {
	Document *Document
	known    Line // the last result
}

func (c *LineCounter) At(offset int) int {
	lines := c.Document.Lines
	i, _ := slices.BinarySearchFunc(lines, offset+1, func(l Line, at int) int { return cmp.Compare(l.Start, at) })
	if i--; i < 0 {
		return 0
	}
	if c.known.Start < lines[i].Start || c.known.Start > offset || c.known.Number == 0 {
		c.known = lines[i]
	}
	c.known = Line{offset, c.known.Number + strings.Count(c.Document.Text[c.known.Start:offset], "\n")}
	return c.known.Number
}

// ReaderKey is the key in [Document.Meta] for the reader: its name, its version, and whether
// scanned pages were left out.
const ReaderKey = "reader"

// AddressKey is the key in [Document.Meta] for the web address that a document was fetched from. No
// reader sets it.
const AddressKey = "address"

// HeadingSeparator separates the headings of a heading path.
const HeadingSeparator = " › "

// A SkipError means that a file has nothing to read. It is skipped, which is not a failure.
type SkipError struct{ Reason string }

func (e *SkipError) Error() string { return e.Reason }

// titleFromHeading sets a missing title to the first heading, unless that heading's level is deeper
// than deepest.
func (doc *Document) titleFromHeading(deepest int) {
	if doc.Title == "" && len(doc.Sections) > 0 && doc.Sections[0].Level <= deepest {
		doc.Title = doc.Sections[0].Heading
	}
}

// anyLevel is the deepest level of headings.
const anyLevel = 1 << 10
