package office

// A tableReader reads a table of Word, of a drawing or of OpenDocument, whose
// elements have different names.
type tableReader struct {
	f *file
	x *xmlReader
	// content returns a function that reads an element in a cell.
	content func(out func(Block)) func(e element) error
	rows    [][]cell
	names   int         // rows at the beginning that name the columns
	row     []cell      // the current one
	isName  bool        // it names the columns
	gone    bool        // it was deleted
	inNames bool        // in the element with the names
	column  int         // of the next cell
	down    map[int]int // rows that a cell still spans, by column
}

func (f *file) table(x *xmlReader, content func(out func(Block)) func(e element) error) ([]Block, error) {
	t := &tableReader{f: f, x: x, content: content, down: map[int]int{}}
	err := x.each(t.read)
	if t.names == 0 || t.names >= len(t.rows) {
		t.names = unknown
	}
	return tableBlocks(t.rows, t.names), err
}

// read reads an element outside the rows.
func (t *tableReader) read(e element) error {
	switch e.Name.Local {
	case "tr", "table-row":
		t.row, t.isName, t.gone, t.column = nil, t.inNames, false, 0
		err := t.x.each(t.inRow)
		if t.gone {
			return err
		}
		for range repeated(number(e, "number-rows-repeated", 1), len(t.row)) {
			if t.isName && t.names == len(t.rows) {
				t.names++
			}
			t.f.hold(Block{})
			t.rows = append(t.rows, t.row)
		}
		return err
	case "table-header-rows":
		t.inNames = true
		err := t.x.each(t.read)
		t.inNames = false
		return err
	case "tblPr":
		if attr(e, "firstRow") == "1" || attr(e, "firstRow") == "true" {
			t.names = 1
		}
		return nil
	case "sdt":
		return control(t.x, t.read)
	case "Fallback", "tblGrid", "del", "title", "desc", "table-column", "table-columns", "table-header-columns", "forms":
		return nil
	}
	return t.x.each(t.read)
}

// inRow reads an element of a row.
func (t *tableReader) inRow(e element) error {
	switch e.Name.Local {
	case "trPr":
		return t.x.find(func(e element) {
			switch e.Name.Local {
			case "tblHeader":
				t.isName = on(e)
			case "gridBefore":
				t.row = append(t.row, cell{span: min(number(e, "val", 1), maxColumns)})
			case "del":
				t.gone = true
			}
		})
	case "tc", "table-cell", "covered-table-cell":
		return t.cell(e)
	case "sdt":
		return control(t.x, t.inRow)
	case "Fallback", "tblPrEx":
		return nil
	}
	return t.x.each(t.inRow)
}

func (t *tableReader) cell(e element) error {
	merges := func(name string) bool { return attr(e, name) == "1" || attr(e, name) == "true" }
	c := cell{span: 1, merged: merges("vMerge")}
	covered := e.Name.Local == "covered-table-cell" || merges("hMerge")
	down := number(e, "number-rows-spanned", 1) - 1
	t.f.hold(Block{})
	read := t.content(func(b Block) { c.blocks = append(c.blocks, t.f.hold(b)) })
	err := t.x.each(func(inner element) error {
		if inner.Name.Local != "tcPr" {
			return read(inner)
		}
		return t.x.find(func(e element) {
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
