package office

import (
	"bytes"
	"errors"
	"fmt"
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
			f.note(fmt.Sprintf("%s in it could be read only in part or not at all: %v", it.path, err))
		}
		page = asHTML(page)
		if label := labels[it.path]; label != "" && !anyHeading.Match(page) {
			f.heading(1, label, "")
		}
		f.html(page)
	}
	if len(read) == 0 {
		return errors.New("it is damaged: all the pages that it lists are missing")
	}
	return nil
}

// rights refuses books whose pages are encrypted; obfuscated fonts and the
// like do not matter.
func (f *file) rights() error {
	encrypted := f.has("META-INF/license.lcpl")
	if x, err := f.xml("META-INF/encryption.xml"); err == nil {
		encrypted = false
		err := x.find(func(e element) {
			switch strings.ToLower(path.Ext(attr(e, "URI"))) {
			case ".xhtml", ".html", ".htm", ".xml", ".opf", ".ncx":
				encrypted = encrypted || e.Name.Local == "CipherReference"
			}
		})
		encrypted = encrypted || err != nil
		x.close()
	}
	if encrypted {
		return errors.New("it is protected by rights management (DRM): only the programs its seller names can read it")
	}
	return nil
}

// A book is the content of a package document.
type book struct {
	items    map[string]bookItem
	spine    []string        // ids of items in order
	contents map[string]bool // pages that list the contents
	toc      string          // id of the table of contents of EPUB 2
}

type bookItem struct {
	path, media string
	properties  []string
}

func (f *file) bookPackage() (*book, error) {
	name := f.packageName()
	b := &book{items: map[string]bookItem{}, contents: map[string]bool{}}
	err := f.elements(name, func(x *xmlReader, e element) error {
		switch e.Name.Local {
		case "metadata":
			return f.bookMetadata(x)
		case "manifest":
			return x.each(func(e element) error {
				it := bookItem{linked(name, attr(e, "href")), attr(e, "media-type"), strings.Fields(attr(e, "properties"))}
				if len(b.items) < maxEntries {
					b.items[attr(e, "id")] = it
				}
				if slices.Contains(it.properties, "nav") {
					b.contents[it.path] = true
				}
				return nil
			})
		case "spine":
			b.toc = attr(e, "toc")
			return x.each(func(e element) error {
				if len(b.spine) < maxEntries {
					b.spine = append(b.spine, attr(e, "idref"))
				}
				return nil
			})
		case "guide":
			return x.each(func(e element) error {
				if attr(e, "type") == "toc" {
					b.contents[linked(name, attr(e, "href"))] = true
				}
				return nil
			})
		}
		return nil
	})
	if errors.Is(err, errNoPart) {
		return nil, errors.New("it is damaged: the list of its pages (the package document) is missing")
	}
	if err != nil {
		f.note(fmt.Sprintf("the list of its pages could be read only in part: %v", err))
	}
	if f.over != nil {
		return nil, f.over
	}
	return b, nil
}

// packageName returns the name of the package document.
func (f *file) packageName() (name string) {
	if x, err := f.xml("META-INF/container.xml"); err == nil {
		_ = x.find(func(e element) { // the elements before the damage count
			if e.Name.Local == "rootfile" && name == "" {
				name = attr(e, "full-path")
			}
		})
		x.close()
	}
	if f.has(name) {
		return name
	}
	if i := slices.IndexFunc(f.names, func(n string) bool { return strings.HasSuffix(n, ".opf") }); i >= 0 {
		return f.names[i]
	}
	return name
}

func (f *file) bookMetadata(x *xmlReader) error {
	var creators, subjects []string
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "title", "language":
			f.w.Meta(e.Name.Local, x.text())
		case "description":
			f.w.Meta("description", tag.ReplaceAllString(x.text(), " "))
		case "date":
			f.w.Meta("created", x.text())
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
				f.w.Meta("modified", x.text())
			}
		case "dc-metadata", "x-metadata": // in the oldest books
			return x.each(do)
		}
		return nil
	}
	err := x.each(do)
	f.w.Meta("author", strings.Join(creators, ", "))
	f.w.Meta("keywords", strings.Join(subjects, ", "))
	return err
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
	add := func(base, href, label string) {
		if target := linked(base, href); target != "" && labels[target] == "" && len(label) <= maxName {
			labels[target] = label
		}
	}
	if name := b.items[b.toc].path; name != "" {
		if x, err := f.xml(name); err == nil {
			label := ""
			var do func(e element) error
			do = func(e element) error {
				switch e.Name.Local {
				case "navLabel":
					label = oneLine(x.text())
					return nil
				case "content":
					add(name, attr(e, "src"), label)
				}
				return x.each(do)
			}
			_ = x.each(do) // of a damaged part, the first names count
			x.close()
		}
	}
	for _, it := range b.items {
		if !slices.Contains(it.properties, "nav") {
			continue
		}
		x, err := f.xml(it.path)
		if err != nil {
			continue
		}
		var do func(e element) error
		do = func(e element) error {
			if e.Name.Local == "a" {
				add(it.path, attr(e, "href"), oneLine(x.text()))
				return nil
			}
			return x.each(do)
		}
		_ = x.each(do)
		x.close()
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
