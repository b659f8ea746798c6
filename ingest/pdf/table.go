package pdf

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A grid is text in rows and columns: a table, a form, or blocks next to each other. Each row has
// an entry for each column: nil if the cell is empty. A cell that spans several columns or rows is
// repeated.
type grid [][]*cell

// Limits of a grid.
const (
	maxCells = 100  // per row; more are words
	longText = 1500 // bytes; a longer cell is a part of the page
	maxLabel = 80   // bytes of a label
	maxNames = 10   // rows of names of columns
)

// isBold reports whether all lines of a cell are in bold.
func (c *cell) isBold() bool {
	return !slices.ContainsFunc(c.lines, func(l line) bool { return !l.bold })
}

// isNumber reports whether a cell has digits and no letters.
func (c *cell) isNumber() bool {
	text := c.lines[0].text
	return len(c.lines) == 1 && strings.ContainsAny(text, "0123456789") && !strings.ContainsFunc(text, unicode.IsLetter)
}

// areNames reports whether all cells of a row may name columns: they are marked as names, or bold
// and no number except a year.
func areNames(row []*cell) bool {
	for _, c := range row {
		if c != nil && !c.isName && (!c.isBold() || c.isNumber() && len(c.lines[0].text) < 4) {
			return false
		}
	}
	return true
}

// distinctCells returns the cells of a row, each once.
func distinctCells(row []*cell) []*cell {
	row = slices.Compact(slices.Clone(row))
	return slices.DeleteFunc(row, func(c *cell) bool { return c == nil })
}

// countNames returns how many leading rows hold column names: a row with several names above a row
// of other cells, and any rows above it with fewer names.
func (g grid) countNames() int {
	before := 0 // names
	for i, row := range g[:min(len(g), maxNames)] {
		cells := distinctCells(row)
		switch {
		case !areNames(cells) && before > 1:
			return i
		case !areNames(cells) || i > 0 && len(cells) <= before && rowsFit(distinctCells(g[i-1]), cells):
			return 0
		}
		before = len(cells)
	}
	return 0
}

// hasRoom reports whether the first word of the next line would end before a limit.
func (l line) hasRoom(next line, limit float64) bool {
	word, _, _ := strings.Cut(next.text, " ")
	return l.x1+(next.x1-next.x0)*float64(len(word)+1)/float64(len(next.text)) < limit
}

// isWide reports whether one cell spans all columns of a row.
func isWide(row []*cell) bool { return len(row) > 1 && row[0] != nil && row[0] == row[len(row)-1] }

// lines returns the text of a grid, one line per row:
//
//   - with column names, "name: cell | name: cell"
//   - with bold labels above values, "label | value" for each cell
//   - otherwise "cell | cell"
//
// A cell alone in its row keeps its lines. So do all cells if one has long text or a heading, since
// the grid is then the layout of the page.
func (g grid) lines() (out []line) {
	g.setLimits()
	isPage := slices.ContainsFunc(slices.Concat(g...), (*cell).isPage)
	done := map[*cell]bool{nil: true}
	var names []string // of columns
	named := false     // there was a row of names
	for i := 0; i < len(g); i++ {
		row := g[i]
		cells := distinctCells(row)
		isDone := !slices.ContainsFunc(cells, func(c *cell) bool { return !done[c] })
		n := g[i:].countNames()
		if n > 0 && (isWide(row) || i > 0 && !g.isNamesAgain(i, named)) || isDone || isPage {
			n = 0
		}
		for _, c := range slices.Concat(g[i : i+max(n, 1)]...) {
			if isPage && !done[c] {
				out = append(out, c.lines...)
			}
			done[c] = true
		}
		switch {
		case isDone || isPage:
		case n > 0:
			named = true
			var without grid
			names, without = g[i:].header(n)
			for _, row := range without {
				out = append(out, rowLine(row, nil)...)
			}
			i += n - 1
		case len(cells) == 1 && names == nil || isWide(row):
			out = append(out, cells[0].lines...)
		case names == nil && areBlocks(cells):
			for _, c := range cells {
				out = append(out, labelRows(c.lines)...)
			}
		default:
			out = append(out, rowLine(row, names)...)
		}
	}
	return out
}

// isPage reports whether a cell has long text, or a heading above text.
func (c *cell) isPage() bool {
	if c == nil {
		return false
	}
	length := 0
	for _, l := range c.lines {
		length += len(l.text) + 1
	}
	return length > longText || len(c.lines) > 2 && c.lines[0].size > 1.12*c.lines[1].size && hasWord(c.lines[0].text)
}

// setLimits sets the limit of the lines of each cell: the end of the longest line in its column.
func (g grid) setLimits() {
	for j := range g[0] {
		limit := 0.0
		var cells []*cell
		for _, row := range g {
			if c := row[j]; c != nil && (j == 0 || row[j-1] != c) && (j+1 == len(row) || row[j+1] != c) {
				cells, limit = append(cells, c), max(limit, c.x1)
			}
		}
		for _, c := range cells {
			c.limit = limit
		}
	}
}

// isNamesAgain reports whether a further row of names applies to the rows below it: the row above
// spans all columns or has cells that are not names.
func (g grid) isNamesAgain(i int, named bool) bool {
	number := func(c *cell) bool { return c != nil && c.isNumber() }
	return isWide(g[i-1]) || named && !areNames(g[i-1]) && !slices.ContainsFunc(g[i], number)
}

// header returns the name of each column from the leading rows of a grid, and in without the other
// names: names of empty columns or of more than two columns. If most names are such names, or no
// name belongs to one column alone, the rows are not a header, and without has them all.
func (g grid) header(rows int) (names []string, without grid) {
	last := g[rows-1]
	names = make([]string, len(last))
	var left []*cell
	end := rows // up to the next names
	for end < len(g) && !(g.isNamesAgain(end, true) && g[end:].countNames() > 0) {
		end++
	}
	hasOwn := len(last) == 1
	for j, c := range last {
		var parts []*cell
		var name []string
		for _, level := range g[:rows] {
			if part := level[j]; part != nil && !slices.Contains(parts, part) {
				parts, name = append(parts, part), append(name, part.text())
			}
		}
		begins := func(row []*cell) bool { return row[j] != nil && (j == 0 || row[j-1] != row[j]) }
		of := slices.DeleteFunc(slices.Clone(last), func(other *cell) bool { return other != c })
		if !slices.ContainsFunc(g[rows:end], begins) || c != nil && len(of) > 2 {
			left = append(left, slices.DeleteFunc(parts, func(part *cell) bool { return slices.Contains(left, part) })...)
		} else {
			names[j] = strings.TrimRight(strings.Join(name, " "), ": ")
		}
		hasOwn = hasOwn || c != nil && len(of) == 1
	}
	lost := slices.DeleteFunc(distinctCells(last), func(c *cell) bool { return !slices.Contains(left, c) })
	if 2*len(lost) > len(distinctCells(last)) || !hasOwn {
		return nil, g[:rows]
	}
	return names, grid{left}
}

// text joins the lines of a cell. It separates the lines by semicolons if they are items: each
// begins like an item, and one ends although the next word would have fitted.
func (c *cell) text() string {
	alike, ends := true, false
	for i, l := range c.lines[1:] {
		r, _ := utf8.DecodeRuneInString(l.text)
		before := c.lines[i]
		alike = alike && !startsLower(l.text) && (unicode.IsLetter(r) || unicode.IsDigit(r)) && !before.row &&
			len(splitByStyle(c.lines[i:i+2])) == 1
		ends = ends || !before.bold && before.hasRoom(l, c.limit-0.3*l.size)
	}
	whole := c.lines[0]
	for i, next := range c.lines[1:] {
		if end := c.lines[i].text; alike && ends && !strings.ContainsAny(end[len(end)-1:], ".,;:!?-–/&(") {
			whole.text += ";"
		}
		whole.append(next)
	}
	return whole.text
}

// rowLine returns a row as a line, or nil if it is empty.
func rowLine(row []*cell, names []string) []line {
	var whole line
	var parts []string
	for j, c := range row {
		if c == nil || j > 0 && row[j-1] == c {
			continue
		}
		if len(parts) == 0 {
			whole = c.lines[0]
			whole.glyphs = 0
		}
		for _, l := range c.lines {
			whole.x1, whole.glyphs, whole.bold = max(whole.x1, l.x1), whole.glyphs+l.glyphs, whole.bold && l.bold
		}
		text := c.text()
		if names != nil && names[j] != "" {
			text = names[j] + ": " + text
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return nil
	}
	whole.row = whole.row || len(parts) > 1 || names != nil
	whole.text = strings.Join(parts, " | ")
	return []line{whole}
}

// areBlocks reports whether each cell is a bold label above its value.
func areBlocks(cells []*cell) bool {
	return len(cells) > 1 && !slices.ContainsFunc(cells, func(c *cell) bool {
		parts := splitByStyle(c.lines)
		return len(parts) < 2 || !parts[0][0].bold || parts[1][0].bold
	})
}

// labelRows returns a row for each bold label and the value below it. A value of more than a few
// lines is text with headings, and is left unchanged.
func labelRows(lines []line) (out []line) {
	parts := splitByStyle(lines)
	for i := 0; i < len(parts); i++ {
		label := newCell(parts[i]...)
		l := label.lines[0]
		if i+1 == len(parts) || !label.isBold() || l.row || len(label.text()) > maxLabel || l.size > 1.1*parts[i+1][0].size {
			out = append(out, parts[i]...)
			continue
		}
		if i++; len(parts[i]) > 2*fewLines {
			return lines
		}
		value := newCell(parts[i]...)
		value.limit = value.x1
		out = append(out, rowLine([]*cell{&label, &value}, nil)...)
	}
	return out
}

// append appends the text of the next line.
func (l *line) append(next line) {
	if strings.HasSuffix(l.text, "-") || areIdeographs(l.text, next.text) {
		l.text += next.text
	} else {
		l.text += " " + next.text
	}
	l.x1 = max(l.x1, next.x1)
	l.glyphs += next.glyphs
	l.bold = l.bold && next.bold
}
