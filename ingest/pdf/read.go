// Package pdf reads the text of PDF files: words, lines, columns, paragraphs
// and headings from where the glyphs stand.
//
// A kept library parses the objects; the layout is this package's own. The
// library can panic, hang or take any amount of memory on a bad file: read
// untrusted files in a child process.
package pdf

//go:generate go run ./pdfium/fetch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"

	pdf "github.com/ledongthuc/pdf"
)

// A File is what could be read of a file.
type File struct {
	Title, Author, Date string
	Pages               []Page
	// Torn lists the pages, counted from 1, that could be read in part or not
	// at all.
	Torn []int
	// Scanned lists the pages without text that have a picture.
	Scanned []int
	// Unsupported names the filters that some of their content needs and that
	// cannot be decoded; empty when damage is all that is wrong.
	Unsupported []string
	// Rebuilt is set when the file's own list of its objects is damaged or cut
	// off: what is missing of the file cannot be known.
	Rebuilt bool
	// Damaged is set when content is broken, and of which pages is not known.
	Damaged bool
}

// A Page holds the blocks of a page in reading order.
type Page struct{ Blocks []Block }

// A Block is a paragraph, a heading, a list item or a row of a table.
type Block struct {
	Text    string
	Heading int // level of a heading, 1 the outermost; else 0
	Kind    Kind
}

// A Kind tells blocks apart that are no headings.
type Kind uint8

// The kinds.
const (
	Paragraph Kind = iota
	Item
	Row
)

// ErrEncrypted says that a file is whole, and wants a password.
var ErrEncrypted = errors.New("it is protected by a password: save it without one")

// A NoTextError says that there is nothing to read in a file: it is a scan, or
// blank.
type NoTextError struct{ Pages int }

func (e *NoTextError) Error() string { return "there is no text in it" }

// maxPages bounds how many pages are read.
const maxPages = 20_000

// Read reads a file without any help from outside.
func Read(data []byte) (source *Source, err error) {
	defer func() {
		if p := recover(); p != nil {
			source, err = nil, fmt.Errorf("it is damaged: %v", p)
		}
	}()
	r, decrypted, rebuilt, err := open(data)
	if err != nil {
		return nil, err
	}
	source = &Source{Rebuilt: rebuilt}
	if !decrypted { // what it says of itself is strings, and stays encrypted
		readInfo(source, r)
	}
	root := r.Trailer().Key("Root")
	pages := collect(root.Key("Pages"))
	if len(pages) == 0 {
		return nil, errors.New("it is damaged: no page can be found in it")
	}
	fonts := make(map[string]*font)
	source.Pages = func(yield func(Drawn) bool) {
		for _, p := range pages {
			if !yield(drawPage(p, fonts)) {
				return
			}
		}
	}
	return source, nil
}

// open parses a file, after putting right what common writers get wrong, and
// rebuilds its table of objects when that is damaged. decrypted is set when
// strings in it are encrypted still.
func open(data []byte) (r *pdf.Reader, decrypted, rebuilt bool, err error) {
	start := bytes.Index(data[:min(len(data), 64<<10)], []byte("%PDF-"))
	if start < 0 {
		return nil, false, false, errors.New("it is no PDF: its first bytes are not %PDF")
	}
	whole := bytes.Clone(data[start:])
	// The library wants a version up to 1.7 and a line end behind it.
	if len(whole) > 9 {
		copy(whole, "%PDF-1.7\n")
	}
	if end := bytes.LastIndex(whole, []byte("%%EOF")); end >= 0 {
		whole = whole[:end+5]
	}
	decrypted, err = decryptAES256(whole)
	if err != nil {
		return nil, false, false, err
	}
	r, err = parse(whole)
	if err == nil && r.Trailer().Key("Root").Key("Pages").Kind() == pdf.Dict {
		return r, decrypted, false, nil
	}
	if errors.Is(err, pdf.ErrInvalidPassword) {
		return nil, false, false, ErrEncrypted
	}
	if err != nil && strings.Contains(err.Error(), "encryption") {
		return nil, false, false, fmt.Errorf("it is encrypted in a way that is not supported: save it without encryption")
	}
	mended, ok := rebuild(whole)
	if !ok {
		if err == nil {
			err = errors.New("it has no pages")
		}
		return nil, false, false, fmt.Errorf("it is damaged: %w", err)
	}
	if r, err = parse(mended); err != nil {
		if errors.Is(err, pdf.ErrInvalidPassword) {
			return nil, false, false, ErrEncrypted
		}
		return nil, false, false, fmt.Errorf("it is damaged: %w", err)
	}
	return r, decrypted, true, nil
}

func parse(data []byte) (r *pdf.Reader, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("%v", p)
		}
	}()
	r, err = pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	if err == nil {
		r.Trailer().Key("Root").Key("Pages").Kind() // damage shows here
	}
	return r, err
}

// readInfo takes what the file says of itself.
func readInfo(source *Source, r *pdf.Reader) {
	defer func() {
		// A damaged information dictionary costs the title, not the text.
		_ = recover()
	}()
	info := r.Trailer().Key("Info")
	source.Author = info.Key("Author").Text()
	source.Date = Date(info.Key("CreationDate").Text())
	source.Title = info.Key("Title").Text()
}

// Date gives the day of a date as PDF files write it, as 2006-01-02; empty
// when it is none.
func Date(s string) string {
	if !strings.HasPrefix(s, "D:") || len(s) < 10 {
		return ""
	}
	return s[2:6] + "-" + s[6:8] + "-" + s[8:10]
}

// collect walks the tree of pages, each node once. A page that is named but
// not there, or cannot be loaded, is a null one in its place: those behind it
// keep their numbers.
func collect(root pdf.Value) (pages []pdf.Page) {
	seen := make(map[string]bool)
	var walk func(v pdf.Value, depth int)
	walk = func(v pdf.Value, depth int) {
		defer func() {
			if recover() != nil {
				pages = append(pages, pdf.Page{})
			}
		}()
		if depth > 64 || len(pages) >= maxPages {
			return
		}
		kids := v.Key("Kids")
		if kids.Kind() != pdf.Array {
			if v.Kind() == pdf.Null && depth > 0 || v.Kind() == pdf.Dict && (v.Key("Contents").Kind() != pdf.Null || v.Key("Type").Name() == "Page") {
				pages = append(pages, pdf.Page{V: v})
			}
			return
		}
		// A tree that contains itself has the same node again further down.
		key := v.String()
		if seen[key] {
			return
		}
		seen[key] = true
		for i := range kids.Len() {
			func() {
				defer func() {
					if recover() != nil {
						pages = append(pages, pdf.Page{})
					}
				}()
				walk(kids.Index(i), depth+1)
			}()
		}
	}
	walk(root, 0)
	return pages
}

// drawPage draws a page: what comes before the damage when it is damaged.
func drawPage(p pdf.Page, fonts map[string]*font) (page Drawn) {
	d := drawing{state: state{ctm: identity, scale: 1}, fonts: fonts, text: identity, line: identity}
	var err error
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
		page = Drawn{Glyphs: d.glyphs, Picture: d.pictures >= LeastPicture, Err: cmp.Or(err, d.damage)}
	}()
	if p.V.Kind() == pdf.Null {
		err = errors.New("the file is damaged, and what it says of its pages leads nowhere")
		return page
	}
	d.resources = p.Resources()
	var data []byte
	data, err = content(p.V.Key("Contents"))
	d.draw(data)
	d.annotations(p.V.Key("Annots"))
	return page
}
