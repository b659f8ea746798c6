package office

import (
	"bytes"
	"cmp"
	"errors"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxChapter is the size of the largest page that is read.
const maxChapter = 8 << 20

// epub reads an electronic book: the pages of its spine in order, without
// tables of contents.
func (f *file) epub() error {
	if err := f.rights(); err != nil {
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
		if err != nil {
			if f.over != nil {
				return f.over
			}
			f.note("%s in it could be read only in part or not at all: %v", it.path, err)
		}
		page = asHTML(page)
		if label := labels[it.path]; label != "" && !anyHeading.Match(page) {
			f.write(Block{Kind: Heading, Level: 1, Text: label})
		}
		f.write(Block{Kind: HTML, HTML: page})
	}
	if len(read) == 0 {
		return errors.New("it is damaged: all the pages that it lists are missing")
	}
	return nil
}

// rights refuses books whose pages are encrypted; obfuscated fonts and the
// like do not matter.
func (f *file) rights() error {
	encrypted := false
	err := f.find("META-INF/encryption.xml", func(_ *xmlReader, e element) {
		switch strings.ToLower(path.Ext(attr(e, "URI"))) {
		case ".xhtml", ".html", ".htm", ".xml", ".opf", ".ncx":
			encrypted = encrypted || e.Name.Local == "CipherReference"
		}
	})
	if missing := errors.Is(err, errNoPart); encrypted || err != nil && !missing || missing && f.has("META-INF/license.lcpl") {
		return errors.New("it is protected by rights management (DRM): only the programs its seller names can read it")
	}
	return nil
}

// A book is the content of a package document.
type book struct {
	items    map[string]bookItem
	spine    []string        // ids of items in order
	contents map[string]bool // pages that list the contents
	navs     []string        // those of EPUB 3
	toc      string          // id of the table of contents of EPUB 2
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
		if root.Name.Local == "spine" {
			b.toc = attr(root, "toc")
		}
		x.each(func(e element) {
			link := linked(name, attr(e, "href"))
			switch root.Name.Local {
			case "manifest":
				if len(b.items) < maxEntries {
					b.items[attr(e, "id")] = bookItem{link, attr(e, "media-type")}
				}
				if slices.Contains(strings.Fields(attr(e, "properties")), "nav") {
					b.contents[link], b.navs = true, append(b.navs, link)
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
	if err != nil {
		f.note("the list of its pages could be read only in part: %v", err)
	}
	if f.over != nil {
		return nil, f.over
	}
	return b, nil
}

// packageName returns the name of the package document.
func (f *file) packageName() (name string) {
	// The elements before damage count.
	_ = f.find("META-INF/container.xml", func(_ *xmlReader, e element) {
		if e.Name.Local == "rootfile" {
			name = cmp.Or(name, attr(e, "full-path"))
		}
	})
	for _, other := range f.names {
		if !f.has(name) && strings.HasSuffix(other, ".opf") {
			name = other
		}
	}
	return name
}

func (f *file) bookMetadata(x *xmlReader) {
	var creators, subjects []string
	x.find(func(e element) {
		switch e.Name.Local {
		case "title", "language", "description":
			f.meta(e.Name.Local, tag.ReplaceAllString(x.text(), " "))
		case "date":
			f.meta("created", x.text())
		case "creator":
			if len(creators) < 20 {
				creators = append(creators, oneLine(x.text()))
			}
		case "subject":
			if len(subjects) < 50 {
				subjects = append(subjects, oneLine(x.text()))
			}
		case "meta":
			if attr(e, "property") == "dcterms:modified" {
				f.meta("modified", x.text())
			}
		}
	})
	f.meta("author", strings.Join(creators, ", "))
	f.meta("keywords", strings.Join(subjects, ", "))
}

// linked returns the part that a link in another part leads to, "" for that
// part itself.
func linked(from, href string) string {
	href, _, _ = strings.Cut(href, "#")
	if plain, err := url.PathUnescape(href); err == nil {
		href = plain
	}
	if href == "" {
		return ""
	}
	return path.Join(path.Dir(from), href)
}

// labels returns the titles that the tables of contents give to pages, for
// pages without a heading.
func (f *file) labels(b *book) map[string]string {
	labels := map[string]string{}
	for _, toc := range append([]string{b.items[b.toc].path}, b.navs...) {
		label := ""
		_ = f.find(toc, func(x *xmlReader, e element) { // of a damaged part, the first names count
			href := ""
			switch e.Name.Local {
			case "navLabel":
				label = oneLine(x.text())
			case "content": // after its label
				href = attr(e, "src")
			case "a":
				href, label = attr(e, "href"), oneLine(x.text())
			}
			if target := linked(toc, href); target != "" && labels[target] == "" && len(label) <= maxName {
				labels[target] = label
			}
		})
	}
	return labels
}

var (
	tag        = regexp.MustCompile(`<[^<>]*>`)
	anyHeading = regexp.MustCompile(`(?i)<h[1-6][\s>]`)
	// An element that is closed in its start tag, which HTML allows for few.
	closedTag = regexp.MustCompile(`<([A-Za-z][A-Za-z0-9:]*)((?:\s[^<>]*)?)/>`)
	asideTag  = regexp.MustCompile(`<(/?)aside([\s>])`)
	cdata     = regexp.MustCompile(`<!\[CDATA\[|\]\]>`)
)

// asHTML rewrites an XHTML page as HTML, where <title/> would begin a title
// that never ends. Asides, which hold the notes, are kept as divs.
func asHTML(page []byte) []byte {
	if bytes.HasPrefix(page, []byte("\xff\xfe")) || bytes.HasPrefix(page, []byte("\xfe\xff")) {
		return page // in UTF-16, which the expressions do not match
	}
	page = closedTag.ReplaceAllFunc(page, func(m []byte) []byte {
		parts := closedTag.FindSubmatch(m)
		switch name := strings.ToLower(string(parts[1])); name {
		case "br", "hr", "img", "meta", "link", "input", "col", "area", "base", "embed", "param", "source", "track", "wbr":
			return m
		}
		return bytes.Join([][]byte{[]byte("<"), parts[1], parts[2], []byte("></"), parts[1], []byte(">")}, nil)
	})
	page = cdata.ReplaceAll(page, nil)
	return asideTag.ReplaceAll(page, []byte("<${1}div$2"))
}
