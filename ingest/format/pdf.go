package format

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"ibid/ingest/office"
	"ibid/ingest/pdf"
)

// PDF fills a document from the pages of a PDF file.
func PDF(doc *Document, file *pdf.File) {
	if !isPlaceholder(file.Author) {
		doc.setMeta("author", file.Author)
	}
	doc.setMeta("date", file.Date)
	if title := oneLine(Clean(file.Title)); isTitle(title) {
		doc.Title = title
	}
	var b builder
	largest := 0 // level of the outermost heading on the first page
	for i, page := range file.Pages {
		b.Page(i + 1)
		// A sentence may continue on the next page, without a blank line.
		b.continues = i > 0 && endsInSentence(b.text.String())
		for _, block := range page.Blocks {
			switch {
			case block.Heading > 0:
				b.Heading(block.Heading, block.Text, "")
				if i == 0 && (largest == 0 || block.Heading < largest) {
					largest = block.Heading
				}
			case block.Kind == pdf.Row, block.Kind == pdf.Item:
				kind := map[bool]kind{true: kindRow, false: kindItem}[block.Kind == pdf.Row]
				if text := oneLine(Clean(withoutLeaders(block.Text))); text != "" {
					b.add(kind, text)
				}
			default:
				b.Paragraph(block.Text)
			}
		}
	}
	b.moveTo(doc)
	for _, s := range doc.Sections {
		if doc.Title == "" && s.Level <= largest+1 && doc.PageAt(s.Start) == 1 {
			doc.Title = s.Heading
		}
	}
	doc.Partial = partialReason(file)
}

// partialReason names the pages that could not be read completely, with the reason.
func partialReason(file *pdf.File) string {
	var said []string
	if file.Rebuilt {
		said = append(said, "the file is damaged or cut off: pages may be missing")
	}
	if len(file.Damaged) > 0 {
		why := "the file is damaged"
		if len(file.Unsupported) > 0 {
			why = fmt.Sprintf("filters that are not supported (%.100q)", strings.Join(file.Unsupported, ", "))
		}
		said = append(said, fmt.Sprintf("%s of %d could be read only in part or not at all: %s", ListPages(file.Damaged), len(file.Pages), why))
	}
	if len(file.NotRead) > 0 {
		said = append(said, office.NotRead(file.NotRead))
	}
	return strings.Join(said, "; ")
}

// ListPages returns a list of page numbers in words.
func ListPages(pages []int) string {
	const most = 10
	said := "page "
	if len(pages) > 1 {
		said = "pages "
	}
	said += strings.ReplaceAll(strings.Trim(fmt.Sprint(pages[:min(len(pages), most)]), "[]"), " ", ", ")
	if more := len(pages) - most; more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return said
}

// endsInSentence reports whether a text ends inside a sentence.
func endsInSentence(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && !strings.ContainsRune(".!?:。！？：”\"’)", r)
}

// isTitle reports whether a title is more than a program's placeholder.
func isTitle(s string) bool {
	signs := []string{"untitled", "microsoft word", "powerpoint presentation", "microsoft powerpoint", ".doc", ".indd",
		".tex", ".dvi", ".qxd", ".pdf", ".html", ".xls", ".ppt", "about:blank", "://"}
	isIn := func(sign string) bool { return strings.Contains(strings.ToLower(s), sign) }
	return utf8.RuneCountInString(s) >= 3 && !isPlaceholder(s) && !slices.ContainsFunc(signs, isIn)
}

// isPlaceholder reports whether s is a program's placeholder for a title or an author.
func isPlaceholder(s string) bool {
	placeholders := []string{"(anonymous)", "anonymous", "(unspecified)", "unspecified", "unknown"}
	return slices.Contains(placeholders, strings.ToLower(strings.TrimSpace(s)))
}
