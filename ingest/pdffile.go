package ingest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"ibid/ingest/child"
	"ibid/ingest/format"
	"ibid/ingest/pdf/pdfium"
)

// NoOCR as [PDFOptions.Languages] disables reading pictures and scans.
const NoOCR = "off"

// PDFOptions configure the programs that help to read PDF files, scans and pictures.
type PDFOptions struct {
	// Helped allows PDFium to draw pages, and tesseract to recognise text, if available.
	Helped bool
	// Folder is searched for PDFium's code, named [pdfium.FileName], and keeps the compiled code;
	// empty for none.
	Folder string
	// Languages of scans and pictures, as tesseract names them, joined by "+". Empty means
	// tesseract's default, and [NoOCR] disables reading them.
	Languages string
}

// OCR returns the path of tesseract, or "" if scans and pictures are not read.
func (o PDFOptions) OCR() string {
	if !o.Helped || o.Languages == NoOCR {
		return ""
	}
	return child.Program("tesseract")
}

// A pdfPlan describes the programs on this machine that the options allow.
type pdfPlan struct {
	job       pdfJob // for child processes
	from      string // source of PDFium: "part of this program" or a path; empty for none
	trouble   string // why PDFium is not in use, or slow
	tesseract string // a path; empty for none
}

// find searches for tesseract and PDFium, and compiles PDFium unless it is compiled already.
func (o PDFOptions) find() (p pdfPlan) {
	if !o.Helped {
		return p
	}
	p.tesseract = o.OCR()
	code, from, err := pdfium.Code(o.Folder)
	if err == nil && pdfium.Slow() {
		err = errors.New("PDFium is available, but slow on this processor")
	}
	if err != nil {
		if !errors.Is(err, pdfium.ErrNone) {
			p.trouble = err.Error()
		}
		return p
	}
	if p.from, p.job.Folder = from, o.Folder; o.Folder == "" {
		return p
	}
	p.job.Cache = filepath.Join(o.Folder, "compiled")
	engine, err := pdfium.Open(code, p.job.Cache)
	if err == nil {
		err = engine.Close()
	}
	if err != nil { // every child process then compiles it, in a second or two
		p.trouble = fmt.Sprintf("compiled PDFium code cannot be stored in %s, so every process compiles it again: %v", p.job.Cache, err)
		p.job.Cache = ""
	}
	return p
}

// plan returns the plan of this reader. It searches again while PDFium is missing, since PDFium may
// be installed at any time.
func (r *Reader) plan() pdfPlan {
	r.planning.Lock()
	defer r.planning.Unlock()
	if r.pdfs.from == "" && r.pdfs.trouble == "" {
		r.pdfs = r.PDF.find()
	}
	return r.pdfs
}

// PDFium returns where PDFium was found, "part of this program" or a path, and why it is not in use
// or slow. Both are empty if PDFium is not installed.
func (r *Reader) PDFium() (from, trouble string) {
	p := r.plan()
	return p.from, p.trouble
}

// readPDFFile reads a PDF file as configured.
func (r *Reader) readPDFFile(ctx context.Context, doc *Document, data []byte) error {
	plan := r.plan()
	reply, err := r.askOnce(ctx, childRequest{Format: doc.Format, Path: doc.Path, PDF: &plan.job}, doc.Digest, data)
	if err != nil {
		return err
	}
	said, missing := "", plan.checkOCR()
	switch {
	case len(reply.Scanned) == 0:
		missing = nil
	case missing == nil:
		if reply, said, err = r.withScans(ctx, doc, data, plan, reply.Scanned); err != nil {
			return err
		}
	case reply.isScan():
		return missing
	default:
		said = fmt.Sprintf("%s of %d: %v", format.ListPages(reply.Scanned), len(reply.Pages), missing)
	}
	if err := reply.fill(doc); err != nil {
		return err
	}
	if said != "" {
		doc.Partial = strings.TrimPrefix(doc.Partial+"; "+said, "; ")
	}
	if missing != nil {
		setMeta(doc, ReaderKey, readerName()+withoutOCR)
	}
	return nil
}

// askPDF has a child process read the file.
func (r *Reader) askPDF(ctx context.Context, doc *Document, job pdfJob, data []byte) (childReply, error) {
	return r.askChild(ctx, childRequest{Format: doc.Format, Path: doc.Path, PDF: &job}, data)
}
