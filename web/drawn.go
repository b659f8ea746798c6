package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/labstack/echo/v4"

	"ibid/ingest"
)

// A Drawer draws pages of documents as they look in print.
type Drawer interface {
	// Draws reports whether it can draw pages of a format.
	Draws(ctx context.Context, format string) bool
	// DrawPage draws a page, counted from 1, as a PNG of the given width in pixels,
	// with the words of the quote marked. The error is or wraps [ingest.ErrNoDrawing],
	// [ingest.ErrChanged], [fs.ErrNotExist] or an [*ingest.UnreadableError].
	DrawPage(ctx context.Context, doc *ingest.Document, page int, quote string, width int) ([]byte, error)
}

// Limits of drawn pages.
const (
	minDrawn, maxDrawn = 100, 2000 // width in pixels
	defaultDrawn       = 1200
	// shownDrawn is how many pages of one quote the viewer shows.
	shownDrawn = 3
	// maxDrawing is how many are drawn at a time: each has its file in memory.
	maxDrawing = 2
	drawnBytes = 32 << 20 // of cached pages
)

// sendDrawn replies with a picture of a page: ?drawn=N of the viewer's address, with
// the words from ?start= to ?end= marked.
func (d *documents) sendDrawn(c echo.Context, doc *ingest.Document, r textRange) error {
	q := c.QueryParams()
	number, err := strconv.Atoi(q.Get("drawn"))
	if err != nil || number < 1 {
		return invalid("bad_page", "drawn is %.40q: give the number of a page, 1 or more", q.Get("drawn"))
	}
	width := defaultDrawn
	if v := q.Get("width"); v != "" {
		if width, err = strconv.Atoi(v); err != nil || width < minDrawn || width > maxDrawn {
			return invalid("bad_width", "width is %.40q: give a number of pixels from %d to %d", v, minDrawn, maxDrawn)
		}
	}
	if !d.draws(c, doc) {
		return drawnProblem(ingest.ErrNoDrawing)
	}
	at := slices.IndexFunc(doc.Pages, func(p ingest.Page) bool { return p.Number == number })
	if at < 0 {
		return &Problem{Status: http.StatusNotFound, Code: "page_not_found", Detail: fmt.Sprintf("the document has %d pages, and no page "+
			"%d", len(doc.Pages), number)}
	}
	quote := ""
	if from, to := max(r.Start, doc.Pages[at].Start), min(r.End, doc.Pages[at].End); from < to {
		quote = doc.Text[runeStart(doc.Text, from):runeEnd(doc.Text, to)]
	}
	png, err := d.drawings.get(c.Request().Context(), drawnPage{doc.ID, doc.Digest, quote, number, width},
		func(ctx context.Context) ([]byte, error) {
			return d.drawer.DrawPage(ctx, doc, number, quote, width)
		})
	if err != nil {
		return drawnProblem(err)
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "image/png")
	h.Set("ETag", fmt.Sprintf(`"%.16x"`, sha256.Sum256(png)))
	h.Set(echo.HeaderCacheControl, "private, no-cache")
	return serveContent(c, replyTimeout, png)
}

func (d *documents) draws(c echo.Context, doc *ingest.Document) bool {
	return d.drawer != nil && d.drawer.Draws(c.Request().Context(), doc.Format)
}

// drawnProblem says why there is no picture of a page.
func drawnProblem(err error) error {
	if errors.Is(err, ingest.ErrNoDrawing) {
		return &Problem{Status: http.StatusNotFound, Code: "not_drawn", cause: err,
			Detail: "the pages of this document cannot be drawn: that needs a PDF file and PDFium; see 'ibid doctor'"}
	}
	if unreadable := (*ingest.UnreadableError)(nil); errors.As(err, &unreadable) {
		return &Problem{Status: http.StatusUnprocessableEntity, Code: "unreadable_file", Detail: err.Error(), cause: err}
	}
	if p := originalProblem(err); p != nil {
		return p
	}
	return fmt.Errorf("drawing a page: %w", err)
}

// A drawnLink leads to a drawn page.
type drawnLink struct {
	Page int    `json:"page"`
	Link string `json:"link"`
}

// drawnLinks are the pages that the viewer shows: those of the quoted words, or
// the one at a place in the text.
func (d *documents) drawnLinks(c echo.Context, doc *ingest.Document, x excerpt, at int) (links []drawnLink) {
	if len(doc.Pages) == 0 || !d.draws(c, doc) {
		return nil
	}
	start, end := x.Start, x.End
	if start == end {
		start = min(at, len(doc.Text))
		end = start + 1
	}
	for _, p := range doc.Pages {
		if p.Start >= end || p.End <= start || len(links) == shownDrawn {
			continue
		}
		q := url.Values{"drawn": {strconv.Itoa(p.Number)}}
		if x.Start < x.End {
			q.Set("start", strconv.Itoa(x.Start))
			q.Set("end", strconv.Itoa(x.End))
		}
		links = append(links, drawnLink{p.Number, Link(d.pages.prefix(), doc.ID, 0, 0) + "?" + q.Encode()})
	}
	return links
}

// A drawnPage is the key of a cached page.
type drawnPage struct {
	document, digest, quote string
	page, width             int
}

// drawings caches the pages used last.
type drawings struct {
	working chan struct{} // a slot for each page that is being drawn

	mu    sync.Mutex
	pages map[drawnPage][]byte
	used  []drawnPage // the latest last
	bytes int
	count drawingCount
}

// A drawingCount counts the use of the cache.
type drawingCount struct{ hits, misses, bytes int }

func (d *drawings) counts() drawingCount {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count.bytes = d.bytes
	return d.count
}

func newDrawings() *drawings {
	return &drawings{working: make(chan struct{}, maxDrawing), pages: make(map[drawnPage][]byte)}
}

// get returns a page from the cache, or draws it when a slot is free.
func (d *drawings) get(ctx context.Context, key drawnPage, draw func(context.Context) ([]byte, error)) ([]byte, error) {
	if png, ok := d.cached(key); ok {
		return png, nil
	}
	select {
	case d.working <- struct{}{}:
		defer func() { <-d.working }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if png, ok := d.cached(key); ok {
		return png, nil // drawn for another request meanwhile
	}
	png, err := draw(ctx)
	if err != nil {
		return nil, err
	}
	d.add(key, png)
	return png, nil
}

func (d *drawings) cached(key drawnPage) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	png, ok := d.pages[key]
	if ok {
		d.count.hits++
		at := slices.Index(d.used, key)
		d.used = append(slices.Delete(d.used, at, at+1), key)
	}
	return png, ok
}

// add caches a page, and drops those that were not used for the longest time.
func (d *drawings) add(key drawnPage, png []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count.misses++
	if _, ok := d.pages[key]; ok || len(png) > drawnBytes {
		return
	}
	d.pages[key], d.used, d.bytes = png, append(d.used, key), d.bytes+len(png)
	for d.bytes > drawnBytes {
		d.bytes -= len(d.pages[d.used[0]])
		delete(d.pages, d.used[0])
		d.used = slices.Delete(d.used, 0, 1)
	}
}
