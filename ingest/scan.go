package ingest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // their sizes are looked at before they are read
	_ "image/jpeg"
	_ "image/png"
	"strconv"
	"time"

	"ibid/ingest/pdf/pdfium"
	"ibid/ingest/pdf/tesseract"
)

// Limits of the recognition of text.
const (
	scanDPI     = 300             // of a page; what tesseract was made for
	pageSeconds = 30              // for a page or a picture
	scanTime    = 5 * time.Minute // for a file
	maxScan     = 200             // pages of a file
	maxPicture  = 64 << 20        // bytes of a drawn page
	maxTable    = 32 << 20        // bytes of what is found on a page
	// leastPicture is the width and the height in pixels below which no text
	// is looked for in a picture: icons and bullets.
	leastPicture = 64
)

// errNoOCR is the reason of a scan that is not read.
var errNoOCR = &SkipError{"no text, install tesseract to read scans"}

// readScan recognises the text of a file that has none.
func (r *Reader) readScan(ctx context.Context, f format, doc *Document, data []byte, plan pdfPlan, pages int) error {
	if plan.tesseract == "" {
		return errNoOCR
	}
	if plan.Tier != PDFium && plan.pdftoppm == "" {
		return &SkipError{"no text, install PDFium or pdftoppm (poppler-utils) beside tesseract to read scans"}
	}
	var tables bytes.Buffer
	end := time.Now().Add(scanTime)
	read := 0
	var trouble error // the first
	for n := 1; n <= min(pages, maxScan) && time.Now().Before(end); n++ {
		picture, err := r.drawScan(ctx, f, doc, data, plan, n)
		var table []byte
		if err == nil {
			table, err = r.recognise(ctx, plan.tesseract, picture)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			trouble = cmp.Or(trouble, fmt.Errorf("page %d: %w", n, err))
		}
		if n > 1 {
			tables.WriteString(tesseract.PageEnd)
		}
		tables.Write(table)
		read = n
	}
	if err := r.layScan(ctx, f, doc, plan, tables.Bytes()); err != nil {
		return cmp.Or(trouble, err)
	}
	switch {
	case trouble != nil:
		doc.Partial = "not every page of the scan could be read: " + trouble.Error()
	case read < pages:
		doc.Partial = fmt.Sprintf("of the %d pages of the scan, the first %d were read", pages, read)
	}
	return nil
}

// layScan has a child lay out what was recognised.
func (r *Reader) layScan(ctx context.Context, f format, doc *Document, plan pdfPlan, tables []byte) error {
	job := plan.job
	job.Tier = recognised
	reply, err := r.askChild(ctx, childRequest{Format: f.name, Path: doc.Path, PDF: &job}, tables)
	switch {
	case err != nil:
		return err
	case reply.Scan > 0:
		return &SkipError{"no text was recognised in it"}
	}
	return reply.into(doc)
}

// drawScan draws a page of a scan.
func (r *Reader) drawScan(ctx context.Context, f format, doc *Document, data []byte, plan pdfPlan, page int) (picture []byte, err error) {
	if plan.Tier == PDFium {
		job := plan.job
		job.Tier, job.Draw = PDFium, &pdfium.DrawOptions{Page: page, DPI: scanDPI, Gray: true}
		reply, err := r.askChild(ctx, childRequest{Format: f.name, Path: doc.Path, PDF: &job}, data)
		if err == nil && reply.Error != "" {
			err = errors.New(reply.Error)
		}
		return []byte(reply.text), err
	}
	_, release, err := r.slot(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	name, stdin, done, err := inFile(data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	n := strconv.Itoa(page)
	args := []string{plan.pdftoppm, "-q", "-gray", "-r", strconv.Itoa(scanDPI), "-f", n, "-l", n, "-singlefile", "-png", name}
	return task{name: "pdftoppm", args: args, stdin: stdin, limit: pageSeconds * time.Second, most: maxPicture}.run(ctx)
}

// recognise gives what tesseract finds in a picture.
func (r *Reader) recognise(ctx context.Context, path string, picture []byte) ([]byte, error) {
	_, release, err := r.slot(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	args := append([]string{path}, tesseract.Arguments(r.PDF.Languages)...)
	return task{name: "tesseract", args: args, stdin: bytes.NewReader(picture), limit: pageSeconds * time.Second, most: maxTable}.run(ctx)
}

// readPicture recognises the text in a picture.
func (r *Reader) readPicture(ctx context.Context, f format, doc *Document, data []byte) error {
	plan, err := r.pdf(ctx)
	if err != nil {
		return err
	}
	if plan.tesseract == "" {
		return &SkipError{"a picture: install tesseract to read the text in pictures"}
	}
	if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil && (c.Width < leastPicture || c.Height < leastPicture) {
		return &SkipError{fmt.Sprintf("a picture of %d × %d pixels: too small to hold text", c.Width, c.Height)}
	}
	table, err := r.recognise(ctx, plan.tesseract, data)
	if err != nil {
		return err
	}
	if err := r.layScan(ctx, f, doc, plan, table); err != nil {
		return err
	}
	doc.Pages = nil
	return nil
}

// A PageImage is a drawn page of a PDF file.
type PageImage struct {
	PNG []byte
	// Marked are the places of the quote, as shares of the page's width and
	// height from its upper left corner.
	Marked []pdfium.Rect
}

// ErrNoDrawing says that pages can be drawn with PDFium only, and it is not in
// use.
var ErrNoDrawing = errors.New("pages are drawn with PDFium only")

// DrawPage draws a page of a PDF file, counted from 1, so many pixels wide, in
// a child process. The words of the quote are marked on it where they are
// found; an empty quote marks nothing. The error is [ErrNoDrawing], or an
// [*UnreadableError] of the file.
func (r *Reader) DrawPage(ctx context.Context, data []byte, page int, quote string, width int) (*PageImage, error) {
	plan, err := r.pdf(ctx)
	if err != nil {
		return nil, err
	}
	if plan.Tier != PDFium {
		return nil, ErrNoDrawing
	}
	job := plan.job
	job.Tier, job.Draw = PDFium, &pdfium.DrawOptions{Page: page, Quote: quote, Width: width}
	reply, err := r.askChild(ctx, childRequest{Format: "pdf", PDF: &job}, data)
	if err != nil {
		return nil, err
	}
	if reply.Error != "" {
		return nil, &UnreadableError{reply.Error}
	}
	image := &PageImage{PNG: []byte(reply.text)}
	if err := json.Unmarshal([]byte(reply.Meta["marked"]), &image.Marked); err != nil {
		return nil, fmt.Errorf("its reader gave no proper reply: %w", err)
	}
	return image, nil
}
