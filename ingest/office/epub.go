package office

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// maxChapter is the largest page, in bytes, that is read.
const maxChapter = 8 << 20

// epub reads an electronic book: the pages of its spine in order, without tables of contents.
func (f *file) epub() error {
	if err := f.checkRights(); err != nil {
		return err
	}
	b, err := f.bookPackage()
	if err != nil {
		return err
	}
	labels := f.labels(b)
	read := map[string]bool{}
	for _, id := range b.spine {
		it := b.items[id]
		if it.path == "" || read[it.path] || b.contents[it.path] || !strings.Contains(it.media, "html") && it.media != "" {
			continue
		}
		read[it.path] = true
		page, err := f.content(it.path, maxChapter)
		f.notePartial(err, "%s in it could be read only in part or not at all", it.path)
		page = asHTML(page)
		if label := labels[it.path]; label != "" && !anyHeading.Match(page) {
			f.write(Block{Kind: Heading, Level: 1, Text: label})
		}
		f.write(Block{Kind: HTML, HTML: page})
		f.place = fmt.Sprintf("“%.60s”", cmp.Or(labels[it.path], path.Base(it.path)))
		for _, tag := range imageTag.FindAll(page, -1) {
			if src := sourceOf.FindSubmatch(tag); src != nil && !described.Match(tag) {
				f.countPicture(resolveHref(it.path, html.UnescapeString(string(src[1]))))
			}
		}
	}
	if len(read) == 0 {
		return errors.New("it is damaged: all its pages are missing")
	}
	return nil
}

// checkRights refuses books with encrypted pages. It ignores obfuscated fonts and other encrypted
// files.
func (f *file) checkRights() error {
	encrypted := false
	err := f.find("META-INF/encryption.xml", func(_ *xmlReader, e element) {
		switch strings.ToLower(path.Ext(attr(e, "URI"))) {
		case ".xhtml", ".html", ".htm", ".xml", ".opf", ".ncx":
			encrypted = encrypted || e.Name.Local == "CipherReference"
		}
	})
	if missing := errors.Is(err, errNoPart); encrypted || err != nil && !missing || missing && f.has("META-INF/license.lcpl") {
		return errors.New("it is protected by rights management (DRM): only programs that its seller permits can read it")
	}
	return nil
}

// A book is the content of a package document.
type book struct {
	items    map[string]bookItem
	spine    []string        // item IDs in reading order
	contents map[string]bool // pages that are tables of contents
	tocs     []string        // parts with page titles
}

type bookItem struct{ path, media string }

func (f *file) bookPackage() (*book, error) {
	name := f.packageName()
	b := &book{items: map[string]bookItem{}, contents: map[string]bool{}}
	err := f.elements(name, func(x *xmlReader, root element) {
		if root.Name.Local == "metadata" {
			f.bookMetadata(x)
			return
		}
		x.each(func(e element) {
			link := resolveHref(name, attr(e, "href"))
			switch root.Name.Local {
			case "manifest":
				if len(b.items) < maxEntries {
					b.items[attr(e, "id")] = bookItem{link, attr(e, "media-type")}
				}
				if isNav := strings.Contains(attr(e, "properties"), "nav"); isNav || strings.Contains(attr(e, "media-type"), "ncx") {
					b.contents[link], b.tocs = true, append(b.tocs, link)
				}
			case "spine":
				if len(b.spine) < maxEntries {
					b.spine = append(b.spine, attr(e, "idref"))
				}
			case "guide":
				if attr(e, "type") == "toc" {
					b.contents[link] = true
				}
			}
		})
	})
	if errors.Is(err, errNoPart) {
		return nil, errors.New("it is damaged: the list of its pages (the package document) is missing")
	}
	f.notePartial(err, "the list of its pages could be read only in part")
	return b, f.exceeded
}

// packageName returns the name of the package document.
func (f *file) packageName() (name string) {
	// Keep the elements before any damage.
	_ = f.find("META-INF/container.xml", func(_ *xmlReader, e element) {
		if e.Name.Local == "rootfile" {
			name = cmp.Or(name, attr(e, "full-path"))
		}
	})
	return name
}

// bookKeys maps elements of a package document to metadata keys.
var bookKeys = map[string]string{
	"title": "title", "creator": "author", "date": "created", "language": "language", "subject": "keywords", "description": "description",
}

func (f *file) bookMetadata(x *xmlReader) {
	all := map[string][]string{}
	x.find(func(e element) {
		if key := bookKeys[e.Name.Local]; key != "" && len(all[key]) < 20 {
			all[key] = append(all[key], oneLine(tag.ReplaceAllString(x.text(), " ")))
		}
	})
	for key, texts := range all {
		if key == "author" || key == "keywords" {
			texts[0] = strings.Join(texts, ", ")
		}
		f.meta(key, texts[0])
	}
}

// resolveHref returns the part that a link in another part leads to, or "" for that part itself.
func resolveHref(from, href string) string {
	href, _, _ = strings.Cut(href, "#")
	if plain, err := url.PathUnescape(href); err == nil {
		href = plain
	}
	if href == "" {
		return ""
	}
	return path.Join(path.Dir(from), href)
}

// labels returns page titles from the tables of contents, for pages without a heading.
func (f *file) labels(b *book) map[string]string {
	labels := map[string]string{}
	for _, toc := range b.tocs {
		label := ""
		_ = f.find(toc, func(x *xmlReader, e element) { // keeps the names before any damage
			href := ""
			switch e.Name.Local {
			case "navLabel":
				label = oneLine(x.text())
			case "content": // follows its label
				href = attr(e, "src")
			case "a":
				href, label = attr(e, "href"), oneLine(x.text())
			}
			if target := resolveHref(toc, href); target != "" && labels[target] == "" && len(label) <= maxName {
				labels[target] = label
			}
		})
	}
	return labels
}

var (
	tag        = regexp.MustCompile(`<[^<>]*>`)
	anyHeading = regexp.MustCompile(`(?i)<h[1-6][\s>]`)
	// An HTML element with text, closed in its start tag, which HTML does not allow.
	closedTag = regexp.MustCompile(`(?i)<(title|script|style|a|span|p|div|i|b|em|strong|td|th|li|h[1-6])((?:\s[^<>]*)?)/>`)
	asideTag  = regexp.MustCompile(`<(/?)aside([\s>])`)
	imageTag  = regexp.MustCompile(`(?i)<(?:img|image)\s[^<>]*>`)
	sourceOf  = regexp.MustCompile(`(?i)\s(?:src|xlink:href)\s*=\s*["']([^"']*)`)
	described = regexp.MustCompile(`(?i)\salt\s*=\s*["'][^"']*[\pL\pN]`)
	cdata     = regexp.MustCompile(`<!\[CDATA\[|\]\]>`)
)

// asHTML rewrites an XHTML page as HTML, in which <title/> would begin a title that never ends.
// Asides, which hold the notes, become divs.
func asHTML(page []byte) []byte {
	if bytes.HasPrefix(page, []byte("\xff\xfe")) || bytes.HasPrefix(page, []byte("\xfe\xff")) {
		return page // UTF-16, which the expressions do not match
	}
	page = closedTag.ReplaceAll(page, []byte("<$1$2></$1>"))
	page = cdata.ReplaceAll(page, nil)
	return asideTag.ReplaceAll(page, []byte("<${1}div$2"))
}
