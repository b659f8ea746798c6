// Package pdf reads the text of PDF files: words, lines, columns, paragraphs
// and headings from the positions of the glyphs.
//
// A library parses the objects; this package does the layout. The library can panic, hang or
// exhaust memory on a bad file, so read untrusted files in a child process.
package pdf

//go:generate go run ../../cmd/ibid setup --yes --data pdfium pdfium

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"strings"

	pdf "github.com/ledongthuc/pdf"
)

// A File is the text of a PDF as far as it could be read.
type File struct {
	Title, Author, Date string
	Pages               []Page
	// Damaged lists the pages, numbered from 1, that were not read completely.
	Damaged []int
	// Scanned lists the pages that have a picture but no text.
	Scanned []int
	// Unsupported names the filters that some content needs. It is empty if the only problem is
	// damage.
	Unsupported []string
	// Rebuilt reports whether the file's table of objects is damaged or missing. Other objects may
	// then be missing too.
	Rebuilt bool
	// NotRead names the attached files that can't be extracted.
	NotRead []string
}

// A Page holds the blocks of a page in reading order.
type Page struct{ Blocks []Block }

// A Block is a paragraph, a heading, a list item or a row of a table.
type Block struct {
	Text    string
	Heading int // level of a heading, 1 the outermost; else 0
	Kind    Kind
}

// A Kind is the kind of a block that is not a heading.
type Kind uint8

// The kinds.
const (
	Paragraph Kind = iota
	Item
	Row
)

// ErrEncrypted means that a file needs a password.
var ErrEncrypted = errors.New("it is protected by a password: save it without one")

// A NoTextError means that a file has no text: it is a scan, or all its pages are blank.
type NoTextError struct {
	Pages int
	Blank bool
}

func (e *NoTextError) Error() string { return "there is no text in it" }

// maxPages limits the pages that are read.
const maxPages = 20_000

// Read reads a file. The error is a [*NoTextError] if the file has no text.
func Read(data []byte, o Options) (*File, error) {
	file, pages, err := load(data)
	if err != nil {
		return nil, err
	}
	return file, file.layOut(pages, o)
}

// ReadPicture reads the table of words that tesseract found in a picture.
func ReadPicture(table []byte) (*File, error) {
	file := new(File)
	return file, file.layOut(func(yield func(drawnPage) bool) { yield(drawnPage{Glyphs: tesseractWords(table, 72)}) }, Options{})
}

// load reads a file without the content of its pages, which are drawn one by one.
func load(data []byte) (file *File, drawings iter.Seq[drawnPage], err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it is damaged: %v", p)
		}
	}()
	r, rebuilt, err := open(data)
	if err != nil {
		return nil, nil, err
	}
	file = &File{Rebuilt: rebuilt}
	file.readInfo(r)
	root := r.Trailer().Key("Root")
	pages := collect(root.Key("Pages"))
	if len(pages) == 0 {
		return nil, nil, errors.New("it is damaged: it has no pages")
	}
	for name, content := range attachments(r) {
		if content == nil {
			file.NotRead = append(file.NotRead, name)
		}
	}
	structure := root.Key("StructTreeRoot")
	var pictures map[string][]pdf.Value
	if bytes.Contains(data, []byte("/Alt")) { // otherwise the texts are few, or compressed and marked with their position
		pictures = unmarkedPictures(structure)
	}
	drawings = func(yield func(drawnPage) bool) {
		fonts := make(map[string]*font)
		for _, p := range pages {
			if !yield(drawPage(p, fonts, structure, pictures[p.V.String()]).dropUndecoded(rebuilt)) {
				return
			}
		}
	}
	return file, drawings, nil
}

// open parses a file after repairing common errors of writers, and rebuilds a damaged table of
// objects.
func open(data []byte) (r *pdf.Reader, rebuilt bool, err error) {
	start := bytes.Index(data[:min(len(data), 64<<10)], []byte("%PDF-"))
	if start < 0 {
		return nil, false, errors.New("it is not a PDF: it does not begin with %PDF")
	}
	whole := bytes.Clone(data[start:])
	// The library accepts versions up to 1.7 followed by a line end.
	if len(whole) > 9 {
		copy(whole, "%PDF-1.7\n")
	}
	if end := bytes.LastIndex(whole, []byte("%%EOF")); end >= 0 {
		whole = whole[:end+5]
	}
	longer, err := decrypt(whole)
	if err != nil {
		return nil, false, err
	}
	decodeHex(whole)
	r, err = parse(whole)
	damaged := err != nil || r.Trailer().Key("Root").Key("Pages").Kind() != pdf.Dict
	if damaged || longer != nil {
		if mended, ok := rebuild(append(whole, longer...)); ok {
			rebuilt = damaged
			r, err = parse(mended)
		} else if damaged && err == nil {
			err = errors.New("it has no pages")
		}
	}
	switch {
	case err == nil:
		return r, rebuilt, nil
	case strings.Contains(err.Error(), "%%EOF"):
		return nil, false, errors.New("it is damaged or incomplete: its end is missing")
	case strings.Contains(err.Error(), "encrypt"):
		return nil, false, errors.New("it is encrypted in a way that is not supported: save it without encryption")
	}
	return nil, false, fmt.Errorf("it is damaged: %w", err)
}

func parse(data []byte) (r *pdf.Reader, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("%v", p)
		}
	}()
	r, err = pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	if err == nil {
		r.Trailer().Key("Root").Key("Pages").Kind() // detects damage
	}
	return r, err
}

// readInfo reads the file's metadata.
func (file *File) readInfo(r *pdf.Reader) {
	defer func() {
		// Damage here loses the title, not the text.
		_ = recover()
	}()
	info := r.Trailer().Key("Info")
	file.Author = info.Key("Author").Text()
	file.Date = date(info.Key("CreationDate").Text())
	file.Title = info.Key("Title").Text()
}

// date returns the day of a date in a PDF file as 2006-01-02, or "".
func date(s string) string {
	if !strings.HasPrefix(s, "D:") || len(s) < 10 {
		return ""
	}
	return s[2:6] + "-" + s[6:8] + "-" + s[8:10]
}

// collect walks the page tree, visiting each node once. A listed page that is missing or can't be
// loaded becomes a null page, so that the following pages keep their numbers.
func collect(root pdf.Value) (pages []pdf.Page) {
	seen := make(map[string]bool)
	var walk func(node func() pdf.Value, depth int)
	walk = func(node func() pdf.Value, depth int) {
		defer func() {
			if recover() != nil {
				pages = append(pages, pdf.Page{})
			}
		}()
		if depth > 64 || len(pages) >= maxPages {
			return
		}
		v := node()
		kids := v.Key("Kids")
		if kids.Kind() != pdf.Array {
			if v.Kind() == pdf.Null && depth > 0 || v.Kind() == pdf.Dict &&
				(v.Key("Contents").Kind() != pdf.Null || v.Key("Type").Name() == "Page") {
				pages = append(pages, pdf.Page{V: v})
			}
			return
		}
		// In a cyclic tree, a node occurs again further down.
		if key := v.String(); !seen[key] {
			seen[key] = true
			for i := range kids.Len() {
				walk(func() pdf.Value { return kids.Index(i) }, depth+1)
			}
		}
	}
	walk(func() pdf.Value { return root }, 0)
	return pages
}

// drawPage draws a page, up to any damage.
func drawPage(p pdf.Page, fonts map[string]*font, structure pdf.Value, pictures []pdf.Value) (page drawnPage) {
	d := drawing{state: state{ctm: identity, scale: 1}, fonts: fonts, text: identity, line: identity, described: map[int]bool{}}
	var err error
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
		page = drawnPage{
			Glyphs: d.glyphs, Rules: d.path.rules, Picture: d.pictures >= leastPicture, Ink: d.ink, Unknown: d.unknown,
			Err: cmp.Or(err, d.damage),
		}
	}()
	if p.V.Kind() == pdf.Null {
		err = errors.New("the file is damaged: a page is missing")
		return page
	}
	d.resources = p.Resources()
	if n := p.V.Key("StructParents"); n.Kind() == pdf.Integer {
		d.parents = entryOf(structure.Key("ParentTree"), n.Int64(), 0)
	}
	var data []byte
	data, err = content(p.V.Key("Contents"))
	d.draw(data)
	for _, picture := range pictures {
		box := picture.Key("A").Key("BBox")
		d.note("Picture: "+alternative(picture), box.Index(0).Float64(), box.Index(3).Float64())
	}
	d.annotations(p.V.Key("Annots"))
	return page
}
