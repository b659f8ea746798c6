package ingest

import "strings"

// A Root is an ingested folder under a short name.
type Root struct {
	// Name is the first element of the id of every document below the
	// folder: its base name, with "-2", "-3" … appended when that is taken.
	Name string `json:"root"`
	// Path is the folder's absolute path; empty for the root "uploads".
	Path string `json:"path,omitempty"`
	// Collection names the part of the index the folder belongs to;
	// DefaultCollection unless the person chose another.
	Collection string `json:"collection"`
}

// DefaultCollection holds every root for which no other was chosen.
const DefaultCollection = "default"

// A Document is one file as its author wrote it, read into text.
type Document struct {
	// ID is Root + "/" + Path. It is stable between runs.
	ID string `json:"document"`
	// Root is the name of the [Root] the document belongs to.
	Root string `json:"root"`
	// Path is slash-separated and relative to the root.
	Path string `json:"path"`
	// Title is what the document calls itself, else its file name.
	Title string `json:"title"`
	// Format names the reader that read it: "markdown", "rst", "text",
	// "html", "csv", "pdf", "docx", "pptx", "xlsx", "odt", "ods", "odp",
	// "epub", "mail", "mbox" …; "office" when the name has the ending of an
	// older format.
	Format string `json:"format"`
	// Digest is the SHA-256 of the file's bytes in lower-case hexadecimal.
	Digest string `json:"digest"`
	// Text is the extracted text: valid UTF-8, NFC, lines ended by LF, no
	// invisible or control characters but LF and tab. Every offset in this
	// package is a byte offset into it.
	Text string `json:"-"`
	// Sections lists the headings in order of Start. Text before the first
	// heading belongs to no section.
	Sections []Section `json:"-"`
	// Pages lists the pages in order; nil where the format has none.
	Pages []Page `json:"-"`
	// Lines say where the text stands in the lines of the file, in order of
	// Start; nil where the format has no lines worth naming.
	Lines []Line `json:"-"`
	// Partial says what of the file could not be read; empty when all was.
	Partial string `json:"-"`
	// Meta holds what the document says of itself (author, date, tags …), as
	// inert text, and under [ReaderKey] what read it.
	Meta map[string]string `json:"meta,omitempty"`
}

// A Section is the text from one heading to the next of any level, or one row
// of a table file or a sheet.
type Section struct {
	Heading string // empty for a row
	Level   int    // 1 is the outermost
	Anchor  string // fragment that leads to the heading in the original, without "#"; may be empty
	Start   int    // byte offset of the heading's line in Document.Text
	End     int    // byte offset behind the section's last byte
}

// sheetPrefix begins the anchors of sheets and of rows in them.
const sheetPrefix = "sheet="

// RowAnchor reads the anchor of rows: "row=12" (RFC 7111) or "row=3-7" in a table
// file, "sheet=NAME&row=12" in a workbook, whose fragment is read from its end:
// a name may hold any character. ok is false for all other anchors.
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

// A Line says that the byte of the text at Start stands in the line Number of
// the file, 1-based. Up to the next Line, every line of the text is one of the
// file.
type Line struct {
	Start  int
	Number int
}

// A Chunk is a stored piece of a document. Its Text equals
// Document.Text[Start:End], always.
type Chunk struct {
	// ID is the document's id, "#" and the chunk's 1-based ordinal.
	ID string `json:"id"`
	// Document is the id of the document the chunk was cut from.
	Document string `json:"document"`
	// Ordinal is the chunk's 1-based position in its document.
	Ordinal int `json:"ordinal"`
	Start   int `json:"start"`
	End     int `json:"end"`
	// Heading is the path of headings over the chunk, outermost first, joined
	// by [HeadingSeparator]; empty when there is none.
	Heading string `json:"heading,omitempty"`
	// Anchor is the fragment that leads to the chunk's place in the original,
	// without "#": a heading's anchor or, for rows of a table file, what
	// [RowAnchor] reads; "message=3" for the third of a mailbox.
	Anchor string `json:"anchor,omitempty"`
	// Page is the 1-based page on which the chunk starts; 0 without pages.
	Page int `json:"page,omitempty"`
	// Line is the 1-based line of the file in which the chunk starts; 0 where
	// [Document.LineAt] does not know it.
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
	// Tokens is CountTokens(Text).
	Tokens int `json:"tokens"`
}

// HeadingSeparator stands between the headings of a heading path.
const HeadingSeparator = " › "

// EmbeddingText is what an embedder and the lexical index are given for a
// chunk: the document's title and the heading path, then the chunk's own words.
// The prefix is never part of a quoted text.
func EmbeddingText(title string, c Chunk) string {
	head := title
	if c.Heading != "" && c.Heading != title {
		head += HeadingSeparator + c.Heading
	}
	if head == "" {
		return c.Text
	}
	return head + "\n" + c.Text
}
