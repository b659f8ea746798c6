package cite

import (
	"fmt"
	"strings"

	"ibid/ingest"
	"ibid/retrieve"
)

// A SourceOf says what counts as one source: passages with the same key share a number. The
// list shows title. address is the "url" of the document's metadata, otherwise the result of
// [Options.Link]; it may be empty.
type SourceOf func(p retrieve.Passage, address string) (key, title string)

// SourceByName returns [ByDocument], [ByPage], [BySection] or [ByURL] for
// "document", "page", "section" or "url".
func SourceByName(name string) (SourceOf, bool) {
	s, ok := map[string]SourceOf{"document": ByDocument, "page": ByPage, "section": BySection, "url": ByURL}[name]
	return s, ok
}

// ByDocument makes each document one source.
func ByDocument(p retrieve.Passage, _ string) (key, title string) { return p.Document, p.Title }

// ByPage makes each page, and each document without pages, one source. Small pages that share a
// passage are one source.
func ByPage(p retrieve.Passage, address string) (key, title string) {
	if p.Page == 0 {
		return ByDocument(p, address)
	}
	title = fmt.Sprintf("%s, p. %d", p.Title, p.Page)
	if last := p.PageAt(p.End - 1); last > p.Page {
		title = fmt.Sprintf("%s, pp. %d-%d", p.Title, p.Page, last)
	}
	return fmt.Sprintf("%s#page=%d", p.Document, p.Page), title
}

// BySection makes each section of a document one source, by its heading path, and the text
// outside sections another. In a table, the rows of each passage are one source. Small sections
// that share a passage are one source, named by their common headings, since a number is shown
// before its quote is known. The citations name each section.
func BySection(p retrieve.Passage, address string) (key, title string) {
	if sheet, rows, ok := ingest.RowAnchor(p.Anchor); ok && (p.Heading == "" || sheet != "") {
		name := "row"
		if strings.Contains(rows, "-") {
			name = "rows"
		}
		title = p.Title
		if sheet != "" {
			title += ", " + sheet
		}
		return p.Document + "#" + p.Anchor, fmt.Sprintf("%s, %s %s", title, name, rows)
	}
	if p.Heading == "" && strings.HasPrefix(p.Anchor, "/") { // a JSON pointer
		return p.Document + "#" + p.Anchor, p.Title + ", " + p.Anchor
	}
	if p.Heading == "" {
		return ByDocument(p, address)
	}
	title = p.Heading
	if first, _, _ := strings.Cut(p.Heading, ingest.HeadingSeparator); first != p.Title {
		title = p.Title + ingest.HeadingSeparator + p.Heading
	}
	return p.Document + "#" + p.Heading, title
}

// ByURL makes each address without its fragment, and each document without an address, one
// source.
func ByURL(p retrieve.Passage, address string) (key, title string) {
	address, _, _ = strings.Cut(address, "#")
	if address == "" {
		return ByDocument(p, address)
	}
	return address, p.Title
}
