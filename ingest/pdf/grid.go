package pdf

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A row is a row of a grid whose columns are not known yet. It has cells if the drawing order shows
// them. Otherwise it is one line, to be cut into cells at gaps.
type row struct {
	cells  []*cell
	pieces []line // from left to right
}

// cutCells returns the cells of a row. A line is cut at wide gaps, and at narrow gaps where a
// column begins.
func (r row) cutCells(starts []float64, wide float64) []*cell {
	if r.cells != nil {
		return r.cells
	}
	if !slices.ContainsFunc(r.pieces, func(l line) bool { return !l.bold }) {
		wide = min(wide, nameGap) // column names may be close together
	}
	var out []*cell
	from := 0
	for i := 1; i <= len(r.pieces); i++ {
		if i < len(r.pieces) {
			next := r.pieces[i]
			size := max(r.pieces[i-1].size, next.size)
			gap := next.x0 - r.pieces[i-1].x1
			begins := gap > wide*size || next.cell || gap > 0.3*size &&
				slices.ContainsFunc(starts, func(x float64) bool { return math.Abs(x-next.x0) < 0.4*size })
			if text := r.pieces[i-1].text; !begins || text == "[x]" || text == "[ ]" ||
				from == 0 && i < 6 && isListMarker(joinPieces(r.pieces[:i]).text) {
				continue
			}
		}
		c := newCell(joinPieces(r.pieces[from:i]))
		out, from = append(out, &c), i
	}
	return out
}

// joinPieces joins the pieces of one line.
func joinPieces(pieces []line) line {
	whole := pieces[0]
	var text strings.Builder
	text.WriteString(whole.text)
	for i, next := range pieces[1:] {
		if next.x0-whole.x1 > wordGap*max(whole.size, next.size) && !areIdeographs(pieces[i].text, next.text) {
			text.WriteByte(' ')
		}
		text.WriteString(next.text)
		next.text = ""
		whole.join(next, false)
	}
	whole.text = text.String()
	return whole
}

// lineRows returns a row for each line of a page, from top to bottom.
func lineRows(pieces []line) (rows []row) {
	sortByTop(pieces)
	for start := 0; start < len(pieces); {
		end := start + 1
		for end < len(pieces) && math.Abs(pieces[end].y-pieces[start].y) < sameLine*max(pieces[start].size, pieces[end].size) {
			end++
		}
		r := row{pieces: slices.Clone(pieces[start:end])}
		slices.SortStableFunc(r.pieces, func(a, b line) int { return cmp.Compare(a.x0, b.x0) })
		rows, start = append(rows, r), end
	}
	return rows
}

// replaceGrids returns the lines of rows, with grids replaced by their text.
func replaceGrids(rows []row) (out []line) {
	for i := 0; i < len(rows); {
		if rows[i].beginsGrid(out, rows[i+1:]) || namesAbove(rows[i:]) {
			g, n := readGrid(slices.Values(rows[i:]))
			out = append(out, g.lines()...)
			i += n
			continue
		}
		out = append(out, joinPieces(rows[i].pieces))
		i++
	}
	return out
}

// beginsGrid reports whether a line is the first row of a grid: it has several cells, or close
// cells aligned with the cells of the next lines. Justified text can have wide gaps too, in a line
// of single words as wide as the line before or after it.
func (r row) beginsGrid(before []line, after []row) bool {
	cells := r.cutCells(nil, cellGap)
	if len(cells) == 1 {
		return r.isAligned(after)
	}
	if len(cells) > maxCells {
		return false
	}
	if slices.ContainsFunc(cells, func(c *cell) bool { return c.isBold() || c.isNumber() || strings.Contains(c.lines[0].text, " ") }) {
		return true
	}
	from, to := cells[0], cells[len(cells)-1]
	size := from.lines[0].size
	spans := func(l line) bool { return math.Abs(from.x0-l.x0) < size && math.Abs(to.x1-l.x1) < size }
	if n := len(before); n > 0 && !before[n-1].row && spans(before[n-1]) {
		return false
	}
	return len(after) == 0 || len(after[0].cutCells(nil, cellGap)) > 1 || !spans(joinPieces(after[0].pieces))
}

// isAligned reports whether the row has close cells that begin where the cells of the next line do.
// A row of two cells must be aligned with the next two lines.
func (r row) isAligned(after []row) bool {
	cells, lines := r.cutCells(nil, pieceGap), 1
	if len(cells) == 2 {
		lines = 2
	}
	if len(cells) < 2 || len(cells) > maxCells || len(after) < lines {
		return false
	}
	for _, next := range after[:lines] {
		others := next.cutCells(nil, pieceGap)
		for i, c := range cells {
			if len(others) != len(cells) || math.Abs(c.x0-others[i].x0) > 0.2*c.lines[0].size {
				return false
			}
		}
	}
	return true
}

// namesAbove reports whether a line is a single name centred above the names of several columns,
// except the first column.
func namesAbove(rows []row) bool {
	if rows[0].cells != nil || !joinPieces(rows[0].pieces).bold {
		return false
	}
	const most = 4 // rows
	var read grid
	for i, next := range rows[:min(len(rows), most)] {
		cells := next.cutCells(nil, pieceGap)
		if i > 0 && gapBetween(read[i-1], cells) > 2 || i < 2 && !areNames(cells) {
			return false
		}
		if areNames(cells) {
			read = append(read, cells)
			continue
		}
		name, names := read[0][0], slices.Concat(read[1:]...)
		slices.SortFunc(names, func(a, b *cell) int { return cmp.Compare(a.x0, b.x0) })
		from, to := centredCells(name, names, 0, len(names))
		size := name.lines[0].size
		isCaption := len(read[0]) > 1 || math.Abs(names[0].lines[0].size-size) > 0.15*size
		return !isCaption && to-from > 1 && len(cells) > 1 && names[from].x0 > cells[0].x1
	}
	return false
}

// centredCells returns the longest run of cells, between least and most, that c is centred above.
func centredCells(c *cell, cells []*cell, least, most int) (from, to int) {
	for a := least; a < most; a++ {
		for b := a + 1; b <= most; b++ {
			off := cells[a].x0 + cells[b-1].x1 - c.x0 - c.x1
			if math.Abs(off) < c.lines[0].size && b-a > to-from {
				from, to = a, b
			}
		}
	}
	return from, to
}

// gapBetween returns the distance between the baselines of two rows as a multiple of the font size.
func gapBetween(above, below []*cell) float64 {
	bottom, top := math.Inf(1), math.Inf(-1)
	for _, c := range above {
		bottom = min(bottom, c.bottom)
	}
	for _, c := range below {
		top = max(top, c.top)
	}
	return (bottom-top)/min(above[0].lines[0].size, below[0].lines[0].size) + 1
}

// A gridReader reads a grid.
type gridReader struct {
	rows        grid
	isLine      []bool    // a row is one line of text
	gaps        []float64 // above each row, as multiples of the font size
	least, most float64   // smallest and largest gap
	starts      []float64 // where cells begin
	columns     []column
	byColumn    bool // the first column was drawn first
}

// readGrid reads the grid that begins with the first row, and returns its number of rows.
func readGrid(rows iter.Seq[row]) (g grid, n int) {
	r := gridReader{least: math.Inf(1)}
	var first row
	for next := range rows {
		cells, gap := next.cutCells(r.starts, cellGap), 0.0
		if n == 0 {
			first = next
			if cells = next.cutCells(nil, pieceGap); len(cells) > maxCells { // column names may be close together
				cells = next.cutCells(nil, cellGap)
			}
		} else {
			gap = gapBetween(r.rows[n-1], cells)
			if !r.continuesWith(cells, gap) || n == 1 && next.cells != nil && !isNames(r.rows) && !rowsFit(r.rows[0], cells) {
				break
			}
			r.least, r.most = min(r.least, gap), max(r.most, gap)
		}
		for _, c := range cells {
			known := slices.ContainsFunc(r.starts, func(x float64) bool { return math.Abs(x-c.x0) < 0.4*c.lines[0].size })
			if len(cells) > 1 && !known {
				r.starts = append(r.starts, c.x0)
			}
		}
		slices.Sort(r.starts)
		r.rows, r.isLine, r.gaps = append(r.rows, cells), append(r.isLine, next.cells == nil), append(r.gaps, gap)
		n++
	}
	r.rows[0] = first.cutCells(r.starts, pieceGap)
	r.joinNames()
	labels, others := -1, math.MaxInt // drawing order of the last label and the first other cell
	for _, cells := range r.rows {
		for _, c := range cells[1:] {
			labels, others = max(labels, cells[0].lines[0].last), min(others, c.lines[0].drawn)
		}
	}
	r.byColumn = len(r.rows) > 2 && labels < others
	return r.grid(), n
}

// joinNames joins consecutive rows of names that are one row: names of several lines, and names
// vertically centred on two rows.
func (r *gridReader) joinNames() {
	levels := r.rows.countNames() > 0
	for i, n := 1, 1; n < maxNames && i < len(r.rows) && isNames(r.rows[i-1:i+1]) && r.gaps[i] < 2; i, n = i+1, n+1 {
		above, whole, shared := r.rows[i-1], slices.Clone(r.rows[i]), 0
		for _, up := range above {
			if j := slices.IndexFunc(whole, func(c *cell) bool { return shareALine(*up, *c) }); j >= 0 {
				whole[j], shared = whole[j].appendTo(up), shared+1
			} else {
				whole = append(whole, up)
			}
		}
		alike := shared == len(above) && shared == len(r.rows[i]) && r.gaps[i] <= 1.4
		if shared == 0 && (levels || i == 1 && len(above) == 1) || shared > 0 && !alike || !rowsFit(above, r.rows[i]) {
			continue
		}
		slices.SortFunc(whole, func(a, b *cell) int { return cmp.Compare(a.x0, b.x0) })
		r.rows[i-1], r.rows = whole, slices.Delete(r.rows, i, i+1)
		r.gaps, r.isLine = slices.Delete(r.gaps, i, i+1), slices.Delete(r.isLine, i, i+1)
		i--
	}
}

// isNames reports whether all cells of the rows may name columns.
func isNames(rows [][]*cell) bool {
	return !slices.ContainsFunc(rows, func(row []*cell) bool { return !areNames(row) })
}

// continuesWith reports whether cells are a further row of the grid: close below the last row, and
// in a column if there is only one cell.
func (r *gridReader) continuesWith(cells []*cell, gap float64) bool {
	c := cells[0]
	switch {
	case len(cells) > maxCells, len(r.starts) > 10*maxCells, gap > 3.5, gap <= 0:
		return false
	case len(cells) > 1:
		return true
	case len(r.starts) == 0:
		return isNames(r.rows) && gap < 1.8
	}
	i := slices.IndexFunc(r.starts, func(x float64) bool { return math.Abs(x-c.x0) < 0.5*c.lines[0].size })
	if i == 0 && r.isLine[0] {
		return len(r.starts) > 1 && c.x1 < r.starts[1] && gap <= min(r.least*1.15, 1.6)
	}
	return i >= 0 && (r.isLine[0] || rowsFit(r.rows[0], cells)) && gap <= max(r.most+0.1, 1.6)
}

// rowsFit reports whether no cell of either row overlaps several cells of the other.
func rowsFit(a, b []*cell) bool {
	wide := func(row, other []*cell) bool {
		return slices.ContainsFunc(row, func(c *cell) bool {
			n := 0
			for _, d := range other {
				if shareALine(*c, *d) {
					n++
				}
			}
			return n > 1
		})
	}
	return !wide(a, b) && !wide(b, a)
}

// A column is the extent of a column and the rows that have a cell in it.
type column struct {
	x0, x1 float64
	rows   map[int]bool
}

// findColumns finds the columns of rows, placing narrow cells first. A cell widens its column. A
// cell that begins and ends with a run of columns joins them if no row has cells in two of them.
func (r *gridReader) findColumns(from int) {
	type placed struct {
		*cell
		row int
	}
	var cells []placed
	for i, row := range r.rows[from:] {
		for _, c := range row {
			cells = append(cells, placed{c, from + i})
		}
	}
	slices.SortStableFunc(cells, func(a, b placed) int { return cmp.Compare(a.x1-a.x0, b.x1-b.x0) })
	for _, c := range cells {
		a, b := r.columnsOf(c.cell)
		switch {
		case a == b:
			whole := r.joinedColumn(a, b, c.x0, c.x1)
			whole.rows = map[int]bool{c.row: true}
			r.columns = slices.Insert(r.columns, a, whole)
		case b-a == 1:
			r.columns[a] = r.joinedColumn(a, b, c.x0, c.x1)
			r.columns[a].rows[c.row] = true
		case math.Abs(c.x0-r.columns[a].x0) < 0.5*c.lines[0].size:
			r.joinColumns(a, b, c.row)
		}
	}
}

// joinColumns joins columns unless a row has cells in two of them, or the row further has a cell in
// any.
func (r *gridReader) joinColumns(from, to, further int) {
	rows := map[int]bool{further: true}
	for _, part := range r.columns[from:to] {
		for i := range part.rows {
			if rows[i] {
				return
			}
			rows[i] = true
		}
	}
	r.columns = slices.Replace(r.columns, from, to, column{r.columns[from].x0, r.columns[to-1].x1, rows})
}

// joinedColumn joins columns into one from x0 to x1, without overlapping other columns.
func (r *gridReader) joinedColumn(from, to int, x0, x1 float64) column {
	whole := column{x0: x0, x1: x1}
	for _, part := range r.columns[from:to] {
		whole = column{min(whole.x0, part.x0), max(whole.x1, part.x1), part.rows}
	}
	if from > 0 {
		whole.x0 = max(whole.x0, r.columns[from-1].x1)
	}
	if to < len(r.columns) {
		whole.x1 = min(whole.x1, r.columns[to].x0)
	}
	return whole
}

// columnsOf returns the range of columns that a cell is in. A cell that begins or ends with a
// column belongs only to that column, although it may overlap others.
func (r *gridReader) columnsOf(c *cell) (from, to int) {
	size := c.lines[0].size
	for from < len(r.columns) && r.columns[from].x1 <= c.x0+0.1*size {
		from++
	}
	for to = from; to < len(r.columns) && r.columns[to].x0 < c.x1-0.1*size; {
		to++
	}
	if to-from > 1 {
		left, right := math.Abs(c.x0-r.columns[from].x0) < 0.5*size, math.Abs(c.x1-r.columns[to-1].x1) < 0.5*size
		switch {
		case left && !right:
			to = from + 1
		case right && !left:
			from = to - 1
		}
	}
	return from, to
}

// placeNames assigns each column name that is above no column to the nearest column without a name,
// or to a new column.
func (r *gridReader) placeNames(names []*cell) {
	for _, c := range names {
		at, to := r.columnsOf(c)
		if at+1 == to {
			r.columns[at] = r.joinedColumn(at, to, c.x0, c.x1)
		}
		if at < to {
			continue
		}
		nearest, least := -1, 5*c.lines[0].size
		for i := max(at-1, 0); i < min(at+1, len(r.columns)); i++ {
			isNamed := slices.ContainsFunc(names, func(other *cell) bool {
				from, to := r.columnsOf(other)
				return from <= i && i < to
			})
			if gap := max(c.x0-r.columns[i].x1, r.columns[i].x0-c.x1); !isNamed && gap < least {
				nearest, least = i, gap
			}
		}
		if nearest < 0 {
			r.columns = slices.Insert(r.columns, at, column{x0: c.x0, x1: c.x1})
		} else {
			r.columns[nearest] = r.joinedColumn(nearest, nearest+1, c.x0, c.x1)
		}
	}
}

// columnsUnder returns the range of columns below a name in one of several rows of names: the
// columns it is centred above, or else the columns it is in.
func (r *gridReader) columnsUnder(c *cell, names []*cell) (from, to int) {
	least, most := 1, len(r.columns) // limited by the names to the left and right
	for _, other := range names {
		if a, b := r.columnsOf(other); other.x0 > c.x1 {
			most = min(most, a)
		} else if other.x1 < c.x0 {
			least = max(least, b)
		}
	}
	var places []*cell
	for _, column := range r.columns {
		places = append(places, &cell{x0: column.x0, x1: column.x1})
	}
	if from, to = centredCells(c, places, least, most); to-from > 1 {
		return from, to
	}
	return r.columnsOf(c)
}

// grid assigns the cells of all rows to columns and joins the lines of each row.
func (r *gridReader) grid() (g grid) {
	names := r.rows.countNames()
	r.findColumns(names)
	if names > 0 {
		r.placeNames(r.rows[names-1])
	}
	var above []*cell
	for i, cells := range r.rows {
		row := r.placeCells(cells, i+1 < names)
		if i >= max(names, 1) && r.isLine[i] && r.isLine[i-1] && r.isWrapped(i, above, row) {
			last := g[len(g)-1]
			for j, c := range slices.Backward(row) {
				if j > 0 && last[j] == last[j-1] {
					last[j] = nil // a cell that spans columns gets further lines only in its first column
				}
				switch {
				case c == nil || j > 0 && row[j-1] == c:
				case last[j] == nil:
					last[j] = c
				default:
					for _, l := range c.lines {
						last[j].add(l)
					}
				}
			}
		} else {
			g = append(g, slices.Clone(row))
		}
		above = row
	}
	return g
}

// placeCells returns a row with the cells in their columns. A column where one cell ends and the
// next begins gets the next cell.
func (r *gridReader) placeCells(cells []*cell, above bool) []*cell {
	row := make([]*cell, len(r.columns))
	for i, c := range cells {
		from, to := r.columnsOf(c)
		if above {
			from, to = r.columnsUnder(c, cells)
		}
		if from == to { // it is between columns
			from = min(from, len(row)-1)
			to = from + 1
		}
		if i > 0 && from > 0 && row[from-1] == cells[i-1] {
			for j := from; j < len(row) && row[j] == row[from-1]; j++ {
				row[j] = nil
			}
		}
		for from < to-1 && row[from] != nil {
			from++
		}
		for ; from < to; from++ {
			row[from] = c.appendTo(row[from])
		}
	}
	return row
}

// appendTo returns a cell with the lines of above, then the lines of c.
func (c *cell) appendTo(above *cell) *cell {
	if c == nil || above == nil {
		return cmp.Or(c, above)
	}
	both := newCell(slices.Concat(above.lines, c.lines)...)
	return &both
}

// isWrapped reports whether a line continues the row above it: lines within a row are closer
// together than rows, or the first column of the line is empty.
func (r *gridReader) isWrapped(i int, above, row []*cell) bool {
	if len(r.rows[i]) > 1 && r.beginsRow(above, row, r.gaps[i]) {
		return false
	}
	if r.most > 1.25*r.least {
		return r.gaps[i] <= 1.12*r.least+0.03
	}
	return row[0] == nil && len(r.rows[i]) < len(r.rows[i-1])+1 && r.gaps[i] <= 1.6
}

// beginsRow reports whether the cells of a line begin a new row. They do if a number is next to its
// name, if two cells were not drawn right after the cells above, if one such cell would have fitted
// in the line above or is a number below a number, or if all are in columns that were empty.
func (r *gridReader) beginsRow(above, row []*cell, gap float64) bool {
	if row[0] != nil && slices.ContainsFunc(row[1:], func(c *cell) bool { return c != nil && c.isNumber() }) {
		return true
	}
	shared, apart := 0, 0 // columns
	limit := math.Inf(-1) // right limit of the cell
	for _, column := range r.columns {
		limit = max(limit, column.x1)
	}
	for i, c := range slices.Backward(row) {
		up := above[i]
		if c != nil && up != nil {
			shared++
			l, before := c.lines[0], up.lines[0]
			after := l.drawn == before.last+1
			switch same := math.Abs(l.size-before.size) < 0.15*l.size; { // a different size is a label above its value
			case same && (r.byColumn || !after) && (before.hasRoom(l, limit) || up.isNumber() && c.isNumber()):
				return true
			case same && !after:
				apart++
			}
		}
		if c != nil || up != nil {
			limit = r.columns[i].x0 - pieceGap*cmp.Or(c, up).lines[0].size
		}
	}
	return apart > 1 || shared == 0 && gap > 0.9
}

// isListMarker reports whether a text is the bullet or number of a list item.
func isListMarker(s string) bool {
	if utf8.RuneCountInString(s) > 5 {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s)
	return strings.ContainsRune("•‣◦▪●○■□–-*·", r) || strings.HasSuffix(s, ".") || strings.HasSuffix(s, ")") || unicode.Is(unicode.Co, r)
}
