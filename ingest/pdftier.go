package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ibid/ingest/child"
	"ibid/ingest/pdf/pdfium"
	"ibid/ingest/pdf/poppler"
)

// The ways to read PDF files, the best first.
const (
	PDFium    = "pdfium"    // PDFium, compiled to WebAssembly: see [PDFOptions.Folder]
	PDFToText = "pdftotext" // a program of the Poppler project, where it is installed
	PDFGo     = "go"        // Ibid's own: always available
	// PDFAuto is the best that is available.
	PDFAuto = "auto"
)

// NoOCR as [PDFOptions.Languages] leaves pictures and scans unread.
const NoOCR = "off"

// PDFOptions say how PDF files, scans and pictures are read. The zero value uses
// no other program: [PDFGo], and no recognition of text.
type PDFOptions struct {
	// Tier is PDFAuto, PDFium, PDFToText or PDFGo; empty means PDFGo. With
	// PDFAuto, [PDFGo] reads the files on which the best one fails.
	Tier string
	// Folder is where PDFium's code is looked for, as [pdfium.FileName], and where
	// the compiled code is kept; empty for none.
	Folder string
	// Languages of scans and pictures, as tesseract names them, joined by "+";
	// empty for its default, [NoOCR] to read none.
	Languages string
}

// Check reports which option is not available, and what to do.
func (o PDFOptions) Check() error {
	_, err := o.find()
	return err
}

// OCR returns the path of tesseract; empty when scans and pictures are not read.
func (o PDFOptions) OCR() string {
	if o.Tier == "" || o.Languages == NoOCR {
		return ""
	}
	return child.Program("tesseract")
}

// A pdfPlan is how this machine fulfils the options.
type pdfPlan struct {
	PDFInUse
	job                            pdfJob // for children
	pdftotext, pdftoppm, tesseract string // paths of programs; empty for none
}

// PDFInUse says how PDF files are read.
type PDFInUse struct {
	Tier string // PDFium, PDFToText or PDFGo
	// From is "part of this program" or a path.
	From string
	// Trouble says why a better one that is available is not in use.
	Trouble string
}

// find looks for the programs and for PDFium.
func (o PDFOptions) find() (pdfPlan, error) {
	var p pdfPlan
	switch o.Tier {
	case "":
		p.Tier, p.From = PDFGo, "part of this program"
		return p, nil
	case PDFAuto, PDFium, PDFToText, PDFGo:
	default:
		return p, fmt.Errorf("no way to read PDF files is named %q: give %s, %s, %s or %s", o.Tier, PDFAuto, PDFium, PDFToText, PDFGo)
	}
	p.tesseract = o.OCR()
	p.pdftotext, p.pdftoppm = child.Program("pdftotext"), child.Program("pdftoppm")
	if o.Tier == PDFAuto || o.Tier == PDFium {
		_, from, err := pdfium.Code(o.Folder)
		switch {
		case err == nil && (o.Tier == PDFium || !pdfium.Slow()):
			p.Tier, p.From = PDFium, from
			p.job = pdfJob{Folder: o.Folder}
			return p, nil
		case err == nil:
			p.Trouble = "PDFium is there, but would be slow on this processor"
		case o.Tier == PDFium:
			return p, fmt.Errorf("%w: %s", err, GetPDFium(o.Folder))
		case !errors.Is(err, pdfium.ErrNone):
			p.Trouble = err.Error()
		}
	}
	if o.Tier == PDFAuto || o.Tier == PDFToText {
		if p.pdftotext != "" {
			p.Tier, p.From = PDFToText, p.pdftotext
			return p, nil
		}
		if o.Tier == PDFToText {
			return p, errors.New("pdftotext is not installed: install poppler-utils")
		}
	}
	p.Tier, p.From = PDFGo, "part of this program"
	return p, nil
}

// pdfVersion is increased when the same PDF file gives a better text than before.
// Stored documents of older versions are then read again.
const pdfVersion = 1

// withoutOCR ends the reader's name of a file whose scanned pages were not read.
const withoutOCR = " without OCR"

// outdated reports whether a file would be read better now than by the reader of
// the stored document.
func (r *Reader) outdated(name, reader string) bool {
	f, ok := formatOf(name)
	if !ok || f.name != "pdf" {
		return false
	}
	plan, err := r.plan()
	if err != nil {
		return false
	}
	reader, missing := strings.CutSuffix(reader, withoutOCR)
	tier, number, _ := strings.Cut(reader, " ")
	version, err := strconv.Atoi(number)
	if err != nil { // it was stored before readers were noted
		return true
	}
	better := []string{PDFGo, PDFToText, PDFium}
	old, now := slices.Index(better, tier), slices.Index(better, plan.Tier)
	return now > old || now == old && (version < pdfVersion || missing && plan.checkOCR() == nil)
}

// GetPDFium says how to get PDFium for a folder.
func GetPDFium(folder string) string {
	b := pdfium.Builds()[0]
	return fmt.Sprintf("run 'npm pack %s', and put %s of the archive it makes into %s",
		b.Package, strings.TrimPrefix(b.Path, "package/"), folder)
}

// A pdfState is what a Reader looks for once.
type pdfState struct {
	found, compiled sync.Once
	plan            pdfPlan
	err             error
}

// plan returns how this reader reads PDF files. The first call looks for the
// programs.
func (r *Reader) plan() (pdfPlan, error) {
	r.pdfs.found.Do(func() { r.pdfs.plan, r.pdfs.err = r.PDF.find() })
	return r.pdfs.plan, r.pdfs.err
}

// preparedPlan is plan for reading a file: the first call has PDFium compiled.
func (r *Reader) preparedPlan(ctx context.Context) (pdfPlan, error) {
	plan, err := r.plan()
	r.pdfs.compiled.Do(func() {
		s := &r.pdfs
		if err != nil || plan.Tier != PDFium || r.PDF.Folder == "" {
			return
		}
		cache := filepath.Join(r.PDF.Folder, cacheFolder)
		if err := compilePDFium(ctx, r.PDF.Folder, cache); err != nil {
			// Every child compiles it then, in a second or two.
			s.plan.Trouble = fmt.Sprintf("the compiled PDFium cannot be kept in %s, so that every process compiles it: %v", cache, err)
			return
		}
		s.plan.job.Cache = cache
	})
	return r.pdfs.plan, r.pdfs.err
}

// PDFInUse returns how this reader reads PDF files.
func (r *Reader) PDFInUse(ctx context.Context) (PDFInUse, error) {
	p, err := r.preparedPlan(ctx)
	return p.PDFInUse, err
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
	plan, err := r.preparedPlan(ctx)
	if err != nil {
		return err
	}
	job := plan.job
	job.Tier, job.Fallback = plan.Tier, r.PDF.Tier == PDFAuto
	reply, err := r.askPDF(ctx, doc, job, data, plan)
	missing := false
	if err == nil && reply.Scan > 0 {
		err = r.readScan(ctx, doc, data, plan, reply.Scan)
	} else if err == nil {
		if reply, missing, err = r.withScans(ctx, doc, job, data, plan, reply); err == nil {
			err = reply.into(doc)
		}
	}
	// Not the fallback, because the better one would fail on it again.
	reader := fmt.Sprintf("%s %d", plan.Tier, pdfVersion)
	if missing {
		reader += withoutOCR
	}
	doc.SetReader(reader)
	return err
}

// askPDF has a child read the file, or the output of pdftotext.
func (r *Reader) askPDF(ctx context.Context, doc *Document, job pdfJob, data []byte, plan pdfPlan) (childReply, error) {
	request := childRequest{Format: doc.Format, Path: doc.Path, PDF: &job}
	if job.Tier != PDFToText {
		return r.askChild(ctx, request, data)
	}
	out, err := r.pdftotext(ctx, plan.pdftotext, data)
	if err == nil {
		return r.askChild(ctx, request, out)
	}
	if !job.Fallback || ctx.Err() != nil {
		return childReply{}, err
	}
	job.Tier = PDFGo
	return r.askChild(ctx, request, data)
}

func (r *Reader) pdftotext(ctx context.Context, path string, data []byte) ([]byte, error) {
	t := child.Task{Name: PDFToText, Limit: child.Seconds * time.Second, MaxOutput: child.MaxOutput}
	out, err := r.runProgram(ctx, data, t, func(name string) []string {
		return slices.Concat([]string{path}, poppler.Arguments(), []string{name, "-"})
	})
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 { // it runs with -q
		return nil, errors.New("pdftotext cannot read it: it is damaged, or protected by a password")
	}
	return out, err
}
