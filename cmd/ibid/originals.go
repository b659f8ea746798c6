package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"ibid/ingest"
	"ibid/retrieve"
)

// originals reads the files of the documents in a library, and draws their pages.
type originals struct {
	lib     *openedLibrary
	uploads string // folder of the uploaded files
	shared  bool   // other servers may have the files
}

// Draws reports whether pages of documents of this format can be drawn.
func (o *originals) Draws(ctx context.Context, format string) bool {
	if format != "pdf" {
		return false
	}
	use, err := o.lib.reader.PDFInUse(ctx)
	return err == nil && use.Tier == ingest.PDFium
}

// DrawPage returns a PNG of a page with a quote marked.
func (o *originals) DrawPage(ctx context.Context, doc *ingest.Document, page int, quote string, width int) ([]byte, error) {
	data, err := o.Original(ctx, doc)
	if err != nil {
		return nil, err
	}
	image, err := o.lib.reader.DrawPage(ctx, data, page, quote, width)
	if err != nil {
		return nil, err
	}
	return image.PNG, nil
}

// Original returns the file that a document was read from.
func (o *originals) Original(ctx context.Context, doc *ingest.Document) ([]byte, error) {
	dir, err := o.folder(ctx, doc)
	var data []byte
	if err == nil {
		data, err = o.lib.reader.Original(ctx, dir.FS(), doc)
		err = errors.Join(err, dir.Close())
	}
	// An upload that was replaced through another server is still here in its
	// old form.
	replaced := doc.Root == retrieve.Uploads && errors.Is(err, ingest.ErrChanged)
	if o.shared && (replaced || errors.Is(err, fs.ErrNotExist)) {
		return nil, fmt.Errorf("%w: %w", ingest.ErrElsewhere, err)
	}
	return data, err
}

// Here reports whether this machine has the file of a document, or the file
// that it is packed in.
func (o *originals) Here(ctx context.Context, doc *ingest.Document) bool {
	if !o.shared {
		return true
	}
	dir, err := o.folder(ctx, doc)
	if err != nil {
		return false
	}
	defer dir.Close()
	for name := doc.Path; name != "."; name = path.Dir(name) {
		if info, err := dir.Lstat(name); err == nil {
			return info.Mode().IsRegular()
		}
	}
	return false
}

// folder opens the folder of a document's root.
func (o *originals) folder(ctx context.Context, doc *ingest.Document) (*os.Root, error) {
	roots, err := o.lib.Roots(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of %s: %w", doc.ID, err)
	}
	at := slices.IndexFunc(roots, func(r ingest.Root) bool { return r.Name == doc.Root })
	if at < 0 {
		return nil, fmt.Errorf("finding the folder of %s: %w", doc.ID, fs.ErrNotExist)
	}
	folder := roots[at].Path
	if folder == "" {
		folder = o.uploads
	}
	dir, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of %s: %w", doc.ID, err)
	}
	return dir, nil
}

// uploadsIn returns the folder of the uploads in a data directory.
func uploadsIn(data string) string { return filepath.Join(data, "uploads") }

// elsewhereMark is a file in the folder of the uploads. It says that some
// uploaded files are not there: 'ibid copy' brought only their documents.
const elsewhereMark = ".elsewhere"

// shared reports whether documents may have their files on another machine.
func (c placeConfig) shared() bool {
	_, err := os.Lstat(filepath.Join(uploadsIn(c.Data), elsewhereMark))
	return c.remote() || err == nil
}
