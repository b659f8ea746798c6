package office

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxFlatToken is the longest token of a flat file, which has its pictures as
// text.
const maxFlatToken = 32 << 20

// openDocument reads texts, sheets and presentations of the OpenDocument
// format (odt, ods, odp and their templates).
func (f *file) openDocument() error {
	encrypted := false
	_ = f.find("META-INF/manifest.xml", func(_ *xmlReader, e element) { // a damaged part encrypts nothing
		encrypted = encrypted || e.Name.Local == "encryption-data"
	})
	if encrypted {
		return errors.New("it is protected with a password: save it without one")
	}
	o := newOpenDocument(f)
	for _, part := range []string{"meta.xml", "styles.xml"} {
		if x, err := f.xml(part); err == nil {
			if err := o.document(x); err != nil {
				f.note("%s in it could be read only in part: %v", part, err)
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

type odfReader struct {
	*file
	styles  styles
	lists   map[string]*listKind
	title   string          // from the properties
	counted [listLevels]int // items of the last list
	page    int             // the last one; sheets count too
	heads   [][]Block       // headers and footers
	shown   map[string]bool // embedded documents that were read
}

func newOpenDocument(f *file) *odfReader {
	return &odfReader{file: f, styles: styles{}, lists: map[string]*listKind{}, shown: map[string]bool{}}
}

// end writes the headers and footers, and records the title of the properties,
// unless the text had one.
func (o *odfReader) end(err error) error {
	for _, blocks := range o.heads {
		o.running("Header or footer", blocks)
	}
	o.meta("title", o.title)
	return err
}

// document reads one XML file, which may hold any part of the document.
func (o *odfReader) document(x *xmlReader) error {
	return x.each(func(root element) error {
		return x.each(func(e element) error {
			switch e.Name.Local {
			case "meta":
				return x.find(func(e element) { o.title = cmp.Or(o.title, o.about(x, e)) })
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
				var blocks []Block
				err := o.blocks(x, odfPlace{}, func(b Block) { blocks = append(blocks, o.hold(b)) })
				o.heads = append(o.heads, blocks)
				return err
			}
			return nil
		})
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
			s := style{parent: attr(e, "parent-style-name"), name: cmp.Or(attr(e, "display-name"), name),
				level: number(e, "default-outline-level", 0)}
			err := x.each(func(e element) error {
				s.hidden = s.hidden || e.Name.Local == "text-properties" && attr(e, "display") == "none"
				return nil
			})
			o.styles[name] = s
			return err
		case "list-style":
			l := &listKind{}
			o.lists[name] = l
			return x.each(func(e element) error {
				if at := number(e, "level", 0) - 1; at >= 0 && at < listLevels {
					l[at] = odfLevel(e, at)
				}
				return nil
			})
		}
		return nil
	})
}

// odfLevel returns the level of a list that an element describes.
func odfLevel(e element, at int) listLevel {
	l := listLevel{start: number(e, "start-value", 1), format: bulletFormat}
	if format := attr(e, "num-format"); e.Name.Local == "list-level-style-number" && format != "" {
		l.format = map[string]string{"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}[format]
	}
	for i := max(at-number(e, "display-levels", 1), -1) + 1; i <= at; i++ {
		l.text += ".%" + strconv.Itoa(i+1)
	}
	l.text = strings.TrimPrefix(l.text, ".")
	if before, after := attr(e, "num-prefix"), attr(e, "num-suffix"); len(before)+len(after) <= 64 {
		l.text = before + l.text + after
	}
	return l
}

func (o *odfReader) body(x *xmlReader) error {
	return x.each(func(e element) error {
		switch e.Name.Local {
		case "spreadsheet":
			return o.sheets(x)
		case "presentation":
			return o.pages(x)
		}
		return o.blocks(x, odfPlace{}, func(b Block) { o.write(b) })
	})
}
