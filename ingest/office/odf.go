package office

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
)

// openDocument reads OpenDocument texts, sheets and presentations (odt, ods, odp and their
// templates).
func (f *file) openDocument() error {
	encrypted := false
	_ = f.find("META-INF/manifest.xml", func(_ *xmlReader, e element) { // a damaged manifest lists no encryption
		encrypted = encrypted || e.Name.Local == "encryption-data"
	})
	if encrypted {
		return errors.New("it is protected with a password: save it without one")
	}
	o := &odfReader{file: f, styles: styles{}, lists: map[string]*listKind{}, shown: map[string]bool{}, deleted: map[string]int{}}
	for _, part := range []string{"meta.xml", "styles.xml"} {
		if err := f.read(part, o.document); err != nil && f.has(part) {
			f.addPartial("%s in it could be read only in part: %v", part, err)
		}
	}
	if !f.has("content.xml") {
		return errors.New("its text (content.xml) is missing")
	}
	err := f.read("content.xml", o.document)
	for _, blocks := range o.heads {
		o.write(o.headerOrFooter(runningHeads, blocks)...)
	}
	o.meta("title", o.title) // unless the text has a title
	o.place = ""
	for _, n := range o.deleted { // deletions whose marks were not found
		for range n {
			o.countUnread(deletions)
		}
	}
	return err
}

type odfReader struct {
	*file
	styles      styles
	lists       map[string]*listKind
	title       string          // from the properties
	picturePart string          // the picture in the current frame
	counted     [listLevels]int // items of the last list
	page        int             // the last page or sheet
	heads       [][]Block       // headers and footers
	shown       map[string]bool // embedded documents already read
	deleted     map[string]int  // deletions by the ID of their mark in the text, or by sheet
}

// document reads an XML file, which may hold any part of the document.
func (o *odfReader) document(x *xmlReader) {
	x.each(func(element) {
		x.each(func(e element) {
			switch e.Name.Local {
			case "meta":
				x.find(func(e element) { o.title = cmp.Or(o.title, o.readMetadata(x, e)) })
			case "styles", "automatic-styles":
				x.each(func(e element) { o.readStyle(x, e) })
			case "master-styles":
				o.masterPages(x)
			case "body":
				o.body(x)
			}
		})
	})
}

// masterPages reads the headers and footers of pages.
func (o *odfReader) masterPages(x *xmlReader) {
	x.each(func(element) {
		x.each(func(e element) {
			switch e.Name.Local {
			case "frame", "custom-shape":
				if class := attr(e, "class"); class != "" && class != "header" && class != "footer" {
					return
				}
				fallthrough
			case "header", "footer", "header-left", "footer-left", "header-first", "footer-first":
				var blocks []Block
				o.blocks(x, odfPlace{}, func(b Block) { blocks = append(blocks, o.countHeld(b)) })
				o.heads = append(o.heads, blocks)
			}
		})
	})
}

func (o *odfReader) readStyle(x *xmlReader, e element) {
	if len(o.styles)+len(o.lists) > maxEntries {
		return
	}
	name := attr(e, "name")
	switch e.Name.Local {
	case "style":
		s := style{parent: attr(e, "parent-style-name"), name: cmp.Or(attr(e, "display-name"), name),
			level: number(e, "default-outline-level", 0)}
		x.each(func(e element) {
			s.hidden = s.hidden || e.Name.Local == "text-properties" && attr(e, "display") == "none"
		})
		o.styles[name] = s
	case "list-style":
		l := &listKind{}
		o.lists[name] = l
		x.each(func(e element) {
			if at := number(e, "level", 0) - 1; at >= 0 && at < listLevels {
				l[at] = odfLevel(e, at)
			}
		})
	}
}

// odfLevel returns the list level that an element describes.
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

func (o *odfReader) body(x *xmlReader) {
	x.each(func(e element) {
		switch e.Name.Local {
		case "spreadsheet":
			o.sheets(x)
		case "presentation":
			o.pages(x)
		default:
			o.blocks(x, odfPlace{}, func(b Block) { o.write(b) })
		}
	})
}
