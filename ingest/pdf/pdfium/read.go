package pdfium

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ibid/ingest/pdf"
)

// maxChars limits the characters of a page: more is an attack.
const maxChars = 200_000

// maxPreface limits what other programs put before a file, such as mail or
// HTTP headers.
const maxPreface = 64 << 10

// PDFium's error codes for loading a file, from fpdfview.h.
const (
	errPassword = 4
	errSecurity = 5
)

// A Document is an open file.
type Document struct {
	*session
	handle uint64
	data   uint64
}

// Load opens a file. Close it before the engine is used for another one.
func (e *Engine) Load(ctx context.Context, data []byte) (*Document, error) {
	if start := bytes.Index(data[:min(len(data), maxPreface)], []byte("%PDF-")); start > 0 {
		data = data[start:] // PDFium looks for it in the first kilobyte only
	}
	if err := e.start(ctx); err != nil {
		return nil, err
	}
	d := &Document{session: e.begin(ctx)}
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
func (d *Document) failed(otherwise error) error {
	err := d.err
	if err == nil {
		err = otherwise
	}
	if d.module != nil {
		d.drop(context.WithoutCancel(d.ctx))
	}
	return fmt.Errorf("PDFium failed on it: %w", err)
}

// Close frees what the document holds.
func (d *Document) Close() {
	if d.module == nil {
		return
	}
	d.do("FPDF_CloseDocument", d.handle)
	d.do("free", d.data)
	if d.err != nil {
		d.drop(context.WithoutCancel(d.ctx))
	}
}

// Pages returns the number of pages.
func (d *Document) Pages() int { return int(int32(d.do("FPDF_GetPageCount", d.handle))) }

// chars returns the characters of a page's text.
func (d *Document) chars(text uint64) []rune {
	n := min(int(int32(d.do("FPDFText_CountChars", text))), maxChars)
	unicode := d.module.ExportedFunction("FPDFText_GetUnicode")
	chars := make([]rune, 0, max(n, 0))
	for i := range n {
		chars = append(chars, rune(d.quick(unicode, text, uint64(i))))
	}
	return chars
}
