package office

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// pages reads slides.
func (o *odfReader) pages(x *xmlReader) {
	x.each(func(e element) {
		switch e.Name.Local {
		case "header-decl", "footer-decl":
			o.heads = append(o.heads, []Block{{Text: x.text()}})
			return
		case "page":
		default:
			return
		}
		o.page++
		o.write(Block{Kind: Page, Level: o.page})
		var shapes []shape
		var values shape // values in the forms of the slide
		var notes []Block
		x.find(func(e element) {
			switch e.Name.Local {
			case "notes":
				x.each(func(e element) { notes = append(notes, o.shape(x, e).blocks...) })
			case "g", "a":
			case "annotation":
				shapes = append(shapes, shape{blocks: []Block{o.annotation(x)}})
			case "forms":
				o.form(x, func(b Block) { values.blocks = append(values.blocks, b) })
			case "animations", "par", "event-listeners":
				x.skip()
			default:
				if sh := o.shape(x, e); attr(e, "placeholder") != "true" {
					shapes = append(shapes, sh)
				}
			}
		})
		o.writeShapes(o.page, append(shapes, values))
		o.writeNotes(notes)
	})
}

// shape reads a shape of a slide. Its headings are titles.
func (o *odfReader) shape(x *xmlReader, e element) shape {
	sh := shape{place: attr(e, "class")}
	o.blocks(x, odfPlace{}, func(b Block) {
		if b.Kind == Heading {
			b.Kind, b.Marker = Paragraph, ""
		}
		sh.blocks = append(sh.blocks, b)
	})
	switch sh.place {
	case "header", "footer", "date-time", "page-number":
		return shape{}
	}
	return sh
}

// sheets reads the sheets of a workbook like [file.workbook].
func (o *odfReader) sheets(x *xmlReader) {
	x.each(func(e element) {
		switch e.Name.Local {
		case "tracked-changes":
			o.countFormer(x)
			return
		case "table":
		default:
			return
		}
		s := newSheet(o.file, cmp.Or(attr(e, "name"), "Sheet"+strconv.Itoa(o.page+1)))
		o.countDeletion(strconv.Itoa(o.page))
		o.page++
		n := 0
		var after []Block
		x.find(func(e element) {
			switch e.Name.Local {
			case "table-row":
				cells := o.sheetRow(x, s, n+1, &after)
				repeats := max(number(e, "number-rows-repeated", 1), 1)
				for i := range repeatCount(repeats, len(cells)) {
					if n+1+i <= maxSheetRows && o.exceeded == nil {
						s.row(n+1+i, slices.Clone(cells))
					}
				}
				n = min(n+repeats, maxSheetRows)
			case "shapes":
				o.blocks(x, odfPlace{}, func(b Block) { after = append(after, b) })
			case "forms":
				o.form(x, func(b Block) { after = append(after, b) })
			case "table-row-group", "table-rows", "table-header-rows":
			default:
				x.skip()
			}
		})
		s.writeTop()
		s.writeRest(after)
	})
}

// countFormer counts replaced and deleted values by the index of their sheet.
func (o *odfReader) countFormer(x *xmlReader) {
	sheet := ""
	x.find(func(e element) {
		sheet = cmp.Or(attr(e, "table"), sheet)
		if e.Name.Local == "change-track-table-cell" && attr(e, "value-type") != "" {
			o.deleted[sheet]++
		}
	})
}

// sheetRow reads the cells of a row. It appends comments, drawings and other content of cells to
// after.
func (o *odfReader) sheetRow(x *xmlReader, s *sheet, n int, after *[]Block) (out []sheetCell) {
	column := 0
	x.each(func(e element) {
		if e.Name.Local != "table-cell" && e.Name.Local != "covered-table-cell" {
			return
		}
		var texts []string
		o.blocks(x, odfPlace{}, func(b Block) {
			if b.note || b.Kind == Table {
				*after = append(*after, b)
				return
			}
			texts = append(texts, lineOf([]Block{b}))
		})
		kind := attr(e, "value-type")
		c := sheetCell{text: strings.TrimSpace(strings.Join(texts, "\n")), value: kind != "" && kind != "string"}
		if c.text == "" {
			c.text = cmp.Or(attr(e, "string-value"), attr(e, "date-value"), attr(e, "time-value"), attr(e, "boolean-value"),
				attr(e, "value"))
		}
		repeats := max(number(e, "number-columns-repeated", 1), 1)
		if c.text != "" {
			right := column + number(e, "number-columns-spanned", 1) - 1
			bottom := n + number(e, "number-rows-spanned", 1) - 1
			if right > column || bottom > n {
				s.merges[n] = append(s.merges[n], cellRange{column, n, min(right, maxSheetColumns), min(bottom, maxSheetRows)})
			}
			for i := range min(repeats, maxRepeats) {
				c.column = column + i
				out = append(out, c)
			}
		}
		column = min(column+repeats, maxSheetColumns)
	})
	return out
}
