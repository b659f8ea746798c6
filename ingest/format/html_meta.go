package format

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A pageHead gathers the metadata of a page.
type pageHead struct {
	doc  *Document
	tags []string
}

// readHead reads the title and metadata of a page.
func readHead(doc *Document, root *html.Node) {
	if t := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Title && n.Namespace == "" }); t != nil {
		doc.Title = oneLine(Clean(rawText(t)))
	}
	h := pageHead{doc: doc}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			h.element(n)
		}
	}
	doc.setMeta("tags", strings.Join(h.tags, ", "))
}

func (h *pageHead) element(n *html.Node) {
	switch n.DataAtom {
	case atom.Html:
		lang, _ := attr(n, "lang")
		h.doc.setMeta("language", lang)
	case atom.Link:
		rel, _ := attr(n, "rel")
		if href, _ := attr(n, "href"); slices.Contains(strings.Fields(strings.ToLower(rel)), "canonical") {
			h.doc.setMeta("url", href)
		}
	case atom.Meta:
		h.meta(n)
	}
}

func (h *pageHead) meta(n *html.Node) {
	name, _ := attr(n, "name")
	if name == "" {
		name, _ = attr(n, "property")
	}
	if name == "" {
		name, _ = attr(n, "http-equiv")
	}
	content, _ := attr(n, "content")
	switch name = strings.ToLower(name); name {
	case "author", "description":
		h.doc.setMeta(name, content)
	case "article:author", "dc.creator", "dcterms.creator", "citation_author":
		if !isWebAddress(content) { // a profile
			h.doc.setMeta("author", content)
		}
	case "og:url":
		h.doc.setMeta("url", content)
	case "keywords", "article:tag":
		h.tags = append(h.tags, content)
	case "content-language", "dc.language", "dcterms.language", "og:locale":
		h.doc.setMeta("language", strings.ReplaceAll(content, "_", "-"))
	case "date", "article:published_time", "dc.date", "dc.date.issued", "dcterms.date",
		"dcterms.created", "dcterms.issued", "pubdate", "citation_publication_date":
		h.doc.setMeta("date", content)
	case "article:modified_time", "og:updated_time", "dcterms.modified", "last-modified":
		h.doc.setMeta("updated", content)
	}
}
