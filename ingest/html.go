package ingest

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// readHTML reads the main content of a page: headings with their ids,
// paragraphs, lists, rows of tables, code; no navigation, no scripts, nothing
// hidden.
func readHTML(doc *Document, data []byte) error {
	text, err := decode(data, declaredCharset(data))
	if err != nil {
		return err
	}
	root, err := html.Parse(strings.NewReader(text))
	var b builder
	if err != nil {
		// Nested deeper than the parser allows: the words, without structure.
		b.Paragraph(tokenText(text))
		b.into(doc)
		return nil
	}
	w := htmlWalker{b: &b}
	w.head(doc, root)
	w.block(mainContent(root))
	w.flush()
	b.into(doc)
	if doc.Title == "" && len(doc.Sections) > 0 {
		doc.Title = doc.Sections[0].Heading
	}
	return nil
}

// declaredCharset finds the charset in a meta element among the first bytes.
func declaredCharset(data []byte) string {
	head := strings.ToLower(string(data[:min(len(data), 4096)]))
	i := strings.Index(head, "charset")
	if i < 0 {
		i = strings.Index(head, "encoding") // <?xml version="1.0" encoding="…"?>
	}
	if i < 0 {
		return ""
	}
	rest := strings.TrimLeft(head[i:], "abcdefghijklmnopqrstuvwxyz")
	rest = strings.TrimLeft(rest, " =\"'")
	if end := strings.IndexAny(rest, "\"' />;?"); end >= 0 {
		return rest[:end]
	}
	return ""
}

// tokenText gives the words of a page that cannot be parsed into a tree.
func tokenText(page string) string {
	var out strings.Builder
	skip := 0
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out.String()
		case html.TextToken:
			if skip == 0 {
				out.Write(z.Text())
			}
		case html.StartTagToken:
			if name, _ := z.TagName(); unseen[atom.Lookup(name)] {
				skip++
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if unseen[atom.Lookup(name)] && skip > 0 {
				skip--
			} else if a := atom.Lookup(name); a == atom.P || a == atom.Div || a == atom.Li || a == atom.Tr {
				out.WriteString("\n\n")
			}
		}
	}
}

// unseen elements hold nothing that a reader of the page's text sees.
var unseen = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Svg: true,
	atom.Iframe: true, atom.Object: true, atom.Embed: true, atom.Canvas: true, atom.Audio: true,
	atom.Video: true, atom.Select: true, atom.Button: true, atom.Textarea: true, atom.Head: true,
	atom.Map: true, atom.Datalist: true, atom.Dialog: true, atom.Title: true,
}

// aside from the content, by what the element says of itself.
var besides = map[atom.Atom]bool{atom.Nav: true, atom.Aside: true, atom.Footer: true, atom.Menu: true}

var besidesRole = map[string]bool{
	"navigation": true, "banner": true, "contentinfo": true, "search": true, "complementary": true,
	"menu": true, "menubar": true, "toolbar": true, "dialog": true, "alertdialog": true,
}

func attr(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

// leftOut reports whether an element and everything in it is no content.
func leftOut(n *html.Node) bool {
	if n.Type != html.ElementNode {
		return n.Type == html.CommentNode
	}
	if unseen[n.DataAtom] || besides[n.DataAtom] || n.Data == "svg" {
		return true
	}
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			return a.Val == "true"
		case "role":
			if besidesRole[a.Val] {
				return true
			}
		case "style":
			s := strings.ReplaceAll(strings.ToLower(a.Val), " ", "")
			if strings.Contains(s, "display:none") || strings.Contains(s, "visibility:hidden") ||
				strings.Contains(s, "font-size:0") || strings.Contains(s, "opacity:0;") || strings.HasSuffix(s, "opacity:0") {
				return true
			}
		}
	}
	return false
}

// mainContent picks the element that the page marks as its content, when most
// of the words stand in it, else the body.
func mainContent(root *html.Node) *html.Node {
	body := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Body })
	if body == nil {
		return root
	}
	all := textLength(body)
	for _, want := range []func(*html.Node) bool{
		func(n *html.Node) bool { role, _ := attr(n, "role"); return n.DataAtom == atom.Main || role == "main" },
		func(n *html.Node) bool { return n.DataAtom == atom.Article },
	} {
		if n := find(body, want); n != nil && textLength(n)*2 >= all {
			return n
		}
	}
	return body
}

func find(n *html.Node, want func(*html.Node) bool) *html.Node {
	if n.Type == html.ElementNode && want(n) {
		return n
	}
	for c := range n.ChildNodes() {
		if f := find(c, want); f != nil {
			return f
		}
	}
	return nil
}

func textLength(n *html.Node) int {
	if n.Type == html.TextNode {
		return len(strings.TrimSpace(n.Data))
	}
	if leftOut(n) {
		return 0
	}
	sum := 0
	for c := range n.ChildNodes() {
		sum += textLength(c)
	}
	return sum
}

// An htmlWalker turns elements into blocks.
type htmlWalker struct {
	b      *builder
	inline strings.Builder // the words of the running block
	depth  int             // of lists
	marker string          // of the list item that the next words begin
	anchor string          // seen since the last words
}

// head reads what the page says of itself.
func (w *htmlWalker) head(doc *Document, root *html.Node) {
	if t := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Title && n.Namespace == "" }); t != nil {
		doc.Title = oneLine(clean(rawText(t)))
	}
	var tags []string
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.DataAtom == atom.Html {
			if lang, _ := attr(n, "lang"); lang != "" {
				doc.setMeta("language", lang)
			}
		}
		if n.DataAtom == atom.Link {
			rel, _ := attr(n, "rel")
			if href, _ := attr(n, "href"); slices.Contains(strings.Fields(strings.ToLower(rel)), "canonical") {
				doc.setMeta("url", href)
			}
		}
		if n.DataAtom == atom.Meta {
			name, _ := attr(n, "name")
			if name == "" {
				name, _ = attr(n, "property")
			}
			content, _ := attr(n, "content")
			switch strings.ToLower(name) {
			case "author", "description":
				doc.setMeta(strings.ToLower(name), content)
			case "og:url":
				doc.setMeta("url", content)
			case "keywords", "article:tag":
				tags = append(tags, content)
			case "date", "article:published_time", "dc.date", "dc.date.issued", "dcterms.date", "dcterms.created", "dcterms.issued", "pubdate", "citation_publication_date":
				doc.setMeta("date", content)
			case "article:modified_time", "og:updated_time", "dcterms.modified", "last-modified":
				doc.setMeta("updated", content)
			}
		}
		if n.DataAtom == atom.Body {
			return
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
	}
	walk(root)
	doc.setMeta("tags", strings.Join(tags, ", "))
}

// flush ends the running block.
func (w *htmlWalker) flush() {
	var lines []string
	for line := range strings.SplitSeq(w.inline.String(), "\n") {
		if line = oneLine(line); line != "" {
			lines = append(lines, line)
		}
	}
	w.inline.Reset()
	if len(lines) == 0 {
		return
	}
	text := strings.Join(lines, "\n")
	if w.marker != "" {
		w.b.Item(max(0, w.depth-1), w.marker, text) // an item may stand outside any list
		w.marker = ""
	} else {
		w.b.Paragraph(text)
	}
}

var blockElements = map[atom.Atom]bool{
	atom.P: true, atom.Div: true, atom.Section: true, atom.Article: true, atom.Main: true, atom.Header: true,
	atom.Body: true, atom.Html: true, atom.Blockquote: true, atom.Figure: true, atom.Figcaption: true,
	atom.Address: true, atom.Details: true, atom.Summary: true, atom.Fieldset: true, atom.Legend: true,
	atom.Form: true, atom.Dl: true, atom.Dt: true, atom.Dd: true, atom.Hr: true, atom.Center: true,
	atom.Td: true, atom.Th: true, atom.Tr: true, atom.Tbody: true, atom.Thead: true, atom.Tfoot: true,
	atom.Table: true, atom.Caption: true, atom.Hgroup: true, atom.Option: true,
}

// block walks one node and what is in it.
func (w *htmlWalker) block(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		if strings.TrimSpace(n.Data) != "" {
			w.anchor = ""
		}
		w.inline.WriteString(strings.ReplaceAll(n.Data, "\n", " "))
		return
	case html.ElementNode:
	case html.DocumentNode:
		w.children(n)
		return
	default:
		return
	}
	if leftOut(n) {
		return
	}
	if id := anchorOf(n); id != "" {
		w.anchor = id
	}
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.flush()
		w.heading(n)
	case atom.Pre:
		w.flush()
		w.b.Code(rawText(n))
	case atom.Br:
		w.inline.WriteByte('\n')
	case atom.Ul, atom.Ol:
		w.list(n)
	case atom.Li: // one outside a list
		w.item(n, "-")
	case atom.Table:
		w.flush()
		w.table(n)
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		w.inline.WriteString(oneLine(rawText(n)))
	default:
		if blockElements[n.DataAtom] {
			w.flush()
			w.children(n)
			w.flush()
		} else {
			w.children(n)
		}
	}
}

func (w *htmlWalker) children(n *html.Node) {
	for c := range n.ChildNodes() {
		w.block(c)
	}
}

func anchorOf(n *html.Node) string {
	if id, _ := attr(n, "id"); id != "" {
		return id
	}
	if n.DataAtom == atom.A {
		name, _ := attr(n, "name")
		return name
	}
	return ""
}

// heading takes the anchor from the heading, from an element in it, or from
// one that stands right before it or around it.
func (w *htmlWalker) heading(n *html.Node) {
	if id := anchorOf(n); id != "" {
		w.anchor = id
	} else if in := find(n, func(c *html.Node) bool { return anchorOf(c) != "" }); in != nil {
		w.anchor = anchorOf(in)
	}
	text := strings.TrimRight(oneLine(seenText(n)), "¶#§ ")
	w.b.Heading(int(n.Data[1]-'0'), text, w.anchor)
	w.anchor, w.marker = "", ""
}

func (w *htmlWalker) list(n *html.Node) {
	w.flush()
	w.depth++
	number := 0
	for c := range n.ChildNodes() {
		if c.DataAtom != atom.Li {
			w.block(c)
			continue
		}
		number++
		marker := "-"
		if n.DataAtom == atom.Ol {
			marker = fmt.Sprintf("%d.", number)
		}
		w.item(c, marker)
	}
	w.flush()
	if w.depth--; w.depth == 0 {
		w.b.last = kindNone // items of the next list are not of this one
	}
}

func (w *htmlWalker) item(n *html.Node, marker string) {
	w.flush()
	if leftOut(n) {
		return
	}
	w.marker = marker
	w.children(n)
	w.flush()
	w.marker = ""
}

// table writes each row of a table on a line of its own. A table that only
// lays out the page is walked like any other element.
func (w *htmlWalker) table(n *html.Node) {
	layout := find(n, func(c *html.Node) bool {
		switch c.DataAtom {
		case atom.Table:
			return c != n
		case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre:
			return true
		}
		return false
	})
	if role, _ := attr(n, "role"); layout != nil || role == "presentation" {
		w.children(n)
		w.flush()
		return
	}
	var header []string
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if leftOut(n) {
			return
		}
		switch n.DataAtom {
		case atom.Caption:
			w.b.Paragraph(oneLine(seenText(n)))
			return
		case atom.Tr:
			cells, names := tableCells(n)
			if header == nil && names && len(cells) > 1 && hasRowsAfter(n) {
				header = make([]string, len(cells))
				for i, c := range cells {
					header[i] = oneLine(clean(c))
				}
				return
			}
			w.b.Row(header, cells)
			return
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
	}
	walk(n)
	w.b.last = kindNone // rows of the next table are not of this one
	w.anchor = ""
}

// tableCells gives a row's cells, one for each column that a cell spans, and
// whether all of them are names of columns.
func tableCells(tr *html.Node) (cells []string, names bool) {
	names = true
	for c := range tr.ChildNodes() {
		if c.DataAtom != atom.Td && c.DataAtom != atom.Th || leftOut(c) {
			continue
		}
		names = names && (c.DataAtom == atom.Th || tr.Parent != nil && tr.Parent.DataAtom == atom.Thead)
		cells = append(cells, oneLine(seenText(c)))
		if span, ok := attr(c, "colspan"); ok {
			n := 0
			fmt.Sscan(span, &n)
			for range min(n, 64) - 1 {
				cells = append(cells, "")
			}
		}
	}
	return cells, names && len(cells) > 0
}

// hasRowsAfter reports whether a row follows in the same table.
func hasRowsAfter(tr *html.Node) bool {
	for n := tr; n != nil && n.DataAtom != atom.Table; n = n.Parent {
		for s := n.NextSibling; s != nil; s = s.NextSibling {
			if find(s, func(c *html.Node) bool { return c.DataAtom == atom.Tr }) != nil {
				return true
			}
		}
	}
	return false
}

// seenText gives the words in an element that a reader sees.
func seenText(n *html.Node) string {
	var out strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			out.WriteString(n.Data)
			return
		case leftOut(n):
			return
		case n.DataAtom == atom.Br, n.DataAtom == atom.P, n.DataAtom == atom.Li, n.DataAtom == atom.Div:
			out.WriteByte(' ')
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
	}
	walk(n)
	return out.String()
}

// rawText gives all text in an element as it is written.
func rawText(n *html.Node) string {
	var out strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			out.WriteString(n.Data)
		} else if n.DataAtom == atom.Br {
			out.WriteByte('\n')
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
	}
	walk(n)
	return out.String()
}

// htmlFragment adds a piece of HTML that stands in another format.
func htmlFragment(b *builder, fragment string) {
	body := &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
	nodes, err := html.ParseFragment(strings.NewReader(fragment), body)
	if err != nil { // nested deeper than the parser allows
		b.Paragraph(tokenText(fragment))
		return
	}
	w := htmlWalker{b: b}
	for _, n := range nodes {
		w.block(n)
	}
	w.flush()
}
