package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ibid/ingest/pdf"
	"ibid/ingest/pdf/pdfium"
	"ibid/ingest/pdf/poppler"
	"ibid/ingest/pdf/tesseract"
)

// A pdfJob tells a child how a PDF file is read, or drawn.
type pdfJob struct {
	Tier     string              // PDFium, PDFGo; PDFToText and recognised: the data is what a program wrote
	Fallback bool                // when the tier fails, PDFGo is tried
	Folder   string              // with PDFium's code
	Cache    string              // with what is compiled of it; empty for none
	Draw     *pdfium.DrawOptions // draw a page, and read nothing
	// Recognised holds what tesseract found on pages that have no text of
	// their own, by number.
	Recognised map[int][]byte `json:",omitempty"`
}

// recognised is the tier of text that tesseract found.
const recognised = "tesseract"

// pdfPatience is how long the pages of a file are read. What is left then is
// named, and what was read is kept.
const pdfPatience = (childSeconds - 4) * time.Second

// A workshop is what a child keeps from one file to the next.
type workshop struct {
	engine *pdfium.Engine // nil until it is needed
	made   pdfJob         // what engine was made for
}

// read reads one file by the reader of its format.
func (w *workshop) read(request childRequest, data []byte) childReply {
	f, ok := formatNamed(request.Format)
	if !ok {
		return childReply{Error: fmt.Sprintf("no reader is named %q", request.Format)}
	}
	doc := &Document{Path: request.Path}
	var scanned []int
	if job := request.PDF; job != nil {
		if job.Draw != nil {
			return w.draw(f, *job, data)
		}
		f.read = func(doc *Document, data []byte) (err error) { scanned, err = w.readPDF(doc, *job, data); return err }
	}
	if err := f.into(doc, data); err != nil {
		var skip *SkipError
		var blank *pdf.NoTextError
		reply := childReply{Error: err.Error(), Skip: errors.As(err, &skip)}
		if errors.As(err, &blank) {
			reply.Scan = blank.Pages
		}
		return reply
	}
	reply := childReply{Title: doc.Title, text: doc.Text, Partial: doc.Partial, Sections: doc.Sections, Pages: doc.Pages, Meta: doc.Meta, Scanned: scanned}
	if !f.isolated {
		reply.Lines = doc.Lines
	}
	return reply
}

// readPDF gives the pages that are scanned, beside others with text.
func (w *workshop) readPDF(doc *Document, job pdfJob, data []byte) (scanned []int, err error) {
	file, err := w.lay(job, data)
	if err != nil && job.Fallback && job.Tier != PDFGo && job.Tier != PDFToText && !errors.Is(err, pdf.ErrEncrypted) {
		// What is not there for the one is for the other now and then.
		var blank *pdf.NoTextError
		if second, e := w.lay(pdfJob{Tier: PDFGo, Recognised: job.Recognised}, data); e == nil || errors.As(e, &blank) {
			file, err = second, e
		}
	}
	if err != nil {
		return nil, err
	}
	putTogether(doc, file)
	return file.Scanned, nil
}

// lay reads and lays out a file.
func (w *workshop) lay(job pdfJob, data []byte) (*pdf.File, error) {
	var source *pdf.Source
	var err error
	switch job.Tier {
	case PDFium:
		if err = w.open(job); err == nil {
			source, err = w.engine.Read(context.Background(), data)
		}
	case PDFToText:
		source, err = poppler.Parse(data)
	case recognised:
		source = tesseract.Parse(data)
	default:
		source, err = pdf.Read(data)
	}
	if err != nil {
		return nil, err
	}
	return pdf.Lay(withRecognised(source, job.Recognised).Until(time.Now().Add(pdfPatience)))
}

// withRecognised gives the source with what was recognised on its pages.
func withRecognised(source *pdf.Source, tables map[int][]byte) *pdf.Source {
	if len(tables) == 0 {
		return source
	}
	whole := *source
	whole.Pages = func(yield func(pdf.Drawn) bool) {
		n := 0
		for page := range source.Pages {
			n++
			if table, ok := tables[n]; ok && len(page.Glyphs) == 0 {
				page = pdf.Drawn{Glyphs: tesseract.Words(table, scanDPI), Err: page.Err}
			}
			if !yield(page) {
				return
			}
		}
	}
	return &whole
}

// open makes the engine.
func (w *workshop) open(job pdfJob) error {
	job = pdfJob{Folder: job.Folder, Cache: job.Cache}
	ctx := context.Background()
	if w.engine != nil && w.made.Folder == job.Folder && w.made.Cache == job.Cache {
		return nil
	}
	if w.engine != nil {
		if err := w.engine.Close(ctx); err != nil {
			return err
		}
		w.engine = nil
	}
	code, _, err := pdfium.Code(job.Folder)
	if err != nil {
		return err
	}
	w.engine, err = pdfium.Open(ctx, code, job.Cache)
	w.made = job
	return err
}

// draw draws a page. The reply's text is the picture, and its error says why
// there is none.
func (w *workshop) draw(f format, job pdfJob, data []byte) (reply childReply) {
	f.read = func(_ *Document, data []byte) error {
		if err := w.open(job); err != nil {
			return err
		}
		d, err := w.engine.Draw(context.Background(), data, *job.Draw)
		if err != nil {
			return err
		}
		places, err := json.Marshal(d.Marked)
		reply.text, reply.Meta = string(d.PNG), map[string]string{"marked": string(places)}
		return err
	}
	if err := f.into(&Document{}, data); err != nil {
		return childReply{Error: err.Error()}
	}
	return reply
}
