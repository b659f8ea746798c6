package pdf

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A line is a line of text of one column or of one table cell.
type line struct {
	text   string
	x0, x1 float64
	y      float64
	size   float64
	bold   bool
	row    bool // cells of a table, joined
	turned bool // its direction differs from most of the page
	cell   bool // begins another table cell, however close
	glyphs int
	drawn  int // position in the drawing order
	last   int // drawing position of the last joined piece
}

// Distances as multiples of the font size.
const (
	wordGap   = 0.08 // least space between words
	leastGap  = 0.02 // the same, if the letters of words touch
	nameGap   = 0.45 // text after such a gap may be another column name
	pieceGap  = 0.6  // text after such a gap may be another cell
	cellGap   = 1.5  // least gap between columns and between cells
	sameLine  = 0.35 // largest difference of baselines within a line
	duplicate = 0.12 // largest offset of a glyph repeated as a shadow or for fake bold
)

// lines groups the glyphs of a page into lines in reading order. bare is the same without possible
// line numbers, or nil if there are no such numbers.
func lines(glyphs []glyph, rules []rule) (out, bare []line) {
	var turns [4][]glyph
	for _, g := range glyphs {
		turns[g.Turn] = append(turns[g.Turn], g)
	}
	order := []int{0, 1, 2, 3}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(turns[b]), len(turns[a])) })
	for _, t := range order {
		placed, mirrored := mirror(turns[t])
		if t == order[0] {
			if rest, ok := withoutNumbers(pieces(placed, mirrored)); ok {
				bare = orderPieces(rest, 0)
			}
		}
		framed := make([]rule, len(rules))
		for i, r := range rules {
			framed[i] = r.turnedTo(t)
		}
		found := withTables(placed, framed, mirrored)
		for i := range found {
			found[i].turned = t != order[0]
		}
		if out = append(out, found...); bare != nil && t != order[0] {
			bare = append(bare, found...)
		}
	}
	return out, bare
}

// withoutNumbers returns the pieces without the line numbers in one margin: at least six numbers
// below each other, with constant increments, next to running text, and alone in that margin.
func withoutNumbers(in []line) (rest []line, ok bool) {
	for _, side := range []float64{1, -1} {
		edge := func(l line) float64 { return min(side*l.x0, side*l.x1) } // the outer edge
		margin := math.Inf(1)
		for _, l := range in {
			if _, err := strconv.Atoi(l.text); err == nil {
				margin = min(margin, edge(l))
			}
		}
		var numbers []int
		var top, bottom line
		inner, free, beside, rest := margin, true, 0, []line(nil)
		sortByTop(in)
		for _, l := range in {
			n, err := strconv.Atoi(l.text)
			inside := edge(l) < margin+2*l.size
			if k := len(numbers); err != nil || !inside || k > 1 && n-numbers[k-1] != numbers[1]-numbers[0] {
				rest = append(rest, l)
				continue
			}
			if numbers = append(numbers, n); len(numbers) == 1 {
				top = l
			}
			bottom, inner = l, max(inner, side*l.x0, side*l.x1)
		}
		for _, l := range rest {
			if l.y < top.y+2.5*top.size && l.y > bottom.y-0.5*bottom.size {
				free, beside = free && edge(l) > inner, beside+l.glyphs
			}
		}
		if len(numbers) >= 6 && numbers[1] > numbers[0] && free && beside >= 40*len(numbers) {
			return rest, true
		}
	}
	return nil, false
}

// pieces joins glyphs drawn one after the other on a baseline, with spaces at gaps.
func pieces(glyphs []glyph, mirrored bool) []line {
	var out []line
	rowEnd := make([]int, len(glyphs)) // end of the glyph's line if sorted by position; else 0
	for start := 0; start < len(glyphs); {
		n, found := sortByPlace(glyphs[start:], mirrored)
		for i := range n {
			if found {
				rowEnd[start+i] = start + n
			}
		}
		start += n
	}
	cell := cellStarts(glyphs, rowEnd)
	for start := 0; start < len(glyphs); {
		end, limit, next := start+1, len(glyphs), isNextGlyph
		if rowEnd[start] > 0 {
			limit, next = rowEnd[start], sameCell
		}
		for end < limit && next(glyphs[end-1], glyphs[end]) && !cell[end] {
			end++
		}
		if l, ok := piece(glyphs[start:end], mirrored); ok {
			l.cell = cell[start]
			out = append(out, l)
		}
		start = end
	}
	out = mendPieces(out)
	for i := range out {
		out[i].drawn, out[i].last = i, i
	}
	return out
}

// cellStarts finds the glyphs that begin further cells of narrow tables. If a page draws spaces and
// rarely moves the pen instead, two texts on a line without a space between them are cells if a
// neighbouring line has a gap at the same place.
func cellStarts(glyphs []glyph, placed []int) map[int]bool {
	const farthest = 3 // lines between two lines with gaps
	found := make(map[int]bool)
	spaces, age := 0, 0
	var narrow []int // gaps
	var last []int   // where further cells of the line before begin
	for start := 0; start < len(glyphs); {
		var starts []int
		from, end := start, start+1 // from is the start of the last cell
		for ; end < len(glyphs) && math.Abs(glyphs[end].Y-glyphs[start].Y) < 0.1*glyphs[start].Size; end++ {
			a, b := glyphs[end-1], glyphs[end]
			gap := b.X0 - a.X1
			if placed[end] == 0 && b.Begins {
				gap = math.Abs(gap)
			}
			if (b.Begins || placed[end] > 0) && !isBlank(a.Text) && !isBlank(b.Text) && gap > 2*wordGap*b.Size &&
				!(end < from+4 && isListMarker(a.Text)) {
				starts, from = append(starts, end), end
			}
		}
		for _, g := range glyphs[start:end] {
			if isBlank(g.Text) {
				spaces++
			}
		}
		for _, i := range starts {
			if glyphs[i].X0-glyphs[i-1].X1 < cellGap*glyphs[i].Size { // otherwise it is a cell anyway
				narrow = append(narrow, i)
			}
		}
		markShared(found, glyphs, last, starts)
		if age++; len(starts) > 0 || age > farthest {
			last, age = starts, 0
		}
		start = end
	}
	alone := slices.DeleteFunc(slices.Clone(narrow), func(i int) bool { return found[i] })
	if spaces < 10*len(alone) || 8*spaces < len(narrow) {
		return nil
	}
	return found
}

// markShared adds the cells of two lines that begin after gaps at the same place.
func markShared(found map[int]bool, glyphs []glyph, a, b []int) {
	for len(a) > 0 && len(b) > 0 {
		i, j := a[0], b[0]
		if max(glyphs[i-1].X1, glyphs[j-1].X1) <= min(glyphs[i].X0, glyphs[j].X0) {
			found[i], found[j] = true, true
		}
		if glyphs[i].X0 < glyphs[j].X0 {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
}

// isNextGlyph reports whether b was drawn as the next glyph of a's line.
func isNextGlyph(a, b glyph) bool {
	size := max(a.Size, b.Size)
	gap := b.X0 - a.X1
	if b.Begins && gap > nameGap*size {
		return false // possibly the start of a cell
	}
	return math.Abs(a.Y-b.Y) < sameLine*size && gap < cellGap*size && gap > -0.8*size && b.X0 > a.X0-duplicate*size
}

// leastSpace returns the smallest gap between two words, as a multiple of the font size.
// Letter-spaced text has gaps inside words too. If the pen is moved only between words, smaller
// gaps count.
func leastSpace(glyphs []glyph) float64 {
	var gaps []float64
	inside, between, begun := 0.0, wordGap, 0
	for i := 1; i < len(glyphs); i++ {
		if isBlank(glyphs[i].Text) || isBlank(glyphs[i-1].Text) {
			continue
		}
		gap := (glyphs[i].X0 - glyphs[i-1].X1) / glyphs[i].Size
		if gaps = append(gaps, gap); glyphs[i].Begins {
			between, begun = min(between, gap), begun+1
		} else {
			inside = max(inside, math.Abs(gap))
		}
	}
	if begun > 2 && 2*begun < len(gaps) && inside < 0.01 && between > leastGap {
		return leastGap
	}
	if slices.Sort(gaps); len(gaps) > 3 && gaps[len(gaps)/2] > 0.05 {
		return gaps[len(gaps)/2] + wordGap
	}
	return wordGap
}

func piece(glyphs []glyph, mirrored bool) (line, bool) {
	l := line{x0: glyphs[0].X0, x1: glyphs[0].X1}
	threshold := leastSpace(glyphs)
	var parts []string
	bold := 0
	sizes := map[float64]int{}
	var last glyph
	for i, g := range glyphs {
		text := g.Text
		if i > 0 {
			if g.Text == last.Text && math.Abs(g.X0-last.X0) < duplicate*g.Size {
				continue
			}
			if (g.X0-last.X1)/g.Size > threshold && !strings.HasSuffix(parts[len(parts)-1], " ") && !areIdeographs(last.Text, text) {
				parts = append(parts, " ")
			}
		}
		parts = append(parts, text)
		last = g
		if isBlank(text) {
			continue
		}
		n := utf8.RuneCountInString(text)
		l.x0, l.x1 = min(l.x0, g.X0), max(l.x1, g.X1)
		l.glyphs += n
		sizes[math.Round(g.Size*4)/4] += n
		if g.Bold {
			bold += n
		}
	}
	most := 0
	for size, n := range sizes {
		if n > most || n == most && size > l.size {
			l.size, most = size, n
		}
	}
	for _, g := range glyphs {
		if !isBlank(g.Text) && math.Abs(g.Size-l.size) < 0.25 {
			l.y = g.Y
			break
		}
	}
	l.bold = bold*7 > l.glyphs*6 // a bold label before its value is no heading
	l.text = strings.Join(strings.Fields(norm.NFKC.String(inReadingOrder(parts, mirrored))), " ")
	return l, l.text != "" && l.size > 0
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// areIdeographs reports whether two characters are written without a space between them.
func areIdeographs(a, b string) bool {
	r, _ := utf8.DecodeLastRuneInString(a)
	s, _ := utf8.DecodeRuneInString(b)
	return isIdeograph(r) && isIdeograph(s)
}

func isIdeograph(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0x3000 && r < 0x3100 || r >= 0xff00 && r < 0xffa0
}

// mendPieces joins neighbouring pieces of a word or line that were not drawn in order:
// superscripts, drop capitals, split text.
func mendPieces(in []line) []line {
	var out []line
	for _, l := range in {
		if n := len(out); n > 0 {
			p := &out[n-1]
			size := max(p.size, l.size)
			gap := l.x0 - p.x1
			raised := l.size < p.size*0.85 || p.size < l.size*0.85
			goesOn := math.Abs(l.y-p.y) < 0.1*size // after a superscript
			if math.Abs(l.y-p.y) < 0.6*size && (raised || goesOn) && gap > -0.3*size && gap < 0.5*size && !l.cell {
				p.join(l, gap > wordGap*size)
				continue
			}
		}
		out = append(out, l)
	}
	return out
}

func (l *line) join(next line, space bool) {
	if space && !areIdeographs(l.text, next.text) {
		l.text += " "
	}
	l.text += next.text
	l.x0, l.x1 = min(l.x0, next.x0), max(l.x1, next.x1)
	if next.glyphs > l.glyphs {
		l.size, l.y = next.size, next.y
	}
	l.bold = l.bold && next.bold
	l.glyphs += next.glyphs
	l.last = next.last
}

// maxColumns limits how often a page is split into columns.
const maxColumns = 4

// orderPieces sorts pieces into reading order. Pieces drawn side by side, such as columns of text
// or cells of a row, are read one after the other.
func orderPieces(in []line, depth int) []line {
	var out, rest []line
	flush := func() {
		out = append(out, orderByPlace(rest, depth)...)
		rest = nil
	}
	bands := joinLabels(bandsOf(cellsOf(in), 0))
	for len(bands) > 0 {
		g, n := gridOf(bands)
		switch {
		case g != nil:
			flush()
			out = append(out, g.lines()...)
		case n == 1 && depth < maxColumns && (bands[0].isText() || bands[0].isTables() || bands[0].isForm()):
			flush()
			for _, column := range bands[0] {
				lines := orderPieces(band{column}.pieces(), depth+1)
				if !bands[0].isText() {
					lines = labelRows(lines)
				}
				out = append(out, lines...)
			}
		default:
			for _, b := range bands[:n] {
				rest = append(rest, b.pieces()...)
			}
		}
		bands = bands[n:]
	}
	flush()
	return out
}

// orderByPlace sorts pieces by position if their drawing order gives no columns: columns one after
// the other, each from top to bottom, with text that spans columns in between.
func orderByPlace(in []line, depth int) []line {
	sortByTop(in)
	gutter, ok := gutterOf(in)
	if !ok || depth >= maxColumns {
		return replaceGrids(lineRows(in))
	}
	var out, left, right []line
	flush := func() {
		out = append(out, orderPieces(left, depth+1)...)
		out = append(out, orderPieces(right, depth+1)...)
		left, right = nil, nil
	}
	for _, l := range in {
		switch {
		case l.x1 <= gutter:
			left = append(left, l)
		case l.x0 >= gutter:
			right = append(right, l)
		default:
			flush()
			out = append(out, l)
		}
	}
	flush()
	return out
}

func sortByTop(in []line) {
	slices.SortStableFunc(in, func(a, b line) int {
		return cmp.Or(cmp.Compare(b.y, a.y), cmp.Compare(a.x0, b.x0))
	})
}

// gutterOf finds the gap between two columns of running text: hardly any piece crosses it, and some
// lines on both sides fill their column.
func gutterOf(in []line) (float64, bool) {
	if len(in) < 8 {
		return 0, false
	}
	left, right := math.Inf(1), math.Inf(-1)
	for _, l := range in {
		left, right = min(left, l.x0), max(right, l.x1)
	}
	width := right - left
	const steps = 200
	var crossing [steps + 1]int
	for _, l := range in {
		from := int(math.Ceil((l.x0 - left) / width * steps))
		to := int(math.Floor((l.x1 - left) / width * steps))
		for i := max(from, 0); i <= min(to, steps); i++ {
			crossing[i]++
		}
	}
	best, at := len(in), -1
	for i := steps / 5; i <= steps*4/5; i++ {
		// Use the middle of the emptiest stretch.
		if crossing[i] < best {
			best, at = crossing[i], i
			end := i
			for end < steps*4/5 && crossing[end+1] == best {
				end++
			}
			at = (i + end) / 2
		}
	}
	if at < 0 || best*4 > len(in) {
		return 0, false
	}
	gutter := left + width*float64(at)/steps
	onLeft, onRight := isFilled(in, left, gutter, false), isFilled(in, gutter, right, true)
	return gutter, onLeft && (onRight || !isAlongside(in, gutter))
}

// isAlongside reports whether most lines on the sparser side of a gutter are at the height of a
// line on the other side, as in a table.
func isAlongside(in []line, gutter float64) bool {
	var sides [2][]float64 // heights, from top to bottom
	for _, l := range in {
		if l.x1 <= gutter {
			sides[0] = append(sides[0], l.y)
		} else if l.x0 >= gutter {
			sides[1] = append(sides[1], l.y)
		}
	}
	few, many := sides[0], sides[1]
	if len(few) > len(many) {
		few, many = many, few
	}
	same := 0
	for _, y := range few {
		if slices.ContainsFunc(many, func(other float64) bool { return math.Abs(y-other) < 1 }) {
			same++
		}
	}
	return 2*same > len(few)
}

// isFilled reports whether most text on one side of a gutter is in lines longer than half of that
// side's width.
func isFilled(in []line, from, to float64, right bool) bool {
	all, long, lines := 0, 0, 0
	for _, l := range in {
		if right && l.x0 < from || !right && l.x1 > to {
			continue
		}
		all += l.glyphs
		if l.x1-l.x0 > 0.55*(to-from) && l.glyphs >= 15 {
			long += l.glyphs
			lines++
		}
	}
	return lines >= 4 && long*5 >= all*3
}
