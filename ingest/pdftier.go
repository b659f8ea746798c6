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
	PDFGo     = "go"        // Ibid's own: always there
	// PDFAuto stands for the best that is there.
	PDFAuto = "auto"
)

// NoOCR as [PDFOptions.Languages] leaves pictures and scans unread.
const NoOCR = "off"

// PDFOptions say how PDF files, scans and pictures are read. The zero value
// asks for nothing outside this program: [PDFGo], and no recognition of text.
type PDFOptions struct {
	// Tier is PDFAuto, PDFium, PDFToText or PDFGo; empty means PDFGo. With
	// PDFAuto a file that the best way fails on is read by [PDFGo].
	Tier string
	// Folder is one of Ibid's own, for PDFium: its code may lie there as
	// [pdfium.FileName], where it is no part of this program, and what is
	// compiled of it is kept there. Empty for none.
	Folder string
	// Languages of scans and pictures, as tesseract names them, joined by "+";
	// empty for its default, [NoOCR] to read none.
	Languages string
}

// Check says what of the options cannot be had, and what to do about it.
func (o PDFOptions) Check() error {
	_, err := o.find()
	return err
}

// OCR gives the path of tesseract; empty when scans and pictures are not read.
func (o PDFOptions) OCR() string {
	if o.Tier == "" || o.Languages == NoOCR {
		return ""
	}
	return child.Program("tesseract")
}

// A pdfPlan is what the options come to on this machine.
type pdfPlan struct {
	PDFInUse
	job                            pdfJob // what a child is told
	pdftotext, pdftoppm, tesseract string // paths of programs; empty for none
}

// PDFInUse says how PDF files are read.
type PDFInUse struct {
	Tier string // PDFium, PDFToText or PDFGo
	// From says where it comes from: "part of this program" or a path.
	From string
	// Trouble says why a better one that is there is not in use; empty when
	// there is none.
	Trouble string
}

// find looks for what there is.
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

// pdfVersion numbers what is made of PDF files. Where the same file gives a
// better text, or better pages, than it did before, it is one more: what is
// stored of unchanged files is read anew then.
const pdfVersion = 1

// withoutOCR ends what is noted of a file whose scanned pages were not read.
const withoutOCR = " without OCR"

// outdated says whether a file would be read better now than by the reader of
// what is stored of it.
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
	if err != nil { // it was stored before this was noted
		return true
	}
	better := []string{PDFGo, PDFToText, PDFium}
	old, now := slices.Index(better, tier), slices.Index(better, plan.Tier)
	return now > old || now == old && (version < pdfVersion || missing && plan.recognises() == nil)
}

// GetPDFium says how a person gets PDFium for a folder.
func GetPDFium(folder string) string {
	b := pdfium.Builds()[0]
	return fmt.Sprintf("run 'npm pack %s', and put %s of the archive it makes into %s", b.Package, strings.TrimPrefix(b.Path, "package/"), folder)
}

// A pdfState is what a Reader finds out once.
type pdfState struct {
	found, compiled sync.Once
	plan            pdfPlan
	err             error
}

// plan says how this reader reads PDF files. The first call looks for what
// there is.
func (r *Reader) plan() (pdfPlan, error) {
	r.pdfs.found.Do(func() { r.pdfs.plan, r.pdfs.err = r.PDF.find() })
	return r.pdfs.plan, r.pdfs.err
}

// pdf is plan for who reads a file: the first call has PDFium compiled when
// that is new.
func (r *Reader) pdf(ctx context.Context) (pdfPlan, error) {
	plan, err := r.plan()
	r.pdfs.compiled.Do(func() {
		s := &r.pdfs
		if err != nil || plan.Tier != PDFium || r.PDF.Folder == "" {
			return
		}
		cache := filepath.Join(r.PDF.Folder, cacheFolder)
		if err := compilePDFium(ctx, r.PDF.Folder, cache); err != nil {
			// Every child compiles it then, which takes it a second or two.
			s.plan.Trouble = fmt.Sprintf("what is compiled of PDFium cannot be kept in %s, and is compiled again and again: %v", cache, err)
			return
		}
		s.plan.job.Cache = cache
	})
	return r.pdfs.plan, r.pdfs.err
}

// PDFInUse says how this reader reads PDF files.
func (r *Reader) PDFInUse(ctx context.Context) (PDFInUse, error) {
	p, err := r.pdf(ctx)
	return p.PDFInUse, err
}

// Child processes in the role of the compiler compile PDFium, once for all
// children. folderVariable holds its folders.
const (
	roleCompiler   = "compiler"
	folderVariable = "IBID_FOLDERS"
)

// cacheFolder is where compiled code is kept, in a folder of Ibid's own.
const cacheFolder = "compiled"

// compilePDFium has a process compile PDFium into a folder, unless it is there.
// That takes more memory than this process should.
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

// readPDFFile reads a PDF file the way that the options say.
func (r *Reader) readPDFFile(ctx context.Context, doc *Document, data []byte) error {
	plan, err := r.pdf(ctx)
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
	// Not by what it fell back to: the better one would fail on it again.
	reader := fmt.Sprintf("%s %d", plan.Tier, pdfVersion)
	if missing {
		reader += withoutOCR
	}
	doc.SetReader(reader)
	return err
}

// askPDF has a child read the file, after pdftotext where that is the way.
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
	out, err := r.runProgram(ctx, data, child.Task{Name: PDFToText, Limit: child.Seconds * time.Second, MaxOutput: child.MaxOutput}, func(name string) []string {
		return slices.Concat([]string{path}, poppler.Arguments(), []string{name, "-"})
	})
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 { // it was told to be quiet
		return nil, errors.New("pdftotext cannot read it: it is damaged, or protected by a password")
	}
	return out, err
}
