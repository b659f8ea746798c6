package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"path"
	"sync"
	"time"

	"ibid/ingest/archive"
	"ibid/ingest/child"
	"ibid/ingest/format"
	"ibid/ingest/pdf"
	"ibid/ingest/pdf/pdfium"
)

// RunChild does the work of a child process if getenv shows that this process is one: it reads
// files from stdin and writes their documents to stdout. In any other process, ran is false. Call
// it first in main and in the TestMain of every package that reads documents:
//
//	if code, ran := ingest.RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); ran {
//		os.Exit(code)
//	}
func RunChild(getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) (code int, ran bool) {
	return child.Run(getenv, stdin, stdout, stderr, new(childState).handle)
}

// A childRequest is a request to a child process. The bytes of the file follow it.
type childRequest struct {
	Format    string
	Path      string            // [Document.Path]; its ending may be more specific than the format
	PDF       *pdfJob           `json:",omitempty"` // for a PDF file
	Container *containerRequest `json:",omitempty"` // to list or extract the files in it instead of reading it
}

// A childReply is the document that a child process read, or the error. The text follows it.
type childReply struct {
	Title, Partial string
	Sections       []Section
	Pages          []Page
	Lines          []Line `json:",omitempty"`
	Meta           map[string]string
	Scanned        []int           // PDF pages with a picture and no text
	Marked         []pdfium.Rect   // on a drawn page
	Entries        []archive.Entry // files in the container
	Error          string
	Skip           bool // Error is the reason of a [SkipError]
	text           string
}

// isScan reports whether all pages of a PDF file are scans.
func (reply childReply) isScan() bool { return reply.Error != "" && len(reply.Scanned) > 0 }

// fill copies the reply into a document.
func (reply childReply) fill(doc *Document) error {
	switch {
	case reply.Skip:
		return &SkipError{Reason: reply.Error}
	case reply.Error != "":
		return errors.New(reply.Error)
	}
	doc.Title, doc.Text, doc.Partial = reply.Title, reply.text, reply.Partial
	doc.Sections, doc.Pages, doc.Lines, doc.Meta = reply.Sections, reply.Pages, reply.Lines, maps.Clone(reply.Meta)
	return nil
}

// readInChild has a child process read a file into the document.
func (r *Reader) readInChild(ctx context.Context, format string, doc *Document, data []byte) error {
	reply, err := r.askOnce(ctx, childRequest{Format: format, Path: doc.Path}, doc.Digest, data)
	if err != nil {
		return err
	}
	return reply.fill(doc)
}

// Limits of the replies kept for copies of their files: their number and the bytes of each.
const (
	keptReplies    = 16
	keptReplyBytes = 2 << 20
)

// askOnce is like askChild, but reads identical files only once if few other files come between
// them.
func (r *Reader) askOnce(ctx context.Context, request childRequest, digest string, data []byte) (childReply, error) {
	key := digest + path.Ext(request.Path)
	r.cachedMu.Lock()
	ask := r.cached[key]
	if ask == nil {
		if r.cached == nil || len(r.cached) >= keptReplies {
			r.cached = make(map[string]func() (childReply, error))
		}
		ask = sync.OnceValues(func() (childReply, error) { return r.askChild(ctx, request, data) })
		r.cached[key] = ask
	}
	r.cachedMu.Unlock()
	reply, err := ask()
	if err != nil || len(reply.text) > keptReplyBytes {
		r.cachedMu.Lock()
		delete(r.cached, key)
		r.cachedMu.Unlock()
	}
	if ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return r.askChild(ctx, request, data) // the first caller gave up
	}
	return reply, err
}

func (r *Reader) askChild(ctx context.Context, request childRequest, data []byte) (childReply, error) {
	var reply childReply
	text, err := r.pool().Ask(ctx, request.Format, request, data, &reply)
	reply.text = text
	return reply, err
}

// A pdfJob says how a child process reads or draws a PDF file.
type pdfJob struct {
	Folder  string              // with PDFium's code
	Cache   string              // folder of the compiled code; empty for none
	Draw    *pdfium.DrawOptions // draw a page instead of reading
	Picture bool                // the data is tesseract's table for a picture
	// Recognised maps page numbers to tesseract's tables for pages without text.
	Recognised map[int][]byte `json:",omitempty"`
}

// pdfPatience limits the processor time for the pages of a file. Pages not read by then are
// reported.
const pdfPatience = (child.Seconds - 4) * time.Second

// A childState is the state that a child process keeps between files.
type childState struct {
	engine *pdfium.Engine // nil until needed
}

// handle is the [child.Handler] of readers.
func (w *childState) handle(message json.RawMessage, data []byte) (any, string) {
	var request childRequest
	var reply childReply
	err := json.Unmarshal(message, &request)
	if err == nil {
		err = callReader(request.Format, func() error { return w.work(request, data, &reply) })
	}
	if err != nil {
		var skip *SkipError
		reply.Error, reply.Skip = err.Error(), errors.As(err, &skip)
	}
	return reply, reply.text
}

func (w *childState) work(request childRequest, data []byte, reply *childReply) (err error) {
	doc := &Document{Path: request.Path}
	switch job := request.PDF; {
	case request.Container != nil:
		return request.Container.answer(request.Path, data, reply)
	case job != nil && job.Draw != nil:
		return w.draw(*job, data, reply)
	case job != nil:
		err = readPDF(doc, *job, data, reply)
	default:
		f := formatNamed(request.Format)
		if err = f.readInto(doc, data); !f.isolated {
			reply.Lines = doc.Lines
		}
	}
	reply.Title, reply.text, reply.Partial = doc.Title, doc.Text, doc.Partial
	reply.Sections, reply.Pages, reply.Meta = doc.Sections, doc.Pages, doc.Meta
	return err
}

func readPDF(doc *Document, job pdfJob, data []byte, reply *childReply) (err error) {
	begun := child.ProcessorTime()
	var file *pdf.File
	if job.Picture {
		file, err = pdf.ReadPicture(data)
	} else {
		late := func() bool { return child.ProcessorTime()-begun > pdfPatience }
		file, err = pdf.Read(data, pdf.Options{Recognised: job.Recognised, Late: late})
	}
	if blank := (*pdf.NoTextError)(nil); errors.As(err, &blank) {
		if blank.Blank && !job.Picture {
			return &SkipError{Reason: "empty: nothing is on its pages"}
		}
		for n := range blank.Pages {
			reply.Scanned = append(reply.Scanned, n+1)
		}
	}
	if err != nil {
		return err
	}
	format.PDF(doc, file)
	reply.Scanned = file.Scanned
	return nil
}

// draw draws a page. The picture becomes the text of the reply.
func (w *childState) draw(job pdfJob, data []byte, reply *childReply) error {
	if w.engine == nil {
		code, _, err := pdfium.Code(job.Folder)
		if err == nil {
			w.engine, err = pdfium.Open(code, job.Cache)
		}
		if err != nil {
			return err
		}
	}
	d, err := w.engine.Draw(data, *job.Draw)
	if err == nil {
		reply.text, reply.Marked = string(d.PNG), d.Marked
	}
	return err
}
