package office

import (
	"cmp"
	"strconv"
	"strings"
)

// table reads a table in a text or on a slide.
func (o *odfReader) table(x *xmlReader, out func(Block)) error {
	blocks, err := o.file.table(x, func(out func(Block)) func(e element) error { return o.reader(x, odfPlace{}, out) })
	for _, b := range blocks {
		out(b)
	}
	return err
}

// pages reads slides.
func (o *odfReader) pages(x *xmlReader) error {
	return x.each(func(e element) error {
		if e.Name.Local != "page" {
			return nil
		}
		o.page++
		o.write(Block{Kind: Page, Level: o.page})
		var shapes []shape
		var notes []Block
		var do func(e element) error
		do = func(e element) error {
			switch e.Name.Local {
			case "notes":
				return x.each(func(e element) error {
					if attr(e, "class") != "notes" {
						return nil
					}
					return o.blocks(x, odfPlace{}, func(b Block) { notes = append(notes, b) })
				})
			case "g", "a":
				return x.each(do)
			case "annotation", "forms", "animations", "par", "event-listeners":
				return nil
			}
			sh := shape{place: attr(e, "class")}
			err := o.blocks(x, odfPlace{}, func(b Block) {
				if b.Kind == Heading {
					b.Kind, b.Marker = Paragraph, ""
				}
				sh.blocks = append(sh.blocks, b)
			})
			switch {
			case attr(e,
				"placeholder") == "true", sh.place == "header", sh.place == "footer", sh.place == "date-time", sh.place == "page-number":
			default:
				shapes = append(shapes, sh)
			}
			return err
		}
		err := x.each(do)
		o.writeShapes(o.page, shapes)
		o.writeNotes(notes)
		return err
	})
}

// sheets reads the sheets of a workbook like [file.workbook].
func (o *odfReader) sheets(x *xmlReader) error {
	return x.each(func(e element) error {
		if e.Name.Local != "table" {
			return nil
		}
		o.page++
		s := newSheet(o.file, cmp.Or(attr(e, "name"), "Sheet"+strconv.Itoa(o.page)))
		n := 0
		linked := false
		var after []Block
		var do func(e element) error
		do = func(e element) error {
			switch e.Name.Local {
			case "table-source": // a copy of another file
				linked = true
			case "table-row":
				cells, err := o.sheetRow(x, s, n+1, &after)
				repeats := max(number(e, "number-rows-repeated", 1), 1)
				if !linked {
					for i := range repeated(repeats, len(cells)) {
						if n+1+i <= maxSheetRows && o.over == nil {
							s.row(n+1+i, append([]sheetCell(nil), cells...))
						}
					}
				}
				n = min(n+repeats, maxSheetRows)
				return err
			case "shapes":
				return o.blocks(x, odfPlace{}, func(b Block) { after = append(after, b) })
			case "table-row-group", "table-rows", "table-header-rows":
				return x.each(do)
			}
			return nil
		}
		err := x.each(do)
		s.writeTop()
		if !linked {
			s.rest(after)
		}
		return err
	})
}

// sheetRow reads the cells of a row. It appends to after what belongs to cells
// without being their text.
func (o *odfReader) sheetRow(x *xmlReader, s *sheet, n int, after *[]Block) (out []sheetCell, err error) {
	column := 0
	err = x.each(func(e element) error {
		if e.Name.Local != "table-cell" && e.Name.Local != "covered-table-cell" {
			return nil
		}
		var texts []string
		err := o.blocks(x, odfPlace{}, func(b Block) {
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
		return err
	})
	return out, err
}
