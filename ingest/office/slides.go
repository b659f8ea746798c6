package office

import (
	"slices"
	"strings"
)

// presentation reads slides (pptx, pptm, ppsx, potx) as pages in their order,
// hidden ones too.
func (f *file) presentation(main string) error {
	title := f.properties()
	relations := f.relations(main)
	n := 0
	read := map[string]bool{}
	err := f.elements(main, func(x *xmlReader, e element) error {
		if e.Name.Local != "sldIdLst" {
			return nil
		}
		return x.each(func(e element) error {
			part, ok := byID(relations, relationAttr(e, "id"))
			if !ok || e.Name.Local != "sldId" || read[part] {
				return nil
			}
			read[part] = true
			n++
			return f.slide(part, n)
		})
	})
	f.meta("title", title)
	return err
}

// A shape is a shape on a slide.
type shape struct {
	place  string // what kind of placeholder it is; "" is none
	blocks []Block
}

type slideReader struct {
	linkedPart
	shapes []shape
}

func (f *file) slide(part string, n int) error {
	f.write(Block{Kind: Page, Level: n})
	s := &slideReader{linkedPart: f.linkedPart(part)}
	err := s.read(part)
	f.writeShapes(n, s.shapes)
	for _, notes := range related(s.relations, "notesSlide") {
		s.notes(notes)
	}
	for _, comments := range related(s.relations, "comments") {
		f.write(f.comments(comments, "cm")...)
	}
	if err != nil && f.over == nil {
		f.note("slide %d could be read only in part or not at all: %v", n, err)
		err = nil
	}
	return err
}

// writeShapes writes the shapes of a slide, its title first.
func (f *file) writeShapes(n int, shapes []shape) {
	title := titleShape(shapes)
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
		if i != title {
			f.write(sh.blocks...)
		}
	}
}

// titleShape returns the index of the title's placeholder; -1 is none.
func titleShape(shapes []shape) int {
	return slices.IndexFunc(shapes, func(sh shape) bool {
		return (sh.place == "title" || sh.place == "ctrTitle") && len(sh.blocks) > 0
	})
}

func (s *slideReader) read(part string) error {
	x, err := s.xml(part)
	if err != nil {
		return err
	}
	defer x.close()
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "sp", "graphicFrame":
			sh := shape{}
			err := x.each(s.shapePart(x, &sh))
			switch sh.place {
			case "dt", "ftr", "hdr", "sldNum", "sldImg":
			default:
				s.shapes = append(s.shapes, sh)
			}
			return err
		case "pic":
			return x.find(func(e element) {
				if e.Name.Local == "cNvPr" {
					s.shapes = append(s.shapes, shape{blocks: s.drawn(e)})
				}
			})
		case "Fallback", "extLst", "timing", "transition":
			return nil
		}
		return x.each(do)
	}
	return x.each(do)
}

// shapePart returns the function that reads the content of a shape.
func (s *slideReader) shapePart(x *xmlReader, sh *shape) func(e element) error {
	var do func(e element) error
	do = func(e element) error {
		var blocks []Block
		var err error
		switch e.Name.Local {
		case "ph":
			if sh.place = attr(e, "type"); sh.place == "" {
				sh.place = "body"
			}
			return nil
		case "txBody":
			blocks, err = drawnBlocks(x, sh.place == "body" || sh.place == "obj")
		case "tbl":
			blocks, err = s.table(x, func(out func(Block)) func(e element) error { return cellReader(x, out) })
		case "chart", "relIds":
			blocks = s.drawn(e)
		case "Fallback", "extLst", "style", "pic":
			return nil
		default:
			return x.each(do)
		}
		sh.blocks = append(sh.blocks, blocks...)
		return err
	}
	return do
}

// drawnBlocks reads the paragraphs of a shape. Those of an outline are items
// of a list unless there is only one; others are items where they have a
// bullet.
func drawnBlocks(x *xmlReader, outline bool) ([]Block, error) {
	var out []Block
	var counts [listLevels]int
	bodies := map[int]bool{} // items if it is an outline
	err := x.each(func(e element) error {
		if e.Name.Local != "p" {
			return nil
		}
		p := drawnParagraph{x: x}
		err := x.each(p.read)
		b := Block{Text: p.text.String(), Level: p.level, Marker: p.marker}
		if strings.TrimSpace(b.Text) == "" {
			return err
		}
		clear(counts[p.level+1:])
		switch count := &counts[p.level]; {
		case p.marker == "" || p.marker == bullet:
			*count = 0
		case *count == 0:
			*count = p.start
		default:
			*count++
		}
		if counts[p.level] > 0 { // by a scheme such as alphaLcPeriod
			b.Marker = itemNumber(drawnFormats[p.marker[:min(len(p.marker), len("alphaLc"))]], counts[p.level]) + "."
		}
		if b.Marker != "" && !p.plain {
			b.Kind = Item
		}
		bodies[len(out)] = b.Kind == Paragraph && !p.plain
		out = append(out, b)
		return err
	})
	for i := range out {
		if outline && len(out) > 1 && bodies[i] {
			out[i].Kind, out[i].Marker = Item, bullet
		}
	}
	return out, err
}

// drawnFormats are the schemes of numbers in presentations, by their beginning;
// others are decimal.
var drawnFormats = map[string]string{
	"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman",
}

// A drawnParagraph is a paragraph of a shape.
type drawnParagraph struct {
	x      *xmlReader
	text   strings.Builder
	level  int
	marker string // a bullet or a scheme of numbers
	start  int    // of the numbers
	plain  bool   // marked as having no bullet
}

func (p *drawnParagraph) read(e element) error {
	switch e.Name.Local {
	case "pPr":
		p.level = min(max(number(e, "lvl", 0), 0), listLevels-1)
		return p.x.each(p.read)
	case "buNone":
		p.plain = true
	case "buChar", "buBlip":
		p.marker = bullet
	case "buAutoNum":
		p.marker, p.start = attr(e, "type"), min(max(number(e, "startAt", 1), 1), 1<<20)
	case "t":
		p.text.WriteString(p.x.text())
	case "br":
		p.text.WriteByte('\n')
	case "tab":
		p.text.WriteByte('\t')
	case "fld":
		if attr(e, "type") != "slidenum" {
			return p.x.each(p.read)
		}
	case "oMath":
		s, err := formula(p.x)
		p.text.WriteString(s)
		return err
	case "rPr", "endParaRPr", "Fallback", "extLst", "tabLst", "defRPr":
	default:
		return p.x.each(p.read)
	}
	return nil
}

// cellReader returns a function that reads an element in a cell of a table.
func cellReader(x *xmlReader, out func(Block)) func(e element) error {
	return func(e element) error {
		if e.Name.Local != "txBody" {
			return nil
		}
		blocks, err := drawnBlocks(x, false)
		for _, b := range blocks {
			out(b)
		}
		return err
	}
}

// notes reads the speaker's notes of a slide.
func (s *slideReader) notes(part string) {
	n := &slideReader{linkedPart: linkedPart{file: s.file}}
	err := n.read(part)
	var blocks []Block
	for _, sh := range n.shapes {
		if sh.place == "body" {
			blocks = append(blocks, sh.blocks...)
		}
	}
	s.writeNotes(blocks)
	if err != nil && s.over == nil {
		s.note("the speaker's notes could be read only in part: %v", err)
	}
}

// comments reads the comments on a slide or a sheet, which are elements of the name.
func (f *file) comments(part, name string) (out []Block) {
	err := f.find(part, func(x *xmlReader, e element) {
		if e.Name.Local != name {
			return
		}
		label := "Comment"
		if cell := attr(e, "ref"); cell != "" {
			label += " on " + cell
		}
		if text := oneLine(x.text()); text != "" {
			out = append(out, Block{Text: label + ": " + text})
		}
	})
	if err != nil && f.over == nil {
		f.note("the comments could be read only in part: %v", err)
	}
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
