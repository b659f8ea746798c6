package office

import (
	"cmp"
	"strconv"
	"strings"
)

// word reads a text document (docx, docm, dotx, dotm).
func (f *file) word(main string) error {
	title := f.properties()
	d := &wordReader{linkedPart: f.linkedPart(main), notes: map[noteKey]note{}, written: map[string]int{}}
	if at := relatedParts(d.relations, "styles"); len(at) > 0 {
		d.styles = f.wordStyles(at[0])
	}
	if at := relatedParts(d.relations, "numbering"); len(at) > 0 {
		d.lists = f.wordNumbering(at[0])
	}
	for _, label := range []string{"footnote", "endnote", "comment"} {
		if at := relatedParts(d.relations, label+"s"); len(at) > 0 {
			d.readNotes(at[0], label)
		}
	}
	err := f.read(main, func(x *xmlReader) { x.each(d.reader(x, func(b Block) { f.write(b) })) })
	d.runningHeads()
	// The title in the text is better than the title property, which is often left over from
	// another file.
	f.meta("title", title)
	return err
}

// runningHeads writes the headers and footers, each once.
func (d *wordReader) runningHeads() {
	for _, label := range []string{"Header", "Footer"} {
		for _, part := range relatedParts(d.relations, strings.ToLower(label)) {
			if d.shown[part] || !d.has(part) {
				continue
			}
			d.shown[part] = true
			d.place = strings.ToLower(label)
			in := *d
			in.relations = d.file.relations(part)
			var blocks []Block
			err := d.read(part, func(x *xmlReader) {
				x.each(in.reader(x, func(b Block) { blocks = append(blocks, d.countHeld(b)) }))
			})
			d.notePartial(err, "a %s could be read only in part", strings.ToLower(label))
			d.write(d.headerOrFooter(label, blocks)...)
		}
	}
}

// A wordReader reads the parts of a text document.
type wordReader struct {
	linkedPart
	styles styles
	lists  numbering
	notes  map[noteKey]note
	// written counts the notes of each kind in the text so far.
	written map[string]int
}

type noteKey struct{ label, id string }

type note struct {
	blocks []Block
	author string
}

// readNotes reads the footnotes, endnotes or comments of the document.
func (d *wordReader) readNotes(part, label string) {
	d.place = label
	defer func() { d.place = "" }()
	err := d.elements(part, func(x *xmlReader, e element) {
		if e.Name.Local != label || attr(e, "type") != "" && attr(e, "type") != "normal" {
			return // separators
		}
		n := note{author: attr(e, "author")}
		x.each(d.reader(x, func(b Block) { n.blocks = append(n.blocks, d.countHeld(b)) }))
		d.notes[noteKey{label, attr(e, "id")}] = n
	})
	d.notePartial(err, "the %ss could be read only in part", label)
}

// noteBlocks returns a note, to be written after the text it belongs to.
func (d *wordReader) noteBlocks(key noteKey) []Block {
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
		d.written[key.label]++
		name += " " + strconv.Itoa(d.written[key.label])
	}
	pictures := notesIn(n.blocks)
	if text := lineOf(n.blocks); text != "" {
		return append([]Block{{Text: name + ": " + text, note: true}}, pictures...)
	}
	return pictures
}

// reader returns a function that reads an element with paragraphs and tables at any depth.
func (d *wordReader) reader(x *xmlReader, out func(Block)) func(e element) {
	var do func(e element)
	do = func(e element) {
		switch e.Name.Local {
		case "del":
			d.countUnread(deletions)
		case "Fallback", "moveFrom", "background", "pPr", "rPr", "tblPr":
		case "p":
			d.paragraph(x, out)
		case "tbl":
			for _, b := range d.table(x, func(out func(Block)) func(e element) { return d.reader(x, out) }) {
				out(b)
			}
		case "sdt":
			d.control(x, do)
		case "altChunk":
			d.countUnread(foreign)
		default:
			x.each(do)
		}
	}
	return do
}

// control reads a content control, except an empty form and a generated table of contents.
func (f *file) control(x *xmlReader, do func(element)) {
	leave, box, checked := false, false, false
	x.each(func(e element) {
		switch e.Name.Local {
		case "sdtPr":
			x.find(func(e element) {
				leave = leave || e.Name.Local == "showingPlcHdr" && isSwitchOn(e) ||
					e.Name.Local == "docPartGallery" && attr(e, "val") == "Table of Contents"
				box = box || e.Name.Local == "checkbox"
				checked = checked || e.Name.Local == "checked" && isSwitchOn(e)
			})
		case "sdtContent":
			if box {
				f.box = checkbox(checked)
			}
			if !leave || box {
				x.each(do)
			}
			f.box = ""
		}
	})
}

// checkbox returns the sign of a check box.
func checkbox(checked bool) string {
	if checked {
		return "[x]"
	}
	return "[ ]"
}

// field returns the value of a form field of Word before 2007: a check box or the entry chosen from
// a list.
func field(x *xmlReader, e element) string {
	box, list, chosen, given := "", []string(nil), 0, false
	if strings.HasSuffix(attr(e, "type"), "FORMCHECKBOX") {
		box = checkbox(false)
	}
	x.find(func(e element) {
		name, value := e.Name.Local, attr(e, "val")
		if name == "param" { // in OpenDocument
			name, value = attr(e, "name"), attr(e, "value")
		}
		switch name {
		case "checkBox":
			box = checkbox(false)
		case "default", "checked", "result", "Checkbox_Checked", "Dropdown_Selected": // any value but a default wins
			if given && name == "default" {
				return
			}
			given = name != "default"
			if box != "" {
				box = checkbox(isOn(value))
			}
			chosen, _ = strconv.Atoi(value) // a truth value is not an index
		case "listEntry", "Dropdown_ListEntry":
			list = append(list, value)
		}
	})
	if chosen >= 0 && chosen < len(list) {
		return list[chosen]
	}
	return box
}

// symbols maps codes of symbol fonts to characters that have a meaning in a text.
var symbols = map[string]map[uint64]string{
	"Wingdings": {0xfc: "✓", 0xfb: "✗", 0xfe: "☑", 0xfd: "☒", 0x78: "☒", 0xa8: "☐", 0x6f: "☐", 0x71: "☐", 0x72: "☐", 0x6c: "●",
		0x6e: "■", 0xa7: "▪", 0x9f: "•", 0xd8: "➢", 0xe0: "→", 0xdf: "←", 0xe1: "↑", 0xe2: "↓", 0xe8: "→", 0xf0: "⇨", 0xf3: "⇔",
		0x4a: "☺", 0x4c: "☹", 0x28: "☎", 0x2a: "✉", 0xab: "★"},
	"Wingdings 2": {0x50: "✓", 0x4f: "✗", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0xa3: "☐"},
	"Symbol": {0xb7: "•", 0xae: "→", 0xac: "←", 0xab: "↔", 0xde: "⇒", 0xa3: "≤", 0xb3: "≥", 0xb1: "±", 0xb4: "×", 0xb9: "≠",
		0xbb: "≈", 0xa5: "∞", 0xb0: "°", 0x61: "α", 0x62: "β", 0x67: "γ", 0x64: "δ", 0x65: "ε", 0x6c: "λ", 0x6d: "μ", 0x70: "π",
		0x73: "σ", 0x44: "Δ", 0x53: "Σ", 0x57: "Ω"},
}

// symbol returns the character of a code in a font, and counts unknown codes.
func (f *file) symbol(font, code string) string {
	n, err := strconv.ParseUint(code, 16, 16)
	if known := symbols[font]; known[n&0xff] != "" {
		return known[n&0xff]
	}
	if err == nil && n >= ' ' && (n < 0xe000 || n >= 0xf900) { // not private to the font
		return string(rune(n))
	}
	f.countUnread(signs)
	return ""
}

// A wordParagraph collects the content of a paragraph.
type wordParagraph struct {
	code   strings.Builder // of a field without a result so far
	text   strings.Builder
	style  string
	own    style   // its own properties
	raised bool    // the current run is superscript
	bold   int     // number of bold runs
	light  int     // number of other runs
	plain  int     // runs as bold as their style
	after  []Block // text boxes, charts, notes
}

func (d *wordReader) paragraph(x *xmlReader, out func(Block)) {
	p := &wordParagraph{}
	x.each(func(e element) { d.inline(x, e, p) })
	style := d.styles.resolve(p.style)
	if style.contents {
		return
	}
	b := Block{Text: p.text.String(), bold: p.light == 0 && (style.bold || p.bold > 0 && p.plain == 0)}
	level := cmp.Or(p.own.level, style.level)
	list := style.list
	if p.own.list.given {
		list = p.own.list
		if list.level < 0 {
			list.level = style.list.level
		}
	}
	if strings.TrimSpace(b.Text) != "" {
		marker, depth, isItem := d.lists.next(list)
		switch {
		case style.title:
			b.Kind, b.Level, b.Marker = Heading, 1, titleMarker
		case level >= 1 && level <= 9:
			b.Kind, b.Level = Heading, level
			if isItem && marker != bullet {
				b.Text = marker + " " + b.Text
			}
		case isItem:
			b.Kind, b.Level, b.Marker = Item, depth, marker
		}
		out(b)
	}
	for _, b := range p.after {
		out(b)
	}
}

var inlineSigns = map[string]string{"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}

// inline reads an element of a paragraph.
func (d *wordReader) inline(x *xmlReader, e element, p *wordParagraph) {
	all := func(e element) { d.inline(x, e, p) }
	switch e.Name.Local {
	case "pPr":
		x.find(func(e element) {
			if p.own.read(e); e.Name.Local == "pStyle" {
				p.style = attr(e, "val")
			}
		})
	case "r":
		d.run(x, p)
	case "instrText":
		p.code.WriteString(x.text())
	case "fldChar":
		if attr(e, "fldCharType") == "end" {
			words, _ := equationWords(p.code.String())
			p.text.WriteString(words)
		}
		p.code.Reset()
		x.each(all)
	case "ffData":
		p.text.WriteString(field(x, e))
	case "sym":
		if d.box == "" {
			d.box = d.symbol(attr(e, "font"), attr(e, "char"))
		}
		p.text.WriteString(d.box)
		d.box = ""
	case "t":
		d.runText(x, p, all)
	case "tab", "ptab", "br", "cr", "noBreakHyphen":
		p.text.WriteString(inlineSigns[e.Name.Local])
	case "oMath":
		p.text.WriteString(formula(x))
	case "footnoteReference", "endnoteReference", "commentReference":
		p.after = append(p.after, d.noteBlocks(noteKey{strings.TrimSuffix(e.Name.Local, "Reference"), attr(e, "id")})...)
	case "sdt":
		d.control(x, all)
	case "txbxContent", "tbl", "p": // in a run, where some programs write tables
		d.reader(x, func(b Block) { p.after = append(p.after, b) })(e)
	case "shape":
		b, ok := picture(attr(e, "alt"))
		if d.described = ok; ok {
			p.after = append(p.after, b)
		}
		x.each(all)
	case "textpath": // watermark
		p.after = append(p.after, Block{Text: attr(e, "string")})
	case "docPr", "chart", "relIds", "blip", "imagedata":
		p.after = append(p.after, d.readDrawing(e)...)
	case "del":
		d.countUnread(deletions)
	case "rt":
		d.countUnread(rubies)
	case "Fallback", "moveFrom", "delText", "delInstrText", "rPr", "rubyPr", "fldData", "binData", "annotation":
	default:
		x.each(all)
	}
}

// runText reads the text of a run. The sign of a check box replaces its text.
func (d *wordReader) runText(x *xmlReader, p *wordParagraph, inline func(element)) {
	if d.box != "" {
		p.text.WriteString(d.box)
		d.box = ""
		return
	}
	x.eachMixed(inline, func(s []byte) {
		if text, ok := Superscript(string(s)); ok && p.raised {
			s = []byte(text)
		}
		p.text.Write(s)
	})
}

func (d *wordReader) run(x *xmlReader, p *wordParagraph) {
	hidden, number := false, false
	p.raised = false
	before, weight := p.text.Len(), &p.plain
	defer func() {
		p.raised = false
		if strings.TrimSpace(p.text.String()[before:]) != "" {
			*weight++
		}
	}()
	x.each(func(e element) {
		if e.Name.Local != "rPr" {
			switch {
			case !hidden && !number:
				d.inline(x, e, p)
			case hidden && e.Name.Local == "t":
				d.countUnread(unseen)
			}
			return
		}
		x.each(func(e element) {
			switch e.Name.Local {
			case "b":
				if weight = &p.light; isSwitchOn(e) {
					weight = &p.bold
				}
			case "vertAlign":
				p.raised = attr(e, "val") == "superscript"
			case "vanish":
				hidden = isSwitchOn(e)
			case "webHidden": // in a table of contents
				number = isSwitchOn(e)
			case "rStyle":
				hidden = hidden || d.styles.resolve(attr(e, "val")).hidden
			}
		})
	})
}
