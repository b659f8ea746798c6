package pdf

import (
	"cmp"
	"math"
	"slices"

	"ibid/ingest/office"
)

// Limits, and distances in points, of the straight lines that rule tables.
const (
	maxRules = 20_000
	maxGrid  = 1000 // joined rules, and points of a path; a table may have 100 times as many cells
	nearRule = 3.0  // closer rules count as one: they are the borders of two cells
)

// A rule is a straight line on a page, from left to right or from bottom to top.
type rule struct{ x0, y0, x1, y1 float64 }

func (r rule) isLevel() bool { return r.x1-r.x0 >= r.y1-r.y0 }

// turnedTo returns a rule in the frame of lines with this number of quarter turns.
func (r rule) turnedTo(turn int) rule {
	x0, y0 := turnPoint(turn, r.x0, r.y0)
	x1, y1 := turnPoint(turn, r.x1, r.y1)
	return rule{min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)}
}

// A path collects the straight lines that are drawn as rules.
type path struct {
	parts [][][2]float64
	rules []rule
}

// place converts a point to the frame of the page.
func (d *drawing) place(x, y float64) [2]float64 {
	m := matrix{1, 0, 0, 1, x, y}.mul(d.ctm)
	return [2]float64{m[4], m[5]}
}

func (d *drawing) beginLine(n []float64) {
	d.addAlternative(n[0], n[1], false)
	d.path.begin(d.place(n[0], n[1]))
}

func (d *drawing) rectangle(n []float64) {
	d.addAlternative(n[0], n[1], false)
	x, y, w, h := n[0], n[1], n[2], n[3]
	d.path.begin(d.place(x, y), d.place(x+w, y), d.place(x+w, y+h), d.place(x, y+h), d.place(x, y))
}

// dropCurve removes a part of the path that has a curve.
func (d *drawing) dropCurve([]float64) { d.path.parts = d.path.parts[:max(len(d.path.parts)-1, 0)] }

func (d *drawing) closeAndStroke([]float64) {
	d.path.close()
	d.stroke(nil)
}

func (d *drawing) stroke([]float64) {
	for _, part := range d.path.parts {
		for i := range len(part) - 1 {
			d.path.add(part[i : i+2])
		}
	}
	d.path.parts = nil
}

func (d *drawing) fill([]float64) {
	for _, part := range d.path.parts {
		d.path.add(part)
	}
	d.path.parts = nil
}

// begin begins a part of the path.
func (p *path) begin(points ...[2]float64) {
	if len(p.rules)+len(p.parts) <= maxRules {
		p.parts = append(p.parts, points)
	}
}

func (p *path) lineTo(point [2]float64) {
	if last := len(p.parts) - 1; last >= 0 && len(p.parts[last]) < maxGrid && len(p.rules)+len(p.parts) <= maxRules {
		p.parts[last] = append(p.parts[last], point)
	}
}

func (p *path) close() {
	if n := len(p.parts) - 1; n >= 0 {
		p.parts[n] = append(p.parts[n], p.parts[n][0])
	}
}

// add adds the rule that points enclose if they are almost on a line.
func (p *path) add(points [][2]float64) {
	r := rule{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, at := range points {
		r = rule{min(r.x0, at[0]), min(r.y0, at[1]), max(r.x1, at[0]), max(r.y1, at[1])}
	}
	if thin, long := min(r.x1-r.x0, r.y1-r.y0), max(r.x1-r.x0, r.y1-r.y0); thin < nearRule && long > thin && long < 1e5 {
		p.rules = append(p.rules, r)
	}
}

// joinedRules returns the rules without their thickness, joining collinear ones.
func joinedRules(in []rule) (level, upright []rule) {
	join := func(rules []rule) (out []rule) {
		slices.SortFunc(rules, func(a, b rule) int { return cmp.Compare(a.y0, b.y0) })
		for i, last := 0, 0.0; i < len(rules); i++ {
			y := rules[i].y0
			if i > 0 && y-last < nearRule {
				rules[i].y0 = rules[i-1].y0
			}
			last = y
		}
		slices.SortFunc(rules, func(a, b rule) int { return cmp.Or(cmp.Compare(a.y0, b.y0), cmp.Compare(a.x0, b.x0)) })
		for _, r := range rules {
			if n := len(out) - 1; n >= 0 && out[n].y0 == r.y0 && r.x0 < out[n].x1+nearRule {
				out[n].x1 = max(out[n].x1, r.x1)
			} else {
				out = append(out, rule{r.x0, r.y0, r.x1, r.y0})
			}
		}
		return slices.DeleteFunc(out, func(r rule) bool { return r.x1-r.x0 < 2*nearRule })
	}
	swapped := func(r rule) rule { return rule{r.y0, r.x0, r.y1, r.x1} }
	for _, r := range in {
		if r.isLevel() {
			r.y0 = (r.y0 + r.y1) / 2
			level = append(level, r)
		} else {
			r.x0 = (r.x0 + r.x1) / 2
			upright = append(upright, swapped(r))
		}
	}
	level, upright = join(level), join(upright)
	for i, r := range upright {
		upright[i] = swapped(r)
	}
	return level, upright
}

// A ruledTable is a table whose cells are between rules.
type ruledTable struct {
	xs, ys []float64 // from left to right and from top to bottom
	cells  [][]int   // by row and column; a spanning cell has one number
	count  int
}

// ruledTables returns the tables that rules divide into cells, from top to bottom.
func ruledTables(rules []rule) (tables []ruledTable) {
	level, upright := joinedRules(rules)
	if len(level)+len(upright) > maxGrid {
		return nil
	}
	group := make([]int, len(level)+len(upright)) // group[i] is a rule connected with rule i
	for i := range group {
		group[i] = i
	}
	for i, h := range level {
		for j, v := range upright {
			a, b := group[i], group[len(level)+j]
			if a == b || v.x0 < h.x0-nearRule || v.x0 > h.x1+nearRule || h.y0 < v.y0-nearRule || h.y0 > v.y1+nearRule {
				continue
			}
			for k, g := range group {
				if g == b {
					group[k] = a
				}
			}
		}
	}
	for g := range group {
		var hs, vs []rule
		for i, of := range group {
			switch {
			case of != g:
			case i < len(level):
				hs = append(hs, level[i])
			default:
				vs = append(vs, upright[i-len(level)])
			}
		}
		if len(hs) > 0 && len(vs) > 0 {
			if t, ok := newRuled(hs, vs); ok {
				tables = append(tables, t)
			}
		}
	}
	slices.SortFunc(tables, func(a, b ruledTable) int { return cmp.Compare(b.ys[0], a.ys[0]) })
	return tables
}

// newRuled finds the cells between connected rules. The outer sides of a table need no rule. ok is
// false if a cell is not a rectangle.
func newRuled(level, upright []rule) (t ruledTable, ok bool) {
	for _, r := range slices.Concat(level, upright) {
		t.xs, t.ys = append(t.xs, r.x0, r.x1), append(t.ys, -r.y0, -r.y1)
	}
	t.xs, t.ys = distinctPlaces(t.xs), distinctPlaces(t.ys)
	for i := range t.ys {
		t.ys[i] = -t.ys[i]
	}
	rows, columns := len(t.ys)-1, len(t.xs)-1
	if rows < 1 || columns < 1 || rows*columns > 100*maxGrid {
		return t, false
	}
	isWall := func(rules []rule, x, y float64) bool {
		return slices.ContainsFunc(rules, func(r rule) bool {
			return x > r.x0-nearRule && x < r.x1+nearRule && y > r.y0-nearRule && y < r.y1+nearRule
		})
	}
	t.cells = make([][]int, rows)
	for i := range rows {
		t.cells[i] = make([]int, columns)
		y := (t.ys[i] + t.ys[i+1]) / 2
		for j := range columns {
			x := (t.xs[j] + t.xs[j+1]) / 2
			left, above := j > 0 && !isWall(upright, t.xs[j], y), i > 0 && !isWall(level, x, t.ys[i])
			switch {
			case left && above && t.cells[i][j-1] != t.cells[i-1][j]:
				return t, false
			case left:
				t.cells[i][j] = t.cells[i][j-1]
			case above:
				t.cells[i][j] = t.cells[i-1][j]
			default:
				t.cells[i][j] = t.count
				t.count++
			}
		}
	}
	return t, t.areRectangles()
}

// distinctPlaces sorts numbers and drops each that is close to the one before.
func distinctPlaces(in []float64) []float64 {
	slices.Sort(in)
	return slices.CompactFunc(in, func(a, b float64) bool { return math.Abs(b-a) < nearRule })
}

// areRectangles reports whether all cells are rectangles.
func (t *ruledTable) areRectangles() bool {
	boxes, area := make([][4]int, t.count), make([]int, t.count)
	for i, row := range t.cells {
		for j, c := range row {
			if area[c]++; area[c] == 1 {
				boxes[c] = [4]int{i, j, i, j}
			}
			b := boxes[c]
			boxes[c] = [4]int{b[0], min(b[1], j), i, max(b[3], j)}
		}
	}
	for c, b := range boxes {
		if (b[2]-b[0]+1)*(b[3]-b[1]+1) != area[c] {
			return false
		}
	}
	return true
}

// cellAt returns the cell that contains a glyph; ok is false if no cell does.
func (t *ruledTable) cellAt(g glyph) (c int, ok bool) {
	x, y := middle(g), g.Y+0.3*g.Size
	j, _ := slices.BinarySearch(t.xs, x)
	i, _ := slices.BinarySearchFunc(t.ys, y, func(a, b float64) int { return cmp.Compare(b, a) })
	if i < 1 || i >= len(t.ys) || j < 1 || j >= len(t.xs) {
		return 0, false
	}
	return t.cells[i-1][j-1], true
}

// divide returns the glyphs above a table, in each of its cells, and below it. ok is false if the
// rules are not a table: glyphs are not in that order, a word crosses a rule, or no two adjacent
// cells have text.
func (t *ruledTable) divide(glyphs []glyph) (above, below []glyph, cells [][]glyph, ok bool) {
	cells = make([][]glyph, t.count)
	last, lastCell := glyph{}, -1
	for _, g := range glyphs {
		c, inside := t.cellAt(g)
		switch {
		case inside:
			oneWord := !g.Begins && !isBlank(g.Text) && !isBlank(last.Text) && isNextGlyph(last, g) && g.X0-last.X1 < wordGap*g.Size
			if lastCell >= 0 && c != lastCell && oneWord {
				return nil, nil, nil, false
			}
			cells[c] = append(cells[c], g)
		case g.Y+0.3*g.Size >= t.ys[0]:
			above, c = append(above, g), -1
		case g.Y+0.3*g.Size <= t.ys[len(t.ys)-1]:
			below, c = append(below, g), -1
		case !isBlank(g.Text):
			return nil, nil, nil, false
		}
		last, lastCell = g, c
	}
	hasText := func(c int) bool { return slices.ContainsFunc(cells[c], func(g glyph) bool { return !isBlank(g.Text) }) }
	for _, row := range t.cells {
		for j := range len(row) - 1 {
			ok = ok || row[j] != row[j+1] && hasText(row[j]) && hasText(row[j+1])
		}
	}
	return above, below, cells, ok
}

// withTables puts the glyphs of a page in reading order, and the text of ruled tables row by row.
func withTables(glyphs []glyph, rules []rule, mirrored bool) (out []line) {
	if mirrored {
		rules = slices.Clone(rules)
		for i, r := range rules {
			rules[i].x0, rules[i].x1 = -r.x1, -r.x0
		}
	}
	for _, t := range ruledTables(rules) {
		if above, below, cells, ok := t.divide(glyphs); ok {
			out = append(out, orderPieces(pieces(above, mirrored), 0)...)
			out = append(out, t.grid(cells, mirrored).lines()...)
			glyphs = below
		}
	}
	return append(out, orderPieces(pieces(glyphs, mirrored), 0)...)
}

// grid returns the cells of a table with their text.
func (t *ruledTable) grid(glyphs [][]glyph, mirrored bool) (g grid) {
	cells := make([]*cell, t.count)
	for c, in := range glyphs {
		if drawn := pieces(in, mirrored); len(drawn) > 0 {
			whole := newCell(drawn...)
			whole.lines = orderPieces(drawn, 0)
			cells[c] = &whole
		}
	}
	for _, of := range t.cells {
		row := make([]*cell, len(of))
		for j, c := range of {
			row[j] = cells[c]
		}
		if isWide(row) {
			row = t.divideWideCell(row)
		}
		g = append(g, row)
	}
	if !g.nameColumns() && len(t.xs) > 3 {
		t.keepPlaces(g)
	}
	return g
}

// divideWideCell splits a cell that spans all columns if its text is in several columns and no
// piece crosses a column boundary where other rows have a rule.
func (t *ruledTable) divideWideCell(row []*cell) []*cell {
	parts := make([]*cell, len(row))
	for _, l := range row[0].pieces {
		j := slices.IndexFunc(t.xs[1:], func(x float64) bool { return l.x0 < x })
		if j < 0 || l.x1 > t.xs[j+1] {
			return row
		}
		if parts[j] == nil {
			c := newCell()
			parts[j] = &c
		}
		parts[j].add(l)
	}
	if len(distinctCells(parts)) < 2 {
		return row
	}
	return parts
}

// nameColumns marks the cells of the first row below the titles as column names if they are names
// in regular type, and reports whether the table has names.
func (g grid) nameColumns() bool {
	at := slices.IndexFunc(g, func(row []*cell) bool { return !isWide(row) })
	if at < 0 {
		return false
	}
	var rows [][]string
	for _, row := range g[at:] {
		if areNames(row) && len(distinctCells(row)) > 0 {
			return true
		}
		texts := make([]string, len(row))
		for j, c := range row {
			if c != nil && (j == 0 || row[j-1] != c) {
				texts[j] = c.text()
			}
		}
		rows = append(rows, texts)
	}
	if !office.FirstNames(rows) {
		return false
	}
	for _, c := range distinctCells(g[at]) {
		c.isName = true
	}
	return true
}

// keepPlaces writes a dash into each empty cell that has text to its right in the row and text in
// its column.
func (t *ruledTable) keepPlaces(g grid) {
	dashes := make([]*cell, t.count)
	for i, row := range g {
		var next *cell
		for j, c := range slices.Backward(row) {
			hasText := func(row []*cell) bool { return row[j] != nil }
			if c == nil && next != nil && len(distinctCells(row)) > 1 && slices.ContainsFunc(g, hasText) {
				of := &dashes[t.cells[i][j]]
				if *of == nil {
					l := next.lines[0]
					l.text, l.x1, l.glyphs = "–", l.x0, 0
					dash := newCell(l)
					*of = &dash
				}
				row[j] = *of
			}
			next = cmp.Or(c, next)
		}
	}
}
