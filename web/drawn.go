package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/ingest"
)

// A Drawer draws pages of documents as they are printed.
type Drawer interface {
	// Draws says whether the pages of documents of a format can be drawn.
	Draws(ctx context.Context, format string) bool
	// DrawPage draws a page, counted from 1, so many pixels wide, as a PNG, with
	// the words of the quote marked. The error is one of [ingest.ErrNoDrawing],
	// [ingest.ErrChanged], [fs.ErrNotExist] when the file is gone, and
	// [*ingest.UnreadableError], or wraps it.
	DrawPage(ctx context.Context, doc *ingest.Document, page int, quote string, width int) ([]byte, error)
}

// Limits of drawn pages.
const (
	minDrawn, maxDrawn = 100, 2000 // width in pixels
	defaultDrawn       = 1200
	// shownDrawn is the number of pages that a viewer shows of a quote that
	// runs over several.
	shownDrawn = 3
	// maxDrawing is how many are drawn at a time: each holds its file.
	maxDrawing = 2
	drawnBytes = 32 << 20 // of drawn pages that are kept
)

// drawn is a page of a document as it is printed: ?drawn= of the viewer's
// address, with the words from ?start= to ?end= marked.
func (s *server) drawn(c echo.Context, d *ingest.Document, r textRange) error {
	q := c.QueryParams()
	page, err := strconv.Atoi(q.Get("drawn"))
	if err != nil || page < 1 {
		return invalid("bad_page", "drawn is %.40q: give the number of a page, 1 or more", q.Get("drawn"))
	}
	width := defaultDrawn
	if v := q.Get("width"); v != "" {
		if width, err = strconv.Atoi(v); err != nil || width < minDrawn || width > maxDrawn {
			return invalid("bad_width", "width is %.40q: give a number of pixels from %d to %d", v, minDrawn, maxDrawn)
		}
	}
	if !s.draws(c, d) {
		return drawnProblem(ingest.ErrNoDrawing)
	}
	at := slices.IndexFunc(d.Pages, func(p ingest.Page) bool { return p.Number == page })
	if at < 0 {
		return &Problem{Status: http.StatusNotFound, Code: "page_not_found", Detail: fmt.Sprintf("the document has %d pages, and no page %d", len(d.Pages), page)}
	}
	quote := ""
	if from, to := max(r.Start, d.Pages[at].Start), min(r.End, d.Pages[at].End); from < to {
		quote = d.Text[runeStart(d.Text, from):runeEnd(d.Text, to)]
	}
	key := drawnPage{d.ID, d.Digest, quote, page, width}
	png, err := s.drawings.get(c.Request().Context(), key, func(ctx context.Context) ([]byte, error) {
		return s.Drawer.DrawPage(ctx, d, page, quote, width)
	})
	if err != nil {
		return drawnProblem(err)
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "image/png")
	h.Set("ETag", fmt.Sprintf(`"%.16x"`, sha256.Sum256(png)))
	h.Set(echo.HeaderCacheControl, "private, no-cache")
	if err := setWriteDeadline(c.Response(), time.Now().Add(replyTimeout)); err != nil {
		return fmt.Errorf("bounding the reply: %w", err)
	}
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(png))
	return nil
}

func (s *server) draws(c echo.Context, d *ingest.Document) bool {
	return s.Drawer != nil && s.Drawer.Draws(c.Request().Context(), d.Format)
}

// drawnProblem says why there is no picture of a page.
func drawnProblem(err error) error {
	var unreadable *ingest.UnreadableError
	p := &Problem{Status: http.StatusNotFound, Detail: err.Error(), cause: err}
	switch {
	case errors.Is(err, ingest.ErrNoDrawing):
		p.Code, p.Detail = "not_drawn", "the pages of this document are not drawn: that takes a PDF file and PDFium, of which 'ibid doctor' tells more"
	case errors.Is(err, ingest.ErrChanged):
		p.Code = "original_changed"
	case errors.Is(err, ingest.ErrElsewhere):
		p.Code, p.Detail = "original_not_found", notHere
	case errors.Is(err, fs.ErrNotExist):
		p.Code, p.Detail = "original_not_found", "the file that the document was read from is not in its folder any more"
	case errors.As(err, &unreadable):
		p.Status, p.Code = http.StatusUnprocessableEntity, "unreadable_file"
	default:
		return fmt.Errorf("drawing a page: %w", err)
	}
	return p
}

// A drawnLink leads to a drawn page.
type drawnLink struct {
	Page int    `json:"page"`
	Link string `json:"link"`
}

// drawnLinks are the pages that the viewer shows: those of the quoted words, or
// else the one at the place asked for.
func (s *server) drawnLinks(c echo.Context, d *ingest.Document, x excerpt, at int) (links []drawnLink) {
	if len(d.Pages) == 0 || !s.draws(c, d) {
		return nil
	}
	start, end := x.Start, x.End
	if start == end {
		start = min(at, len(d.Text))
		end = start + 1
	}
	for _, p := range d.Pages {
		if p.Start >= end || p.End <= start || len(links) == shownDrawn {
			continue
		}
		q := url.Values{"drawn": {strconv.Itoa(p.Number)}}
		if x.Start < x.End {
			q.Set("start", strconv.Itoa(x.Start))
			q.Set("end", strconv.Itoa(x.End))
		}
		links = append(links, drawnLink{p.Number, Link(s.prefix(), d.ID, 0, 0) + "?" + q.Encode()})
	}
	return links
}

// A drawnPage says what is drawn.
type drawnPage struct {
	document, digest, quote string
	page, width             int
}

// drawings keeps the pages drawn last.
type drawings struct {
	working chan struct{} // one for each page that is being drawn

	mu    sync.Mutex
	pages map[drawnPage][]byte
	used  []drawnPage // the latest last
	bytes int
	count drawingCount
}

// A drawingCount says how often a page was kept, how often it had to be drawn,
// and how many bytes are kept.
type drawingCount struct{ hits, misses, bytes int }

func (d *drawings) counted() drawingCount {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count.bytes = d.bytes
	return d.count
}

func newDrawings() *drawings {
	return &drawings{working: make(chan struct{}, maxDrawing), pages: make(map[drawnPage][]byte)}
}

// get gives a page that is kept, or has it drawn when its turn has come.
func (d *drawings) get(ctx context.Context, key drawnPage, draw func(context.Context) ([]byte, error)) ([]byte, error) {
	if png, ok := d.kept(key); ok {
		return png, nil
	}
	select {
	case d.working <- struct{}{}:
		defer func() { <-d.working }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if png, ok := d.kept(key); ok {
		return png, nil // drawn for another while we waited
	}
	png, err := draw(ctx)
	if err != nil {
		return nil, err
	}
	d.keep(key, png)
	return png, nil
}

func (d *drawings) kept(key drawnPage) ([]byte, bool) {
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

// keep keeps a page, and as many of the others as there is room for.
func (d *drawings) keep(key drawnPage, png []byte) {
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
