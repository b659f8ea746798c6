package web

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ibid/cite/rewrite"
	"ibid/ingest"
	"ibid/retrieve"
)

// documentURI is the prefix of document URIs; the id follows, with each segment escaped.
const documentURI = "ibid://documents/"

func resourceOf(document string) string {
	return strings.TrimSuffix(documentURI, "/documents/") + Link("", document, 0, 0)
}

// mcpPageSize is how many documents one page of the list of resources has.
const mcpPageSize = 100

// listDocuments lists the documents as resources, a page at a time.
func (m *mcpServer) listDocuments(ctx context.Context, p *mcp.ListResourcesParams) (*mcp.ListResourcesResult, error) {
	after := ""
	if p != nil && p.Cursor != "" {
		id, err := base64.RawURLEncoding.DecodeString(p.Cursor)
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "this cursor is invalid: list the resources from the beginning"}
		}
		after = string(id)
	}
	all, err := m.catalog.Documents(ctx, retrieve.Filter{})
	if err != nil {
		return nil, m.resourceError(ctx, fmt.Errorf("listing the documents: %w", err))
	}
	list := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}, Cacheable: mcp.Cacheable{CacheScope: "private"}}
	page, more := pageAfter(all, after, mcpPageSize)
	if more {
		list.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(page[mcpPageSize-1].ID))
	}
	for _, d := range page {
		list.Resources = append(list.Resources, &mcp.Resource{URI: resourceOf(d.ID), Name: d.ID, Title: oneLine(d.Title),
			MIMEType: "text/plain", Size: int64(d.Bytes),
			Description: fmt.Sprintf("%s, in the collection %s", d.Format, oneLine(d.Collection))})
	}
	return list, nil
}

// mcpListQuery are the arguments of the tool list_documents.
type mcpListQuery struct {
	Filter retrieve.Filter `json:"filter,omitzero" jsonschema:"which documents to list; leave it out for all"`
	After  string          `json:"after,omitempty" jsonschema:"the last id of the page before"`
}

// An mcpDocument is a line of the list of documents.
type mcpDocument struct {
	ID         string `json:"id"`
	Title      string `json:"title"`
	Format     string `json:"format"`
	Collection string `json:"collection"`
	Bytes      int    `json:"bytes" jsonschema:"length of the text"`
	Resource   string `json:"resource"`
}

// mcpListing is the result of the tool list_documents.
type mcpListing struct {
	Collections []collection  `json:"collections"`
	Documents   []mcpDocument `json:"documents"`
	More        bool          `json:"more" jsonschema:"true when others follow: ask for those after the last id"`
}

func (m *mcpServer) listTool(ctx context.Context, _ *mcp.CallToolRequest, in mcpListQuery) (*mcp.CallToolResult, *mcpListing, error) {
	filter, err := m.catalog.collectionFilter(ctx, in.Filter, "")
	var all []retrieve.DocumentInfo
	if err == nil {
		all, err = m.catalog.Documents(ctx, filter)
	}
	var known collectionList
	if err == nil {
		known, err = m.catalog.collections(ctx)
	}
	if err != nil {
		return m.toolError(ctx, fmt.Errorf("listing the documents: %w", err)), nil, nil
	}
	out := &mcpListing{Collections: known.Collections, Documents: []mcpDocument{}}
	var b strings.Builder
	for _, c := range out.Collections {
		fmt.Fprintf(&b, "Collection %s: %d documents\n", rewrite.EscapeTitle(c.Name), c.Documents)
	}
	all, out.More = pageAfter(all, in.After, mcpPageSize)
	for _, d := range all {
		out.Documents = append(out.Documents, mcpDocument{d.ID, oneLine(d.Title), d.Format, d.Collection, d.Bytes, resourceOf(d.ID)})
		fmt.Fprintf(&b, "- %s (%s)\n", rewrite.EscapeTitle(d.Title), escapeName(d.ID))
	}
	if out.More {
		b.WriteString("There are more.")
	}
	return textResult(strings.TrimSpace(b.String())), out, nil
}

// addPrompt adds a prompt that people choose in a client. words formats its argument.
func addPrompt(s *mcp.Server, name, title, argument, about, words string) {
	p := &mcp.Prompt{Name: name, Title: title, Arguments: []*mcp.PromptArgument{{Name: argument, Description: about, Required: true},
		{Name: "collection", Description: "the collection of documents to use; leave it out for all"}}}
	s.AddPrompt(p, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		value := r.Params.Arguments[argument]
		if strings.TrimSpace(value) == "" || len(value) > MaxQuestion {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
				Message: fmt.Sprintf("%s is empty, or longer than %d bytes", argument, MaxQuestion)}
		}
		text := fmt.Sprintf(words, value)
		if in := oneLine(r.Params.Arguments["collection"]); in != "" {
			text += "\n\nUse the documents of this collection alone: " + in
		}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
	})
}

// complete returns the ids that complete the resource template: documents whose id or title
// contains the words. Ids that begin with the words come first.
func (m *mcpServer) complete(ctx context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	out := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	if r.Params.Ref == nil || r.Params.Ref.Type != "ref/resource" {
		return out, nil
	}
	all, err := m.catalog.Documents(ctx, retrieve.Filter{})
	if err != nil {
		return nil, m.resourceError(ctx, fmt.Errorf("listing the documents: %w", err))
	}
	c, words := &out.Completion, strings.ToLower(r.Params.Argument.Value)
	var within []string
	for _, d := range all {
		switch id := strings.ToLower(d.ID); {
		case strings.HasPrefix(id, words):
			c.Values = append(c.Values, d.ID)
		case strings.Contains(id, words), strings.Contains(strings.ToLower(d.Title), words):
			within = append(within, d.ID)
		}
	}
	c.Values = append(c.Values, within...)
	if c.HasMore = len(c.Values) > mcpPageSize; c.HasMore { // the maximum that the protocol allows
		c.Values = c.Values[:mcpPageSize]
	}
	return out, nil
}

func (m *mcpServer) resourceError(ctx context.Context, err error) error {
	p := m.answering.problemIn(ctx, "tool", err)
	code := int64(jsonrpc.CodeInternalError)
	if p.Status < 500 {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: p.Detail}
}

// maxResource is the maximum length of a resource's text, in bytes.
const maxResource = 256 << 10

// readDocument returns the beginning of a document's text as a resource.
func (m *mcpServer) readDocument(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	id, err := url.PathUnescape(strings.TrimPrefix(req.Params.URI, documentURI))
	if err != nil {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	d, err := m.catalog.Document(ctx, id)
	if errors.Is(err, retrieve.ErrNotFound) {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	if err != nil {
		return nil, m.resourceError(ctx, fmt.Errorf("reading a document: %w", err))
	}
	text := d.Text
	if len(text) > maxResource {
		text = text[:runeStart(text, maxResource)]
	}
	contents := []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: "text/plain", Text: text,
		Meta: mcp.Meta{"title": oneLine(d.Title), "bytes": len(d.Text), "truncated": len(text) < len(d.Text)}}}
	return &mcp.ReadResourceResult{Contents: contents}, nil
}

// mcpPlace are the arguments of the tool read_source.
type mcpPlace struct {
	Document string `json:"document" jsonschema:"the document's id (folder/path), as sources and passages name it"`
	Start    int    `json:"start,omitempty" jsonschema:"first byte to mark, as a citation or passage names it; without end, where to begin"`
	End      int    `json:"end,omitempty" jsonschema:"the byte after the last to mark"`
	Page     int    `json:"page,omitempty" jsonschema:"the page to read, from 1, in place of start and end"`
}

// An mcpText is the result of the tool read_source.
type mcpText struct {
	Document string `json:"document"`
	Title    string `json:"title"`
	Format   string `json:"format"`
	Bytes    int    `json:"bytes" jsonschema:"length of the whole text"`
	Pages    int    `json:"pages" jsonschema:"0 for a document without pages"`
	Start    int    `json:"start" jsonschema:"first byte of the text that is returned"`
	End      int    `json:"end" jsonschema:"the byte after the last that is returned: the start to continue at, if it is less than bytes"`
	Page     int    `json:"page,omitempty" jsonschema:"the page that the text begins on"`
	Text     string `json:"text" jsonschema:"the text, with the bytes asked for between ⟦ and ⟧"`
	Quoted   string `json:"quoted,omitempty" jsonschema:"the bytes asked for"`
	Link     string `json:"link,omitempty"`
	Resource string `json:"resource"`
}

// Sizes of the text that read_source returns, in bytes.
const (
	aroundPlace = 4 << 10  // before and after a place
	maxMarked   = 32 << 10 // the place itself
	fromStart   = 8 << 10  // if only a start is given
)

func (m *mcpServer) readSource(ctx context.Context, _ *mcp.CallToolRequest, in mcpPlace) (*mcp.CallToolResult, *mcpText, error) {
	out, err := m.textAt(ctx, in)
	if err != nil {
		return m.toolError(ctx, fmt.Errorf("reading a source: %w", err)), nil, nil
	}
	head := fmt.Sprintf("%s (%s), bytes %d-%d of %d", rewrite.EscapeTitle(out.Title), escapeName(out.Document),
		out.Start, out.End, out.Bytes)
	if out.Page > 0 {
		head += fmt.Sprintf(", from page %d of %d", out.Page, out.Pages)
	}
	return textResult(head + "\n\n" + rewrite.Escape(out.Text)), out, nil
}

func (m *mcpServer) textAt(ctx context.Context, in mcpPlace) (*mcpText, error) {
	d, err := m.catalog.document(ctx, in.Document, "document")
	if err != nil {
		return nil, err
	}
	from, to, err := in.markedRange(d)
	if err != nil {
		return nil, err
	}
	lo, hi := from, to
	switch {
	case in.Page > 0:
	case from < to:
		lo, hi = runeStart(d.Text, from-aroundPlace), runeEnd(d.Text, to+aroundPlace)
	default:
		hi = runeStart(d.Text, from+fromStart)
	}
	out := &mcpText{Document: d.ID, Title: d.Title, Format: d.Format, Bytes: len(d.Text), Pages: len(d.Pages), Start: lo, End: hi,
		Page: d.PageAt(lo), Resource: resourceOf(d.ID)}
	if base := mcpRequestFrom(ctx).base; base != "" {
		out.Link = Link(base, d.ID, from, to)
	}
	if from == to || in.Page > 0 {
		out.Text = stripMarks(d.Text[lo:hi])
		return out, nil
	}
	out.Quoted = stripMarks(d.Text[from:to])
	out.Text = stripMarks(d.Text[lo:from]) + "⟦" + out.Quoted + "⟧" + stripMarks(d.Text[to:hi])
	return out, nil
}

// markedRange returns the bytes to mark. The range is empty if only a start is given.
func (in mcpPlace) markedRange(d *ingest.Document) (from, to int, err error) {
	switch {
	case in.Page != 0 && (in.Start != 0 || in.End != 0):
		return 0, 0, invalid("bad_range", "give a page, or start and end, not both")
	case in.Page != 0:
		p, err := pageOf(d, in.Page)
		return p.Start, runeStart(d.Text, min(p.End, p.Start+maxMarked)), err
	case in.Start < 0 || in.End != 0 && in.End <= in.Start || max(in.Start, in.End) > len(d.Text):
		return 0, 0, invalid("bad_range", "bytes %d to %d are not in %q, which has %d bytes: it may have changed since, so search again",
			in.Start, in.End, in.Document, len(d.Text))
	case in.End-in.Start > maxMarked:
		return 0, 0, invalid("bad_range", "bytes %d to %d are more than the %d of one reading: ask for less, and continue where it ends",
			in.Start, in.End, maxMarked)
	case in.End == 0:
		from = runeStart(d.Text, in.Start)
		return from, from, nil
	}
	return runeStart(d.Text, in.Start), runeEnd(d.Text, in.End), nil
}

// stripMarks returns text that contains neither ⟦ nor ⟧.
func stripMarks(text string) string {
	return strings.NewReplacer("⟦", "[", "⟧", "]").Replace(text)
}
