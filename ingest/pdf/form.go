package pdf

import (
	"cmp"
	"math"
	"slices"
)

// A cell is the lines of a cell of a table, drawn one below the other.
type cell struct {
	lines               []line
	x0, x1, top, bottom float64
	pieces              int
}

func newCell(l line) cell {
	return cell{[]line{l}, l.x0, l.x1, l.y + 0.8*l.size, l.y - 0.2*l.size, 1}
}

// takes adds a piece to the cell if it was drawn as the rest of its last line or as
// the next one.
func (c *cell) takes(l line) bool {
	p := &c.lines[len(c.lines)-1]
	size, down := max(p.size, l.size), p.y-l.y
	heading := p.bold && !l.bold && len(c.lines) == 1
	switch {
	case math.Abs(down) < sameLine*size && l.x0 > p.x0 && l.x0-p.x1 < cellGap*size && !l.cell:
		p.join(l, l.x0-p.x1 > wordGap*size)
	case down > 0 && down < 1.7*size && math.Abs(p.size-l.size) < 0.15*size && l.x0 < c.x1 && l.x1 > c.x0 && !heading && !listMarker(l.text):
		c.lines = append(c.lines, l)
	default:
		return false
	}
	c.pieces++
	c.x0, c.x1, c.bottom = min(c.x0, l.x0), max(c.x1, l.x1), min(c.bottom, l.y-0.2*l.size)
	return true
}

// A form is rows of a table with the same columns, drawn cell by cell. Some cells
// have several lines, so that the lines of a row need not be at one height: labels
// may be in its middle.
type form struct {
	rows        [][]cell
	top, bottom float64
	pieces      int
}

// formsIn finds the forms in the pieces of a page.
func formsIn(in []line) (out []form) {
	in = slices.Clone(in)
	slices.SortStableFunc(in, func(a, b line) int { return cmp.Compare(a.drawn, b.drawn) })
	var cells []cell
	for _, l := range in {
		n := len(cells) // a label may have been drawn amid its value
		if (n == 0 || !cells[n-1].takes(l)) && (n < 2 || cells[n-2].x0 < cells[n-1].x1 || !cells[n-2].takes(l)) {
			cells = append(cells, newCell(l))
		}
	}
	var f form
	end := func() {
		if f.sound() {
			out = append(out, f)
		}
		f = form{}
	}
	for start := 0; start < len(cells); {
		next := start + 1
		apart := func(c cell) bool { return !c.sideBySide(cells[next]) }
		for next < len(cells) && next-start < maxCells && !slices.ContainsFunc(cells[start:next], apart) {
			next++
		}
		row := cells[start:next]
		slices.SortFunc(row, func(a, b cell) int { return cmp.Compare(a.x0, b.x0) })
		if len(row) == 1 {
			end()
		} else if !f.add(row) {
			end()
			f.add(row)
		}
		start = next
	}
	end()
	slices.SortFunc(out, func(a, b form) int { return cmp.Compare(b.top, a.top) })
	return out
}

// sideBySide reports whether two cells share a height, and no place.
func (c cell) sideBySide(d cell) bool {
	return c.top > d.bottom && d.top > c.bottom && (c.x0 > d.x1 || d.x0 > c.x1)
}

// add adds a row if it is below the last one and has its columns.
func (f *form) add(row []cell) bool {
	top, bottom := math.Inf(-1), math.Inf(1)
	for _, c := range row {
		top, bottom = max(top, c.top), min(bottom, c.bottom)
	}
	if n := len(f.rows); n > 0 {
		last := f.rows[n-1]
		if gap := f.bottom - top; len(row) != len(last) || gap < -0.3*row[0].lines[0].size || gap > 3*row[0].lines[0].size {
			return false
		}
		for i, c := range row {
			if c.x0 > last[i].x1 || c.x1 < last[i].x0 || i > 0 && c.x0 < last[i-1].x1 || i+1 < len(row) && c.x1 > last[i+1].x0 {
				return false
			}
		}
	} else {
		f.top = top
	}
	for _, c := range row {
		f.pieces += c.pieces
	}
	f.rows, f.bottom = append(f.rows, row), bottom
	return true
}

// sound reports whether the rows are a table whose cells must be held together.
func (f *form) sound() bool {
	tall := false
	for _, row := range f.rows {
		for _, c := range row {
			tall = tall || len(c.lines) > 1
		}
		if columnwise(row) {
			return false
		}
	}
	if len(f.rows) == 1 && len(f.rows[0]) == 2 { // a label with its value
		label := cellOf(f.rows[0][0].lines)
		return tall && len(f.rows[0][0].lines) <= 3 && len(label.text) <= maxLabel
	}
	return tall && len(f.rows) > 1
}

// maxCells is the largest number of cells in a row of a table: more are words.
const maxCells = 100

// maxLabel is the length up to which a text next to another is its label.
const maxLabel = 80

// columnwise reports whether cells are whole columns of a table that was drawn column
// by column: their lines are at the same heights, and not because the first word of
// the next line had no room.
func columnwise(row []cell) bool {
	first := row[0].lines
	for _, c := range row {
		if len(c.lines) != len(first) || len(c.lines) < 2 {
			return false
		}
		for i, l := range c.lines {
			if math.Abs(l.y-first[i].y) > sameLine*l.size {
				return false
			}
		}
	}
	for i, next := range first[1:] {
		if !first[i].hasRoom(next, row[1].x0-pieceGap*next.size) {
			return false
		}
	}
	return true
}

// lines returns a line for each row.
func (f *form) lines() []line {
	table := make([][]line, len(f.rows))
	for i, row := range f.rows {
		for _, c := range row {
			table[i] = append(table[i], cellOf(c.lines))
		}
	}
	return tableLines(table)
}

// cellOf joins the lines of a cell.
func cellOf(lines []line) line {
	whole := lines[0]
	for _, l := range lines[1:] {
		whole.append(l)
	}
	return whole
}
