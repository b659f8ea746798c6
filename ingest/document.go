package ingest

import (
	"strings"

	"ibid/ingest/format"
)

// A Root is an ingested folder under a short name.
type Root struct {
	// Name is the first element of the ID of every document in the folder. It is the base name of
	// the folder, with "-2", "-3" … appended if that name is in use.
	Name string `json:"root"`
	// Path is the absolute path of the folder, or the address of a web site. It is empty for the
	// root "uploads". For the uploads of a collection, it is [MadeForUploads] and the name of the
	// folder in which each server keeps them.
	Path string `json:"path,omitempty"`
	// Collection is the part of the index that the folder belongs to.
	Collection string `json:"collection"`
}

// IsAddress reports whether the path of a root is a web address.
func IsAddress(path string) bool {
	return strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://")
}

// MadeForUploads is the prefix of the path of a root made for uploads.
const MadeForUploads = "uploads:"

// DefaultCollection is the collection of roots that don't name one.
const DefaultCollection = "default"

// Types of the documents that readers return; see [format.Document].
type (
	Document  = format.Document
	Section   = format.Section
	Page      = format.Page
	Line      = format.Line
	SkipError = format.SkipError
)

// ReaderKey is [format.ReaderKey].
const ReaderKey = format.ReaderKey

// AddressKey is the key in [Document.Meta] for the address that a document was fetched from.
const AddressKey = format.AddressKey

// UnreadKey is the key in [Document.Meta] for the parts of the file that were not read, with the
// reason.
const UnreadKey = "unread"

// ModifiedKey is the key in [Document.Meta] for the time, in RFC 3339, when the file was last
// changed, fetched, or added as an upload.
const ModifiedKey = "file_modified"

// FormerKey is the key in [Document.Meta] for the IDs that the document had before its file was
// renamed, the latest first: "notes/b.md//notes/a.md".
const FormerKey = "former_ids"

// maxFormer is the number of former IDs that are kept.
const maxFormer = 8

// FormerIDs returns the IDs under [FormerKey]. No ID contains "//".
func FormerIDs(meta map[string]string) []string {
	if meta[FormerKey] == "" {
		return nil
	}
	return strings.Split(meta[FormerKey], "//")
}

// setMeta sets an entry of a document's metadata. An empty value removes it.
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

// A Chunk is a stored piece of a document. Its Text always equals Document.Text[Start:End].
type Chunk struct {
	// ID is the document's id, "#" and the chunk's 1-based ordinal.
	ID string `json:"id"`
	// Document is the id of the document the chunk was cut from.
	Document string `json:"document"`
	// Ordinal is the chunk's 1-based position in its document.
	Ordinal int `json:"ordinal"`
	Start   int `json:"start"`
	End     int `json:"end"`
	// Heading is the path of headings over most of the chunk, outermost first, joined by
	// [HeadingSeparator], or "".
	Heading string `json:"heading,omitempty"`
	// Anchor is the fragment, without "#", of the chunk's place in the original: a heading's
	// anchor, an anchor for [RowAnchor] in a table file, or "message=3" for the third message of a
	// mailbox.
	Anchor string `json:"anchor,omitempty"`
	// Page is the 1-based page on which the chunk starts; 0 if the document has no pages.
	Page int `json:"page,omitempty"`
	// Line is the 1-based line of the file in which the chunk starts; 0 if unknown (see
	// [format.LineCounter]).
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
	// Tokens is CountTokens(Text).
	Tokens int `json:"tokens"`
}

// HeadingSeparator separates the headings of a heading path.
const HeadingSeparator = format.HeadingSeparator

// EmbeddingText returns the text of a chunk for embedders and the lexical index: the document's
// title, the heading path, and the text itself.
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
