package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ibid/cite/rewrite"
	"ibid/ingest"
	"ibid/retrieve"
)

// mcpPlace are the arguments of the tool read_source.
type mcpPlace struct {
	Document string `json:"document" jsonschema:"the document's id (folder/path), as sources and passages name it"`
	Start    int    `json:"start,omitempty" jsonschema:"first byte to mark, as a citation or passage names it; alone it says where to begin to read"`
	End      int    `json:"end,omitempty" jsonschema:"behind the last byte to mark"`
	Page     int    `json:"page,omitempty" jsonschema:"the page to read, from 1, in place of start and end"`
}

// An mcpText is what the tool read_source gives.
type mcpText struct {
	Document string `json:"document"`
	Title    string `json:"title"`
	Format   string `json:"format"`
	Bytes    int    `json:"bytes" jsonschema:"length of the whole text"`
	Pages    int    `json:"pages" jsonschema:"0 for a document without pages"`
	// Start and End are what of the text is given.
	Start int `json:"start" jsonschema:"first byte of what is given here"`
	End   int `json:"end" jsonschema:"behind the last byte of what is given here: the start to go on with, if it is less than bytes"`
	Page  int `json:"page,omitempty" jsonschema:"the page that it begins on"`
	// Text is all that is given; the bytes asked for stand between the marks.
	Text     string `json:"text" jsonschema:"the text, with the bytes asked for between ⟦ and ⟧"`
	Quoted   string `json:"quoted,omitempty" jsonschema:"the bytes asked for"`
	Link     string `json:"link,omitempty"`
	Resource string `json:"resource"`
}

// Sizes of what read_source gives, in bytes.
const (
	aroundPlace = 4 << 10  // before and behind a place
	maxMarked   = 32 << 10 // the place itself
	fromStart   = 8 << 10  // where only a beginning is named
)

// mcpRead reads around a place in a document.
func (s *server) mcpRead(ctx context.Context, _ *mcp.CallToolRequest, in mcpPlace) (*mcp.CallToolResult, *mcpText, error) {
	out, err := s.mcpText(ctx, in)
	if err != nil {
		return s.mcpFailed(ctx, fmt.Errorf("reading a source: %w", err)), nil, nil
	}
	head := fmt.Sprintf("%s (%s), bytes %d-%d of %d", oneLine(out.Title), oneLine(out.Document), out.Start, out.End, out.Bytes)
	if out.Page > 0 {
		head += fmt.Sprintf(", from page %d of %d", out.Page, out.Pages)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: head + "\n\n" + out.Text}}}, out, nil
}

func (s *server) mcpText(ctx context.Context, in mcpPlace) (*mcpText, error) {
	d, err := s.Library.Document(ctx, in.Document)
	if errors.Is(err, retrieve.ErrNotFound) {
		return nil, &Problem{Status: http.StatusNotFound, Code: "document_not_found", Field: "document", cause: err,
			Detail: fmt.Sprintf("there is no document %.200q: give an id as search, a source or the list of resources names it", in.Document)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q from the library: %w", in.Document, err)
	}
	from, to, err := in.marked(d)
	if err != nil {
		return nil, err
	}
	lo, hi := from, to
	switch {
	case in.Page > 0:
	case from < to:
		lo, hi = lineBefore(d.Text, max(0, from-aroundPlace), from), lineBehind(d.Text, to, min(len(d.Text), to+aroundPlace))
	default:
		hi = lineBehind(d.Text, from, min(len(d.Text), from+fromStart))
	}
	out := &mcpText{Document: d.ID, Title: d.Title, Format: d.Format, Bytes: len(d.Text), Pages: len(d.Pages), Start: lo, End: hi, Resource: resourceOf(d.ID)}
	for _, p := range d.Pages {
		if p.Start <= lo && lo < p.End {
			out.Page = p.Number
		}
	}
	if base := mcpRequestFrom(ctx).base; base != "" {
		out.Link = Link(base, d.ID, from, to)
	}
	if from == to || in.Page > 0 {
		out.Text = unmarked(d.Text[lo:hi])
		return out, nil
	}
	out.Quoted = unmarked(d.Text[from:to])
	out.Text = unmarked(d.Text[lo:from]) + "⟦" + out.Quoted + "⟧" + unmarked(d.Text[to:hi])
	return out, nil
}

// marked gives the bytes that are asked for; none where only a beginning is named.
func (in mcpPlace) marked(d *ingest.Document) (from, to int, err error) {
	place := func(format string, args ...any) error { return invalid("bad_range", format, args...) }
	switch {
	case in.Page != 0 && (in.Start != 0 || in.End != 0):
		return 0, 0, place("give a page, or start and end, not both")
	case in.Page != 0:
		for _, p := range d.Pages {
			if p.Number == in.Page {
				return p.Start, runeStart(d.Text, min(p.End, p.Start+maxMarked)), nil
			}
		}
		if len(d.Pages) == 0 {
			return 0, 0, place("%q has no pages: give start and end", in.Document)
		}
		return 0, 0, place("there is no text on page %d of %q, which has %d pages", in.Page, in.Document, len(d.Pages))
	case in.Start < 0 || in.End != 0 && in.End <= in.Start || max(in.Start, in.End) > len(d.Text):
		return 0, 0, place("bytes %d to %d are not in %q, which has %d bytes: it may have changed since, so search again", in.Start, in.End, in.Document, len(d.Text))
	case in.End-in.Start > maxMarked:
		return 0, 0, place("bytes %d to %d are more than the %d that one reading gives: ask for less, and go on where it ends", in.Start, in.End, maxMarked)
	case in.End == 0:
		from = runeStart(d.Text, in.Start)
		return from, from, nil
	}
	return runeStart(d.Text, in.Start), runeEnd(d.Text, in.End), nil
}

// unmarked is neutral text in which nothing passes for a mark.
func unmarked(text string) string {
	return strings.NewReplacer("⟦", "[", "⟧", "]").Replace(rewrite.Neutral(text))
}

// lineBefore is the first beginning of a line from lo on, lo itself where none
// is before at; lineBehind the last end of a line up to hi, and hi where none is.
func lineBefore(text string, lo, at int) int {
	if i := strings.IndexByte(text[lo:at], '\n'); lo > 0 && i >= 0 {
		return lo + i + 1
	}
	return runeStart(text, lo)
}

func lineBehind(text string, at, hi int) int {
	if i := strings.LastIndexByte(text[at:hi], '\n'); hi < len(text) && i >= 0 {
		return at + i + 1
	}
	return runeStart(text, hi)
}
