package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/ingest"
)

// Originals gives the files that documents were read from.
type Originals interface {
	// Original gives the bytes of a document's file. The error is
	// [ingest.ErrChanged], or wraps it, [ingest.ErrElsewhere] or [fs.ErrNotExist].
	Original(ctx context.Context, doc *ingest.Document) ([]byte, error)
	// Here is false for a document whose file is known to be with another server.
	Here(ctx context.Context, doc *ingest.Document) bool
}

// notHere says that an original is kept by another server.
const notHere = "the file that the document was read from is not on this server, but with the one that it was sent to, or that reads its folder; its text is here"

// originalPolicy goes with an original PDF, which a browser shows in place of
// a page: nothing of it may load, run, be sent or be framed.
const originalPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// original is the file that a document was read from: ?original=1 of the
// viewer's address. A PDF opens in the browser, at #page=N; any other is a
// download, so that no browser runs what is in it.
func (s *server) original(c echo.Context, d *ingest.Document) error {
	if s.Originals == nil {
		return echo.ErrNotFound
	}
	data, err := s.Originals.Original(c.Request().Context(), d)
	p := &Problem{Status: http.StatusNotFound, cause: err}
	switch {
	case errors.Is(err, ingest.ErrChanged):
		p.Code, p.Detail = "original_changed", ingest.ErrChanged.Error()
		return p
	case errors.Is(err, ingest.ErrElsewhere):
		p.Code, p.Detail = "original_not_found", notHere
		return p
	case errors.Is(err, fs.ErrNotExist):
		p.Code, p.Detail = "original_not_found", "the file that the document was read from is not in its folder any more"
		return p
	case err != nil:
		return fmt.Errorf("reading the original of %q: %w", d.ID, err)
	}
	h := c.Response().Header()
	disposition, contentType := "attachment", echo.MIMEOctetStream
	if d.Format == "pdf" && bytes.HasPrefix(data, []byte("%PDF-")) {
		disposition, contentType = "inline", "application/pdf"
		h.Set(echo.HeaderContentSecurityPolicy, originalPolicy)
	}
	h.Set(echo.HeaderContentType, contentType)
	h.Set(echo.HeaderContentDisposition, mime.FormatMediaType(disposition, map[string]string{"filename": path.Base(d.Path)}))
	h.Set(echo.HeaderCacheControl, "private, no-cache")
	h.Set("ETag", fmt.Sprintf("%q", d.Digest))
	if err := setWriteDeadline(c.Response(), time.Now().Add(originalTimeout)); err != nil {
		return fmt.Errorf("bounding the reply: %w", err)
	}
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(data))
	return nil
}

// originalTimeout is how long a client may take to fetch an original.
const originalTimeout = 5 * time.Minute

// here says whether a document's original may be on this server.
func (s *server) here(c echo.Context, d *ingest.Document) bool {
	return s.Originals == nil || s.Originals.Here(c.Request().Context(), d)
}

// originalLink leads to a document's original, at a page of it if it has any;
// empty where there are no originals.
func (s *server) originalLink(d *ingest.Document, x excerpt, at int) string {
	if s.Originals == nil {
		return ""
	}
	link := Link(s.prefix(), d.ID, 0, 0) + "?original=1"
	if x.Start < x.End {
		at = x.Start
	}
	for _, p := range d.Pages {
		if d.Format == "pdf" && p.Start <= at && at < p.End {
			return fmt.Sprintf("%s#page=%d", link, p.Number)
		}
	}
	return link
}
