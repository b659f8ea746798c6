package web

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"ibid/ingest"
	"ibid/retrieve"
)

// listing is the reply of GET /api/documents.
type listing struct {
	// Documents are those after the id in ?after=, ?limit= at most.
	Documents []retrieve.DocumentInfo `json:"documents"`
	// More says that others follow.
	More bool `json:"more"`
	// Total counts all that the filter lets through.
	Total int `json:"total"`
	// Troubles are the files that the last sync could not take in.
	Troubles []ingest.Change `json:"troubles"`
	Indexing Indexing        `json:"indexing"`
}

// documents lists what is stored.
func (s *server) documents(c echo.Context) error {
	l, err := s.listing(c, -1)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, l)
}

// listing is the list that the query asks for, at most limit documents unless
// it says otherwise; less than 0 is no limit.
func (s *server) listing(c echo.Context, limit int) (listing, error) {
	q := c.QueryParams()
	f := retrieve.Filter{Collection: q.Get("collection"), Root: q.Get("root"), PathPrefix: q.Get("path_prefix"), Format: q.Get("format"), Tags: q["tag"], Author: q.Get("author")}
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
	all, err := s.Library.Documents(c.Request().Context(), f)
	if err != nil {
		return listing{}, fmt.Errorf("listing the documents: %w", err)
	}
	troubles, err := s.troubles(c.Request().Context())
	if err != nil {
		return listing{}, err
	}
	l := listing{Documents: []retrieve.DocumentInfo{}, Total: len(all), Troubles: troubles, Indexing: s.indexing()}
	if l.Troubles == nil {
		l.Troubles = []ingest.Change{}
	}
	for _, d := range all {
		if d.ID <= q.Get("after") {
			continue
		}
		if limit >= 0 && len(l.Documents) >= limit {
			l.More = true
			break
		}
		l.Documents = append(l.Documents, d)
	}
	return l, nil
}

// document gives the text around a place in a document.
func (s *server) document(c echo.Context) error {
	d, r, err := s.named(c, "/api/documents/")
	if err != nil {
		return err
	}
	x := excerptOf(d, r)
	if !s.here(c, d) {
		return reply(c, http.StatusOK, shownDocument{excerpt: x})
	}
	return reply(c, http.StatusOK, shownDocument{x, s.drawnLinks(c, d, x, r.At), s.originalLink(d, x, r.At)})
}

// shownDocument is the reply of GET /api/documents/ID.
type shownDocument struct {
	excerpt
	// Drawn are pictures of the pages at the place.
	Drawn []drawnLink `json:"drawn,omitempty"`
	// Original is the address of the file, where that is on this server.
	Original string `json:"original,omitempty"`
}

// named gives the document, and the range of it, that an address names.
func (s *server) named(c echo.Context, route string) (*ingest.Document, textRange, error) {
	id, r, err := linked(c.Request().URL, route)
	if err != nil {
		return nil, r, err
	}
	d, err := s.Library.Document(c.Request().Context(), id)
	if errors.Is(err, retrieve.ErrNotFound) {
		return nil, r, &Problem{Status: http.StatusNotFound, Code: "document_not_found", cause: err,
			Detail: fmt.Sprintf("there is no document %.200q in the library: it may have been renamed or removed since", id)}
	}
	if err != nil {
		return nil, r, fmt.Errorf("reading %q from the library: %w", id, err)
	}
	return d, r, nil
}

// viewer is the page of one document, with the quoted words marked. It needs no JavaScript.
func (s *server) viewer(c echo.Context) error {
	d, r, err := s.named(c, "/documents/")
	if err != nil {
		return err
	}
	if c.QueryParams().Has("drawn") {
		return s.drawn(c, d, r)
	}
	if c.QueryParams().Has("original") {
		return s.original(c, d)
	}
	x := excerptOf(d, r)
	page := viewerPage{frame: s.frame(x.Title), excerpt: x, Link: Link(s.prefix(), x.Document, 0, 0), Elsewhere: !s.here(c, d)}
	if !page.Elsewhere {
		page.Drawn, page.Original = s.drawnLinks(c, d, x, r.At), s.originalLink(d, x, r.At)
	}
	return s.page(c, http.StatusOK, "viewer", page)
}

// pageOfDocuments is how many documents one page lists.
const pageOfDocuments = 250

// documentList is the list of documents as a page that needs no JavaScript.
func (s *server) documentList(c echo.Context) error {
	l, err := s.listing(c, pageOfDocuments)
	if err != nil {
		return err
	}
	p := documentsPage{frame: s.frame("Documents"), listing: l, MayChange: s.mayChange(c)}
	if l.More && len(l.Documents) > 0 {
		q := c.QueryParams()
		q.Set("after", l.Documents[len(l.Documents)-1].ID)
		p.Next = "?" + q.Encode()
	}
	return s.page(c, http.StatusOK, "documents", p)
}

// mayChange says whether who sends a request may add and delete documents.
func (s *server) mayChange(c echo.Context) bool {
	who := holderFrom(c.Request().Context())
	return s.Uploads != nil && (who == nil || who.key.Write)
}

func (s *server) home(c echo.Context) error {
	return s.page(c, http.StatusOK, "home", homePage{frame: s.frame(""), Kept: s.Ledger != nil && s.KeepAnswers > 0, Keyed: s.keys != nil,
		Modules: []string{"answer.js", "blocks.js", "conversation.js", "copy.js", "dom.js", "evidence.js", "history.js", "past.js", "peek.js", "source.js", "stream.js"}})
}
