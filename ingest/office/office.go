// Package office reads the documents of office programs and electronic books:
// Office Open XML (docx, pptx, xlsx and their variants), OpenDocument (odt,
// ods, odp, also as flat XML) and EPUB.
//
// The documents are zip archives of XML. Unpacked bytes are counted, whatever
// the archive declares; XML is read as a stream to a limited depth, and
// entities that a file defines are not expanded. Nothing is written to disk.
package office

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"ibid/ingest/compound"
)

// A Writer receives the text of a file in reading order. It must clean the
// text, which may hold anything that the file holds.
type Writer interface {
	Paragraph(text string)
	// Heading begins a section; 1 is the outermost level.
	Heading(level int, text, anchor string)
	// Item adds a list item; 0 is the depth of the outermost list.
	Item(depth int, marker, text string)
	// Table adds a table, of which the first names rows name the columns.
	Table(rows [][]string, names int)
	// Names reports whether a first row looks like column names rather than
	// values.
	Names(row []string) bool
	// Record adds a row that can be cited by its anchor. names has a name, or
	// "", for each cell.
	Record(anchor string, names, cells []string)
	// Untitled begins text of the level without a heading or record. The anchor,
	// which may be empty, leads to it.
	Untitled(level int, anchor string)
	// Page begins the page or slide with the number.
	Page(number int)
	// HTML adds the text of an HTML page.
	HTML(page []byte)
	// Meta records metadata under a key of front matter: title, author,
	// created, modified, language, keywords, description. The first value of a
	// key counts.
	Meta(key, value string)
	// Partial records what of the file could not be read, and why.
	Partial(why string)
}

// An OldError refuses a format that is not supported but that its program can
// save as a supported one.
type OldError struct{ Reason string }

func (e *OldError) Error() string { return e.Reason }

// Limits of one file. A file within them is read in seconds; the child process
// that reads it enforces its own limits too.
const (
	maxEntries = 20_000    // in the archive
	maxOut     = 256 << 20 // unpacked bytes
	maxText    = 64 << 20  // bytes of text, with an overhead for each piece
	maxHeld    = 200_000   // cells and paragraphs of a table that is not finished
	// Deflate compresses up to 1032 to 1; XML with content compresses less
	// than 100 to 1.
	maxRatio = 200
	minRatio = 10 << 20 // bytes for which any ratio is harmless
	freeText = 8 << 20  // the same for text, which repeats column names in each row
)

// A limitError refuses a file. Any other error in the middle of a file is
// damage, and the text before it is kept.
type limitError struct{ reason string }

func (e *limitError) Error() string { return e.reason }

// A file is a document that is being read.
type file struct {
	*archive
	w       Writer
	size    int64 // in bytes
	left    int   // bytes of text that may still be written
	held    int   // cells and paragraphs that are not written yet
	written bool
	partial []string
}

// Read reads a file of any supported format, recognised by its content. The
// error is an [*OldError] for older formats.
func Read(data []byte, w Writer) error {
	f := &file{w: w, size: int64(len(data)), left: maxText}
	read, err := f.reader(data)
	if err == nil {
		err = read()
	}
	if err != nil {
		var limit *limitError
		if errors.As(err, &limit) || !f.written {
			return err
		}
		f.note(fmt.Sprintf("the file is damaged: only what precedes the damage was read (%v)", err))
	}
	if f.archive != nil && f.over != nil {
		return f.over
	}
	f.noteEmbedded(data)
	for _, why := range f.partial {
		w.Partial(why)
	}
	return nil
}

// picture returns the alternative text of a picture as a block; ok is false if
// it is none but a name that a program gave it.
func picture(text string) (b block, ok bool) {
	text = oneLine(text)
	if len(strings.Fields(text)) < 2 || path.Ext(text) != "" && !strings.HasSuffix(text, ".") {
		return block{}, false
	}
	return block{text: "Picture: " + text, note: true}, true
}

// running writes a header or footer, unless it only counts pages.
func (f *file) running(label string, blocks []block) {
	text := oneLine(cell{blocks: blocks}.text())
	words := 0
	for word := range strings.FieldsSeq(text) {
		if strings.IndexFunc(word, unicode.IsLetter) >= 0 {
			words++
		}
	}
	if words > 1 {
		f.paragraph(label + ": " + text)
	}
}

// note records once what could not be read.
func (f *file) note(why string) {
	if !slices.Contains(f.partial, why) && len(f.partial) < 5 {
		f.partial = append(f.partial, why)
	}
}

// reader returns the reader for a file.
func (f *file) reader(data []byte) (read func() error, err error) {
	head := bytes.TrimLeft(bytes.TrimPrefix(data[:min(len(data), 4096)], []byte("\xef\xbb\xbf")), " \r\n\t")
	switch {
	case bytes.HasPrefix(data, []byte(compound.Magic)):
		f.archive = &archive{}
		return func() error { return f.compound(data) }, nil
	case bytes.HasPrefix(head, []byte(`{\rtf`)):
		f.archive = &archive{}
		return func() error { return f.rtf(data) }, nil
	case bytes.HasPrefix(head, []byte("<?xml")) && bytes.Contains(head, []byte("urn:oasis:names:tc:opendocument")):
		f.archive = &archive{}
		return func() error { return f.flatOpenDocument(data) }, nil
	case bytes.HasPrefix(head, []byte("<?xml")) && (bytes.Contains(head, []byte("schemas.microsoft.com/office/")) ||
		bytes.Contains(head, []byte("urn:schemas-microsoft-com:office"))):
		return nil, &OldError{"it is in the XML format of Office 2003 or one flat file, which is not supported: save it as .docx, " +
			".xlsx or .pptx"}
	}
	if f.archive, err = openArchive(data); err != nil {
		return nil, err
	}
	if kind, err := f.content("mimetype", 200); err == nil {
		switch kind := strings.TrimSpace(string(kind)); {
		case strings.HasPrefix(kind, "application/epub"):
			return f.epub, nil
		case strings.HasPrefix(kind, "application/vnd.oasis.opendocument."), strings.HasPrefix(kind, "application/vnd.sun.xml."):
			return f.openDocument, nil
		}
	}
	if f.has("META-INF/container.xml") {
		return f.epub, nil
	}
	if main, ok := f.mainPart(); ok {
		return f.openXML(main)
	}
	if f.has("content.xml") {
		return f.openDocument, nil
	}
	return nil, errors.New("it is a zip archive without a document in it")
}

// compound reads a document of an office program before 2007.
func (f *file) compound(data []byte) error {
	root, err := compound.Open(data)
	if err != nil {
		return err
	}
	switch {
	case root.Has("EncryptedPackage"), root.Has("EncryptionInfo"):
		return errors.New("it is protected with a password: save it without one")
	case root.Has("DRMContent"):
		return errors.New("it is protected by rights management (DRM): save a copy without it")
	case root.Has("WordDocument"):
		return f.oldWord(root)
	case root.Has("Workbook"):
		return f.oldSheets(root)
	case root.Has("PowerPoint Document"):
		return f.oldSlides(root)
	}
	return &OldError{"it is in a format of office programs before 97, which is not supported: save it as .docx, .xlsx or .pptx"}
}

// mainPart finds the part of an Office Open XML package that is the document.
func (f *file) mainPart() (name string, ok bool) {
	for _, r := range f.relations("") {
		if r.kind == "officeDocument" && f.has(r.target) {
			return r.target, true
		}
	}
	for _, name := range []string{"word/document.xml", "ppt/presentation.xml", "xl/workbook.xml", "xl/workbook.bin"} {
		if f.has(name) {
			return name, true
		}
	}
	return "", false
}

func (f *file) openXML(main string) (read func() error, err error) {
	if strings.HasSuffix(strings.ToLower(main), ".bin") {
		return nil, &OldError{"it is a binary workbook (.xlsb), which is not supported: save it as .xlsx"}
	}
	x, err := f.xml(main)
	if err != nil {
		return nil, err
	}
	defer x.close()
	root, err := x.root()
	if err != nil {
		return nil, fmt.Errorf("it is damaged: its main part (%s) cannot be read: %w", main, err)
	}
	switch root {
	case "document":
		return func() error { return f.word(main) }, nil
	case "presentation":
		return func() error { return f.presentation(main) }, nil
	case "workbook":
		return func() error { return f.workbook(main) }, nil
	}
	return nil, fmt.Errorf("its main part (%s) is %.40q, not a text, a presentation or a workbook", main, root)
}

// properties records the metadata of an Office Open XML file and returns the
// title, which the text may improve on.
func (f *file) properties() (title string) {
	name := "docProps/core.xml"
	for _, r := range f.relations("") {
		if r.kind == "core-properties" {
			name = r.target
		}
	}
	// Damage in this part loses none of the text.
	_ = f.elements(name, func(x *xmlReader, e element) error {
		text := x.text()
		switch e.Name.Local {
		case "title":
			title = strings.TrimSpace(text)
		case "creator":
			f.w.Meta("author", text)
		case "created", "modified":
			if !strings.HasPrefix(text, "1601-") { // written by programs for an unknown time
				f.w.Meta(e.Name.Local, text)
			}
		case "language", "keywords", "description":
			f.w.Meta(e.Name.Local, text)
		case "subject":
			if strings.TrimSpace(text) != "" {
				f.w.Meta("description", text)
			}
		}
		return nil
	})
	if lower := strings.ToLower(title); strings.Contains(lower, "powerpoint") && len(title) < 50 || lower == "slide 1" ||
		lower == "presentation" {
		return "" // a default of the program
	}
	return title
}

// The methods below count the written bytes.

// pieceCost is the overhead of a paragraph, section or record in bytes.
const pieceCost = 64

func (f *file) spend(n int) bool {
	if n == 0 {
		return false
	}
	f.written = true
	f.left -= n + pieceCost
	switch made := int64(maxText - f.left); {
	case f.over != nil:
	case made > maxText:
		f.over = &limitError{fmt.Sprintf("it has more than %d MB of text: split it", maxText>>20)}
	case made > freeText && made > maxRatio*f.size:
		f.over = &limitError{fmt.Sprintf("its text is over %d times its size, by repetition: a bomb", maxRatio)}
	}
	return f.over == nil
}

// countBlock counts a block that is written later.
func (f *file) countBlock(b block) block {
	if f.held++; f.held > maxHeld && f.over == nil {
		f.over = &limitError{fmt.Sprintf("a table in it has more than %d cells and paragraphs: save it as a sheet", maxHeld)}
	}
	return b
}

func (f *file) paragraph(text string) {
	if f.spend(len(text)) {
		f.w.Paragraph(text)
	}
}

func (f *file) heading(level int, text, anchor string) {
	if f.spend(len(text)) {
		f.w.Heading(min(max(level, 1), 9), text, anchor)
	}
}

func (f *file) item(depth int, marker, text string) {
	if f.spend(len(marker) + len(text)) {
		f.w.Item(depth, marker, text)
	}
}

// table writes a table; names is -1 when its rows must show whether it has
// any.
func (f *file) table(rows [][]string, names int) {
	if names < 0 && len(rows) > 1 && f.nameRow(textRow(rows[0]), textRow(rows[1])) {
		names = 1
	}
	for _, row := range rows[:max(names, 0)] {
		for _, cell := range row {
			if len(cell) > maxName {
				names = 0
			}
		}
	}
	n := 0
	for i, row := range rows {
		for c, cell := range row {
			n += len(cell)
			if i > 0 && c < len(rows[0]) && cell != "" { // names are repeated in each row
				n += min(len(rows[0][c]), maxName)
			}
		}
	}
	if f.spend(n) {
		f.w.Table(rows, max(names, 0))
	}
}

// textRow returns texts as a sheet's row.
func textRow(texts []string) (r sheetRow) {
	for i, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			r.cells = append(r.cells, sheetCell{column: i, text: text, value: isYear(text)})
		}
	}
	return r
}

// maxName is the length in bytes up to which a cell can name a column.
const maxName = 200

func (f *file) record(anchor string, names, cells []string) {
	f.held = 0
	n := 0
	for c, cell := range cells {
		n += len(cell)
		if c < len(names) && cell != "" {
			n += len(names[c])
		}
	}
	if n > 0 && f.spend(n+len(anchor)) {
		f.w.Record(anchor, names, cells)
	}
}

func (f *file) html(page []byte) {
	if f.spend(len(page)) {
		f.w.HTML(page)
	}
}
