package pdf

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A cell is text drawn line by line from top to bottom: a paragraph, a table cell, or a column of
// text.
type cell struct {
	lines               []line
	pieces              []line // the pieces that were joined into lines
	x0, x1, top, bottom float64
	limit               float64 // right limit of its lines; 0 if unknown
	isName              bool    // names a column, in bold or not
}

func newCell(pieces ...line) cell {
	c := cell{x0: math.Inf(1), x1: math.Inf(-1), top: math.Inf(-1), bottom: math.Inf(1)}
	for _, l := range pieces {
		c.add(l)
	}
	return c
}

// add adds a piece to the last line if it continues that line, or else as a new line.
func (c *cell) add(l line) {
	if p := len(c.lines) - 1; p >= 0 && math.Abs(c.lines[p].y-l.y) < sameLine*max(c.lines[p].size, l.size) {
		c.lines[p].join(l, l.x0-c.lines[p].x1 > wordGap*max(c.lines[p].size, l.size))
	} else {
		c.lines = append(c.lines, l)
	}
	c.pieces = append(c.pieces, l)
	c.x0, c.x1 = min(c.x0, l.x0), max(c.x1, l.x1)
	c.top, c.bottom = max(c.top, l.y+0.8*l.size), min(c.bottom, l.y-0.2*l.size)
}

// isContinuedBy reports whether a piece continues the cell's last line or is its next line.
func (c *cell) isContinuedBy(l line) bool {
	p := c.lines[len(c.lines)-1]
	size, down := max(p.size, l.size), p.y-l.y
	heading := p.bold && !l.bold && len(c.lines) == 1
	if math.Abs(down) < sameLine*size {
		return l.x0 > p.x0 && l.x0-p.x1 < cellGap*size && !l.cell
	}
	return down > 0 && down < 1.7*size && math.Abs(p.size-l.size) < 0.15*size && l.x0 < c.x1 && l.x1 > c.x0 && !heading &&
		!hasListMarker(l.text)
}

// cellsOf groups pieces into cells in drawing order.
func cellsOf(in []line) (cells []cell) {
	in = slices.Clone(in)
	slices.SortStableFunc(in, func(a, b line) int { return cmp.Compare(a.drawn, b.drawn) })
	for _, l := range in {
		n, next := len(cells), newCell(l)
		nextTo := func(i int) bool { return i > 0 && cells[i-1].isNextTo(cells[i]) }
		switch {
		case n > 0 && cells[n-1].isContinuedBy(l) && !(nextTo(n-1) && shareALine(cells[n-2], next)):
			cells[n-1].add(l)
		default:
			if n > 0 {
				cells = append(cells[:n-1], cells[n-1].splitAt(next)...)
			}
			cells = append(cells, next)
		}
	}
	return cells
}

// shareALine reports whether two cells overlap horizontally.
func shareALine(c, d cell) bool { return c.x0 < d.x1 && d.x0 < c.x1 }

// isNextTo reports whether two cells overlap vertically but not horizontally.
func (c cell) isNextTo(d cell) bool { return c.top > d.bottom && d.top > c.bottom && !shareALine(c, d) }

// splitAt splits off the last lines of a cell that are next to another cell, if the lines above
// them reach further right: a column begins there.
func (c cell) splitAt(next cell) []cell {
	at := len(c.pieces)
	for at > 0 && c.pieces[at-1].x1 < next.x0 && c.pieces[at-1].y-0.2*c.pieces[at-1].size < next.top {
		at--
	}
	if at == 0 || at == len(c.pieces) || c.x1 <= next.x0 {
		return []cell{c}
	}
	return []cell{newCell(c.pieces[:at]...), newCell(c.pieces[at:]...)}
}

// A band is a horizontal strip of a page: its cells, in columns from left to right.
type band [][]cell

// bandsOf splits a page into bands wherever all cells drawn earlier are above all cells drawn
// later, or below them, as for a footer drawn first. It splits each band into columns drawn one
// after the other.
func bandsOf(cells []cell, depth int) (bands []band) {
	parts := splitCells(cells, func(c cell) (top, bottom float64) { return c.top, c.bottom })
	if len(parts) == 1 {
		parts = splitCells(cells, func(c cell) (top, bottom float64) { return -c.bottom, -c.top })
		slices.Reverse(parts)
	}
	if len(parts) == 1 || depth >= maxColumns {
		return []band{newBand(cells)}
	}
	for _, part := range parts {
		bands = append(bands, bandsOf(part, depth+1)...)
	}
	return bands
}

// splitCells splits cells wherever all earlier cells are above all later ones.
func splitCells(cells []cell, reach func(cell) (top, bottom float64)) (parts [][]cell) {
	lowest := make([]float64, len(cells)) // bottom of the cells before
	low := math.Inf(1)
	for i, c := range cells {
		lowest[i] = low
		_, bottom := reach(c)
		low = min(low, bottom)
	}
	highest, end := math.Inf(-1), len(cells)
	for i, c := range slices.Backward(cells) {
		top, _ := reach(c)
		if highest = max(highest, top); highest <= lowest[i]+0.3*c.lines[0].size {
			parts = append(parts, cells[i:end])
			highest, end = math.Inf(-1), i
		}
	}
	slices.Reverse(parts)
	return parts
}

// newBand groups cells into columns that were drawn one after the other.
func newBand(cells []cell) (columns band) {
	columns = splitCells(cells, func(c cell) (top, bottom float64) { return -c.x0, -c.x1 })
	if len(columns) == 1 {
		columns = splitCells(cells, func(c cell) (top, bottom float64) { return c.x1, c.x0 })
		slices.Reverse(columns)
	}
	return columns
}

// pieces returns the pieces of all cells.
func (b band) pieces() (out []line) {
	for _, c := range slices.Concat(b...) {
		out = append(out, c.pieces...)
	}
	return out
}

// joinLabels joins a label and the text to its right into one row if that text begins less than a
// line lower, as a paragraph with a margin does.
func joinLabels(bands []band) (out []band) {
	for i, b := range bands {
		n := len(out) - 1
		if n < 0 || len(b) != 1 {
			out = append(out, b)
			continue
		}
		label, value, last := newCell(band{out[n][0]}.pieces()...), newCell(b.pieces()...), bands[i-1].bottom()
		size := value.lines[0].size
		down := label.lines[0].y - value.lines[0].y
		right := len(label.lines) == 1 && value.x0 > label.x1
		switch {
		case right && len(out[n]) == 1 && down > 0 && down < 1.1*size:
			out[n] = band{out[n][0], b[0]}
		case right && len(out[n]) == 2 && len(bands[i-1]) == 1 && last-value.top < 2*size:
			out[n][1] = append(out[n][1], b[0]...)
		default:
			out = append(out, b)
		}
	}
	return out
}

// isRow reports whether a band may be a row of a grid: each column is a cell, or a label above its
// value, or the band is a label with a list next to it.
func (b band) isRow() bool {
	isStack := func(column []cell) bool {
		pair := len(column) == 2 && len(splitByStyle(linesOf(column))) == 2 && column[0].lines[0].size <= column[1].lines[0].size
		return len(column) > 1 && !pair
	}
	if len(b) == 2 && isStack(b[1]) && !isStack(b[0]) {
		row := b.row()
		return len(b[0]) == 1 && isLabel(row) && !hasListMarker(row[0].lines[0].text) && !row[1].isBold()
	}
	return len(b) <= maxCells && !slices.ContainsFunc(b, isStack) && (len(b) < 2 || !isColumnwise(b))
}

// isColumnwise reports whether the cells are whole columns of a table drawn column by column. Their
// lines are then at the same heights, and lines end early although the next word would fit.
func isColumnwise(row band) bool {
	first := row[0][0].lines
	for _, column := range row {
		lines := column[0].lines
		if len(lines) != len(first) || len(lines) < 2 {
			return false
		}
		for i, l := range lines {
			if math.Abs(l.y-first[i].y) > sameLine*l.size {
				return false
			}
		}
	}
	for i, next := range first[1:] {
		if !first[i].hasRoom(next, row[1][0].x0-pieceGap*next.size) {
			return false
		}
	}
	return true
}

// gridOf returns the grid that begins with the first band and the number of its bands. Some of its
// cells have several lines, so the lines of a row may differ in height, for example if labels are
// centred. If no grid begins here, g is nil and n is the number of bands to skip.
func gridOf(bands []band) (g grid, n int) {
	if len(bands[0]) < 2 || !bands[0].isRow() {
		return nil, 1
	}
	g, n = readGrid(func(yield func(row) bool) {
		for _, b := range bands {
			if !b.isRow() || !yield(row{cells: b.row()}) {
				return
			}
		}
	})
	tall := slices.ContainsFunc(bands[:n], band.isTall)
	switch first := bands[0].row(); {
	case n == 1 && !isLabel(first) && !areBlocks(first):
		return nil, 1
	case !tall:
		return nil, n
	}
	return g, n
}

// isLabel reports whether a row is a label and its value.
func isLabel(row []*cell) bool {
	lines := row[0].lines
	text := row[0].text()
	return len(row) == 2 && len(text) <= maxLabel && (len(lines) == 1 || len(lines) <= 3 && !strings.HasSuffix(text, "."))
}

// row returns a cell for each column.
func (b band) row() (row []*cell) {
	for _, column := range b {
		c := newCell()
		for _, part := range column {
			c.lines = append(c.lines, part.lines...)
			c.x0, c.x1, c.top, c.bottom = min(c.x0, part.x0), max(c.x1, part.x1), max(c.top, part.top), min(c.bottom, part.bottom)
		}
		row = append(row, &c)
	}
	return row
}

// linesOf returns the lines of a column.
func linesOf(column []cell) (out []line) {
	for _, c := range column {
		out = append(out, c.lines...)
	}
	return out
}

// isTall reports whether the lines of a band are at several heights.
func (b band) isTall() bool {
	first := b[0][0].lines[0]
	return len(b) > 1 && slices.ContainsFunc(b, func(column []cell) bool {
		return len(linesOf(column)) > 1 || first.y-column[0].lines[0].y > sameLine*first.size
	})
}

func (b band) bottom() float64 {
	return slices.MinFunc(slices.Concat(b...), func(c, d cell) int { return cmp.Compare(c.bottom, d.bottom) }).bottom
}

// isTables reports whether at least two columns of a band contain rows of cells.
func (b band) isTables() bool {
	tables := 0
	for _, column := range b {
		rows := slices.DeleteFunc(bandsOf(column, 0), func(b band) bool { return len(b) < 2 })
		if len(rows) > 1 {
			tables++
		}
	}
	return tables > 1
}

// isForm reports whether a band has columns of labels above values, or of headings above text: one
// column with several of them, and another with at least one.
func (b band) isForm() bool {
	labelled, most := 0, 0 // columns, labels
	for _, column := range b {
		n, parts := 0, splitByStyle(linesOf(column))
		for i, value := range parts[1:] {
			l, v := parts[i][0], value[0]
			if hasWord(l.text) && (l.bold && !v.bold || math.Abs(l.size-v.size) > 0.1*l.size) {
				n++
			}
		}
		if most = max(most, n); n > 0 {
			labelled++
		}
	}
	return labelled > 1 && most > 1
}

// splitByStyle splits lines where their style changes.
func splitByStyle(lines []line) (parts [][]line) {
	start := 0
	for i, l := range lines {
		if i > 0 && (l.bold != lines[i-1].bold || math.Abs(l.size-lines[i-1].size) > 0.1*l.size) {
			parts, start = append(parts, lines[start:i]), i
		}
	}
	return append(parts, lines[start:])
}

// isText reports whether a band has columns of running text: in one of them most lines end because
// the next word would not fit.
func (b band) isText() bool {
	for i, column := range b {
		limit, size := math.Inf(-1), column[0].lines[0].size
		for _, c := range column {
			limit = max(limit, c.x1)
		}
		if i+1 < len(b) {
			next := math.Inf(1)
			for _, c := range b[i+1] {
				next = min(next, c.x0)
			}
			limit = max(limit, next-2*size)
		}
		full, words, all := 0, 0, 0
		for _, c := range column {
			for j, l := range c.lines {
				if all++; j > 0 && !c.lines[j-1].hasRoom(l, limit) {
					full++
				}
				words += 1 + strings.Count(l.text, " ")
			}
		}
		if len(b) > 1 && all > 1 && 2*full >= all-1 && words > 2*all {
			return true
		}
	}
	return false
}
