package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"ibid/cite"
	"ibid/ingest"
	"ibid/ingest/site"
	"ibid/retrieve"
)

// Uploads stores documents that people send; [ingest.Uploads] is one. The name of an upload
// is the path of its document.
type Uploads interface {
	Add(ctx context.Context, name string, content io.Reader, meta map[string]string) (ingest.Change, error)
	Reread(ctx context.Context, name string, meta map[string]string) (ingest.Change, error)
	Remove(ctx context.Context, name string) error
}

// UploadFolders finds the uploads of each collection.
type UploadFolders interface {
	// CollectionUploads returns the uploads of a collection, creating a folder for them if
	// necessary. The error is or wraps [ingest.ErrCollection] if no folder can have this
	// name.
	CollectionUploads(ctx context.Context, collection string) (Uploads, error)
	// RootUploads returns the uploads in a root, and its collection. The files of a root that
	// is not for uploads can only be read again; other methods return
	// [ingest.ErrNotUploaded]. The error is or wraps [fs.ErrNotExist] if the root does not
	// exist.
	RootUploads(ctx context.Context, root string) (u Uploads, collection string, err error)
	// Roots lists the roots for uploads with their collections, except the root of
	// [Options.UploadCollection].
	Roots(ctx context.Context) ([]ingest.Root, error)
	// Rename renames a collection, also in the keys for it. The error is or wraps
	// [ingest.ErrCollection], [retrieve.ErrTaken], or [fs.ErrNotExist] if the collection has
	// roots that are not for uploads.
	Rename(ctx context.Context, from, to string) error
	// Delete deletes a collection with its files and, unless keepAnswers is set, the answers
	// that used them. Keys lose access to it, and keys for it alone are revoked. The error is
	// or wraps [fs.ErrNotExist] as for Rename.
	Delete(ctx context.Context, collection string, keepAnswers bool) error
}

// Sites adds web sites, which are read in the background.
type Sites interface {
	// AddSite adds the site or page at an address to a collection. If collection is empty, a
	// known site stays in its collection and a new one gets the server's. The error is or
	// wraps [ingest.ErrCollection], [retrieve.ErrTaken] if the site is in another collection,
	// or a [*site.RefusedError] if it is not fetched.
	AddSite(ctx context.Context, address, collection string) (ingest.Root, error)
	// SiteStates lists the sites that this server reads, by address.
	SiteStates() []SiteState
}

// A SiteState is the progress of reading a web site.
type SiteState struct {
	Address string `json:"address"`
	Reading bool   `json:"reading"`
	// Done is how many of the Total pages known so far were requested; all if the site has been read.
	Done  int `json:"done"`
	Total int `json:"total"`
	// Notices are about pages left out: limits reached, pages excluded by robots.txt.
	Notices []site.Notice `json:"notices,omitempty"`
	// Error says why the site could not be read.
	Error string `json:"error,omitempty"`
}

// addSite adds the web site at an address to the collection in ?collection=, if given.
func (d *documents) addSite(c echo.Context, address string) error {
	in := c.QueryParam("collection")
	root, err := d.sites.AddSite(c.Request().Context(), address, in)
	if errors.Is(err, retrieve.ErrTaken) {
		return problem(http.StatusConflict, "wrong_collection", "the site is in another collection: 'ibid forget' removes it").
			withField("collection").withCause(err)
	}
	return sendValue(c, http.StatusAccepted, root, collectionProblem(in, err))
}

// uploadsRoot is the root of uploaded documents.
const uploadsRoot = "uploads"

// add adds the web site in ?url=, or stores a file: the body of the request, named by ?name=,
// or the only file of a form.
func (d *documents) add(c echo.Context) error {
	if address := c.QueryParam("url"); address != "" {
		return d.addSite(c, address)
	}
	uploads, err := d.uploadsFor(c)
	if err != nil {
		return err
	}
	meta, err := parseLabels(c.QueryParams()).check()
	if err != nil {
		return err
	}
	name, content := c.QueryParam("name"), io.Reader(c.Request().Body)
	form, noForm := c.Request().MultipartReader()
	if noForm == nil {
		part, err := nextFile(form)
		if err != nil {
			return invalid("no_file", "the form has no complete file: send a file with its name (%v)", err)
		}
		name, content = cmp.Or(name, part.FileName()), part
	}
	if name == "" {
		return invalid("no_name", "the file has no name: give it in the query (?name=report.pdf), or send the file in a form")
	}
	change, err := uploads.Add(c.Request().Context(), name, content, meta)
	if err != nil {
		return err
	}
	if noForm == nil {
		if _, err := nextFile(form); err == nil {
			return invalid("one_file", "the form has several files, and only %q was stored: send each file in a separate request", name)
		}
	}
	status, added := http.StatusOK, addedDocument{Change: change}
	if change.Action == ingest.Added {
		status = http.StatusCreated
	}
	doc, err := d.catalog.Document(c.Request().Context(), change.Document)
	if err == nil {
		added.AlsoIn, err = d.catalog.copies(c.Request().Context(), doc)
	}
	if err != nil && !errors.Is(err, retrieve.ErrNotFound) { // an archive is no document, only the files in it are
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, Link(d.pages.address.prefix(), change.Document, 0, 0))
	return reply(c, status, added)
}

// addedDocument is the reply of POST /api/documents.
type addedDocument struct {
	ingest.Change
	// AlsoIn are the other documents with identical files that the caller may see.
	AlsoIn []string `json:"also_in,omitempty"`
}

// nextFile returns the next part of a form that is a file.
func nextFile(form *multipart.Reader) (*multipart.Part, error) {
	for {
		if part, err := form.NextPart(); err != nil || part.FileName() != "" {
			return part, err
		}
	}
}

// uploadsFor returns the uploads that a request adds to: the collection in ?collection=, or
// the only collection that the caller may change.
func (d *documents) uploadsFor(c echo.Context) (Uploads, error) {
	ctx, in := c.Request().Context(), c.QueryParam("collection")
	if caller := holderFrom(ctx); in == "" && caller != nil && len(caller.writableCollections()) == 1 {
		in = caller.writableCollections()[0]
	}
	return d.catalog.folders.CollectionUploads(ctx, cmp.Or(in, d.catalog.uploads))
}

// fileProblem converts an error about a file or a collection for clients; it returns nil for
// other errors.
func fileProblem(err error) *Problem {
	var skip *ingest.SkipError
	var unreadable *ingest.UnreadableError
	var refused *site.RefusedError
	switch {
	case errors.Is(err, ingest.ErrNotUploaded):
		return problem(http.StatusForbidden, "not_an_upload", "%v", ingest.ErrNotUploaded)
	case errors.Is(err, ingest.ErrUploadName), errors.Is(err, ingest.ErrUploadPath):
		return problem(http.StatusBadRequest, "bad_name", "%v", err)
	case errors.Is(err, ingest.ErrUploadSize):
		return problem(http.StatusRequestEntityTooLarge, "file_too_large", "%v", err)
	case errors.Is(err, ingest.ErrUploadSpace):
		return problem(http.StatusInsufficientStorage, "no_room", "%v", err)
	case errors.Is(err, ingest.ErrUploadsMissing):
		return problem(http.StatusConflict, "uploads_missing", "%v", ingest.ErrUploadsMissing)
	case errors.As(err, &skip):
		return problem(http.StatusUnsupportedMediaType, "unsupported_format", "%v", err)
	case errors.As(err, &unreadable):
		return problem(http.StatusUnprocessableEntity, "unreadable_file", "%v", err)
	case errors.As(err, &refused):
		return problem(http.StatusForbidden, "bad_address", "%v", refused).withField("url")
	case errors.Is(err, ingest.ErrCollection):
		return invalidField("collection", "bad_collection", "%v", err)
	case errors.Is(err, retrieve.ErrTaken):
		return problem(http.StatusConflict, "collection_exists", "another collection has this name").withField("collection")
	case errors.Is(err, ingest.ErrNoDrawing):
		return problem(http.StatusNotFound, "not_drawn",
			"the pages of this document cannot be drawn, which needs a PDF file and PDFium: see 'ibid doctor'")
	case errors.Is(err, ingest.ErrChanged):
		return problem(http.StatusNotFound, "original_changed", "%v", ingest.ErrChanged)
	case errors.Is(err, ingest.ErrElsewhere):
		return problem(http.StatusNotFound, "original_not_found",
			"the document's file is not on this server, but on the one that it was uploaded to or that reads its folder; its text is here")
	}
	return nil
}

// findUpload returns the upload that an address names: its root's uploads, its name there, and
// the id of its document.
func (d *documents) findUpload(c echo.Context) (in Uploads, name, id string, err error) {
	if id, _, err = parseLink(c.Request().URL, "/api/documents/"); err != nil {
		return nil, "", "", err
	}
	root, name, _ := strings.Cut(id, "/")
	in, _, err = d.catalog.folders.RootUploads(c.Request().Context(), root)
	if errors.Is(err, fs.ErrNotExist) || err == nil && name == "" {
		err = ingest.ErrNotUploaded
	}
	return in, name, id, d.changeProblem(c, name, id, err)
}

func (d *documents) changeProblem(c echo.Context, name, id string, err error) error {
	if errors.Is(err, ingest.ErrNotUploaded) {
		if _, missing := d.catalog.document(c.Request().Context(), id, ""); missing != nil {
			return missing
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return problem(http.StatusNotFound, "document_not_found", "there is no file %.200q: it may have been deleted", name).withCause(err)
	}
	return err
}

// labels are the metadata of an upload that filters can use: the body of PATCH
// /api/documents/ID. An empty label restores the value in the file.
type labels struct {
	Tags     *[]string `json:"tags"`
	Author   *string   `json:"author"`
	Date     *string   `json:"date"`
	Language *string   `json:"language"`
}

// Limits of labels.
const (
	maxLabel = 500
	maxTags  = 50
)

// parseLabels returns the labels in a query, with one ?tag= for each tag.
func parseLabels(q url.Values) (l labels) {
	if tags, given := q["tag"]; given {
		tags = slices.DeleteFunc(tags, func(tag string) bool { return tag == "" })
		l.Tags = &tags
	}
	for name, to := range map[string]**string{"author": &l.Author, "date": &l.Date, "language": &l.Language} {
		if q.Has(name) {
			*to = new(q.Get(name))
		}
	}
	return l
}

// check returns the labels as metadata.
func (l labels) check() (map[string]string, error) {
	meta := map[string]string{}
	if l.Tags != nil {
		if len(*l.Tags) > maxTags {
			return nil, invalidField("tags", "bad_label", "there are %d tags, and the limit is %d: send fewer", len(*l.Tags), maxTags)
		}
		for _, tag := range *l.Tags {
			if strings.ContainsAny(tag, ",;") {
				return nil, invalidField("tags", "bad_label", "%.80q is not a tag, because it has a comma or semicolon: send each tag separately", tag)
			}
			if err := checkLabel("tags", tag); err != nil {
				return nil, err
			}
		}
		meta["tags"] = strings.Join(*l.Tags, ", ")
	}
	if l.Date != nil {
		if err := new(retrieve.Date).UnmarshalText([]byte(*l.Date)); err != nil {
			return nil, wrongDate(err, "date")
		}
	}
	for name, value := range map[string]*string{"author": l.Author, "date": l.Date, "language": l.Language} {
		if value != nil {
			if err := checkLabel(name, *value); err != nil {
				return nil, err
			}
			meta[name] = *value
		}
	}
	return meta, nil
}

func checkLabel(name, value string) error {
	if n := utf8.RuneCountInString(value); n > maxLabel {
		return invalidField(name, "bad_label", "%s has %d characters, and the limit is %d: shorten it", name, n, maxLabel)
	}
	return nil
}

// setLabels changes the labels of an upload, which is then read again.
func (d *documents) setLabels(c echo.Context, l labels) error {
	meta, err := l.check()
	if err != nil {
		return err
	}
	return d.readAgain(c, meta)
}

func (d *documents) reread(c echo.Context) error { return d.readAgain(c, nil) }

func (d *documents) readAgain(c echo.Context, meta map[string]string) error {
	uploads, name, id, err := d.findUpload(c)
	if err != nil {
		return err
	}
	change, err := uploads.Reread(c.Request().Context(), name, meta)
	return sendValue(c, http.StatusOK, change, d.changeProblem(c, name, id, err))
}

// remove deletes an upload and, unless the query has answers=keep, the records of the answers
// that quote it.
func (d *documents) remove(c echo.Context) error {
	uploads, name, id, err := d.findUpload(c)
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(c.Request().Context())
	err = uploads.Remove(ctx, name)
	// Answers may quote a file that no longer exists.
	if c.QueryParam("answers") != "keep" && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		err = errors.Join(err, d.records.ledger.ForgetQuoting(ctx, id))
	}
	return sendNoContent(c, d.changeProblem(c, name, id, err))
}

// Originals reads the files that documents were read from.
type Originals interface {
	// Original returns the bytes of a document's file. The error is or wraps
	// [ingest.ErrChanged], [ingest.ErrElsewhere] or [fs.ErrNotExist].
	Original(ctx context.Context, doc *ingest.Document) ([]byte, error)
	// IsLocal returns false if the document's file is known to be on another server.
	IsLocal(ctx context.Context, doc *ingest.Document) bool
}

// originalProblem converts an error from reading a document's file, which may have been
// deleted.
func originalProblem(err error) error {
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ingest.ErrElsewhere) {
		return problem(http.StatusNotFound, "original_not_found", "the document's file is no longer in its folder").withCause(err)
	}
	return fmt.Errorf("reading the file of a document: %w", err)
}

// originalPolicy is the policy for an original PDF, which a browser shows as a page: nothing
// in it may load, run, send or be framed.
const originalPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// sendOriginal replies with a document's file: ?original=1 in the viewer's address. A PDF
// opens in the browser, at #page=N; any other file is downloaded, so that no browser runs its
// contents.
func (d *documents) sendOriginal(c echo.Context, doc *ingest.Document) error {
	data, err := d.originals.Original(c.Request().Context(), doc)
	if err != nil {
		return originalProblem(err)
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

// serveContent replies with the data. It honors range and conditional requests.
func serveContent(c echo.Context, data []byte) error {
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(data))
	return nil
}

// originalLink returns a link to a document's file, at the page of x, or to the address that
// it was fetched from, at the marked words.
func (d *documents) originalLink(doc *ingest.Document, x excerpt) string {
	if address := doc.Meta[ingest.AddressKey]; address != "" {
		p := retrieve.Passage{Format: doc.Format, Meta: doc.Meta}
		p.Page = doc.PageAt(x.Start)
		return cite.Original(address, p, doc.Text[x.Start:x.End])
	}
	link := Link(d.pages.address.prefix(), doc.ID, 0, 0) + "?original=1"
	if doc.Format == "pdf" && x.Page > 0 {
		return fmt.Sprintf("%s#page=%d", link, x.Page)
	}
	return link
}

// A Drawer draws pages of documents as printed.
type Drawer interface {
	// CanDraw reports whether it can draw pages of a format.
	CanDraw(ctx context.Context, format string) bool
	// DrawPage draws a page, counted from 1, as a PNG of the given width in pixels, with the
	// words of the quote marked. The error is or wraps [ingest.ErrNoDrawing],
	// [ingest.ErrChanged], [fs.ErrNotExist] or an [*ingest.UnreadableError].
	DrawPage(ctx context.Context, doc *ingest.Document, page int, quote string, width int) ([]byte, error)
}

// Limits of drawn pages.
const (
	minDrawn, maxDrawn = 100, 2000 // width in pixels
	defaultDrawn       = 1200
	// shownDrawn is the maximum number of pages that the viewer shows for one quote.
	shownDrawn = 3
	// maxDrawing is how many pages are drawn at a time; each holds its file in memory.
	maxDrawing = 2
)

// sendDrawn replies with a picture of a page: ?drawn=N in the viewer's address, with the
// words from ?start= to ?end= marked.
func (d *documents) sendDrawn(c echo.Context, doc *ingest.Document, r textRange) error {
	q := c.QueryParams()
	number, err := parseNumber(q.Get("drawn"))
	if err != nil || number < 1 {
		return invalid("bad_page", "drawn is %.40q: give the number of a page, 1 or more", q.Get("drawn"))
	}
	width := defaultDrawn
	if v := q.Get("width"); v != "" {
		if width, err = strconv.Atoi(v); err != nil || width < minDrawn || width > maxDrawn {
			return invalid("bad_width", "width is %.40q: give a number of pixels from %d to %d", v, minDrawn, maxDrawn)
		}
	}
	if !d.drawer.CanDraw(c.Request().Context(), doc.Format) {
		return ingest.ErrNoDrawing
	}
	page, err := pageOf(doc, number)
	if err != nil {
		return err
	}
	quote := ""
	if from, to := max(r.Start, page.Start), min(r.End, page.End); from < to {
		quote = doc.Text[runeStart(doc.Text, from):runeEnd(doc.Text, to)]
	}
	h := c.Response().Header()
	tag := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s", doc.Digest, number, width, quote))
	h.Set("ETag", fmt.Sprintf(`"%.16x"`, tag))
	h.Set(echo.HeaderCacheControl, "private, no-cache")
	if c.Request().Header.Get("If-None-Match") == h.Get("ETag") {
		return c.NoContent(http.StatusNotModified)
	}
	ctx := c.Request().Context()
	if err := d.drawing.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting to draw a page: %w", err)
	}
	defer d.drawing.Release(1)
	png, err := d.drawer.DrawPage(ctx, doc, number, quote, width)
	if err != nil {
		return originalProblem(err)
	}
	return c.Blob(http.StatusOK, "image/png", png)
}

// A drawnPage is a link to a picture of a page.
type drawnPage struct {
	Page int    `json:"page"`
	Link string `json:"link"`
}

// drawnLinks returns links to the pages with the marked words or, if nothing is marked or
// instead is set, to the page at the place.
func (d *documents) drawnLinks(c echo.Context, doc *ingest.Document, x excerpt, instead bool) (links []drawnPage) {
	if len(doc.Pages) == 0 || !d.drawer.CanDraw(c.Request().Context(), doc.Format) {
		return nil
	}
	for _, p := range doc.Pages {
		shown := p.Number == x.Page
		if !instead && x.Start < x.End {
			shown = p.Start < x.End && p.End > x.Start
		}
		if !shown || len(links) == shownDrawn {
			continue
		}
		q := url.Values{"drawn": {strconv.Itoa(p.Number)}}
		if x.Start < x.End {
			q.Set("start", strconv.Itoa(x.Start))
			q.Set("end", strconv.Itoa(x.End))
		}
		links = append(links, drawnPage{p.Number, Link(d.pages.address.prefix(), doc.ID, 0, 0) + "?" + q.Encode()})
	}
	return links
}
