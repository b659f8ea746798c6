package pdf

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// rows joins pieces of the same height into lines, and the cells of tables
// into a line for each row. The pieces are ordered from top to bottom.
func rows(in []line) []line {
	var byHeight [][]line
	for start := 0; start < len(in); {
		end := start + 1
		for end < len(in) && math.Abs(in[end].y-in[start].y) < sameLine*max(in[start].size, in[end].size) {
			end++
		}
		row := in[start:end]
		slices.SortStableFunc(row, func(a, b line) int { return cmp.Compare(a.x0, b.x0) })
		byHeight = append(byHeight, row)
		start = end
	}
	var out []line
	for i := 0; i < len(byHeight); {
		first := cells(byHeight[i], nil, cellGap)
		if narrow := cells(byHeight[i], nil, pieceGap); len(first) == 1 && aligned(narrow, byHeight[i+1:]) {
			first = narrow
		}
		if len(first) > maxCells || len(first) > 1 && isJustified(first, out, byHeight[i+1:]) {
			first = cells(byHeight[i], nil, math.Inf(1))
		}
		if len(first) > 1 {
			table, n := tableAt(byHeight[i:])
			out = append(out, table...)
			i += n
		} else {
			out = append(out, first[0])
			i++
		}
	}
	return out
}

// aligned reports whether cells that are close to each other begin where those of the
// next line do, of the next two if there are only two.
func aligned(row []line, after [][]line) bool {
	most := 1
	if len(row) == 2 {
		most = 2
	}
	if len(row) < 2 || len(row) > maxCells || len(after) < most {
		return false
	}
	for _, next := range after[:most] {
		cs := cells(next, nil, pieceGap)
		for i, c := range row {
			if len(cs) != len(row) || math.Abs(c.x0-cs[i].x0) > 0.2*c.size {
				return false
			}
		}
	}
	return true
}

// isJustified reports whether a line with wide gaps is justified text: single
// words from margin to margin of the line before or after it.
func isJustified(row, before []line, after [][]line) bool {
	for _, c := range row {
		if strings.Contains(c.text, " ") {
			return false
		}
	}
	from, to := row[0], row[len(row)-1]
	spans := func(l line) bool { return math.Abs(from.x0-l.x0) < from.size && math.Abs(to.x1-l.x1) < from.size }
	if n := len(before); n > 0 && !before[n-1].row && spans(before[n-1]) {
		return true
	}
	if len(after) == 0 {
		return false
	}
	next := cells(after[0], nil, cellGap)
	return len(next) == 1 && spans(next[0])
}

// cells joins the pieces of a line into cells: after wide gaps or at a known column.
func cells(row []line, columns []float64, wide float64) []line {
	out := []line{row[0]}
	text := []byte(row[0].text) // of the last cell
	for i, next := range row[1:] {
		last := &out[len(out)-1]
		size := max(last.size, next.size)
		gap := next.x0 - last.x1
		begins := gap > wide*size || next.cell || gap > 0.3*size &&
			slices.ContainsFunc(columns, func(x float64) bool { return math.Abs(x-next.x0) < 0.4*size })
		if begins && !(len(out) == 1 && len(text) < 16 && marker(string(text))) {
			last.text = string(text)
			out, text = append(out, next), []byte(next.text)
			continue
		}
		if gap > wordGap*size && !ideographs(row[i].text, next.text) {
			text = append(text, ' ')
		}
		text = append(text, next.text...)
		next.text = ""
		last.join(next, false)
	}
	out[len(out)-1].text = string(text)
	return out
}

// A grid has the lines of a table.
type grid struct {
	rows        [][]line // cells
	columns     []float64
	gaps        []float64 // above each line, in font sizes
	least, most float64   // of the gaps
	right       float64   // the end of the longest line
	byColumn    bool      // its first column was drawn before the others
	named       bool      // its first line has a name for each column
}

// readGrid reads the lines of the table that begins with the first one.
func readGrid(byHeight [][]line) grid {
	g := grid{rows: [][]line{cells(byHeight[0], nil, pieceGap)}, gaps: []float64{0}, least: math.Inf(1)}
	if len(g.rows[0]) > maxCells {
		g.rows[0] = cells(byHeight[0], nil, cellGap)
	}
	for _, c := range g.rows[0] {
		g.columns = append(g.columns, c.x0)
	}
	for _, row := range byHeight[1:] {
		cs := cells(row, g.columns, cellGap)
		size := cs[0].size
		gap := (g.rows[len(g.rows)-1][0].y - cs[0].y) / size
		if len(g.columns)+len(cs) > 2*maxCells || gap > 3.5 || gap <= 0 ||
			len(cs) == 1 && !insideColumn(cs[0], g.columns, gap <= min(g.least*1.15, 1.6)) {
			break
		}
		known := len(cs) == 1 || sameCells(cs, g.rows[0])
		for _, c := range cs {
			if !known && !slices.ContainsFunc(g.columns, func(x float64) bool { return math.Abs(x-c.x0) < 2*size }) {
				g.columns = append(g.columns, c.x0)
				slices.Sort(g.columns)
			}
		}
		g.least, g.most = min(g.least, gap), max(g.most, gap)
		g.gaps = append(g.gaps, gap)
		g.rows = append(g.rows, cs)
	}
	labels, first := -1, math.MaxInt // in the order of drawing
	for _, cs := range g.rows {
		g.right = max(g.right, cs[len(cs)-1].x1)
		for _, c := range cs[1:] {
			labels, first = max(labels, cs[0].last), min(first, c.drawn)
		}
	}
	g.byColumn = len(g.rows) > 2 && labels < first
	// The columns were unknown when the first line was read.
	g.rows[0] = cells(byHeight[0], g.columns, pieceGap)
	if columns, ok := columnsUnder(g.rows[0], g.rows[1:]); ok {
		g.columns, g.named = columns, true
	}
	return g
}

// columnsUnder returns where the columns of rows begin if each name is above one of its
// own, wherever it begins.
func columnsUnder(names []line, rows [][]line) (starts []float64, ok bool) {
	var columns []line
	for _, row := range rows {
		if columns, ok = widened(columns, row); !ok {
			return nil, false
		}
	}
	if columns, ok = underNames(names, columns); !ok || len(rows) == 0 || !allBold(names) || allBold(rows[0]) {
		return nil, false
	}
	for _, c := range columns {
		starts = append(starts, c.x0)
	}
	return starts, true
}

// underNames returns the columns under names, those that are empty as wide as their name.
func underNames(names, columns []line) (all []line, ok bool) {
	if len(columns) != len(names) {
		if columns, ok = widened(columns, names); !ok || len(columns) != len(names) {
			return nil, false
		}
	}
	for i, c := range names {
		if middle := (c.x0 + c.x1) / 2; i > 0 && middle < columns[i-1].x1 || i+1 < len(names) && middle > columns[i+1].x0 {
			return nil, false
		}
	}
	return columns, true
}

// sameCells reports whether two lines have as many cells, which were drawn as such.
func sameCells(a, b []line) bool {
	isCell := func(l line) bool { return l.cell }
	return len(a) == len(b) && slices.ContainsFunc(a, isCell) && slices.ContainsFunc(b, isCell)
}

// tableAt reads the table that begins with the first line and returns its number of lines.
func tableAt(byHeight [][]line) (out []line, n int) {
	g := readGrid(byHeight)
	least, most := g.least, g.most
	var table [][]line // one cell for each column
	var above []line
	for i, cs := range g.rows {
		row := make([]line, len(g.columns))
		for at, c := range cs {
			if (i > 0 || !g.named) && (!sameCells(cs, g.rows[0]) || len(cs) != len(row)) {
				at = columnOf(c, g.columns)
			}
			if row[at].text != "" {
				row[at].join(c, true)
			} else {
				row[at] = c
			}
		}
		// A line continues the row before when lines within a row are closer
		// than rows, or when its first column is empty.
		wrapped := i > 0 && !(len(cs) > 1 && g.begins(above, row, g.gaps[i])) && (most > 1.25*least && g.gaps[i] <= 1.12*least+0.03 ||
			row[0].text == "" && len(cs) < len(g.rows[i-1])+1 && g.gaps[i] <= 1.6 && most <= 1.25*least)
		above = row
		if !wrapped {
			table = append(table, row)
			continue
		}
		last := table[len(table)-1]
		for j, c := range row {
			switch {
			case c.text == "":
			case last[j].text == "":
				last[j] = c
			default:
				last[j].append(c)
			}
		}
	}
	return tableLines(table), len(g.rows)
}

// begins reports whether the cells of a line begin a row: there is a number next to its
// name, two cells were not drawn after those above them, or one whose first word had
// room there, or all are in columns that were empty.
func (g *grid) begins(above, row []line, gap float64) bool {
	number := func(l line) bool { return isNumber(l) && !(l.bold && year.MatchString(l.text)) } // that of a column's name
	if row[0].text != "" && slices.ContainsFunc(row[1:], number) {
		return true
	}
	if allBold(above) && allBold(row) {
		return false // names of columns in two lines
	}
	shared, apart := 0, 0 // columns
	limit := g.right      // of the cell, from right to left
	for i, c := range slices.Backward(row) {
		up := above[i]
		if c.text != "" && up.text != "" {
			shared++
			after := c.drawn == up.last+1
			switch same := math.Abs(c.size-up.size) < 0.15*c.size; { // else a label above its value
			case same && (g.byColumn || !after) && up.hasRoom(c, limit):
				return true
			case same && !after:
				apart++
			}
		}
		if c.text != "" || up.text != "" {
			limit = g.columns[i] - pieceGap*row[i].size
		}
	}
	return apart > 1 || shared == 0 && gap > 0.9
}

// hasRoom reports whether the first word of the next line would end before a limit.
func (l line) hasRoom(next line, limit float64) bool {
	word, _, _ := strings.Cut(next.text, " ")
	return l.x1+(next.x1-next.x0)*float64(len(word)+1)/float64(len(next.text)) < limit
}

var year = regexp.MustCompile(`\b(?:19|20)\d\d\b`)

// isNumber reports whether a cell has digits and no letters.
func isNumber(l line) bool {
	return strings.ContainsAny(l.text, "0123456789") && !strings.ContainsFunc(l.text, unicode.IsLetter)
}

// append adds a further line to a cell.
func (l *line) append(next line) {
	if strings.HasSuffix(l.text, "-") || ideographs(l.text, next.text) {
		l.text += next.text
	} else {
		l.text += " " + next.text
	}
	l.x1 = max(l.x1, next.x1)
	l.glyphs += next.glyphs
	l.bold = l.bold && next.bold
}

// insideColumn reports whether a piece alone on its line belongs to a column above it.
func insideColumn(c line, columns []float64, tight bool) bool {
	for i, x := range columns {
		if math.Abs(x-c.x0) < 0.5*c.size {
			return i > 0 || tight && len(columns) > 1 && c.x1 < columns[1]
		}
	}
	return false
}

// columnOf returns the column of a cell: the last that begins before its middle, or at its start.
func columnOf(c line, columns []float64) int {
	at := 0
	for i, x := range columns {
		if x <= c.x0+0.5*c.size || x < (c.x0+c.x1)/2 && i > 0 && columns[i-1] < c.x0-2*c.size && x <= c.x0+2*c.size {
			at = i
		}
	}
	return at
}

// tableLines returns a line for each row. A bold first row above others names
// the columns, and its names go with each row, up to further names; those of empty
// columns are a row.
func tableLines(table [][]line) []line {
	for i := 2; i+1 < len(table); i++ {
		if allBold(table[0]) && allBold(table[i]) && !allBold(table[i-1]) && !allBold(table[i+1]) && !slices.ContainsFunc(table[i], isNumber) {
			return append(tableLines(table[:i]), tableLines(table[i:])...)
		}
	}
	header := namesOf(table)
	if header != nil && !slices.ContainsFunc(table[0], func(c line) bool { return c.text != "" }) {
		table = table[1:]
	}
	var out []line
	for _, row := range table {
		var l line
		var parts []string
		for i, c := range row {
			if c.text == "" {
				continue
			}
			if len(parts) == 0 {
				l = c
			} else {
				l.x1, l.glyphs = max(l.x1, c.x1), l.glyphs+c.glyphs
				l.bold = l.bold && c.bold
			}
			if i < len(header) && header[i] != "" {
				c.text = header[i] + ": " + c.text
			}
			parts = append(parts, c.text)
		}
		l.row = len(parts) > 1 || header != nil
		l.text = strings.Join(parts, " | ")
		out = append(out, l)
	}
	return out
}

// namesOf takes the names of columns that are not empty out of the first row, unless
// those of most are empty: then it names other columns.
func namesOf(table [][]line) (header []string) {
	if len(table) < 2 || !allBold(table[0]) || allBold(table[1]) {
		return nil
	}
	header = make([]string, len(table[0]))
	names, row := 0, make([]line, len(table[0])) // of empty columns
	for i, c := range table[0] {
		switch {
		case c.text == "":
		case slices.ContainsFunc(table[1:], func(row []line) bool { return row[i].text != "" }):
			header[i] = strings.TrimRight(c.text, ": ")
			names++
		default:
			row[i] = c
			names--
		}
	}
	if names < 0 {
		return nil
	}
	table[0] = row
	return header
}

// allBold reports whether a row may name columns.
func allBold(row []line) bool {
	named := 0
	for _, c := range row {
		if c.text != "" && (!c.bold || isNumber(c) && len(c.text) < 4) { // that of a page, but not a year
			return false
		} else if c.text != "" {
			named++
		}
	}
	return named > 1
}

// marker reports whether a text is the bullet or number of a list item.
func marker(s string) bool {
	if utf8.RuneCountInString(s) > 5 {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s)
	return strings.ContainsRune("•‣◦▪●○■□–-*·", r) || strings.HasSuffix(s, ".") || strings.HasSuffix(s, ")") || unicode.Is(unicode.Co, r)
}
