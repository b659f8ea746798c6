package office

import (
	"bytes"
	"fmt"
	"strings"
)

// word reads a text document (docx, docm, dotx, dotm).
func (f *file) word(main string) error {
	title := f.properties()
	d := &wordReader{file: f, relations: f.relations(main), lists: numbering{}, shown: map[string]bool{}}
	if at := related(d.relations, "styles"); len(at) > 0 {
		d.styles = f.wordStyles(at[0])
	}
	if at := related(d.relations, "numbering"); len(at) > 0 {
		d.lists = f.wordNumbering(at[0])
	}
	for kind, label := range map[string]string{"footnotes": "footnote", "endnotes": "endnote", "comments": "comment"} {
		if at := related(d.relations, kind); len(at) > 0 {
			d.readNotes(at[0], label)
		}
	}
	x, err := f.xml(main)
	if err != nil {
		return err
	}
	defer x.close()
	below := 0 // 1 when all headings are below the title
	out := func(b block) {
		if b.kind == aHeading {
			if b.marker == titleMarker {
				f.w.Meta("title", b.text)
				below = 1
			} else {
				b.level += below
			}
		}
		f.write(b)
	}
	err = d.blocks(x, out)
	d.runningHeads()
	// The title in the text is better than that of the properties, which is
	// often left over from another file.
	f.w.Meta("title", title)
	return err
}

// runningHeads writes the headers and footers, each once.
func (d *wordReader) runningHeads() {
	for _, label := range []string{"Header", "Footer"} {
		for _, part := range related(d.relations, strings.ToLower(label)) {
			x, err := d.xml(part)
			if err != nil || d.shown[part] {
				continue
			}
			d.shown[part] = true
			in := *d
			in.relations = d.file.relations(part)
			var blocks []block
			if err := in.blocks(x, func(b block) { blocks = append(blocks, d.countBlock(b)) }); err != nil {
				d.note(fmt.Sprintf("a %s could be read only in part: %v", strings.ToLower(label), err))
			}
			x.close()
			d.running(label, blocks)
		}
	}
}

// titleMarker marks a heading that is the document's title.
const titleMarker = "title"

// A wordReader reads the parts of a text document.
type wordReader struct {
	*file
	relations []relation
	styles    wordStyles
	lists     numbering
	notes     map[noteKey]note
	shown     map[string]bool // charts and diagrams that have been written
}

type noteKey struct{ label, id string }

type note struct {
	blocks []block
	author string
}

// readNotes reads the footnotes, endnotes or comments of the document.
func (d *wordReader) readNotes(part, label string) {
	if d.notes == nil {
		d.notes = map[noteKey]note{}
	}
	err := d.elements(part, func(x *xmlReader, e element) error {
		if e.Name.Local != label || attr(e, "type") != "" && attr(e, "type") != "normal" {
			return nil // separators
		}
		n := note{author: attr(e, "author")}
		err := d.blocks(x, func(b block) { n.blocks = append(n.blocks, d.countBlock(b)) })
		d.notes[noteKey{label, attr(e, "id")}] = n
		return err
	})
	if err != nil {
		d.note(fmt.Sprintf("the %ss could be read only in part: %v", label, err))
	}
}

// noteBlocks returns a note as it is written below the words it belongs to.
func (d *wordReader) noteBlocks(key noteKey) []block {
	n, ok := d.notes[key]
	if !ok {
		return nil
	}
	delete(d.notes, key) // only the first reference shows the note
	name := strings.ToUpper(key.label[:1]) + key.label[1:]
	switch {
	case n.author != "":
		name += " (" + n.author + ")"
	case key.label != "comment":
		name += " " + key.id
	}
	text := cell{blocks: n.blocks}.text()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []block{{text: name + ": " + strings.TrimSpace(text), note: true}}
}

// blocks reads paragraphs and tables at any depth.
func (d *wordReader) blocks(x *xmlReader, out func(block)) error {
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "Fallback", "del", "moveFrom", "sectPr", "background", "pPr", "rPr", "tblPr":
			return nil
		}
		return d.block(x, e, do, out)
	}
	return x.each(do)
}

// block reads an element that is a block, or contains some for do.
func (d *wordReader) block(x *xmlReader, e element, do func(element) error, out func(block)) error {
	switch e.Name.Local {
	case "p":
		return d.paragraph(x, out)
	case "tbl":
		return d.table(x, out)
	case "sdt":
		return d.control(x, do)
	case "altChunk":
		d.foreign(relationAttr(e, "id"), out)
		return nil
	}
	return x.each(do)
}

// control reads a content control, unless it is an empty form or a generated
// table of contents.
func (d *wordReader) control(x *xmlReader, do func(element) error) error {
	leave := false
	return x.each(func(e element) error {
		switch e.Name.Local {
		case "sdtPr":
			return x.each(func(e element) error {
				switch e.Name.Local {
				case "showingPlcHdr":
					leave = leave || on(e)
				case "docPartObj", "docPartList":
					return x.each(func(e element) error {
						leave = leave || e.Name.Local == "docPartGallery" && attr(e, "val") == "Table of Contents"
						return nil
					})
				}
				return nil
			})
		case "sdtContent":
			if leave {
				return nil
			}
			return x.each(do)
		}
		return nil
	})
}

// foreign reads a part in HTML.
func (d *wordReader) foreign(id string, out func(block)) {
	part, ok := byID(d.relations, id)
	if !ok {
		return
	}
	data, err := d.content(part, maxToken)
	head := bytes.ToLower(data[:min(len(data), 1000)])
	switch {
	case err != nil:
		d.note(fmt.Sprintf("%s in it could not be read: %v", part, err))
	case bytes.Contains(head, []byte("<html")) && !bytes.Contains(head, []byte("mime-version")):
		out(block{kind: aPage, page: data})
	default:
		d.note(fmt.Sprintf("%s in it is in an unsupported format", part))
	}
}

// A wordParagraph collects the content of a paragraph.
type wordParagraph struct {
	text    strings.Builder
	style   string
	outline int // -1 unless the paragraph sets its own
	list    listRef
	hidden  bool
	raised  bool    // the current run is superscript
	after   []block // text boxes, charts, notes
}

func (d *wordReader) paragraph(x *xmlReader, out func(block)) error {
	p := &wordParagraph{outline: -1}
	err := x.each(func(e element) error { return d.inline(x, e, p) })
	// What precedes damage counts.
	style := d.styles.paragraph(p.style)
	if p.hidden || style.contents {
		return err
	}
	b := block{text: p.text.String()}
	level := style.level
	if p.outline >= 0 {
		level = p.outline + 1 // ten is body text
	}
	list := style.list
	if p.list.given {
		list = p.list
		if list.level < 0 {
			list.level = max(style.list.level, 0)
		}
	}
	if strings.TrimSpace(b.text) != "" {
		marker, depth, isItem := d.lists.next(list)
		switch {
		case style.title:
			b.kind, b.level, b.marker = aHeading, 1, titleMarker
		case level >= 1 && level <= 9:
			b.kind, b.level = aHeading, level
			if isItem && marker != bullet {
				b.text = marker + " " + b.text
			}
		case isItem:
			b.kind, b.level, b.marker = anItem, depth, marker
		}
		out(b)
	}
	for _, b := range p.after {
		out(b)
	}
	return err
}

// inline reads an element of a paragraph.
func (d *wordReader) inline(x *xmlReader, e element, p *wordParagraph) error {
	all := func(e element) error { return d.inline(x, e, p) }
	switch e.Name.Local {
	case "pPr":
		return d.paragraphProperties(x, p)
	case "r":
		return d.run(x, p)
	case "t":
		return x.mixed(all, func(s []byte) {
			if text, ok := Raised(string(s)); ok && p.raised {
				s = []byte(text)
			}
			p.text.Write(s)
		})
	case "tab", "ptab":
		p.text.WriteByte('\t')
	case "br", "cr":
		p.text.WriteByte('\n')
	case "noBreakHyphen":
		p.text.WriteByte('-')
	case "oMath":
		text, err := formula(x)
		p.text.WriteString(text)
		return err
	case "footnoteReference":
		p.after = append(p.after, d.noteBlocks(noteKey{"footnote", attr(e, "id")})...)
	case "endnoteReference":
		p.after = append(p.after, d.noteBlocks(noteKey{"endnote", attr(e, "id")})...)
	case "commentReference":
		p.after = append(p.after, d.noteBlocks(noteKey{"comment", attr(e, "id")})...)
	case "sdt":
		return d.control(x, all)
	case "txbxContent":
		return d.blocks(x, func(b block) { p.after = append(p.after, b) })
	case "tbl": // in a run, as some programs write it
		return d.table(x, func(b block) { p.after = append(p.after, b) })
	case "p":
		return d.paragraph(x, func(b block) { p.after = append(p.after, b) })
	case "docPr", "chart", "relIds":
		p.after = append(p.after, d.drawn(e)...)
	case "Fallback", "del", "moveFrom", "instrText", "delText", "delInstrText", "rPr", "rt", "rubyPr", "fldData", "binData", "annotation":
		return nil
	default:
		return x.each(all)
	}
	return nil
}

// drawn reads a chart or a diagram once, or the alternative text of a picture.
func (d *wordReader) drawn(e element) (out []block) {
	read, id := d.chart, "id"
	switch e.Name.Local {
	case "docPr":
		if b, ok := picture(attr(e, "descr")); ok {
			out = append(out, b)
		}
		return out
	case "relIds":
		read, id = d.diagram, "dm"
	}
	if part, ok := byID(d.relations, relationAttr(e, id)); ok && !d.shown[part] {
		d.shown[part] = true
		out = read(part)
	}
	return out
}

func (d *wordReader) run(x *xmlReader, p *wordParagraph) error {
	hidden := false
	p.raised = false
	defer func() { p.raised = false }()
	return x.each(func(e element) error {
		if e.Name.Local == "rPr" {
			return x.each(func(e element) error {
				switch e.Name.Local {
				case "vertAlign":
					p.raised = attr(e, "val") == "superscript"
				case "vanish", "webHidden":
					hidden = on(e)
				case "rStyle":
					hidden = hidden || d.styles.isHidden(attr(e, "val"))
				}
				return nil
			})
		}
		if hidden {
			return nil
		}
		return d.inline(x, e, p)
	})
}

func (d *wordReader) paragraphProperties(x *xmlReader, p *wordParagraph) error {
	return x.each(func(e element) error {
		switch e.Name.Local {
		case "pStyle":
			p.style = attr(e, "val")
		case "outlineLvl":
			p.outline = number(e, "val", -1)
		case "numPr":
			p.list.given, p.list.level = true, -1
			return readListRef(x, &p.list)
		}
		return nil
	})
}
