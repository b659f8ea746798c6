package format

import (
	"errors"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"ibid/ingest/charset"
	"ibid/ingest/office"
)

// Office reads the documents of office programs, and EPUB books.
func Office(doc *Document, data []byte) error {
	w := &officeWriter{doc: doc}
	if err := office.Read(data, w); err != nil {
		var old *office.OldError
		if errors.As(err, &old) {
			return &SkipError{old.Reason}
		}
		return err
	}
	w.b.into(doc)
	// The name of a sheet says less than that of the file.
	if doc.Title == "" && len(doc.Sections) > 0 && !strings.HasPrefix(doc.Sections[0].Anchor, sheetPrefix) {
		doc.Title = doc.Sections[0].Heading
	}
	return nil
}

// An officeWriter writes the content of an office document.
type officeWriter struct {
	doc     *Document
	b       builder
	pending *Section // begins with the next words that are neither a heading nor a record
}

func (w *officeWriter) Paragraph(text string) {
	w.inSection(func() { w.b.Paragraph(text) })
}

func (w *officeWriter) Heading(level int, text, anchor string) {
	w.pending = nil
	w.b.Heading(level, text, anchor)
}

func (w *officeWriter) Item(depth int, marker, text string) {
	w.inSection(func() { w.b.Item(depth, marker, text) })
}

func (w *officeWriter) Page(number int) { w.b.Page(number) }

func (w *officeWriter) Untitled(level int, anchor string) {
	w.pending = &Section{Level: level, Anchor: oneLine(Clean(anchor))}
}

// inSection writes words, and begins the pending section with the first of them.
func (w *officeWriter) inSection(write func()) {
	if w.pending == nil {
		write()
	} else if w.b.begin(*w.pending, write) {
		w.pending = nil
	}
}

// Table writes each row on its own line, with the names of its columns.
func (w *officeWriter) Table(rows [][]string, names int) {
	w.b.last = kindNone // rows of one table are not of the next
	w.inSection(func() { w.table(rows, names) })
	w.b.last = kindNone
}

func (w *officeWriter) table(rows [][]string, names int) {
	var header []string
	for i, row := range rows {
		if i < names { // names may be in several rows
			header = mergeNames(header, row)
		} else {
			w.b.Row(header, row)
		}
	}
}

func (w *officeWriter) Names(row []string) bool { return namesColumns(row) }

func (w *officeWriter) Record(anchor string, names, cells []string) {
	if start, ok := w.b.Row(names, cells); ok {
		w.b.Section(Section{Level: 2, Anchor: oneLine(Clean(anchor)), Start: start})
	}
}

// HTML reads a page like a file of that format, but all of it: a book has no
// menus.
func (w *officeWriter) HTML(page []byte) {
	text, err := charset.Decode(page, declaredCharset(page))
	if err != nil {
		w.Partial("a page in it could not be read: " + err.Error())
		return
	}
	root, err := html.Parse(strings.NewReader(text))
	if err != nil { // nested deeper than the parser allows
		w.Partial("a page in it could not be read: " + err.Error())
		return
	}
	body := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Body })
	if body == nil {
		return
	}
	walker := htmlWalker{b: &w.b}
	walker.block(body)
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
	w.doc.Partial += oneLine(Clean(why))
}
