package format

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// headMeta maps the names of meta elements to keys of metadata.
var headMeta = map[string]string{
	"author": "author", "article:author": "author", "dc.creator": "author", "dcterms.creator": "author", "citation_author": "author",
	"description": "description", "og:url": "url", "keywords": "tags", "article:tag": "tags",
	"content-language": "language", "dc.language": "language", "dcterms.language": "language",
	"date": "date", "article:published_time": "date", "dc.date": "date", "dc.date.issued": "date", "dcterms.date": "date",
	"dcterms.created": "date", "dcterms.issued": "date", "pubdate": "date", "citation_publication_date": "date",
	"article:modified_time": "updated", "og:updated_time": "updated", "dcterms.modified": "updated", "last-modified": "updated",
}

// readHead reads the title and metadata of a page.
func readHead(doc *Document, root *html.Node) {
	if t := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Title && n.Namespace == "" }); t != nil {
		doc.Title = oneLine(Clean(rawText(t)))
	}
	var tags []string
	for n := range root.Descendants() {
		switch n.DataAtom {
		case atom.Html:
			doc.setMeta("language", attr(n, "lang"))
		case atom.Link:
			if slices.Contains(strings.Fields(strings.ToLower(attr(n, "rel"))), "canonical") {
				doc.setMeta("url", attr(n, "href"))
			}
		case atom.Meta:
			name := strings.ToLower(cmp.Or(attr(n, "name"), attr(n, "property"), attr(n, "http-equiv")))
			content := attr(n, "content")
			switch key := headMeta[name]; {
			case key == "tags":
				tags = append(tags, content)
			case key == "author" && isWebAddress(content): // a profile
			default:
				doc.setMeta(key, content)
			}
		}
	}
	doc.setMeta("tags", strings.Join(tags, ", "))
}
