package web

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/semaphore"

	"ibid/ingest"
	"ibid/retrieve"
)

// documents serves the stored documents: lists of them, their text, and their pages.
type documents struct {
	*catalog
	pages     *pages
	drawer    Drawer              // nil: no pages are drawn
	originals Originals           // nil: only text is shown
	drawing   *semaphore.Weighted // a slot for each page that is being drawn
	uploads   Uploads             // nil: nothing can be added
}

// listing is the reply of GET /api/documents.
type listing struct {
	// Documents are those after the id in ?after=, ?limit= at most.
	Documents []retrieve.DocumentInfo `json:"documents"`
	// More means that others follow.
	More bool `json:"more"`
	// Total counts all that match the filter.
	Total int `json:"total"`
	// Troubles are the files that the last sync could not read.
	Troubles []ingest.Change `json:"troubles"`
	Indexing Indexing        `json:"indexing"`
}

// list lists what is stored.
func (d *documents) list(c echo.Context) error {
	l, err := d.listing(c, -1)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, l)
}

// listing is the list that the query asks for, with limit documents at most unless
// the query has a limit; a negative one is none.
func (d *documents) listing(c echo.Context, limit int) (listing, error) {
	ctx, q := c.Request().Context(), c.QueryParams()
	f := retrieve.Filter{Collection: q.Get("collection"), Root: q.Get("root"), PathPrefix: q.Get("path_prefix"),
		Format: q.Get("format"), Tags: q["tag"], Author: q.Get("author")}
	if err := f.Language.UnmarshalText([]byte(q.Get("language"))); err != nil {
		return listing{}, err
	}
	for _, date := range []struct {
		name string
		into *retrieve.Date
	}{{"since", &f.Since}, {"until", &f.Until}} {
		if err := date.into.UnmarshalText([]byte(q.Get(date.name))); err != nil {
			return listing{}, wrongDate(err, date.name)
		}
	}
	if v := q.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return listing{}, invalid("bad_limit", "limit is %.40q: give a number, 0 or more", v)
		}
		limit = n
	}
	all, err := d.Documents(ctx, f)
	if err != nil {
		return listing{}, fmt.Errorf("listing the documents: %w", err)
	}
	failed, err := d.failedFiles(ctx)
	if err != nil {
		return listing{}, err
	}
	l := listing{Documents: []retrieve.DocumentInfo{}, Total: len(all), Troubles: failed, Indexing: d.indexing()}
	for _, info := range all {
		if info.ID <= q.Get("after") {
			continue
		}
		if limit >= 0 && len(l.Documents) >= limit {
			l.More = true
			break
		}
		l.Documents = append(l.Documents, info)
	}
	return l, nil
}

// shownDocument is the reply of GET /api/documents/ID.
type shownDocument struct {
	excerpt
	// Drawn are pictures of the pages at the place.
	Drawn []drawnLink `json:"drawn,omitempty"`
	// Original is the address of the file, where that is on this server.
	Original string `json:"original,omitempty"`
}

// show replies with the text around a place in a document.
func (d *documents) show(c echo.Context) error {
	doc, r, err := d.find(c, "/api/documents/")
	if err != nil {
		return err
	}
	shown := shownDocument{excerpt: excerptOf(doc, r)}
	if d.isHere(c, doc) {
		shown.Drawn, shown.Original = d.drawnLinks(c, doc, shown.excerpt, r.At), d.originalLink(doc, shown.excerpt, r.At)
	}
	return reply(c, http.StatusOK, shown)
}

// find returns the document, and the range of it, that an address names.
func (d *documents) find(c echo.Context, route string) (*ingest.Document, textRange, error) {
	id, r, err := parseLink(c.Request().URL, route)
	if err != nil {
		return nil, r, err
	}
	doc, err := d.document(c.Request().Context(), id, "")
	return doc, r, err
}

// viewer is the page of one document, with the quoted words marked. It needs no JavaScript.
func (d *documents) viewer(c echo.Context) error {
	doc, r, err := d.find(c, "/documents/")
	if err != nil {
		return err
	}
	if c.QueryParams().Has("drawn") {
		return d.sendDrawn(c, doc, r)
	}
	if c.QueryParams().Has("original") {
		return d.sendOriginal(c, doc)
	}
	x := excerptOf(doc, r)
	page := viewerPage{frame: d.pages.frame(x.Title), excerpt: x, Link: Link(d.pages.prefix(), x.Document, 0, 0), Elsewhere: !d.isHere(c, doc)}
	if !page.Elsewhere {
		page.Drawn, page.Original = d.drawnLinks(c, doc, x, r.At), d.originalLink(doc, x, r.At)
	}
	return d.pages.send(c, http.StatusOK, "viewer", page)
}

// pageOfDocuments is how many documents one page lists.
const pageOfDocuments = 250

// listPage is the list of documents as a page that needs no JavaScript.
func (d *documents) listPage(c echo.Context) error {
	l, err := d.listing(c, pageOfDocuments)
	if err != nil {
		return err
	}
	caller := holderFrom(c.Request().Context())
	p := documentsPage{frame: d.pages.frame("Documents"), listing: l, MayChange: d.uploads != nil && (caller == nil || caller.key.Write)}
	if l.More && len(l.Documents) > 0 {
		q := c.QueryParams()
		q.Set("after", l.Documents[len(l.Documents)-1].ID)
		p.Next = "?" + q.Encode()
	}
	return d.pages.send(c, http.StatusOK, "documents", p)
}
