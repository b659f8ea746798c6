package office

import (
	"cmp"
	"slices"
	"strings"
)

// presentation reads slides (pptx, pptm, ppsx, potx) as pages in order, including hidden ones.
func (f *file) presentation(main string) error {
	title := f.properties()
	relations := f.relations(main)
	n := 0
	read := map[string]bool{}
	err := f.elements(main, func(x *xmlReader, e element) {
		if e.Name.Local != "sldIdLst" {
			return
		}
		x.each(func(e element) {
			part, ok := relationTarget(relations, relationAttr(e, "id"))
			if ok && e.Name.Local == "sldId" && !read[part] && f.exceeded == nil {
				read[part] = true
				n++
				f.slide(part, n, read)
			}
		})
	})
	f.meta("title", title)
	return err
}

// A shape is a shape on a slide.
type shape struct {
	place     string // kind of placeholder, or ""
	blocks    []Block
	left, top int // position in its group, in .ppt
}

type slideReader struct {
	linkedPart
	shapes []shape
}

// slide reads a slide and the texts of its layout and master that were not read before.
func (f *file) slide(part string, n int, read map[string]bool) {
	f.write(Block{Kind: Page, Level: n})
	s := &slideReader{linkedPart: f.linkedPart(part)}
	err := s.readShapes(part)
	for _, layout := range relatedParts(s.relations, "slideLayout") {
		for _, part := range append(relatedParts(f.relations(layout), "slideMaster"), layout) {
			under := &slideReader{linkedPart: f.linkedPart(part)}
			if read[part] {
				continue
			}
			read[part] = true
			err = cmp.Or(err, under.readShapes(part))
			for _, sh := range under.shapes {
				if sh.place == "" {
					s.shapes = append(s.shapes, shape{blocks: f.headerOrFooter(runningHeads, sh.blocks)})
				}
			}
		}
	}
	f.writeShapes(n, s.shapes)
	for _, notes := range relatedParts(s.relations, "notesSlide") {
		s.notes(notes)
	}
	for _, comments := range relatedParts(s.relations, "comments") {
		f.write(f.comments(comments)...)
	}
	f.notePartial(err, "slide %d could be read only in part or not at all", n)
}

// writeShapes writes the shapes of a slide, its title first.
func (f *file) writeShapes(n int, shapes []shape) {
	title := slices.IndexFunc(shapes, func(sh shape) bool {
		return (sh.place == "title" || sh.place == "ctrTitle") && lineOf(sh.blocks) != ""
	})
	if title >= 0 {
		text := lineOf(shapes[title].blocks)
		if n == 1 {
			f.meta("title", text)
		}
		f.write(Block{Kind: Heading, Level: 1, Text: text})
	} else {
		f.write(Block{Kind: Untitled, Level: 1})
	}
	for i, sh := range shapes {
		if i == title {
			sh.blocks = notesIn(sh.blocks)
		}
		f.write(sh.blocks...)
	}
}

func (s *slideReader) readShapes(part string) error {
	return s.read(part, func(x *xmlReader) {
		x.find(func(e element) {
			switch e.Name.Local {
			case "sp", "graphicFrame":
				sh := s.shape(x)
				switch sh.place {
				case "dt", "sldNum", "sldImg":
				case "ftr", "hdr":
					s.shapes = append(s.shapes, shape{place: sh.place, blocks: s.headerOrFooter(runningHeads, sh.blocks)})
				default:
					s.shapes = append(s.shapes, sh)
				}
			case "cNvPr", "blip":
				s.shapes = append(s.shapes, shape{blocks: s.readDrawing(e)})
			case "Fallback", "extLst", "timing", "transition":
				x.skip()
			}
		})
	})
}

// shape reads the content of a shape.
func (s *slideReader) shape(x *xmlReader) (sh shape) {
	var described []Block
	x.find(func(e element) {
		switch e.Name.Local {
		case "ph":
			sh.place = cmp.Or(attr(e, "type"), "body")
		case "txBody":
			sh.blocks = append(sh.blocks, drawnBlocks(x, sh.place == "body" || sh.place == "obj")...)
		case "tbl":
			sh.blocks = append(sh.blocks, s.table(x, func(out func(Block)) func(e element) { return slideCell(x, out) })...)
		case "chart", "relIds":
			sh.blocks = append(sh.blocks, s.readDrawing(e)...)
		case "cNvPr", "blip":
			described = append(described, s.readDrawing(e)...)
		case "Fallback", "extLst", "style":
			x.skip()
		}
	})
	sh.blocks = append(sh.blocks, described...)
	return sh
}

// drawnBlocks reads the paragraphs of a shape, a diagram, or the title of a chart. Paragraphs of an
// outline and paragraphs with a bullet are list items.
func drawnBlocks(x *xmlReader, outline bool) []Block {
	var out []Block
	x.find(func(e element) {
		p := drawnParagraph{x: x}
		switch e.Name.Local {
		case "p":
			x.each(p.read)
		case "v": // a value in a title
			p.text.WriteString(x.text())
		case "Fallback":
			x.skip()
		}
		b := Block{Text: p.text.String(), Level: p.level, Marker: p.marker}
		if strings.TrimSpace(b.Text) == "" {
			return
		}
		if outline && b.Marker == "" {
			b.Marker = bullet
		}
		if b.Marker != "" && !p.plain {
			b.Kind = Item
		}
		out = append(out, b)
	})
	if len(out) == 1 && out[0].Marker == bullet {
		out[0].Kind = Paragraph
	}
	return out
}

// A drawnParagraph is a paragraph of a shape.
type drawnParagraph struct {
	x      *xmlReader
	text   strings.Builder
	level  int
	marker string
	plain  bool // marked as having no bullet
}

func (p *drawnParagraph) read(e element) {
	switch e.Name.Local {
	case "pPr":
		p.level = min(max(number(e, "lvl", 0), 0), listLevels-1)
		p.x.each(p.read)
	case "buNone":
		p.plain = true
	case "buChar", "buBlip", "buAutoNum":
		p.marker = bullet
	case "t":
		p.text.WriteString(p.x.text())
	case "br":
		p.text.WriteByte('\n')
	case "tab":
		p.text.WriteByte('\t')
	case "fld":
		if attr(e, "type") != "slidenum" {
			p.x.each(p.read)
		}
	case "oMath":
		p.text.WriteString(formula(p.x))
	case "rPr", "endParaRPr", "Fallback", "extLst", "tabLst", "defRPr":
	default:
		p.x.each(p.read)
	}
}

// slideCell returns a function that reads an element of a table cell.
func slideCell(x *xmlReader, out func(Block)) func(e element) {
	return func(element) { // its text or its properties
		for _, b := range drawnBlocks(x, false) {
			out(b)
		}
	}
}

// notes reads the speaker's notes of a slide.
func (s *slideReader) notes(part string) {
	n := &slideReader{linkedPart: linkedPart{file: s.file}}
	err := n.readShapes(part)
	var blocks []Block
	for _, sh := range n.shapes {
		blocks = append(blocks, sh.blocks...)
	}
	s.writeNotes(blocks)
	s.notePartial(err, "the speaker's notes could be read only in part")
}

// comments reads the comments on a slide or sheet. On slides, replies precede the comment that they
// reply to.
func (f *file) comments(part string) (out []Block) {
	read := func(x *xmlReader, e element) {
		switch e.Name.Local {
		case "cm", "comment", "threadedComment":
		default:
			return
		}
		label := "Comment"
		if cell := attr(e, "ref"); cell != "" {
			label += " on " + cell
		}
		var replies []Block
		x.find(func(e element) {
			if e.Name.Local != "text" && e.Name.Local != "txBody" {
				return
			}
			if text := oneLine(x.text()); text != "" {
				replies = append(replies, Block{Text: label + ": " + text})
			}
		})
		if n := len(replies) - 1; n >= 0 {
			out = append(append(out, replies[n]), replies[:n]...)
		}
	}
	err := error(nil)
	if strings.HasSuffix(part, ".bin") {
		out, err = f.binaryComments(part)
	} else {
		err = f.find(part, read)
	}
	f.notePartial(err, "the comments could be read only in part")
	return out
}

// writeNotes writes the speaker's notes with a label.
func (f *file) writeNotes(blocks []Block) {
	for i, b := range blocks {
		if i == 0 {
			b = Block{Text: "Notes: " + lineOf(blocks[:1])}
		}
		f.write(b)
	}
}
