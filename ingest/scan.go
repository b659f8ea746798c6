package ingest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // to measure pictures
	_ "image/jpeg"
	_ "image/png"
	"time"

	"ibid/ingest/child"
	"ibid/ingest/pdf"
	"ibid/ingest/pdf/pdfium"
)

// Limits of text recognition.
const (
	pageSeconds = 30              // per page or picture
	scanTime    = 5 * time.Minute // per file
	maxScan     = 200             // pages per file
	maxTable    = 32 << 20        // bytes of the text of a page
	// leastPicture is the width and height in pixels below which a picture is an icon.
	leastPicture = 64
)

// errNoOCR is the reason why a scan is not read.
var errNoOCR = &SkipError{Reason: "no readable text (scanned, or garbled by its fonts): install tesseract to read it"}

// checkOCR returns the reason why scans are not read, or nil.
func (p pdfPlan) checkOCR() error {
	if p.tesseract == "" {
		return errNoOCR
	}
	if p.from == "" {
		return &SkipError{Reason: "no readable text (scanned, or garbled by its fonts): tesseract needs PDFium to read it; " +
			"'ibid doctor' says how to install PDFium"}
	}
	return nil
}

// withScans reads the file again with text recognised on pages that have no text. said describes
// the pages that were not read.
func (r *Reader) withScans(
	ctx context.Context, doc *Document, data []byte, plan pdfPlan, pages []int,
) (reply childReply, said string, err error) {
	job := plan.job
	job.Recognised = make(map[int][]byte)
	var trouble error // of the first page that could not be read
	end := time.Now().Add(scanTime)
	for i, n := range pages {
		if i == maxScan || time.Now().After(end) {
			said = fmt.Sprintf("only the first %d of %d scanned pages were read", i, len(pages))
			break
		}
		picture, err := r.draw(ctx, data, plan, pdfium.DrawOptions{Page: n, DPI: pdf.ScanDPI})
		if err == nil {
			job.Recognised[n], err = r.recognise(ctx, plan.tesseract, []byte(picture.text))
		}
		if ctx.Err() != nil {
			return reply, "", ctx.Err()
		}
		if err != nil {
			trouble = cmp.Or(trouble, fmt.Errorf("page %d: %w", n, err))
			said = "not every page of the scan could be read: " + trouble.Error()
		}
	}
	if reply, err = r.askPDF(ctx, doc, job, data); err == nil && reply.isScan() {
		err = cmp.Or(trouble, errNotRecognised)
	}
	return reply, said, err
}

// errNotRecognised is the reason why a scan or picture without letters is not read.
var errNotRecognised error = &SkipError{Reason: "no text was recognised in it"}

// draw has a child process draw a page with PDFium.
func (r *Reader) draw(ctx context.Context, data []byte, plan pdfPlan, o pdfium.DrawOptions) (childReply, error) {
	job := plan.job
	job.Draw = &o
	reply, err := r.askChild(ctx, childRequest{Format: "pdf", PDF: &job}, data)
	if err == nil && reply.Error != "" {
		err = &UnreadableError{reply.Error}
	}
	return reply, err
}

// recognise returns tesseract's table of the text in a picture.
func (r *Reader) recognise(ctx context.Context, path string, picture []byte) ([]byte, error) {
	release, err := r.pool().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	args := append([]string{path}, pdf.TesseractArguments(r.PDF.Languages)...)
	t := child.Task{Name: "tesseract", Args: args, Stdin: bytes.NewReader(picture), Limit: pageSeconds * time.Second, MaxOutput: maxTable}
	return t.Run(ctx)
}

// readPicture recognises the text in a picture.
func (r *Reader) readPicture(ctx context.Context, doc *Document, data []byte) error {
	plan := r.plan()
	if plan.tesseract == "" {
		return &SkipError{Reason: "a picture: install tesseract to read the text in pictures"}
	}
	if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil && (c.Width < leastPicture || c.Height < leastPicture) {
		return &SkipError{Reason: fmt.Sprintf("a picture of %d × %d pixels: too small to hold text", c.Width, c.Height)}
	}
	table, err := r.recognise(ctx, plan.tesseract, data)
	if err != nil {
		return err
	}
	reply, err := r.askPDF(ctx, doc, pdfJob{Picture: true}, table)
	if err == nil && reply.isScan() {
		err = errNotRecognised
	}
	if err != nil {
		return err
	}
	reply.Pages = nil
	return reply.fill(doc)
}

// ErrNoDrawing means that pages can't be drawn because PDFium is not available.
var ErrNoDrawing = errors.New("drawing pages needs PDFium")

// DrawPage draws a page of a PDF file, numbered from 1, in a child process. The picture is width
// pixels wide and marks the words of the quote, if any. The error is [ErrNoDrawing], or an
// [*UnreadableError] for the file.
func (r *Reader) DrawPage(ctx context.Context, data []byte, page int, quote string, width int) (*pdfium.Drawing, error) {
	plan := r.plan()
	if plan.from == "" {
		return nil, ErrNoDrawing
	}
	reply, err := r.draw(ctx, data, plan, pdfium.DrawOptions{Page: page, Quote: quote, Width: width})
	if err != nil {
		return nil, err
	}
	return &pdfium.Drawing{PNG: []byte(reply.text), Marked: reply.Marked}, nil
}
