package office

import "strings"

// A block is a piece of text that may be written later: the text of a cell or
// a box waits for the words around it.
type block struct {
	kind   blockKind
	level  int // of a heading from 1, of a list item from 0
	marker string
	text   string
	rows   [][]string
	names  int // rows that name the columns; -1 unknown
	page   []byte
	note   bool // goes below the words it belongs to, outside their table
}

type blockKind uint8

const (
	aParagraph blockKind = iota
	aHeading
	anItem
	aTable
	aPage // of HTML
)

// write writes blocks in order.
func (f *file) write(blocks ...block) {
	f.held = 0
	for _, b := range blocks {
		switch b.kind {
		case aParagraph:
			f.paragraph(b.text)
		case aHeading:
			f.heading(b.level, b.text, "")
		case anItem:
			f.item(b.level, b.marker, b.text)
		case aTable:
			f.table(b.rows, b.names)
		case aPage:
			f.html(b.page)
		}
	}
}

// A cell is a table cell.
type cell struct {
	blocks []block
	span   int  // columns
	merged bool // continues the cell above
}

// maxColumns limits the span of a cell.
const maxColumns = 1000

// text returns the text of a cell in one line.
func (c cell) text() string {
	var parts []string
	for _, b := range c.blocks {
		if b.note {
			continue
		}
		if b.kind == aTable {
			for _, row := range b.rows {
				parts = append(parts, strings.Join(row, " "))
			}
			continue
		}
		if b.marker != "" && b.marker != bullet {
			parts = append(parts, b.marker)
		}
		parts = append(parts, b.text)
	}
	return strings.Join(parts, " ")
}

// bullet marks the items of unnumbered lists.
const bullet = "-"

// tableBlocks returns a table as blocks: its rows or, when it only lays out
// the page, the content of its cells.
func tableBlocks(rows [][]cell, names int) []block {
	columns, layout := 0, false
	for _, row := range rows {
		columns = max(columns, len(row))
		for _, c := range row {
			for _, b := range c.blocks {
				layout = layout || b.kind == aHeading || b.kind == aPage || b.kind == aTable && len(b.rows) > 1
			}
		}
	}
	if columns <= 1 || layout {
		var out []block
		for _, row := range rows {
			for _, c := range row {
				out = append(out, c.blocks...)
			}
		}
		return out
	}
	texts := make([][]string, len(rows))
	var notes []block
	grid := 0
	for i, row := range rows {
		isName := i < names
		for _, c := range row {
			text := c.text()
			for _, b := range c.blocks {
				if b.note {
					notes = append(notes, b)
				}
			}
			if at := len(texts[i]); c.merged && i > 0 && at < len(texts[i-1]) {
				text = texts[i-1][at]
			}
			if grid += c.span; grid > maxHeld {
				c.span = 1 // no real table is that wide and long
			}
			for n := range min(max(c.span, 1), maxColumns-min(len(texts[i]), maxColumns)) {
				// A name applies to all columns that it spans.
				if n > 0 && !isName {
					text = ""
				}
				texts[i] = append(texts[i], text)
			}
		}
	}
	return append([]block{{kind: aTable, rows: texts, names: names}}, notes...)
}
