package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"ibid/ingest"
	"ibid/retrieve"
)

// A drawer draws pages of the documents in a library, from their files.
type drawer struct {
	lib     *library
	uploads string // folder of the files that were uploaded
	shared  bool   // by several servers, so that a file may be with another
}

func (d *drawer) Draws(ctx context.Context, format string) bool {
	if format != "pdf" {
		return false
	}
	use, err := d.lib.reader.PDFInUse(ctx)
	return err == nil && use.Tier == ingest.PDFium
}

// Original gives the file that a document was read from.
func (d *drawer) Original(ctx context.Context, doc *ingest.Document) ([]byte, error) {
	data, err := d.original(ctx, doc)
	// An upload that another server has taken in place of one that was sent here
	// has left that one here.
	replaced := doc.Root == retrieve.Uploads && errors.Is(err, ingest.ErrChanged)
	if d.shared && (replaced || errors.Is(err, fs.ErrNotExist)) {
		return nil, fmt.Errorf("%w: %w", ingest.ErrElsewhere, err)
	}
	return data, err
}

// Here is false where the file of a shared document is not to be found. Packed
// in another, it is where that is.
func (d *drawer) Here(ctx context.Context, doc *ingest.Document) bool {
	if !d.shared {
		return true
	}
	dir, err := d.folder(ctx, doc)
	if err != nil {
		return false
	}
	defer dir.Close()
	for name := doc.Path; name != "."; name = path.Dir(name) {
		if info, err := dir.Lstat(name); err == nil {
			return info.Mode().IsRegular() // it, or what it is packed in
		}
	}
	return false
}

func (d *drawer) original(ctx context.Context, doc *ingest.Document) (data []byte, err error) {
	dir, err := d.folder(ctx, doc)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return d.lib.reader.Original(ctx, dir.FS(), doc)
}

// folder opens the folder of a document's root.
func (d *drawer) folder(ctx context.Context, doc *ingest.Document) (*os.Root, error) {
	roots, err := d.lib.Roots(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of %s: %w", doc.ID, err)
	}
	at := slices.IndexFunc(roots, func(r ingest.Root) bool { return r.Name == doc.Root })
	if at < 0 {
		return nil, fmt.Errorf("finding the folder of %s: %w", doc.ID, fs.ErrNotExist)
	}
	folder := roots[at].Path
	if folder == "" {
		folder = d.uploads
	}
	dir, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of %s: %w", doc.ID, err)
	}
	return dir, nil
}

func (d *drawer) DrawPage(ctx context.Context, doc *ingest.Document, page int, quote string, width int) ([]byte, error) {
	data, err := d.Original(ctx, doc)
	if err != nil {
		return nil, err
	}
	image, err := d.lib.reader.DrawPage(ctx, data, page, quote, width)
	if err != nil {
		return nil, err
	}
	return image.PNG, nil
}
