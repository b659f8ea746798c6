package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/semaphore"

	"ibid/ingest"
	"ibid/retrieve"
)

// documents serves the stored documents: lists, text and pages.
type documents struct {
	catalog     *catalog
	pages       *pages
	drawer      Drawer
	originals   Originals
	drawing     *semaphore.Weighted // one slot for each page being drawn
	sample      fs.FS               // the sample library
	sites       Sites
	model       func(context.Context) string // returns the name of the model that writes answers; "" for none
	summarize   bool                         // whether a model can summarize documents
	modelDetail func() string                // says why the model did not write the last answer
	records     *recordStore
}

// documentList is the reply of GET /api/documents.
type documentList struct {
	// Documents are sorted by id and begin after the id in ?after=; with ?recent=1 they are
	// the latest. ?limit= bounds their number.
	Documents []retrieve.DocumentInfo `json:"documents"`
	// More reports whether more documents follow.
	More bool `json:"more"`
	// Total is the number of documents that match the filter.
	Total int `json:"total"`
	// Troubles are the files that the last sync could not read.
	Troubles []ingest.Change `json:"troubles"`
	// Sites are the web sites that this server reads.
	Sites    []SiteState `json:"sites,omitempty"`
	Indexing Indexing    `json:"indexing"`
}

func (d *documents) list(c echo.Context) error {
	l, err := d.listing(c, math.MaxInt32)
	return sendValue(c, http.StatusOK, l, err)
}

// listing returns the list that the query asks for. limit applies if the query has none.
func (d *documents) listing(c echo.Context, limit int) (documentList, error) {
	ctx, q := c.Request().Context(), c.QueryParams()
	f := retrieve.Filter{Collection: q.Get("collection"), Root: q.Get("root"), PathPrefix: q.Get("path_prefix"),
		Format: q.Get("format"), Tags: q["tag"], Author: q.Get("author")}
	if err := f.Language.UnmarshalText([]byte(q.Get("language"))); err != nil {
		return documentList{}, err
	}
	for _, date := range []struct {
		name string
		into *retrieve.Date
	}{{"since", &f.Since}, {"until", &f.Until}} {
		if err := date.into.UnmarshalText([]byte(q.Get(date.name))); err != nil {
			return documentList{}, wrongDate(err, date.name)
		}
	}
	limit, err := limitOf(c, limit, 0, math.MaxInt32)
	if err != nil {
		return documentList{}, err
	}
	all, err := d.catalog.Documents(ctx, f)
	if err != nil {
		return documentList{}, fmt.Errorf("listing the documents: %w", err)
	}
	l := documentList{Total: len(all), Troubles: []ingest.Change{}, Indexing: d.catalog.indexing()}
	// A key for some collections gets no troubles and no sites: a file that was not stored
	// has no collection.
	everything, err := d.catalog.maySee(ctx, "")
	if err != nil {
		return l, err
	}
	if everything {
		l.Troubles = append(l.Troubles, d.catalog.troubles()...)
		if d.catalog.folders != nil {
			l.Sites = d.sites.SiteStates()
		}
	}
	after := q.Get("after")
	if q.Has("recent") {
		all = slices.SortedStableFunc(slices.Values(all), func(a, b retrieve.DocumentInfo) int { return cmp.Compare(b.Number, a.Number) })
		after = ""
	}
	all, l.More = pageAfter(all, after, limit)
	l.Documents = append([]retrieve.DocumentInfo{}, all...)
	return l, nil
}

// shownDocument is the reply of GET /api/documents/ID.
type shownDocument struct {
	excerpt
	// Drawn are links to pictures of the pages at the place.
	Drawn []drawnPage `json:"drawn,omitempty"`
	// Original is the address of the file, if it is on this server.
	Original string `json:"original,omitempty"`
	// Found are the first places that contain the words in ?find=.
	Found []foundPlace `json:"found,omitempty"`
}

// show replies with the text around a place in a document.
func (d *documents) show(c echo.Context) error {
	doc, r, err := d.find(c, "/api/documents/")
	if err != nil {
		return err
	}
	shown, err := d.newShownDocument(c, doc, r)
	return sendValue(c, http.StatusOK, shown, err)
}

func (d *documents) newShownDocument(c echo.Context, doc *ingest.Document, r textRange) (shown shownDocument, err error) {
	shown = shownDocument{excerpt: excerptOf(doc, r), Found: findIn(doc, c.QueryParam("find"))}
	shown.AlsoIn, err = d.catalog.copies(c.Request().Context(), doc)
	if doc.Digest != "" && d.originals.IsLocal(c.Request().Context(), doc) {
		shown.Drawn, shown.Original = d.drawnLinks(c, doc, shown.excerpt, r.Page > 0), d.originalLink(doc, shown.excerpt)
	}
	return shown, err
}

func (d *documents) find(c echo.Context, route string) (*ingest.Document, textRange, error) {
	id, r, err := parseLink(c.Request().URL, route)
	if err != nil {
		return nil, r, err
	}
	if err := d.loadQuote(c, &r.quote); err != nil {
		return nil, r, err
	}
	names := renames{catalog: d.catalog}
	doc, _, err := names.findCited(c.Request().Context(), id, r.quote.Digest, func(doc *ingest.Document) quoteState {
		_, state := r.quote.locate(doc, r, r.quote.words)
		return state
	})
	if errors.Is(err, retrieve.ErrNotFound) && r.quote.words != "" { // the quote may be all that remains of the document
		r.Page = 0
		return &ingest.Document{ID: id, Path: id, Title: path.Base(id)}, r, nil
	}
	r.quote.Renamed = err == nil && doc.ID != id
	if err == nil && r.Page > 0 {
		var page ingest.Page
		page, err = pageOf(doc, r.Page)
		r.At = page.Start
	}
	return doc, r, err
}

// viewer replies with the page of one document, with the quoted words marked. It needs no
// JavaScript.
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
	x, err := d.newShownDocument(c, doc, r)
	if err != nil {
		return err
	}
	frame, err := d.frame(c.Request().Context(), x.Title)
	if err != nil {
		return err
	}
	page := viewerPage{frame: frame, shownDocument: x, Outline: outline(doc), Key: keyPassages(doc),
		Summarizes: len(x.Blocks) > 0 && d.summarize && frame.Model != "", Find: strings.TrimSpace(c.QueryParam("find")),
		Link: Link(d.pages.address.prefix(), x.Document, 0, 0), Elsewhere: doc.Digest != "" && x.Original == ""}
	turn := func(number int) string {
		q := c.QueryParams()
		q.Del("at")
		q.Set("page", strconv.Itoa(number))
		return "?" + q.Encode()
	}
	if x.Page > 1 {
		page.Before = turn(x.Page - 1)
	}
	if x.Page > 0 && x.Page < len(doc.Pages) {
		page.After = turn(x.Page + 1)
	}
	return d.pages.send(c, http.StatusOK, "viewer", page)
}

// mayChange reports whether the caller may add and delete documents.
func (d *documents) mayChange(ctx context.Context) bool {
	caller := holderFrom(ctx)
	return d.catalog.folders != nil && (caller == nil || caller.key.Write)
}

// pageOfDocuments is how many documents one page lists.
const pageOfDocuments = 250

// listPage replies with the list of documents as a page. It needs no JavaScript.
func (d *documents) listPage(c echo.Context) error {
	l, err := d.listing(c, pageOfDocuments)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	frame, err := d.frame(ctx, "Documents")
	if err != nil {
		return err
	}
	p := documentsPage{frame: frame, documentList: l, MayChange: d.mayChange(ctx), Caller: callerMark(holderFrom(ctx))}
	if l.More && len(l.Documents) > 0 {
		q := c.QueryParams()
		q.Set("after", l.Documents[len(l.Documents)-1].ID)
		p.Next = "?" + q.Encode()
	}
	return d.pages.send(c, http.StatusOK, "documents", p)
}

// window is how many bytes of text are shown before and after a place.
const window = 48 << 10

// An excerpt is the part of a document around a place, split into blocks, as the page's panel
// and the viewer show it.
type excerpt struct {
	Document string `json:"document"`
	Root     string `json:"root"`
	Path     string `json:"path"`
	Title    string `json:"title"`
	Format   string `json:"format"`
	Digest   string `json:"digest"`
	// AlsoIn are the other documents with identical files that the caller may see.
	AlsoIn []string `json:"also_in,omitempty"`
	Bytes  int      `json:"bytes"` // length of the whole text
	Pages  int      `json:"pages"` // 0 if the document has no pages
	// Page is the number of the page at the place.
	Page int `json:"page,omitempty"`
	// Start and End are the marked bytes of the text; equal when nothing is marked.
	Start int `json:"start"`
	End   int `json:"end"`
	// State compares the quote in the link with the document: "unchanged", "moved" (marked at
	// its new place) or "changed" (no longer in the text; nothing is marked). It is empty for
	// links without the quote's hash.
	State quoteState `json:"state,omitempty"`
	// Missing means that the place is no longer in the text, since the document has changed.
	Missing bool `json:"missing"`
	// Was is the cited text, and Cited the day of the answer, if the place is missing and
	// ?run= names the record of the answer.
	Was    string  `json:"was,omitempty"`
	Cited  string  `json:"cited,omitempty"`
	Blocks []block `json:"blocks"`
	// Earlier and Later are the offsets to ask for (at) to get more text before or after the
	// blocks; -1 if there is no more.
	Earlier int `json:"earlier"`
	Later   int `json:"later"`
}

// A block is a heading, a paragraph or the beginning of a page.
type block struct {
	Kind  string     `json:"kind"`            // "heading", "text" or "page"
	Level int        `json:"level,omitempty"` // of a heading; 1 is the outermost
	Page  int        `json:"page,omitempty"`
	Runs  []blockRun `json:"runs,omitempty"`
	Note  string     `json:"note,omitempty"` // for the heading of a message: sender, date and recipients
	At    int        `json:"-"`              // offset in the text
	Depth int        `json:"-"`              // for a heading: 1 plus the number of headings above it
}

// Rank is the level of the heading on a page whose title has level 1.
func (b block) Rank() int { return b.Depth + 1 }

// A blockRun is a part of a block's text, marked or not.
type blockRun struct {
	Text string `json:"text"`
	Mark bool   `json:"mark,omitempty"`
	// First is set for the first marked span, to which the page scrolls.
	First bool `json:"first,omitempty"`
}

// excerptOf splits the text around a place into blocks.
func excerptOf(d *ingest.Document, r textRange) excerpt {
	x := excerpt{Document: d.ID, Root: d.Root, Path: d.Path, Title: d.Title, Format: d.Format, Digest: d.Digest,
		Bytes: len(d.Text), Pages: len(d.Pages), Earlier: -1, Later: -1, Blocks: []block{}}
	q := r.quote
	r, x.State = q.locate(d, r, q.words)
	if x.Missing = x.State == quoteChanged || x.State == quoteGone; x.Missing && q.words != "" {
		x.Was, x.Cited = q.words, q.day.Format(time.DateOnly)
	}
	at := min(r.At, len(d.Text))
	if r.End > r.Start {
		if r.End <= len(d.Text) {
			x.Start, x.End = runeStart(d.Text, r.Start), runeEnd(d.Text, r.End)
			if r.Page == 0 {
				at = x.Start
			}
		} else {
			x.Missing = true
		}
	}
	lo, hi := 0, len(d.Text)
	if at > window {
		lo = lineStart(d.Text, at-window)
		x.Earlier = max(0, lo-window/2)
	}
	x.Page = cmp.Or(r.Page, d.PageAt(at))
	end := max(at, x.End)
	if r.Page > 0 {
		end = at
	}
	if end+window < len(d.Text) {
		hi = lineEnd(d.Text, end+window)
		x.Later = min(len(d.Text), hi+window/2)
	}
	x.Blocks = blocks(d, lo, hi, x.Start, x.End)
	return x
}

// blocks splits Text[lo:hi], which consists of whole lines, at empty lines, headings and
// pages. The bytes from start to end are marked.
func blocks(d *ingest.Document, lo, hi, start, end int) []block {
	out := []block{}
	marked := false
	add := func(kind string, level, from, to int) {
		if to > from {
			to = from + len(strings.TrimRight(d.Text[from:to], "\n "))
		}
		if to <= from {
			return
		}
		b := block{Kind: kind, Level: level, At: from}
		a, z := max(from, start), min(to, end)
		if a >= z {
			a, z = to, to
		}
		if from < a {
			b.Runs = append(b.Runs, blockRun{Text: d.Text[from:a]})
		}
		if a < z {
			b.Runs = append(b.Runs, blockRun{Text: d.Text[a:z], Mark: true, First: !marked})
			marked = true
		}
		if z < to {
			b.Runs = append(b.Runs, blockRun{Text: d.Text[z:to]})
		}
		out = append(out, b)
	}
	section := sort.Search(len(d.Sections), func(i int) bool { return d.Sections[i].Start >= lo })
	page := sort.Search(len(d.Pages), func(i int) bool { return d.Pages[i].End > lo })
	paragraph := lo
	for line := lo; line < hi; {
		next := lineEnd(d.Text, line)
		for page < len(d.Pages) && d.Pages[page].Start <= line {
			add("text", 0, paragraph, line)
			paragraph = line
			out = append(out, block{Kind: "page", Page: d.Pages[page].Number})
			page++
		}
		for section < len(d.Sections) && d.Sections[section].Start < line {
			section++
		}
		switch {
		case section < len(d.Sections) && d.Sections[section].Start < next:
			add("text", 0, paragraph, line)
			paragraph = line
			// A section without a heading is a row of a table, shown as a paragraph.
			if d.Sections[section].Heading != "" {
				add("heading", min(max(d.Sections[section].Level, 1), 6), line, next)
				paragraph = next
			}
		case strings.TrimSpace(d.Text[line:next]) == "":
			add("text", 0, paragraph, line)
			paragraph = next
		}
		line = next
	}
	add("text", 0, paragraph, hi)
	setHeadings(d, out)
	return out
}

// noteOf returns the part of a line's heading that is not in the text.
func noteOf(d *ingest.Document, line int) string {
	section := sort.Search(len(d.Sections), func(i int) bool { return d.Sections[i].Start >= line })
	text := strings.TrimSpace(d.Text[line:lineEnd(d.Text, line)])
	note := strings.TrimPrefix(d.Sections[section].Heading, text+ingest.HeadingSeparator)
	if strings.Contains(text, note) {
		return ""
	}
	return note
}

// setHeadings sets the depth and the note of each heading.
func setHeadings(d *ingest.Document, blocks []block) {
	var above []int // levels of the headings that enclose the next one
	for i, b := range blocks {
		if b.Kind == "heading" {
			above = append(slices.DeleteFunc(above, func(level int) bool { return level >= b.Level }), b.Level)
			blocks[i].Depth, blocks[i].Note = len(above), noteOf(d, b.At)
		}
	}
}

func lineStart(text string, i int) int { return strings.LastIndexByte(text[:i], '\n') + 1 }

func lineEnd(text string, i int) int {
	if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(text)
}

// runeStart moves i back to the start of a UTF-8 sequence, and runeEnd forward to the end of
// one. Both return an offset within the text.
func runeStart(text string, i int) int {
	i = min(max(i, 0), len(text))
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

func runeEnd(text string, i int) int {
	i = min(max(i, 0), len(text))
	for i < len(text) && !utf8.RuneStart(text[i]) {
		i++
	}
	return i
}
