package pdfium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf16"

	"github.com/tetratelabs/wazero/api"

	"ibid/ingest/pdf"
)

// Limits of one file: more is an attack.
const (
	maxPages   = 20_000
	maxChars   = 200_000 // of a page
	maxEntries = 10_000  // of the outline
	maxDepth   = 32      // of the outline
)

// maxPreface limits what other programs put before a file, such as mail or
// HTTP headers.
const maxPreface = 64 << 10

// PDFium's error codes for loading a file, from fpdfview.h.
const (
	errPassword = 4
	errSecurity = 5
)

// A document is an open file.
type document struct {
	*session
	handle uint64
	data   uint64
}

// open loads a file.
func (e *Engine) open(ctx context.Context, data []byte) (*document, error) {
	if start := bytes.Index(data[:min(len(data), maxPreface)], []byte("%PDF-")); start > 0 {
		data = data[start:] // PDFium looks for it in the first kilobyte only
	}
	if err := e.start(ctx); err != nil {
		return nil, err
	}
	d := &document{session: e.begin(ctx)}
	if d.data = d.do("malloc", uint64(len(data))); d.data == 0 {
		return nil, d.failed(fmt.Errorf("it needs more than %d MB of memory", maxMemory>>20))
	}
	if !d.module.Memory().Write(uint32(d.data), data) {
		return nil, d.failed(errors.New("PDFium returned an address outside its memory"))
	}
	d.handle = d.do("FPDF_LoadMemDocument64", d.data, uint64(len(data)), 0)
	if d.handle != 0 {
		return d, nil
	}
	switch code := d.do("FPDF_GetLastError"); {
	case d.err != nil:
		return nil, d.failed(nil)
	case code == errPassword:
		d.do("free", d.data)
		return nil, pdf.ErrEncrypted
	case code == errSecurity:
		d.do("free", d.data)
		return nil, errors.New("it is encrypted in a way that is not supported: save it without encryption")
	}
	d.do("free", d.data)
	return nil, errors.New("it is damaged: it has no pages")
}

// failed drops the instance and returns the error of the file.
func (d *document) failed(otherwise error) error {
	err := d.err
	if err == nil {
		err = otherwise
	}
	if d.module != nil {
		d.drop(context.WithoutCancel(d.ctx))
	}
	return fmt.Errorf("PDFium failed on it: %w", err)
}

func (d *document) close() {
	if d.module == nil {
		return
	}
	d.do("FPDF_CloseDocument", d.handle)
	d.do("free", d.data)
	if d.err != nil {
		d.drop(context.WithoutCancel(d.ctx))
	}
}

// Read opens a file. Its pages are drawn while the source's sequence is
// iterated, and the file is closed at the end: iterate it before the engine is
// used for another file.
func (e *Engine) Read(ctx context.Context, data []byte) (*pdf.Source, error) {
	d, err := e.open(ctx, data)
	if err != nil {
		return nil, err
	}
	n := int(int32(d.do("FPDF_GetPageCount", d.handle)))
	if d.err != nil {
		return nil, d.failed(nil)
	}
	if n <= 0 {
		d.close()
		return nil, errors.New("it is damaged: it has no pages")
	}
	s := &pdf.Source{Title: d.meta("Title"), Author: d.meta("Author"), Date: pdf.Date(d.meta("CreationDate"))}
	s.Outline = d.outline()
	s.Rebuilt = d.do("FPDF_DocumentHasValidCrossReferenceTable", d.handle) == 0
	s.Damaged = pdf.Damaged(data)
	if d.err != nil {
		return nil, d.failed(nil)
	}
	s.Pages = func(yield func(pdf.Drawn) bool) {
		defer d.close()
		for i := range min(n, maxPages) {
			var page pdf.Drawn
			if d.err == nil {
				page = d.page(i)
			}
			if d.err != nil {
				page.Err = d.err
			}
			if !yield(page) {
				return
			}
		}
	}
	return s, nil
}

// meta returns an entry of the file's metadata.
func (d *document) meta(key string) string {
	d.module.Memory().Write(d.scratch, append([]byte(key), 0))
	const room = scratchBytes - 64
	n := d.do("FPDF_GetMetaText", d.handle, uint64(d.scratch), uint64(d.scratch)+64, room)
	if n > room {
		return "" // no title is that long
	}
	return string(utf16.Decode(wide(d.bytes(d.scratch+64, uint32(n)))))
}

// outline returns the bookmarks.
func (d *document) outline() []pdf.Entry {
	var out []pdf.Entry
	seen := map[uint64]bool{}
	var walk func(parent uint64, level int)
	walk = func(parent uint64, level int) {
		for b := d.do("FPDFBookmark_GetFirstChild", d.handle, parent); b != 0 &&
			d.err == nil; b = d.do("FPDFBookmark_GetNextSibling", d.handle, b) {
			if seen[b] || len(out) >= maxEntries || level > maxDepth {
				return
			}
			seen[b] = true
			const room = scratchBytes
			n := d.do("FPDFBookmark_GetTitle", b, uint64(d.scratch), room)
			if n <= room {
				title := strings.Join(strings.Fields(string(utf16.Decode(wide(d.bytes(d.scratch, uint32(n)))))), " ")
				page := 0
				if dest := d.do("FPDFBookmark_GetDest", d.handle, b); dest != 0 {
					page = int(int32(d.do("FPDFDest_GetDestPageIndex", d.handle, dest))) + 1
				}
				out = append(out, pdf.Entry{Title: title, Level: level, Page: max(page, 0)})
			}
			walk(b, level+1)
		}
	}
	walk(0, 1)
	return out
}

// page draws a page, counted from 0.
func (d *document) page(index int) pdf.Drawn {
	lost := pdf.Drawn{Err: errors.New("the file is damaged: a page that it lists is missing")}
	page := d.do("FPDF_LoadPage", d.handle, uint64(index))
	if page == 0 {
		return lost
	}
	notes, drawn := d.annotations(page)
	if drawn {
		// Flattening makes form fields and notes part of the page.
		const forDisplay = 0
		d.do("FPDFPage_Flatten", page, forDisplay)
		d.do("FPDF_ClosePage", page)
		if page = d.do("FPDF_LoadPage", d.handle, uint64(index)); page == 0 {
			return lost
		}
	}
	defer d.do("FPDF_ClosePage", page)
	text := d.do("FPDFText_LoadPage", page)
	if text == 0 {
		return pdf.Drawn{Err: errors.New("the file is damaged: the text of a page cannot be read")}
	}
	defer d.do("FPDFText_ClosePage", text)
	out := pdf.Drawn{Glyphs: append(d.glyphs(text), notes...)}
	out.Picture = len(out.Glyphs) == 0 && d.pictures(page) >= pdf.LeastPicture
	return out
}

// pictures returns the area in square points of the pictures on a page, and of
// forms, which may contain some.
func (d *document) pictures(page uint64) (area float64) {
	const picture, form = 3, 5 // fpdf_edit.h
	for i := range min(d.do("FPDFPage_CountObjects", page), 10_000) {
		object := d.do("FPDFPage_GetObject", page, i)
		if kind := d.do("FPDFPageObj_GetType", object); kind != picture && kind != form {
			continue
		}
		at := uint64(d.scratch)
		if d.do("FPDFPageObj_GetBounds", object, at, at+4, at+8, at+12) != 0 {
			var box [4]float64 // left, bottom, right, top
			d.floats32(d.scratch, box[:])
			area += math.Abs(box[2]-box[0]) * math.Abs(box[3]-box[1])
		}
	}
	return area
}

// annotations returns the text of fields and notes without an appearance, and
// reports whether there are others that flattening draws.
func (d *document) annotations(page uint64) (notes []pdf.Glyph, drawn bool) {
	const freeText, stamp, widget = 3, 13, 20 // fpdf_annot.h
	const hidden, noView = 1 << 1, 1 << 5
	for i := range min(d.do("FPDFPage_GetAnnotCount", page), 1000) {
		a := d.do("FPDFPage_GetAnnot", page, i)
		if a == 0 {
			continue
		}
		kind := d.do("FPDFAnnot_GetSubtype", a)
		if (kind == freeText || kind == stamp || kind == widget) && d.do("FPDFAnnot_GetFlags", a)&(hidden|noView) == 0 {
			if d.do("FPDFAnnot_HasKey", a, d.name("AP")) != 0 {
				drawn = true
			} else if kind == widget {
				notes = append(notes, d.note(a, "V")...)
			} else {
				notes = append(notes, d.note(a, "Contents")...)
			}
		}
		d.do("FPDFPage_CloseAnnot", a)
	}
	return notes, drawn && d.err == nil
}

// name copies a name into PDFium's memory.
func (d *document) name(s string) uint64 {
	d.module.Memory().Write(d.scratch, append([]byte(s), 0))
	return uint64(d.scratch)
}

// note returns a text of an annotation, one glyph for each line, from the top
// of its place.
func (d *document) note(annotation uint64, key string) (out []pdf.Glyph) {
	const room = scratchBytes - 64
	n := d.do("FPDFAnnot_GetStringValue", annotation, d.name(key), uint64(d.scratch)+64, room)
	if n > room {
		return nil
	}
	text := string(utf16.Decode(wide(d.bytes(d.scratch+64, uint32(n)))))
	if d.do("FPDFAnnot_GetRect", annotation, uint64(d.scratch)) == 0 {
		return nil
	}
	var box [4]float64 // left, top, right, bottom
	d.floats32(d.scratch, box[:])
	const size = 10 // points; the file's own size would need parsing
	for i, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\r' || r == '\n' }) {
		g := pdf.Glyph{Text: line, X0: box[0], X1: max(box[2], box[0]+1), Y: max(box[1], box[3]) - size*float64(i+1), Size: size,
			Begins: true}
		if strings.TrimSpace(line) != "" && g.Sound() {
			out = append(out, g)
		}
	}
	return out
}

// A style is what the characters of a text object share.
type style struct {
	object uint64
	size   float64
	turn   int
	bold   bool
}

// lineEnd is PDFium's character for a hyphen at the end of a line.
const lineEnd = 0x02

func (d *document) glyphs(text uint64) []pdf.Glyph {
	n := min(int(int32(d.do("FPDFText_CountChars", text))), maxChars)
	if n <= 0 {
		return nil
	}
	call := func(name string) api.Function { return d.module.ExportedFunction(name) }
	r := glyphReader{document: d, text: text, begins: true, object: call("FPDFText_GetTextObject"),
		box: call("FPDFText_GetLooseCharBox"), origin: call("FPDFText_GetCharOrigin"), unknown: call("FPDFText_HasUnicodeMapError")}
	unicode := call("FPDFText_GetUnicode")
	for i := range uint64(n) {
		c := rune(d.quick(unicode, text, i))
		if d.err != nil {
			return r.out
		}
		r.char(i, c)
	}
	if r.codes {
		// What PDFium guessed are the font's own numbers, not text.
		for _, i := range r.guesses {
			r.out[i].Text = "\ufffd"
		}
	}
	return r.out
}

// A glyphReader reads the characters of a page.
type glyphReader struct {
	*document
	text                         uint64
	object, box, origin, unknown api.Function
	out                          []pdf.Glyph
	now                          style
	guesses                      []int // of out: characters that the font gives no text for
	codes                        bool  // some of them are control characters
	begins                       bool
	high                         rune // the first half of a surrogate pair
}

// char adds the character at an index.
func (r *glyphReader) char(i uint64, c rune) {
	switch {
	case c == '\r' || c == '\n':
		r.begins = true
		return
	case c == ' ':
		// PDFium inserts spaces of its own: their place does not matter.
		if k := len(r.out); k > 0 && !r.begins {
			g := r.out[k-1]
			g.Text, g.X0, g.Begins = " ", g.X1, false
			r.out = append(r.out, g)
		}
		return
	case c == 0 || c == 0xfffe || c == 0xffff:
		return
	case utf16.IsSurrogate(c):
		if r.high == 0 {
			r.high = c
			return
		}
		c, r.high = utf16.DecodeRune(r.high, c), 0
	case c == lineEnd:
		c = '-'
	}
	if o := r.quick(r.object, r.text, i); o != r.now.object || o == 0 {
		r.now = r.style(r.text, i, o)
	}
	guess := int32(r.quick(r.unknown, r.text, i)) == 1
	r.codes = r.codes || guess && c < ' '
	at := uint64(r.scratch)
	if r.quick(r.box, r.text, i, at) == 0 || r.quick(r.origin, r.text, i, at+16, at+24) == 0 {
		return
	}
	var edge [4]float64 // left, top, right, bottom
	var place [2]float64
	r.floats32(r.scratch, edge[:])
	r.floats64(r.scratch+16, place[:])
	g := pdf.Glyph{Text: string(c), Size: r.now.size, Turn: r.now.turn, Bold: r.now.bold, Begins: r.begins}
	x0, _ := pdf.Turned(r.now.turn, edge[0], edge[3])
	x1, _ := pdf.Turned(r.now.turn, edge[2], edge[1])
	g.X0, g.X1 = min(x0, x1), max(x0, x1)
	_, g.Y = pdf.Turned(r.now.turn, place[0], place[1])
	if g.Sound() {
		if guess {
			r.guesses = append(r.guesses, len(r.out))
		}
		r.out, r.begins = append(r.out, g), false
	}
}

// style returns the style of a character's text object.
func (d *document) style(text, i, object uint64) style {
	s := style{object: object, size: math.Float64frombits(d.do("FPDFText_GetFontSize", text, i))}
	if d.do("FPDFText_GetMatrix", text, i, uint64(d.scratch)) != 0 {
		var m [6]float64
		d.floats32(d.scratch, m[:])
		if scale := math.Hypot(m[2], m[3]); scale > 0 {
			s.size *= scale
		}
		s.turn = pdf.Turn(m[0], m[1])
	}
	s.size = math.Abs(s.size)
	const room = 256
	n := d.do("FPDFText_GetFontInfo", text, i, uint64(d.scratch), room, uint64(d.scratch)+room)
	name := ""
	if n > 1 && n <= room {
		name = string(d.bytes(d.scratch, uint32(n)-1))
	}
	flags, _ := d.module.Memory().ReadUint32Le(d.scratch + room)
	weight := int32(d.do("FPDFText_GetFontWeight", text, i))
	s.bold = pdf.Bold(name, float64(weight), int64(flags))
	return s
}
