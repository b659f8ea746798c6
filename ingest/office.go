package ingest

import (
	"errors"
	"strings"

	"golang.org/x/net/html"

	"ibid/ingest/office"
)

// readOffice reads the documents of office programs and electronic books.
func readOffice(doc *Document, data []byte) error {
	w := &officeWriter{doc: doc}
	if err := office.Read(data, w); err != nil {
		var old *office.OldError
		if errors.As(err, &old) {
			return &SkipError{old.Reason}
		}
		return err
	}
	w.b.into(doc)
	if doc.Title == "" && len(doc.Sections) > 0 {
		doc.Title = doc.Sections[0].Heading
	}
	return nil
}

// An officeWriter puts what is read of an office document into a document.
type officeWriter struct {
	doc *Document
	b   builder
}

func (w *officeWriter) Paragraph(text string)                  { w.b.Paragraph(text) }
func (w *officeWriter) Heading(level int, text, anchor string) { w.b.Heading(level, text, anchor) }
func (w *officeWriter) Item(depth int, marker, text string)    { w.b.Item(depth, marker, text) }
func (w *officeWriter) Page(number int)                        { w.b.Page(number) }

// Table writes each row on a line of its own, led by the names of its columns.
func (w *officeWriter) Table(rows [][]string, names int) {
	var header []string
	if names < 0 && len(rows) > 1 && namesColumns(rows[0]) {
		names = 1
	}
	for i, row := range rows {
		if i >= names {
			w.b.Row(header, row)
			continue
		}
		// Names in several rows stand over one another.
		for c, name := range row {
			name = oneLine(clean(name))
			if c == len(header) {
				header = append(header, name)
			} else if name != header[c] {
				header[c] = oneLine(header[c] + " " + name)
			}
		}
	}
	w.b.last = kindNone // rows of the next table are not of this one
}

func (w *officeWriter) Record(anchor string, names, cells []string) {
	if start, ok := w.b.Row(names, cells); ok {
		w.b.Section(Section{Level: 2, Anchor: anchor, Start: start})
	}
}

// HTML walks a page as a file of that format is walked.
func (w *officeWriter) HTML(page []byte) {
	text, err := decode(page, declaredCharset(page))
	if err != nil {
		w.Partial("a page in it could not be read: " + err.Error())
		return
	}
	root, err := html.Parse(strings.NewReader(text))
	if err != nil { // nested deeper than the parser allows
		w.b.Paragraph(tokenText(text))
		return
	}
	walker := htmlWalker{b: &w.b}
	walker.block(mainContent(root))
	walker.flush()
}

func (w *officeWriter) Meta(key, value string) {
	if key == "title" && !isTitle(value) {
		return
	}
	w.doc.setMeta(key, value)
}

func (w *officeWriter) Partial(why string) {
	if w.doc.Partial != "" {
		w.doc.Partial += "; "
	}
	w.doc.Partial += oneLine(clean(why))
}
