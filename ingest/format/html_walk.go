package format

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"ibid/ingest/office"
)

// An htmlWalker converts elements to blocks.
type htmlWalker struct {
	b             *builder
	inline        strings.Builder // text of the current block
	depth         int             // number of enclosing lists
	marker        string          // marker of the list item that the next text begins
	anchor        string          // anchor seen since the last text
	flat          bool            // headings are paragraphs
	repeatedBytes int             // see [htmlTable]
}

// lead writes the page's first h1 if the content has no h1.
func (w *htmlWalker) lead(root, content *html.Node) {
	first := func(n *html.Node) *html.Node {
		return find(n, func(c *html.Node) bool { return c.DataAtom == atom.H1 })
	}
	if h1 := first(root); h1 != nil && first(content) == nil {
		w.heading(h1)
	}
}

// flush ends the current block.
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
		w.b.Item(max(0, w.depth-1), w.marker, text) // an item may be outside any list
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

// block walks a pruned node and its descendants.
func (w *htmlWalker) block(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		if strings.TrimSpace(n.Data) != "" {
			w.anchor = ""
		}
		w.inline.WriteString(strings.ReplaceAll(n.Data, "\n", " "))
		return
	case html.ElementNode:
	default:
		w.children(n)
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
	case atom.Li: // outside a list
		w.item(n, "-")
	case atom.Table:
		w.flush()
		w.table(n)
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		w.inline.WriteString(oneLine(rawText(n)))
	default:
		if blockElements[n.DataAtom] {
			w.flush()
			defer w.flush()
		}
		w.children(n)
	}
}

func (w *htmlWalker) children(n *html.Node) {
	for c := range n.ChildNodes() {
		if areGlued(c) {
			w.inline.WriteByte(' ')
		}
		w.block(c)
	}
}

// areGlued reports whether only the style of the page separates an inline element from the one
// right before it: both are components, or the element begins with a capital after a lower-case
// letter or digit, or with a word after bold text, such as a value after its label.
func areGlued(n *html.Node) bool {
	p := n.PrevSibling
	if p != nil && p.Type == html.ElementNode && n.Type == html.ElementNode && p.DataAtom == 0 && n.DataAtom == 0 {
		return true
	}
	if p == nil || !glueable[p.DataAtom] || !glueable[n.DataAtom] || n.Parent.DataAtom == atom.Code || n.Parent.DataAtom == atom.Pre {
		return false
	}
	first, second := rawText(p), rawText(n)
	before, _ := utf8.DecodeLastRuneInString(first)
	after, _ := utf8.DecodeRuneInString(second)
	small := unicode.IsLower(before) || unicode.IsDigit(before)
	if bold := p.DataAtom != atom.Span && p.DataAtom != atom.A; bold && p.DataAtom != n.DataAtom && min(len(first), len(second)) > 1 {
		return (small || before == ':') && (unicode.IsLetter(after) || unicode.IsDigit(after))
	}
	return unicode.IsUpper(after) && small
}

var glueable = map[atom.Atom]bool{atom.Span: true, atom.B: true, atom.Strong: true, atom.Label: true, atom.A: true}

func anchorOf(n *html.Node) string {
	if id := attr(n, "id"); id != "" || n.DataAtom != atom.A {
		return id
	}
	return attr(n, "name")
}

// heading writes a heading with its own anchor, or the anchor of an element in it, around it or
// right before it.
func (w *htmlWalker) heading(n *html.Node) {
	if id := anchorOf(n); id != "" {
		w.anchor = id
	} else if in := find(n, func(c *html.Node) bool { return anchorOf(c) != "" }); in != nil {
		w.anchor = anchorOf(in)
	}
	text := strings.TrimRight(oneLine(seenText(n)), "¶#§ ")
	if w.flat {
		w.b.Paragraph(text)
		return
	}
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
		w.b.last = kindNone // items of the next list are separate
	}
}

func (w *htmlWalker) item(n *html.Node, marker string) {
	w.flush()
	w.marker = marker
	w.children(n)
	w.flush()
	w.marker = ""
}

// table writes each row of a table on its own line. It walks a layout table like any other element.
func (w *htmlWalker) table(n *html.Node) {
	if isLayout(n) {
		w.children(n)
		w.flush()
		return
	}
	var rows []*html.Node
	for c := range n.Descendants() {
		switch c.DataAtom {
		case atom.Caption:
			w.b.Paragraph(oneLine(seenText(c)))
		case atom.Tr:
			rows = append(rows, c)
		}
	}
	t := htmlTable{repeatedBytes: &w.repeatedBytes}
	cells, isName := make([][]string, len(rows)), make([]bool, len(rows))
	for i, tr := range rows {
		cells[i], isName[i] = t.row(tr)
	}
	if len(rows) > 1 && len(cells[0]) > 2 && office.NamesNumbers(cells[0], cells[1]) {
		isName[0] = true // although the page does not mark the row as names
	}
	for i, row := range cells {
		if isName[i] && i+1 < len(rows) {
			t.addNames(row)
		} else {
			w.b.Row(t.header, row)
		}
	}
	w.b.last = kindNone // rows of the next table are separate
	w.anchor = ""
}

// seenText returns the visible text in an element.
func seenText(n *html.Node) string {
	var out strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			out.WriteString(n.Data)
			return
		case n.DataAtom == atom.Br, n.DataAtom == atom.P, n.DataAtom == atom.Li, n.DataAtom == atom.Div:
			out.WriteByte(' ')
		}
		for c := range n.ChildNodes() {
			if areGlued(c) {
				out.WriteByte(' ')
			}
			walk(c)
		}
	}
	walk(n)
	return out.String()
}

// rawText returns all text in an element unchanged.
func rawText(n *html.Node) string {
	var out strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			out.WriteString(c.Data)
		} else if c.DataAtom == atom.Br {
			out.WriteByte('\n')
		}
	}
	return out.String()
}
