package format

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// HTML reads the main content of a page: headings with their IDs, paragraphs, lists, table rows and
// code, but no navigation, scripts or hidden text.
func HTML(doc *Document, src string) error {
	root, err := html.ParseWithOptions(strings.NewReader(src), html.ParseOptionEnableScripting(false))
	var b builder
	if err != nil { // nested deeper than the parser allows
		return fmt.Errorf("it cannot be read as HTML: %w", err)
	}
	readHead(doc, root)
	tabulate(root)
	prunePage(root)
	content := mainContent(root)
	w := htmlWalker{b: &b}
	w.lead(root, content)
	w.block(content)
	w.flush()
	b.moveTo(doc)
	doc.titleFromHeading(anyLevel)
	return nil
}

// HTMLCharset returns the charset in a meta element or XML declaration.
func HTMLCharset(data []byte) string {
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

// htmlFragment adds a piece of HTML embedded in another format.
func htmlFragment(b *builder, fragment string) { (&htmlWalker{b: b}).fragment(fragment) }

// htmlText is like htmlFragment, but headings begin no sections.
func htmlText(b *builder, fragment string) { (&htmlWalker{b: b, flat: true}).fragment(fragment) }

func (w *htmlWalker) fragment(fragment string) {
	body := &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
	nodes, err := html.ParseFragment(strings.NewReader(fragment), body)
	if err != nil { // nested deeper than the parser allows
		w.b.Paragraph(fragment)
		return
	}
	for _, n := range nodes {
		body.AppendChild(n)
	}
	tabulate(body)
	prune(body, isNoContent)
	w.block(body)
}
