package office

// A tableReader reads a table of Word, a drawing or OpenDocument, whose elements have different
// names.
type tableReader struct {
	f *file
	x *xmlReader
	// content returns a function that reads an element of a cell.
	content func(out func(Block)) func(e element)
	rows    [][]cell
	names   int         // leading rows that name the columns
	first   bool        // the first row looks like names
	row     []cell      // the current row
	isName  bool        // the row names the columns
	gone    bool        // the row was deleted
	inNames bool        // in the element with the names
	column  int         // of the next cell
	down    map[int]int // rows that a cell above still spans, by column
}

func (f *file) table(x *xmlReader, content func(out func(Block)) func(e element)) []Block {
	t := &tableReader{f: f, x: x, content: content, down: map[int]int{}}
	x.each(t.read)
	if t.names == 0 || t.names >= len(t.rows) {
		if t.names = unknown; t.first {
			t.names = likely
		}
	}
	return tableBlocks(t.rows, t.names)
}

// read reads an element outside the rows.
func (t *tableReader) read(e element) {
	switch e.Name.Local {
	case "tr", "table-row":
		t.row, t.isName, t.gone, t.column = nil, t.inNames, false, 0
		t.x.each(t.readInRow)
		for range repeatCount(number(e, "number-rows-repeated", 1), len(t.row)) {
			if t.gone {
				break
			}
			if t.isName && t.names == len(t.rows) {
				t.names++
			}
			t.f.countHeld(Block{})
			t.rows = append(t.rows, t.row)
		}
	case "table-header-rows":
		t.inNames = true
		t.x.each(t.read)
		t.inNames = false
	case "tblPr":
		if attr(e, "firstRow") == "1" || attr(e, "firstRow") == "true" {
			t.first = true // also the default
		}
	case "sdt":
		t.f.control(t.x, t.read)
	case "Fallback", "tblGrid", "del", "title", "desc", "table-column", "table-columns", "table-header-columns", "forms":
	default:
		t.x.each(t.read)
	}
}

// readInRow reads an element of a row.
func (t *tableReader) readInRow(e element) {
	switch e.Name.Local {
	case "trPr":
		t.x.find(func(e element) {
			switch e.Name.Local {
			case "tblHeader":
				t.isName = isSwitchOn(e)
			case "gridBefore":
				t.row = append(t.row, cell{span: min(number(e, "val", 1), maxColumns)})
			case "del":
				t.gone = true
				t.f.countUnread(deletions)
			}
		})
	case "tc", "table-cell", "covered-table-cell":
		t.cell(e)
	case "sdt":
		t.f.control(t.x, t.readInRow)
	case "Fallback", "tblPrEx":
	default:
		t.x.each(t.readInRow)
	}
}

func (t *tableReader) cell(e element) {
	merges := func(name string) bool { return attr(e, name) == "1" || attr(e, name) == "true" }
	c := cell{span: 1, merged: merges("vMerge")}
	covered := e.Name.Local == "covered-table-cell" || merges("hMerge")
	down := number(e, "number-rows-spanned", 1) - 1
	t.f.countHeld(Block{})
	read := t.content(func(b Block) { c.blocks = append(c.blocks, t.f.countHeld(b)) })
	t.x.each(func(inner element) {
		if inner.Name.Local != "tcPr" {
			read(inner)
			return
		}
		t.x.find(func(e element) {
			switch e.Name.Local {
			case "gridSpan":
				c.span = min(max(number(e, "val", 1), 1), maxColumns)
			case "vMerge":
				c.merged = attr(e, "val") != "restart"
			}
		})
	})
	for range min(max(number(e, "number-columns-repeated", 1), 1), maxColumns-min(t.column, maxColumns)) {
		switch last := len(t.row) - 1; {
		case covered && t.down[t.column] > 0:
			t.down[t.column]--
			t.row = append(t.row, cell{span: 1, merged: true})
		case covered && last >= 0:
			t.row[last].span++
		default:
			t.row = append(t.row, c)
		}
		if down > 0 && !covered {
			t.down[t.column] = down
		}
		t.column++
	}
}

// Limits of repeated non-empty rows and cells, and of the cells in repeated rows.
const (
	maxRepeats       = 1000
	maxRepeatedCells = 20_000
)

// repeatCount returns how many times a row with that number of cells is written.
func repeatCount(times, cells int) int {
	if cells == 0 {
		return 1
	}
	return min(max(times, 1), maxRepeats, max(maxRepeatedCells/cells, 1))
}
