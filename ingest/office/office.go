// Package office reads the documents of office programs and electronic books: Office Open XML
// (docx, pptx, xlsx and their variants), OpenDocument (odt, ods, odp), EPUB, and the formats of
// office programs before 2007.
//
// The documents are zip archives of XML. The package counts unpacked bytes instead of trusting
// declared sizes, reads XML as a stream to a limited depth, and does not expand entities that a
// file defines. It writes nothing to disk.
package office

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"ibid/ingest/compound"
)

// An OldError means that a file is in an unsupported format, which its program can save as a
// supported one.
type OldError struct{ Reason string }

func (e *OldError) Error() string { return e.Reason }

// Limits of one file. A file within them is read in seconds. The child process that reads it has
// limits too.
const (
	maxEntries = 20_000    // in the archive
	maxOut     = 256 << 20 // unpacked bytes
	maxText    = 64 << 20  // bytes of text, plus pieceCost per block
	maxHeld    = 200_000   // cells and paragraphs of an unfinished table
	// Deflate reaches 1032 to 1, but XML with content compresses less than 100 to 1.
	maxRatio = 200
	minRatio = 10 << 20 // bytes for which any ratio is harmless
	freeText = 8 << 20  // the same for text, since column names are repeated in each row
)

// A limitError means that the whole file is refused. After any other error, the text before it is
// kept.
type limitError struct{ reason string }

func (e *limitError) Error() string { return e.reason }

// A file is a document being read.
type file struct {
	*archive
	out       func(Block)
	meta      func(key, value string)
	size      int64 // in bytes
	textBytes int64 // bytes of text, plus pieceCost per block
	held      int   // cells and paragraphs not yet written
	below     int   // 1 if all headings are below the title
	unread    map[string]unreadCount
	place     string   // the current slide, heading or part
	heads     []string // headers and footers so far
	box       string   // sign of the current check box, written instead of the text in the file
	partial   []string
}

// An unreadCount counts how often something is not read, and keeps the first places.
type unreadCount struct {
	times  int
	places []string
}

// countUnread counts something that is not read.
func (f *file) countUnread(what string) { f.countUnreadAt(what, "") }

// countUnreadAt is like countUnread for something with a name.
func (f *file) countUnreadAt(what, name string) {
	a, place := f.unread[what], f.place
	if place != "" {
		place = "in " + place
	}
	if name = oneLine(name); name != "" {
		place = strings.TrimSpace(fmt.Sprintf("%.40s %s", name, place))
	}
	if a.times++; place != "" && len(a.places) < 3 && !slices.Contains(a.places, place) {
		a.places = append(a.places, place)
	}
	f.unread[what] = a
}

// Reasons that are counted.
const (
	unseen    = "hidden text is left out"
	deletions = "deletions of tracked changes are left out"
	rubies    = "ruby annotations are left out"
	signs     = "characters of symbol fonts are left out"
	fields    = "values of form fields are not read"
	charts    = "charts are not read"
	objects   = "embedded objects are not read"
	foreign   = "parts in another format are not read"
	pictures  = "pictures without alternative text are not read"
)

// Read reads a file of any supported format, which it recognises by content. It passes the text in
// reading order to out, and metadata to meta under the keys title, author, created, modified,
// language, keywords and description. Both must sanitise their arguments, which may be any text in
// the file. partial describes the parts that could not be read. The error is an [*OldError] for
// unsupported formats.
func Read(data []byte, out func(Block), meta func(key, value string)) (partial []string, err error) {
	f := &file{archive: &archive{}, out: out, meta: meta, size: int64(len(data)), unread: map[string]unreadCount{}}
	if err := f.readAny(data); err != nil {
		var limit *limitError
		if errors.As(err, &limit) || f.textBytes == 0 {
			return nil, err
		}
		f.addPartial("the file is damaged: only the text before the damage was read (%v)", err)
	}
	if f.exceeded != nil {
		return nil, f.exceeded
	}
	f.place = ""
	if n := f.unread[pictures].times; f.textBytes == 0 && n > 0 {
		f.addPartial("only pictures (%d): save it as PDF, and text in them is read where tesseract is installed", n)
		delete(f.unread, pictures)
	}
	f.noteEmbedded()
	for _, what := range slices.Sorted(maps.Keys(f.unread)) {
		where, a := "", f.unread[what]
		if len(a.places) > 0 {
			where = " (" + strings.ReplaceAll(strings.Join(a.places, ", "), ", in ", ", ") + ")"
		}
		f.addPartial("%s: %d%s", what, a.times, where)
	}
	return f.partial, nil
}

// picture returns the alternative text of a picture as a block; ok is false if the text is missing
// or is a name that a program generated.
func picture(text string) (b Block, ok bool) {
	text = oneLine(text)
	if len(strings.Fields(text)) < 2 || path.Ext(text) != "" && !strings.HasSuffix(text, ".") {
		return Block{}, false
	}
	return Block{Text: "Picture: " + text, note: true}, true
}

// runningHeads is the label of headers and footers.
const runningHeads = "Header or footer"

// headerOrFooter returns a header or footer with its pictures, each once. It omits headers and footers
// that hold only a page number.
func (f *file) headerOrFooter(label string, blocks []Block) (out []Block) {
	text := lineOf(blocks)
	words := 0
	for word := range strings.FieldsSeq(text) {
		if strings.IndexFunc(word, unicode.IsLetter) >= 0 {
			words++
		}
	}
	if words > 1 || words == 1 && !strings.ContainsFunc(text, unicode.IsDigit) {
		out = append(out, Block{Text: label + ": " + text})
	}
	out = slices.DeleteFunc(append(out, notesIn(blocks)...), func(b Block) bool { return slices.Contains(f.heads, b.Text) })
	for _, b := range out {
		f.heads = append(f.heads, b.Text)
	}
	return out
}

// notesIn returns the blocks that are notes.
func notesIn(blocks []Block) []Block {
	return slices.DeleteFunc(slices.Clone(blocks), func(b Block) bool { return !b.note })
}

// addPartial records a part that could not be read, once.
func (f *file) addPartial(format string, values ...any) {
	if why := fmt.Sprintf(format, values...); !slices.Contains(f.partial, why) && len(f.partial) < 5 {
		f.partial = append(f.partial, why)
	}
}

// notePartial records that something could be read only in part, if err is not nil.
func (f *file) notePartial(err error, format string, values ...any) {
	if err != nil {
		f.addPartial("%s: %v", fmt.Sprintf(format, values...), err)
	}
}

// readAny reads a file of any format.
func (f *file) readAny(data []byte) error {
	head := bytes.TrimLeft(bytes.TrimPrefix(data[:min(len(data), 4096)], []byte("\xef\xbb\xbf")), " \r\n\t")
	switch {
	case bytes.HasPrefix(data, []byte(compound.Magic)):
		return f.compound(data)
	case bytes.HasPrefix(head, []byte(`{\rtf`)):
		return f.rtf(data)
	case bytes.Contains(head, []byte("schemas.microsoft.com/office/word/2003/wordml")): // elements as in .docx
		f.parts = map[string]part{"word.xml": {packed: data, size: f.size}}
		return f.word("word.xml")
	case bytes.HasPrefix(head, []byte("<?xml")):
		return &OldError{"it is in the XML format of Excel 2003 or one flat file, which is not supported: save it as .docx, " +
			".xlsx or .pptx"}
	}
	if err := f.load(data); err != nil {
		return err
	}
	kind, _ := f.content("mimetype", 200) // without it, the other parts show the format
	isKind := func(name string) bool { return bytes.Contains(kind, []byte("application/"+name)) }
	main, isOpenXML := f.mainPart()
	switch {
	case isKind("vnd.oasis.opendocument."), isKind("vnd.sun.xml."):
		return f.openDocument()
	case isKind("epub"), f.has("META-INF/container.xml"):
		return f.epub()
	case isOpenXML:
		return f.openXML(main)
	case f.has("content.xml"):
		return f.openDocument()
	}
	return errors.New("it is a zip archive without a document in it")
}

// compound reads a document of an office program before 2007.
func (f *file) compound(data []byte) error {
	root, err := compound.Open(data)
	if err != nil {
		return err
	}
	for range root.Names("MBD") {
		f.countUnread(objects)
	}
	f.summary(root.Stream("SummaryInformation"))
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
	return &OldError{"it is in a format older than Office 97, which is not supported: save it as .docx, .xlsx or .pptx"}
}

// mainPart returns the part of an Office Open XML package that holds the document.
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

// openXML reads an Office Open XML package.
func (f *file) openXML(main string) error {
	if strings.HasSuffix(strings.ToLower(main), ".bin") {
		return f.binaryWorkbook(main)
	}
	root := ""
	err := f.read(main, func(x *xmlReader) {
		x.each(func(e element) { root, x.err = e.Name.Local, io.EOF }) // the rest is read below
	})
	switch root {
	case "":
		return fmt.Errorf("it is damaged: its main part (%s) cannot be read: %w", main, err)
	case "document":
		return f.word(main)
	case "presentation":
		return f.presentation(main)
	case "workbook":
		return f.workbook(main)
	}
	return fmt.Errorf("its main part (%s) is %.40q, not a text, a presentation or a workbook", main, root)
}

// properties records the metadata of an Office Open XML file and returns the title. A title in the
// text is preferred to it.
func (f *file) properties() (title string) {
	name := "docProps/core.xml"
	for _, r := range f.relations("") {
		if r.kind == "core-properties" {
			name = r.target
		}
	}
	// Damage here loses no text.
	_ = f.find(name, func(x *xmlReader, e element) { title = cmp.Or(title, f.readMetadata(x, e)) })
	return title
}

// aboutKeys maps the metadata elements of all formats to metadata keys.
var aboutKeys = map[string]string{"title": "title", "creator": "author", "initial-creator": "author", "created": "created",
	"creation-date": "created", "date": "modified", "modified": "modified", "language": "language", "keywords": "keywords",
	"keyword": "keywords", "description": "description", "subject": "description"}

// readMetadata records the metadata in an element. It returns a title instead, since a title in the
// text is preferred.
func (f *file) readMetadata(x *xmlReader, e element) (title string) {
	key := aboutKeys[e.Name.Local]
	if key == "" {
		return ""
	}
	text := strings.TrimSpace(x.text())
	if key == "title" {
		return text
	}
	if !strings.HasPrefix(text, "1601-") { // programs write it for an unknown time
		f.meta(key, text)
	}
	return ""
}
