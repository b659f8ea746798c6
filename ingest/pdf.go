package ingest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"ibid/ingest/pdf"
)

// readPDF reads the file by the means of this program.
func readPDF(doc *Document, data []byte) error {
	source, err := pdf.Read(data)
	if err != nil {
		return err
	}
	file, err := pdf.Lay(source)
	if err != nil {
		return err
	}
	putTogether(doc, file)
	return nil
}

// putTogether makes the text of the pages.
func putTogether(doc *Document, file *pdf.File) {
	doc.setMeta("author", file.Author)
	doc.setMeta("date", file.Date)
	if title := oneLine(clean(file.Title)); isTitle(title) {
		doc.Title = title
	}
	var b builder
	largest := 0 // level of the outermost heading on the first page
	for i, page := range file.Pages {
		b.Page(i + 1)
		// A sentence that runs over the page is not parted by a blank line.
		b.carryOn = i > 0 && endsOpen(b.text.String())
		for _, block := range page.Blocks {
			switch {
			case block.Heading > 0:
				b.Heading(block.Heading, block.Text, "")
				if i == 0 && (largest == 0 || block.Heading < largest) {
					largest = block.Heading
				}
			case block.Kind == pdf.Row:
				if text := oneLine(clean(block.Text)); text != "" {
					b.add(kindRow, text)
				}
			case block.Kind == pdf.Item:
				if text := oneLine(clean(block.Text)); text != "" {
					b.add(kindItem, text)
				}
			default:
				b.Paragraph(block.Text)
			}
		}
	}
	b.into(doc)
	for _, s := range doc.Sections {
		if doc.Title == "" && s.Level <= largest+1 && doc.PageAt(s.Start) == 1 {
			doc.Title = s.Heading
		}
	}
	doc.Partial = partial(file)
}

// partial says which pages could not be read whole, and why.
func partial(file *pdf.File) string {
	var said []string
	if file.Rebuilt {
		said = append(said, "the file is damaged or cut off: what was found in it is read, and pages may be missing")
	}
	if file.Damaged && len(file.Torn) == 0 {
		said = append(said, "parts of the file are damaged: text may be missing")
	}
	if n := len(file.Torn); n > 0 {
		const named = 10
		pages := "page"
		if n > 1 {
			pages = "pages"
		}
		for i, p := range file.Torn[:min(n, named)] {
			if i > 0 {
				pages += ","
			}
			pages += fmt.Sprintf(" %d", p)
		}
		if n > named {
			pages += fmt.Sprintf(" and %d more", n-named)
		}
		why := "the file is damaged"
		if len(file.Unsupported) > 0 {
			why = fmt.Sprintf("filters that are not supported (%.100q)", strings.Join(file.Unsupported, ", "))
		}
		said = append(said, fmt.Sprintf("%s of %d could be read only in part or not at all: %s", pages, len(file.Pages), why))
	}
	return strings.Join(said, "; ")
}

// endsOpen reports whether a text stops inside a sentence.
func endsOpen(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && !strings.ContainsRune(".!?:。！？：”\"’)", r)
}

// isTitle tells titles apart from what programs put in their place.
func isTitle(s string) bool {
	lower := strings.ToLower(s)
	for _, sign := range []string{"untitled", "microsoft word", "microsoft powerpoint", ".doc", ".indd", ".tex", ".dvi", ".qxd", ".pdf", ".html", ".xls", ".ppt", "about:blank", "://"} {
		if strings.Contains(lower, sign) {
			return false
		}
	}
	return utf8.RuneCountInString(s) >= 3
}

// readLaidOut stands for formats of which a child is given nothing but what
// another program found in them.
func readLaidOut(*Document, []byte) error {
	return &SkipError{"a picture: install tesseract to read the text in pictures"}
}
