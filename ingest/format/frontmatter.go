package format

import (
	"net/url"
	"regexp"
	"strings"
)

// cutFrontMatter cuts the metadata off the start of a Markdown file: YAML between lines of "---",
// or TOML between lines of "+++".
func cutFrontMatter(text string) (matter, rest string) {
	text = strings.TrimPrefix(text, "\ufeff")
	if m := frontMatter.FindStringSubmatch(text[:min(len(text), 64<<10)]); m != nil {
		return m[1] + m[2], text[len(m[0]):]
	}
	return "", text
}

var frontMatter = regexp.MustCompile(`(?s)^(?:---[ \t]*\n(.*?\n)??(?:---|\.\.\.)|\+\+\+[ \t]*\n(.*?\n)??\+\+\+)[ \t]*(?:\n|$)`)

// readFrontMatter reads the keys of metadata. It accepts only scalars and lists of scalars, as
// text, so that a document can't make the program expand or decode anything.
func readFrontMatter(doc *Document, matter string) {
	for _, m := range matterLine.FindAllStringSubmatch(matter, -1) {
		var list []string
		for item := range strings.FieldsFuncSeq(m[2], func(r rune) bool { return r == '\n' || m[2][0] == '[' && r == ',' }) {
			item, isItem := strings.CutPrefix(strings.Trim(item, " \t\r[]"), "- ")
			if strings.Contains(m[2], "\n") && !isItem { // in a list of authors, the address below "- name: Ada Lovelace"
				continue
			}
			if item = unquote(strings.TrimPrefix(item, "name:")); item != "" && item != "|" && item != ">" {
				list = append(list, item)
			}
		}
		doc.setMeta(strings.ToLower(m[1]), strings.Join(list, ", "))
	}
}

// matterLine matches a key and its value, which is the rest of the line or the items below.
var matterLine = regexp.MustCompile(`(?m)^["']?(\w+)["']?[ \t]*[:=][ \t]*(.*(?:\n[ \t]*- .*(?:\n[ \t]+\w+:.*)*)*)`)

// unquote removes the quotes of a value, or the comment after it.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	s, _, _ = strings.Cut(s, " #")
	return s
}

// metaKeys maps the keys of metadata that are kept to their names in [Document.Meta].
var metaKeys = map[string]string{
	"title": "title", "date": "date", "published": "date", "created": "date", "pubdate": "date", "publishdate": "date",
	"author": "author", "authors": "author", "to": "to", "cc": "cc",
	"tags": "tags", "tag": "tags", "keywords": "tags", "categories": "tags", "category": "tags",
	"description": "description", "summary": "description", "subtitle": "description",
	"lang": "language", "language": "language", "version": "version", "status": "status",
	"url": "url", "source": "url", "canonical": "url",
	"updated": "updated", "lastmod": "updated", "last_updated": "updated", "modified": "updated",
}

// isWebAddress reports whether s is a complete http or https address.
func isWebAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= 1000 && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// setMeta sets metadata. It keeps the first value of a key and ignores unknown keys.
func (doc *Document) setMeta(key, value string) {
	key, ok := metaKeys[key]
	value = oneLine(Clean(value))
	if !ok || value == "" || key == "url" && !isWebAddress(value) {
		return
	}
	if value = strings.ToValidUTF8(value[:min(len(value), 1000)], ""); key == "title" {
		if doc.Title == "" {
			doc.Title = value
		}
		return
	}
	if doc.Meta == nil {
		doc.Meta = make(map[string]string)
	}
	if doc.Meta[key] == "" {
		doc.Meta[key] = value
	}
}
