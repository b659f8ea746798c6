package format

import (
	"encoding/json"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A pageHead gathers the metadata of a page. Its meta elements take precedence
// over JSON-LD.
type pageHead struct {
	doc    *Document
	tags   []string
	linked []string // JSON-LD
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
	for _, data := range h.linked {
		h.jsonLD(data)
	}
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
	case atom.Script:
		if kind, _ := attr(n, "type"); strings.EqualFold(strings.TrimSpace(kind), "application/ld+json") {
			h.linked = append(h.linked, rawText(n))
		}
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

// schemaKeys are the properties of schema.org that are kept, and as what.
var schemaKeys = map[string]string{
	"datePublished": "date", "dateCreated": "date", "dateModified": "updated", "author": "author", "inLanguage": "language",
}

// jsonLD reads the dates and authors of objects. Invalid JSON is ignored.
func (h *pageHead) jsonLD(data string) {
	const most = 256 << 10
	if len(data) > most {
		return
	}
	var top any
	if json.Unmarshal([]byte(data), &top) != nil {
		return
	}
	var objects []map[string]any
	switch top := top.(type) {
	case map[string]any:
		objects = append(objects, top)
		objects = append(objects, objectsIn(top["@graph"])...)
	case []any:
		objects = objectsIn(top)
	}
	for _, o := range objects {
		for _, name := range []string{"datePublished", "dateCreated", "dateModified", "author", "inLanguage"} {
			h.doc.setMeta(schemaKeys[name], strings.Join(namesIn(o[name]), ", "))
		}
	}
}

func objectsIn(list any) (objects []map[string]any) {
	all, _ := list.([]any)
	for _, v := range all {
		if o, ok := v.(map[string]any); ok {
			objects = append(objects, o)
		}
	}
	return objects
}

// namesIn returns a text, the name of an object, or those of each in a list.
func namesIn(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case map[string]any:
		return namesIn(v["name"])
	case []any:
		var names []string
		for _, e := range v {
			if _, nested := e.([]any); !nested {
				names = append(names, namesIn(e)...)
			}
		}
		return names
	}
	return nil
}
