package format

import (
	"ibid/ingest/charset"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// HTML reads the main content of a page: headings with their ids,
// paragraphs, lists, rows of tables, code; no navigation, no scripts, nothing
// hidden.
func HTML(doc *Document, data []byte) error {
	text, err := charset.Decode(data, declaredCharset(data))
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
	readHead(doc, root)
	prune(root)
	content := mainContent(root)
	w := htmlWalker{b: &b}
	w.lead(root, content)
	w.block(content)
	w.flush()
	b.into(doc)
	doc.titleFromHeading(anyLevel)
	return nil
}

// declaredCharset finds the charset in a meta element or XML declaration.
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

// tokenText returns the words of a page that cannot be parsed to a tree.
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

// htmlFragment adds a piece of HTML in another format.
func htmlFragment(b *builder, fragment string) { (&htmlWalker{b: b}).fragment(fragment) }

// htmlText adds a piece of HTML, whose headings are no sections.
func htmlText(b *builder, fragment string) { (&htmlWalker{b: b, flat: true}).fragment(fragment) }

func (w *htmlWalker) fragment(fragment string) {
	body := &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
	nodes, err := html.ParseFragment(strings.NewReader(fragment), body)
	if err != nil { // nested deeper than the parser allows
		w.b.Paragraph(tokenText(fragment))
		return
	}
	for _, n := range nodes {
		w.block(n)
	}
	w.flush()
}
