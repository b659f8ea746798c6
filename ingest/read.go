package ingest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"ibid/ingest/charset"
	"ibid/ingest/child"
)

// DefaultMaxBytes is the default size in bytes of the largest file that is read.
const DefaultMaxBytes = 64 << 20

// largeTree is the size in bytes from which a file of a tree format is read in a child process.
const largeTree = 4 << 20

// A Reader reads files into documents. Its zero value is ready for use by any number of goroutines.
type Reader struct {
	// MaxBytes is the size of the largest file that is read; 0 means [DefaultMaxBytes].
	MaxBytes int64
	// PDF configures reading PDF files, scans and pictures.
	PDF PDFOptions

	once     sync.Once
	children *child.Pool
	cachedMu sync.Mutex
	cached   map[string]func() (childReply, error) // by digest and ending
	planning sync.Mutex
	pdfs     pdfPlan
}

// Close ends the idle child processes, which otherwise end by themselves after a while. The reader
// remains usable.
func (r *Reader) Close() { r.pool().Close() }

// Deaths returns the number of child processes that crashed on a file or reached their limit of
// time or memory.
func (r *Reader) Deaths() int64 { return r.pool().Deaths() }

func (r *Reader) pool() *child.Pool {
	r.once.Do(func() {
		r.children = child.NewPool("reader")
		// End the processes of a reader that was not closed.
		runtime.AddCleanup(r, (*child.Pool).Close, r.children)
	})
	return r.children
}

func (r *Reader) maxBytes() int64 { return cmp.Or(r.MaxBytes, DefaultMaxBytes) }

// refuse returns the reason why a file with this name and size is not read, or nil.
func (r *Reader) refuse(name string, size int64) error {
	if _, ok := formatOf(name); !ok && !isContainer(name) {
		return &SkipError{Reason: fmt.Sprintf("%s files are not read", endingOf(name))}
	}
	if size == 0 {
		return &SkipError{Reason: "empty"}
	}
	if size > r.maxBytes() {
		return &SkipError{Reason: fmt.Sprintf("larger than %d MB: split it", r.maxBytes()>>20)}
	}
	return nil
}

// readerVersion is incremented when a file yields better text or chunks than before. Stored
// documents of older versions are then read again once.
const readerVersion = 27

// readerName is the value of [ReaderKey] for documents read now.
func readerName() string { return fmt.Sprintf("go %d", readerVersion) }

// withoutOCR is the suffix of [ReaderKey] for a file whose scanned pages were not read.
const withoutOCR = " without OCR"

// outdated reports whether reading a file now gives a better result than the stored one.
func (r *Reader) outdated(reader string) bool {
	reader, missing := strings.CutSuffix(reader, withoutOCR)
	_, number, _ := strings.Cut(reader, " ")
	version, err := strconv.Atoi(number)
	// Documents stored before readers were recorded have an empty name, which is not a number.
	return err != nil || version < readerVersion || missing && r.plan().checkOCR() == nil
}

// Read reads one file in the format that its name implies. The caller sets the document's ID and
// root. The error is a [*SkipError] if there is nothing to read in the file. Any other error
// describes a fault in the file.
func (r *Reader) Read(ctx context.Context, name string, data []byte) (*Document, error) {
	return r.read(ctx, name, data, false)
}

// read is like Read. If isolated is set, it runs every parser of trees in a child process.
func (r *Reader) read(ctx context.Context, name string, data []byte, isolated bool) (*Document, error) {
	err := r.refuse(name, int64(len(data)))
	if err != nil {
		return nil, err
	}
	f, ok := formatOf(name)
	if !ok {
		return nil, &SkipError{Reason: "it is an archive, which is read as a folder: ingest the folder that contains it"}
	}
	doc := &Document{Path: name, Format: f.name, Digest: digestOf(data)}
	ending := endingOf(name)
	if kind := binaryKind(data); kind != "" && !f.binary {
		switch {
		case ending != "":
			return nil, fmt.Errorf("it is %s, but its name ends with %s: give it the right extension", kind, ending)
		case kind == aProgram:
			return nil, &SkipError{Reason: kind}
		}
		return nil, fmt.Errorf("it is %s, and its name has no extension: add the extension of its format", kind)
	}
	switch {
	case f.name == "pdf":
		err = r.readPDFFile(ctx, doc, data)
	case f.name == "image":
		err = r.readPicture(ctx, doc, data)
	case f.isolated || f.tree && (isolated || len(data) > largeTree):
		err = r.readInChild(ctx, f.name, doc, data)
	default:
		err = f.readInto(doc, data)
	}
	if err != nil {
		if errors.Is(err, charset.ErrBinary) && ending == "" {
			return nil, &SkipError{Reason: "a binary file"}
		}
		return nil, err
	}
	if doc.Text == "" {
		return nil, &SkipError{Reason: strings.TrimSuffix("empty: there is no text in it; "+doc.Partial, "; ")}
	}
	if err := f.refuseGarbled(doc.Text); err != nil {
		return nil, err
	}
	if doc.Meta[ReaderKey] == "" {
		setMeta(doc, ReaderKey, readerName())
	}
	base := path.Base(name)
	if doc.Title = oneLine(doc.Title); doc.Title == oneLine(base) || doc.Title == "" && ending == "" { // as in source code
		doc.Title = visibleName(base)
	} else if doc.Title == "" {
		doc.Title = visibleName(strings.TrimSuffix(base, path.Ext(base)))
	}
	return doc, nil
}

// digestOf returns the [Document.Digest] of the bytes of a file.
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// refuseGarbled returns the reason why a text in the format is not read, or nil.
func (f fileFormat) refuseGarbled(text string) error {
	letter := text[:1]
	switch {
	case !charset.IsMisread(text) && (f.data || !charset.IsGarbled(text)):
		return nil
	case strings.Trim(text, letter) == "":
		return fmt.Errorf("there are no words in it: it repeats the character %s", letter)
	case strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }):
		return errors.New("its text is garbled, in an unknown encoding or from a broken font: save it again as UTF-8, or as PDF")
	}
	return errors.New("its text is garbled: its letters form no words, as in a cipher or with a broken font; " +
		"save it again with the program that wrote it")
}

// oneLine collapses white space to single spaces: a title of several lines could look like a list
// of sources.
func oneLine(title string) string { return strings.Join(strings.Fields(title), " ") }

// visibleName returns the name of a file with escapes for the characters that break lines, command
// a terminal or change the reading direction. It keeps joiners.
func visibleName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && r != 0x200C && r != 0x200D {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// aProgram is the only binary kind that is skipped. Files of the other kinds are misnamed.
const aProgram = "a program"

// binaryKind returns the format that the first bytes of a file indicate.
func binaryKind(data []byte) string {
	for _, k := range [...]struct{ magic, name string }{
		{"%PDF-", "a PDF"}, {"PK\x03\x04", "a zip archive or office file"}, {"\x1f\x8b", "a gzip archive"},
		{"\x89PNG", "a PNG picture"}, {"\xff\xd8\xff", "a JPEG picture"}, {"GIF8", "a GIF picture"},
		{"\x7fELF", aProgram}, {"MZ\x90", aProgram}, {"\xd0\xcf\x11\xe0", "an old office file"}, {"7z\xbc\xaf", "a 7z archive"},
	} {
		if bytes.HasPrefix(data, []byte(k.magic)) {
			return k.name
		}
	}
	return ""
}
