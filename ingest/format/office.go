package format

import (
	"errors"
	"strings"

	"ibid/ingest/charset"
	"ibid/ingest/office"
)

// Office reads the documents of office programs, and EPUB books.
func Office(doc *Document, data []byte) error {
	w := &officeWriter{doc: doc, b: new(builder)}
	partial, err := office.Read(data, w.write, w.meta)
	if err != nil {
		var old *office.OldError
		if errors.As(err, &old) {
			return &SkipError{old.Reason}
		}
		return err
	}
	w.b.moveTo(doc)
	if doc.Partial != "" {
		partial = append(partial, doc.Partial)
	}
	doc.Partial = oneLine(Clean(strings.Join(append(w.partial, partial...), "; ")))
	// The name of a sheet is less informative than the file name.
	if doc.Title == "" && len(doc.Sections) > 0 && !strings.HasPrefix(doc.Sections[0].Anchor, sheetPrefix) {
		doc.Title = doc.Sections[0].Heading
	}
	return nil
}

// An officeWriter writes the content of an office document.
type officeWriter struct {
	doc     *Document
	b       *builder
	pending *Section // begins with the next text that is neither a heading nor a row with an anchor
	partial []string
}

func (w *officeWriter) write(b office.Block) {
	switch b.Kind {
	case office.Page:
		w.b.Page(b.Level)
	case office.Untitled:
		w.pending = &Section{Level: b.Level, Anchor: oneLine(Clean(b.Anchor))}
	case office.Heading:
		w.pending = nil
		w.b.Heading(b.Level, b.Text, b.Anchor)
	case office.HTML:
		w.html(b.HTML)
	case office.Table:
		if b.Anchor != "" {
			w.b.begin(Section{Level: 2, Anchor: oneLine(Clean(b.Anchor))}, func() { w.table(b) })
			return
		}
		w.b.last = kindNone // rows of the next table are separate
		w.inSection(func() { w.table(b) })
		w.b.last = kindNone
	case office.Item:
		w.inSection(func() { w.b.Item(b.Level, oneLine(Clean(b.Marker)), b.Text) })
	default:
		w.inSection(func() { w.b.Paragraph(b.Text) })
	}
}

// inSection writes text, and begins the pending section if there is text.
func (w *officeWriter) inSection(write func()) {
	if w.pending == nil {
		write()
	} else if w.b.begin(*w.pending, write) {
		w.pending = nil
	}
}

// table writes each row on its own line, with its column names.
func (w *officeWriter) table(b office.Block) {
	var header []string
	for i, row := range b.Rows {
		if i < b.Names { // names may span several rows
			header = mergeNames(header, row)
		} else {
			w.b.Row(header, row)
		}
	}
}

// html reads a page like an HTML file, but keeps all of it, since a book has no menus.
func (w *officeWriter) html(page []byte) {
	text, err := charset.Decode(page, HTMLCharset(page))
	if err != nil {
		w.partial = append(w.partial, "a page in it could not be read: "+err.Error())
	}
	htmlFragment(w.b, text)
}

func (w *officeWriter) meta(key, value string) {
	if key != "title" || isTitle(value) {
		w.doc.setMeta(key, value)
	}
}
