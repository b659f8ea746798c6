package web

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"slices"
	"strings"
	"sync"

	"ibid/ingest"
	"ibid/retrieve"
)

// growing is a library that accepts uploads.
type growing struct {
	mu sync.Mutex
	shelf
	mended bool // the unreadable upload was deleted
}

func (g *growing) get() shelf {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.shelf)
}

func (g *growing) Document(ctx context.Context, id string) (*ingest.Document, error) {
	return g.get().Document(ctx, id)
}

func (g *growing) Documents(ctx context.Context, f retrieve.Filter) ([]retrieve.DocumentInfo, error) {
	return g.get().Documents(ctx, f)
}

func (g *growing) Holds(ctx context.Context, f retrieve.Filter) (bool, error) {
	return g.get().Holds(ctx, f)
}

func (g *growing) Add(_ context.Context, name string, content io.Reader, _ map[string]string) (ingest.Change, error) {
	text, err := io.ReadAll(content)
	if err != nil {
		return ingest.Change{}, err
	}
	if strings.HasSuffix(name, ".exe") {
		return ingest.Change{}, &ingest.SkipError{Reason: ".exe files are not read: Ibid reads " + ingest.Formats()}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	id := "uploads/" + name
	g.shelf = slices.DeleteFunc(g.shelf, func(d *ingest.Document) bool { return d.ID == id })
	g.shelf = append(g.shelf, &ingest.Document{ID: id, Root: "uploads", Path: name, Title: name, Format: "text", Text: string(text)})
	slices.SortFunc(g.shelf, func(a, b *ingest.Document) int { return strings.Compare(a.ID, b.ID) })
	return ingest.Change{Document: id, Root: "uploads", Path: name, Action: ingest.Added}, nil
}

func (g *growing) Reread(_ context.Context, name string, _ map[string]string) (ingest.Change, error) {
	return ingest.Change{Document: "uploads/" + name, Action: ingest.Unchanged}, nil
}

// troubles returns a file in its folder, and an upload unless it was deleted.
func (g *growing) troubles() []ingest.Change {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := []ingest.Change{{Document: "club/scan.pdf", Root: "club", Path: "scan.pdf", Action: ingest.Failed,
		Reason: "no text in it: a scan?"}}
	if !g.mended {
		list = append(list, ingest.Change{Document: "uploads/torn.pdf", Root: "uploads", Path: "torn.pdf", Action: ingest.Failed,
			Reason: "the file is incomplete"})
	}
	return list
}

func (g *growing) Remove(_ context.Context, name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mended = g.mended || name == "torn.pdf"
	g.shelf = slices.DeleteFunc(g.shelf, func(d *ingest.Document) bool { return d.ID == "uploads/"+name })
	return nil
}

// recordedInto adds to the same uploads for each collection and sends the collections'
// names.
type recordedInto struct {
	oneFolder
	names chan string
}

func (r recordedInto) CollectionUploads(_ context.Context, collection string) (Uploads, error) {
	r.names <- collection
	return r.Uploads, nil
}

// printed draws a page as lines of grey words; the words of a quote are marked.
type printed struct{}

func (printed) CanDraw(_ context.Context, format string) bool { return format == "pdf" }

func (printed) DrawPage(_ context.Context, _ *ingest.Document, page int, quote string, width int) ([]byte, error) {
	if page > 9 {
		return nil, fmt.Errorf("page %d: %w", page, ingest.ErrNoDrawing)
	}
	sheet := image.NewRGBA(image.Rect(0, 0, width, width*14/10))
	fill := func(x, y, w, h int, c color.Color) {
		at := image.Rect(x*width/100, y*width/100, (x+w)*width/100, (y+h)*width/100)
		draw.Draw(sheet, at, image.NewUniform(c), image.Point{}, draw.Src)
	}
	fill(0, 0, 100, 140, color.White)
	fill(12, 12, 30, 3, color.Gray{70})
	for line := range 30 {
		if line == 0 || line%8 == 0 {
			continue // between paragraphs
		}
		if quote != "" && (line == 11 || line == 12) {
			fill(11, 18+4*line-1, 78, 4, color.RGBA{255, 231, 154, 255})
		}
		for x := 12; x < 84; x += 3 + (x*line)%7 {
			fill(x, 18+4*line, 2+(x*line)%7, 2, color.Gray{120})
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, sheet)
	return out.Bytes(), err
}
