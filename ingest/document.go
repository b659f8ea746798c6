package ingest

import (
	"strings"

	"ibid/ingest/format"
)

// A Root is an ingested folder under a short name.
type Root struct {
	// Name is the first element of the id of every document below the
	// folder: its base name, with "-2", "-3" … appended if that is in use.
	Name string `json:"root"`
	// Path is the folder's absolute path, or the address of a web site; empty for
	// the root "uploads", and for one that was made for the uploads of a collection
	// [MadeForUploads] with the name of the folder that each server has for them.
	Path string `json:"path,omitempty"`
	// Collection is the part of the index that the folder belongs to.
	Collection string `json:"collection"`
}

// IsAddress reports whether the path of a root is a web address.
func IsAddress(path string) bool {
	return strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://")
}

// MadeForUploads begins the path of a root that was made for uploads.
const MadeForUploads = "uploads:"

// DefaultCollection is the collection of roots without another.
const DefaultCollection = "default"

// What readers make of files; see [format.Document].
type (
	Document  = format.Document
	Section   = format.Section
	Page      = format.Page
	Line      = format.Line
	SkipError = format.SkipError
)

// ReaderKey is [format.ReaderKey].
const ReaderKey = format.ReaderKey

// AddressKey is the key in [Document.Meta] of the address that a document was
// fetched from.
const AddressKey = format.AddressKey

// UnreadKey is the key in [Document.Meta] of what of the file was not read, and why.
const UnreadKey = "unread"

// ModifiedKey is the key in [Document.Meta] of when the file was last changed, or fetched,
// in the form of RFC 3339. An upload was added then.
const ModifiedKey = "file_modified"

// FormerKey is the key in [Document.Meta] of the ids that the document had before its
// file was renamed, the latest first: "notes/b.md//notes/a.md".
const FormerKey = "former_ids"

// maxFormer is how many of them are kept.
const maxFormer = 8

// FormerIDs returns the ids under [FormerKey]. No id has "//" in it.
func FormerIDs(meta map[string]string) []string {
	if meta[FormerKey] == "" {
		return nil
	}
	return strings.Split(meta[FormerKey], "//")
}

// setMeta sets an entry of the metadata of a document; an empty one is removed.
func setMeta(doc *Document, key, value string) {
	if delete(doc.Meta, key); value == "" {
		return
	}
	if doc.Meta == nil {
		doc.Meta = make(map[string]string)
	}
	doc.Meta[key] = value
}

// RowAnchor is [format.RowAnchor].
func RowAnchor(anchor string) (sheet, rows string, ok bool) { return format.RowAnchor(anchor) }

// Envelope is [format.Envelope].
func Envelope(kind, title, path string) (subject, sent string) {
	return format.Envelope(kind, title, path)
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
	// Heading is the path of headings over most of the chunk, outermost first, joined
	// by [HeadingSeparator]; empty when there is none.
	Heading string `json:"heading,omitempty"`
	// Anchor is the fragment that leads to the chunk's place in the original,
	// without "#": a heading's anchor or, for rows of a table file, what
	// [RowAnchor] reads; "message=3" for the third of a mailbox.
	Anchor string `json:"anchor,omitempty"`
	// Page is the 1-based page on which the chunk starts; 0 without pages.
	Page int `json:"page,omitempty"`
	// Line is the 1-based line of the file in which the chunk starts; 0 where
	// no [format.LineCounter] knows it.
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
	// Tokens is CountTokens(Text).
	Tokens int `json:"tokens"`
}

// HeadingSeparator separates the headings of a heading path.
const HeadingSeparator = format.HeadingSeparator

// EmbeddingText returns the text of a chunk for embedders and the lexical index:
// the document's title and the heading path, then the chunk's own words.
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
