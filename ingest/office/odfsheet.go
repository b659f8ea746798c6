package office

import (
	"cmp"
	"strconv"
	"strings"
)

// table reads a table in a text or on a slide.
func (o *odfReader) table(x *xmlReader, out func(block)) error {
	var rows [][]cell
	down := map[int]int{} // rows that a cell still spans, by column
	names := -1
	heads := false
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "table-row":
			row, err := o.tableRow(x, down)
			for range repeated(number(e, "number-rows-repeated", 1), len(row)) {
				o.countBlock(block{})
				rows = append(rows, row)
			}
			return err
		case "table-header-rows":
			heads = true
			err := x.each(do)
			if names < 0 {
				names = len(rows)
			}
			return err
		case "title", "desc", "table-column", "table-columns", "table-header-columns", "forms":
			return nil
		}
		return x.each(do)
	}
	err := x.each(do)
	if !heads || names >= len(rows) {
		names = -1
	}
	for _, b := range tableBlocks(rows, names) {
		out(b)
	}
	return err
}

// Limits for repeated rows and cells that are not empty, and for the cells of
// a repeated row.
const (
	maxRepeats       = 1000
	maxRepeatedCells = 20_000
)

// repeated returns how often a row with so many cells is written.
func repeated(times, cells int) int {
	if cells == 0 {
		return 1
	}
	return min(max(times, 1), maxRepeats, max(maxRepeatedCells/cells, 1))
}

func (o *odfReader) tableRow(x *xmlReader, down map[int]int) (row []cell, err error) {
	column := 0
	err = x.each(func(e element) error {
		if e.Name.Local != "table-cell" && e.Name.Local != "covered-table-cell" {
			return nil
		}
		covered := e.Name.Local == "covered-table-cell"
		c := cell{span: 1}
		o.countBlock(block{})
		err := o.blocks(x, odfPlace{}, func(b block) { c.blocks = append(c.blocks, o.countBlock(b)) })
		for range min(max(number(e, "number-columns-repeated", 1), 1), maxColumns-min(column, maxColumns)) {
			switch last := len(row) - 1; {
			case covered && down[column] > 0:
				down[column]--
				row = append(row, cell{span: 1, merged: true})
			case covered && last >= 0:
				row[last].span++
			default:
				row = append(row, c)
			}
			if rows := number(e, "number-rows-spanned", 1); rows > 1 && !covered {
				down[column] = rows - 1
			}
			column++
		}
		return err
	})
	return row, err
}

// pages reads slides.
func (o *odfReader) pages(x *xmlReader) error {
	return x.each(func(e element) error {
		if e.Name.Local != "page" {
			return nil
		}
		o.page++
		o.w.Page(o.page)
		var shapes []shape
		var notes []block
		var do func(e element) error
		do = func(e element) error {
			switch e.Name.Local {
			case "notes":
				return x.each(func(e element) error {
					if attr(e, "class") != "notes" {
						return nil
					}
					return o.blocks(x, odfPlace{}, func(b block) { notes = append(notes, b) })
				})
			case "g", "a":
				return x.each(do)
			case "annotation", "forms", "animations", "par", "event-listeners":
				return nil
			}
			sh := shape{place: attr(e, "class")}
			err := o.blocks(x, odfPlace{}, func(b block) {
				if b.kind == aHeading {
					b.kind, b.marker = aParagraph, ""
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
		var after []block
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
				return o.blocks(x, odfPlace{}, func(b block) { after = append(after, b) })
			case "table-row-group", "table-rows", "table-header-rows":
				return x.each(do)
			}
			return nil
		}
		err := x.each(do)
		s.end()
		if !linked {
			s.rest(after)
		}
		return err
	})
}

// sheetRow reads the cells of a row. It appends to after what belongs to cells
// without being their text.
func (o *odfReader) sheetRow(x *xmlReader, s *sheet, n int, after *[]block) (out []sheetCell, err error) {
	column := 0
	err = x.each(func(e element) error {
		if e.Name.Local != "table-cell" && e.Name.Local != "covered-table-cell" {
			return nil
		}
		var texts []string
		err := o.blocks(x, odfPlace{}, func(b block) {
			if b.note || b.kind == aTable {
				*after = append(*after, b)
				return
			}
			texts = append(texts, cell{blocks: []block{b}}.text())
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
