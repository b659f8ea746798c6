package pdf

import (
	"cmp"
	"math"
	"slices"
)

// A block is the lines of one cell: the distance between them is a paragraph's.
type block struct {
	lines       []line
	top, bottom float64
	value       bool // right of the labels
}

// A band is a row of a table of labels and values.
type band struct {
	blocks      []block
	top, bottom float64
}

// labelled finds a table of two columns, of labels and values, whose labels are not
// on the first line of their values: they are centred in their rows. It returns
// what is above it, its rows and what is below. The pieces are ordered from top to
// bottom.
func labelled(in []line) (above, table, below []line) {
	edge, ok := valueEdge(in)
	if !ok {
		return in, nil, nil
	}
	var labels, values []line
	for _, l := range in {
		switch {
		case l.x1 < edge-pieceGap*l.size/2:
			labels = append(labels, l)
		case l.x0 > edge-pieceGap*l.size:
			values = append(values, l)
		}
	}
	if moreColumns(labels) || moreColumns(values) {
		return in, nil, nil
	}
	bands := bandsOf(append(blocksOf(labels, false), blocksOf(values, true)...))
	from, to, centred := pairs(bands)
	if to-from < 3 || !centred {
		return in, nil, nil
	}
	for _, b := range bands[from:to] {
		label, value := b.blocks[0], b.blocks[1]
		if label.value {
			label, value = value, label
		}
		row := cellOf(label.lines)
		v := cellOf(value.lines)
		row.text += " | " + v.text
		row.row, row.bold, row.x1, row.glyphs = true, false, max(row.x1, v.x1), row.glyphs+v.glyphs
		table = append(table, row)
	}
	top, bottom := bands[from].top, bands[to-1].bottom
	for _, l := range in {
		switch {
		case l.y > top:
			above = append(above, l)
		case l.y < bottom:
			below = append(below, l)
		case l.x1 >= edge-pieceGap*l.size/2 && l.x0 <= edge-pieceGap*l.size:
			return in, nil, nil // something crosses the columns
		}
	}
	return above, table, below
}

// valueEdge returns where most lines begin that do not begin at the left margin.
func valueEdge(in []line) (edge float64, ok bool) {
	if len(in) < 6 {
		return 0, false
	}
	left := math.Inf(1)
	for _, l := range in {
		left = min(left, l.x0)
	}
	starts := map[float64]int{}
	most := 0
	for _, l := range in {
		if x := math.Round(l.x0); x > left+4*l.size {
			starts[x]++
			if n := starts[x]; n > most || n == most && x < edge {
				edge, most = x, n
			}
		}
	}
	return edge, most >= 3
}

// moreColumns reports whether pieces of a column are far apart on one line.
func moreColumns(column []line) bool {
	for i := 1; i < len(column); i++ {
		a, b := column[i-1], column[i]
		size := max(a.size, b.size)
		if math.Abs(a.y-b.y) < sameLine*size && b.x0-a.x1 > cellGap*size {
			return true
		}
	}
	return false
}

// blocksOf divides the lines of a column where they are further apart than the
// nearest ones.
func blocksOf(column []line, value bool) (out []block) {
	var whole []line // pieces of the same height joined
	for _, l := range column {
		if n := len(whole); n > 0 && math.Abs(whole[n-1].y-l.y) < sameLine*max(whole[n-1].size, l.size) {
			whole[n-1].join(l, true)
			continue
		}
		whole = append(whole, l)
	}
	least := math.Inf(1)
	for i := 1; i < len(whole); i++ {
		least = min(least, (whole[i-1].y-whole[i].y)/whole[i].size)
	}
	for i, l := range whole {
		if i == 0 || whole[i-1].y-l.y > min(least*1.2, 1.7)*l.size {
			out = append(out, block{top: l.y + 0.8*l.size, value: value})
		}
		b := &out[len(out)-1]
		b.lines = append(b.lines, l)
		b.bottom = l.y - 0.2*l.size
	}
	return out
}

// bandsOf joins blocks of the same height.
func bandsOf(blocks []block) (out []band) {
	slices.SortStableFunc(blocks, func(a, b block) int { return cmp.Compare(b.top, a.top) })
	for _, b := range blocks {
		if n := len(out); n > 0 && b.top > out[n-1].bottom {
			out[n-1].blocks = append(out[n-1].blocks, b)
			out[n-1].bottom = min(out[n-1].bottom, b.bottom)
			continue
		}
		out = append(out, band{[]block{b}, b.top, b.bottom})
	}
	return out
}

// pairs returns the longest series of bands with a label and a value each, and
// whether a label in it is centred.
func pairs(bands []band) (from, to int, centred bool) {
	for start := 0; start < len(bands); start++ {
		end, any := start, false
		for end < len(bands) && len(bands[end].blocks) == 2 && bands[end].blocks[0].value != bands[end].blocks[1].value {
			a, b := bands[end].blocks[0], bands[end].blocks[1]
			any = any || math.Abs(a.lines[0].y-b.lines[0].y) > sameLine*a.lines[0].size
			end++
		}
		if end-start > to-from {
			from, to, centred = start, end, any
		}
		start = max(start, end-1)
	}
	return from, to, centred
}

// cellOf joins the lines of a cell.
func cellOf(lines []line) line {
	cell := lines[0]
	for _, l := range lines[1:] {
		cell.append(l)
	}
	return cell
}
