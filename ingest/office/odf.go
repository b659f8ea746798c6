package office

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// maxFlatToken is the longest token of a flat file, which has its pictures as
// text.
const maxFlatToken = 32 << 20

// openDocument reads texts, sheets and presentations of the OpenDocument
// format (odt, ods, odp and their templates).
func (f *file) openDocument() error {
	if f.encryptedBy("META-INF/manifest.xml", "encryption-data") {
		return errors.New("it is protected with a password: save it without one")
	}
	o := newOpenDocument(f)
	for _, part := range []string{"meta.xml", "styles.xml"} {
		if x, err := f.xml(part); err == nil {
			if err := o.document(x); err != nil {
				f.note(fmt.Sprintf("%s in it could be read only in part: %v", part, err))
			}
			x.close()
		}
	}
	x, err := f.xml("content.xml")
	if err != nil {
		return fmt.Errorf("its text (content.xml) cannot be read: %w", err)
	}
	defer x.close()
	return o.end(o.document(x))
}

// flatOpenDocument reads a document in a single XML file (fodt, fods, fodp).
func (f *file) flatOpenDocument(data []byte) error {
	if len(data) > maxOut {
		return &limitError{fmt.Sprintf("it is larger than %d MB", maxOut>>20)}
	}
	o := newOpenDocument(f)
	return o.end(o.document(newXML(io.NopCloser(bytes.NewReader(data)), maxFlatToken)))
}

// encryptedBy reports whether a part has an element that marks encryption.
func (f *file) encryptedBy(part, name string) bool {
	x, err := f.xml(part)
	if err != nil {
		return false
	}
	defer x.close()
	found := false
	_ = x.find(func(e element) { found = found || e.Name.Local == name }) // a damaged part encrypts nothing
	return found
}

type odfStyle struct {
	parent string
	name   string // for display
	level  int    // of a heading
	hidden bool
}

type odfList struct {
	levels [listLevels + 1]odfLevel // from 1
}

type odfLevel struct {
	format, prefix, suffix string
	start, shown           int // shown is how many levels the number has
}

type odfReader struct {
	*file
	styles  map[string]odfStyle
	lists   map[string]odfList
	title   string              // from the properties
	counted [listLevels + 1]int // items of the last list
	below   int                 // 1 when all headings are below the title
	page    int                 // the last one; sheets count too
	heads   [][]block           // headers and footers
	shown   map[string]bool     // embedded documents that were read
}

func newOpenDocument(f *file) *odfReader {
	return &odfReader{file: f, styles: map[string]odfStyle{}, lists: map[string]odfList{}, shown: map[string]bool{}}
}

// end writes the headers and footers, and records the title of the properties,
// unless the text had one.
func (o *odfReader) end(err error) error {
	for _, blocks := range o.heads {
		o.running("Header or footer", blocks)
	}
	o.w.Meta("title", o.title)
	return err
}

// document reads one XML file, which may hold any part of the document.
func (o *odfReader) document(x *xmlReader) error {
	return x.each(func(root element) error {
		return x.each(func(e element) error {
			switch e.Name.Local {
			case "meta":
				return o.meta(x)
			case "styles", "automatic-styles":
				return o.readStyles(x)
			case "master-styles":
				return o.masterPages(x)
			case "body":
				return o.body(x)
			}
			return nil
		})
	})
}

// masterPages reads the headers and footers of pages.
func (o *odfReader) masterPages(x *xmlReader) error {
	return x.each(func(e element) error {
		return x.each(func(e element) error {
			switch e.Name.Local {
			case "header", "footer", "header-left", "footer-left", "header-first", "footer-first":
				var blocks []block
				err := o.blocks(x, odfPlace{}, func(b block) { blocks = append(blocks, o.countBlock(b)) })
				o.heads = append(o.heads, blocks)
				return err
			}
			return nil
		})
	})
}

func (o *odfReader) meta(x *xmlReader) error {
	return x.each(func(e element) error {
		text := x.text()
		switch e.Name.Local {
		case "title":
			o.title = strings.TrimSpace(text)
		case "initial-creator", "creator":
			o.w.Meta("author", text)
		case "creation-date":
			o.w.Meta("created", text)
		case "date":
			o.w.Meta("modified", text)
		case "keyword":
			o.w.Meta("keywords", text)
		case "language", "description":
			o.w.Meta(e.Name.Local, text)
		}
		return nil
	})
}

func (o *odfReader) readStyles(x *xmlReader) error {
	return x.each(func(e element) error {
		if len(o.styles)+len(o.lists) > maxEntries {
			return nil
		}
		name := attr(e, "name")
		switch e.Name.Local {
		case "style":
			s := odfStyle{parent: attr(e, "parent-style-name"), name: cmp.Or(attr(e, "display-name"), name),
				level: number(e, "default-outline-level", 0)}
			err := x.each(func(e element) error {
				s.hidden = s.hidden || e.Name.Local == "text-properties" && attr(e, "display") == "none"
				return nil
			})
			o.styles[name] = s
			return err
		case "list-style":
			var l odfList
			err := x.each(func(e element) error {
				at := number(e, "level", 0)
				if at < 1 || at > listLevels {
					return nil
				}
				level := odfLevel{start: number(e, "start-value", 1), shown: number(e, "display-levels", 1),
					prefix: attr(e, "num-prefix"), suffix: attr(e, "num-suffix")}
				if e.Name.Local == "list-level-style-number" {
					level.format = attr(e, "num-format")
				}
				if len(level.prefix)+len(level.suffix) > 64 {
					level.prefix, level.suffix = "", ""
				}
				l.levels[at] = level
				return nil
			})
			o.lists[name] = l
			return err
		}
		return nil
	})
}

// lineage yields a style and those it is based on, by name.
func (o *odfReader) lineage(name string) iter.Seq2[string, odfStyle] {
	return func(yield func(string, odfStyle) bool) {
		for range 20 {
			s, ok := o.styles[name]
			if name == "" || !yield(name, s) || !ok {
				return
			}
			name = s.parent
		}
	}
}

// is reports whether a style has this name, or is based on one that has.
func (o *odfReader) is(style, name string) bool {
	for at, s := range o.lineage(style) {
		if at == name || s.name == name {
			return true
		}
	}
	return false
}

// outline returns the heading level of a style's paragraphs.
func (o *odfReader) outline(style string) int {
	for _, s := range o.lineage(style) {
		if s.level > 0 {
			return s.level
		}
	}
	return 0
}

// isHidden reports whether a style's text is hidden.
func (o *odfReader) isHidden(style string) bool {
	for _, s := range o.lineage(style) {
		if s.hidden {
			return true
		}
	}
	return false
}

func (o *odfReader) body(x *xmlReader) error {
	return x.each(func(e element) error {
		switch e.Name.Local {
		case "spreadsheet":
			return o.sheets(x)
		case "presentation":
			return o.pages(x)
		}
		return o.blocks(x, odfPlace{}, o.out)
	})
}

// out writes a block.
func (o *odfReader) out(b block) {
	if b.kind == aHeading {
		if b.marker == titleMarker {
			o.w.Meta("title", b.text)
			o.below = 1
		} else {
			b.level += o.below
		}
	}
	o.write(b)
}
