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

// Originals reads the files that documents were read from.
type Originals interface {
	// Original returns the bytes of a document's file. The error is or wraps
	// [ingest.ErrChanged], [ingest.ErrElsewhere] or [fs.ErrNotExist].
	Original(ctx context.Context, doc *ingest.Document) ([]byte, error)
	// Here is false for a document whose file is known to be on another server.
	Here(ctx context.Context, doc *ingest.Document) bool
}

// originalProblem says why a document's file cannot be read; nil for other errors.
func originalProblem(err error) *Problem {
	p := &Problem{Status: http.StatusNotFound, Code: "original_not_found", cause: err}
	switch {
	case errors.Is(err, ingest.ErrChanged):
		p.Code, p.Detail = "original_changed", ingest.ErrChanged.Error()
	case errors.Is(err, ingest.ErrElsewhere):
		p.Detail = "the document's file is not on this server, but on the one that it was uploaded to or that reads its folder; its text is here"
	case errors.Is(err, fs.ErrNotExist):
		p.Detail = "the document's file is no longer in its folder"
	default:
		return nil
	}
	return p
}

// originalPolicy is for an original PDF, which a browser shows in place of a page:
// nothing in it may load, run, send or be framed.
const originalPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// sendOriginal replies with a document's file: ?original=1 of the viewer's address.
// A PDF opens in the browser, at #page=N; any other file is a download, so that
// no browser runs what is in it.
func (d *documents) sendOriginal(c echo.Context, doc *ingest.Document) error {
	if d.originals == nil {
		return echo.ErrNotFound
	}
	data, err := d.originals.Original(c.Request().Context(), doc)
	if err != nil {
		if p := originalProblem(err); p != nil {
			return p
		}
		return fmt.Errorf("reading the original of %q: %w", doc.ID, err)
	}
	h := c.Response().Header()
	disposition, contentType := "attachment", echo.MIMEOctetStream
	if doc.Format == "pdf" && bytes.HasPrefix(data, []byte("%PDF-")) {
		disposition, contentType = "inline", "application/pdf"
		h.Set(echo.HeaderContentSecurityPolicy, originalPolicy)
	}
	h.Set(echo.HeaderContentType, contentType)
	h.Set(echo.HeaderContentDisposition, mime.FormatMediaType(disposition, map[string]string{"filename": path.Base(doc.Path)}))
	h.Set(echo.HeaderCacheControl, "private, no-cache")
	h.Set("ETag", fmt.Sprintf("%q", doc.Digest))
	return serveContent(c, data)
}

// serveContent replies with the data, or with the part of it or the status that
// the request's headers ask for.
func serveContent(c echo.Context, data []byte) error {
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(data))
	return nil
}

// isHere reports whether a document's file may be on this server.
func (d *documents) isHere(c echo.Context, doc *ingest.Document) bool {
	return d.originals == nil || d.originals.Here(c.Request().Context(), doc)
}

// originalLink leads to a document's file, at the page of a place; empty where
// there are no originals.
func (d *documents) originalLink(doc *ingest.Document, x excerpt, at int) string {
	if d.originals == nil {
		return ""
	}
	link := Link(d.pages.prefix(), doc.ID, 0, 0) + "?original=1"
	if x.Start < x.End {
		at = x.Start
	}
	for _, p := range doc.Pages {
		if doc.Format == "pdf" && p.Start <= at && at < p.End {
			return fmt.Sprintf("%s#page=%d", link, p.Number)
		}
	}
	return link
}
