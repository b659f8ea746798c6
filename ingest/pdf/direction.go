package pdf

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
)

// A PDF file says where a glyph is drawn, not in which order it is read, and
// writers draw text from right to left in either order. So lines with such
// letters are put in the order of their places, and from that in the order of
// reading by the Unicode bidirectional algorithm (UAX #9), backwards.

// longestGlyph is the length in bytes above which the text of a glyph is a line
// that another program has put in order.
const longestGlyph = 32

// isRightToLeft reports whether a glyph is a letter of Hebrew, Arabic or a script like them.
func isRightToLeft(g glyph) bool {
	if len(g.Text) > longestGlyph {
		return false
	}
	class := classOf(g.Text)
	return class == bidi.R || class == bidi.AL
}

// classOf returns the class of the first character.
func classOf(s string) bidi.Class {
	p, _ := bidi.LookupString(s)
	return p.Class()
}

// mirror turns a page round, from left to right, if most of its letters are read
// from right to left, and reports whether it did: columns, cells and lines then
// begin where those of other pages do.
func mirror(glyphs []glyph) ([]glyph, bool) {
	left, right := 0, 0
	for _, g := range glyphs {
		switch {
		case isRightToLeft(g):
			right++
		case len(g.Text) <= longestGlyph && classOf(g.Text) == bidi.L:
			left++
		}
	}
	if right == 0 {
		return glyphs, false
	}
	glyphs = drawnBrackets(glyphs)
	if right <= left {
		return glyphs, false
	}
	out := slices.Clone(glyphs)
	for i, g := range out {
		out[i].X0, out[i].X1 = -g.X1, -g.X0
	}
	return out, true
}

// drawnBrackets gives brackets the texts of what is drawn. Some writers, LibreOffice
// among them, give the glyph of a bracket the character that it had where it was
// first used, which is its counterpart in a line read from right to left. Then most
// pairs on the page are the wrong way round, from left to right.
func drawnBrackets(glyphs []glyph) []glyph {
	var places []int
	for i, g := range glyphs {
		if len(g.Text) == 1 && strings.Contains("()[]{}", g.Text) {
			places = append(places, i)
		}
	}
	slices.SortStableFunc(places, func(a, b int) int {
		return cmp.Or(cmp.Compare(glyphs[b].Y, glyphs[a].Y), cmp.Compare(glyphs[a].X0, glyphs[b].X0))
	})
	pairs := 0
	for i := 0; i+1 < len(places); i++ {
		a, b := glyphs[places[i]], glyphs[places[i+1]]
		if a.Y != b.Y || a.Text != bidi.ReverseString(b.Text) {
			continue
		}
		if strings.Contains("([{", a.Text) {
			pairs++
		} else {
			pairs--
		}
		i++ // each bracket is of one pair
	}
	if pairs >= 0 {
		return glyphs
	}
	out := slices.Clone(glyphs)
	for _, i := range places {
		out[i].Text = bidi.ReverseString(out[i].Text)
	}
	return out
}

// byPlace puts the glyphs that begin with the first one and have its base line in
// the order of their places, marks after their letters, if the page is mirrored or a
// letter among them is read from right to left. It returns how many there are.
func byPlace(glyphs []glyph, mirrored bool) (end int, found bool) {
	found = mirrored
	for end < len(glyphs) && math.Abs(glyphs[end].Y-glyphs[0].Y) < sameLine*max(glyphs[end].Size, glyphs[0].Size) {
		found = found || isRightToLeft(glyphs[end])
		end++
	}
	if !found {
		return end, false
	}
	row := glyphs[:end]
	var letters []glyph
	for _, g := range row {
		if !isMark(g.Text) {
			letters = append(letters, g)
		}
	}
	byMiddle := func(a, b glyph) int { return cmp.Compare(middle(a), middle(b)) }
	slices.SortStableFunc(letters, byMiddle)
	for i, g := range row {
		if !isMark(g.Text) || len(letters) == 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(letters, middle(g), func(l glyph, x float64) int { return cmp.Compare(l.X1, x) })
		letter := letters[min(at, len(letters)-1)]
		row[i].X0, row[i].X1 = letter.X0, letter.X1
	}
	slices.SortStableFunc(row, func(a, b glyph) int {
		switch order := byMiddle(a, b); {
		case order != 0 || isMark(a.Text) == isMark(b.Text):
			return order
		case isMark(a.Text):
			return 1
		}
		return -1
	})
	for i, g := range row {
		for _, next := range row[max(0, i-1):min(i+2, end)] {
			if g.Text == " " && next.Text != " " && next.X0 < g.X0+0.1 && next.X1 > g.X1-0.1 {
				row[i].Text = "\u200c" // within a word: drawn as a space of no width
			}
		}
	}
	return end, true
}

func middle(g glyph) float64 { return (g.X0 + g.X1) / 2 }

// sameCell reports whether b, the next glyph by its place, is in a's cell.
func sameCell(a, b glyph) bool { return b.X0-a.X1 <= cellGap*max(a.Size, b.Size) }

// isMark reports whether a text is drawn on the letter before it.
func isMark(s string) bool {
	r, size := utf8.DecodeRuneInString(s)
	return size > 0 && size == len(s) && unicode.Is(unicode.Mn, r)
}

// inReadingOrder joins the parts of a line, the texts of its glyphs and the spaces
// between them. They are in the order of their places, from right to left if
// mirrored is set.
func inReadingOrder(parts []string, mirrored bool) string {
	if !slices.ContainsFunc(parts, func(s string) bool { c := classOf(s); return c == bidi.R || c == bidi.AL }) && !mirrored {
		return strings.Join(parts, "")
	}
	if rightToLeft, ok := ownDirection(parts, mirrored); ok && rightToLeft != mirrored {
		parts, mirrored = slices.Clone(parts), rightToLeft
		slices.Reverse(parts)
	}
	var out strings.Builder
	write := func(parts []string, backwards, swap bool) {
		for i := range parts {
			part := parts[i]
			if backwards {
				part = parts[len(parts)-1-i]
			}
			if swap && len(part) == 1 {
				part = bidi.ReverseString(part) // a bracket is drawn as its counterpart
			}
			out.WriteString(part)
		}
	}
	runs := directions(parts, mirrored)
	if mirrored {
		runs = withNumbers(runs)
	}
	for i := 0; i < len(runs); i++ {
		switch r := runs[i]; {
		case mirrored:
			write(r.parts, !r.rightToLeft, r.rightToLeft)
		case !r.rightToLeft:
			write(r.parts, false, false)
		default: // words of such a script among others, with the numbers between them
			last := i
			for last+2 < len(runs) && !slices.ContainsFunc(runs[last+1].parts, func(s string) bool { return classOf(s) == bidi.L }) {
				last += 2
			}
			for _, r := range slices.Backward(runs[i : last+1]) {
				write(r.parts, r.rightToLeft, r.rightToLeft)
			}
			i = last
		}
	}
	return out.String()
}

// withNumbers joins a number and the Latin words after it in a line from right to
// left, where the number is drawn on the right of the words. It was written after
// them ("Writer 7.6", "A-12"), unless they are a short unit ("5 MB").
func withNumbers(runs []run) []run {
	for i := 0; i+2 < len(runs); i++ {
		number, between, words := runs[i], runs[i+1], runs[i+2]
		letters := 0
		for _, s := range words.parts {
			if classOf(s) == bidi.L {
				letters++
			}
		}
		isLatin := func(s string) bool { return classOf(s) == bidi.L }
		if number.rightToLeft || words.rightToLeft || len(between.parts) != 1 || slices.ContainsFunc(number.parts, isLatin) {
			continue
		}
		if gap := between.parts[0]; letters > 0 && (gap == "-" || gap == " " && letters >= longestUnit) {
			joined := slices.Concat(number.parts, between.parts, words.parts)
			runs = slices.Concat(runs[:i], []run{{joined, false}}, runs[i+3:])
		}
	}
	return runs
}

// longestUnit is the number of letters from which words next to a number are no unit.
const longestUnit = 4

// ownDirection returns the direction of a line in which no full stop or the like would
// begin it, else that of most of its letters if it begins and ends with such. The parts
// are in the order of their places, from right to left if mirrored is set.
func ownDirection(parts []string, mirrored bool) (rightToLeft, ok bool) {
	var edges, stops [2]bool // of the first and the last: letters from right to left; stops
	count, right, begun := 0, 0, false
	for _, s := range parts {
		if blank(s) {
			continue
		}
		stops[1] = len(s) < 3 && strings.Contains(".,:;!?\u060c\u061b\u061f", s)
		if !begun {
			stops[0], begun = stops[1], true
		}
		c := classOf(s)
		isRight := c == bidi.R || c == bidi.AL
		if !isRight && c != bidi.L {
			continue
		}
		if count == 0 {
			edges[0] = isRight
		}
		edges[1] = isRight
		count++
		if isRight {
			right++
		}
	}
	if stops[0] != stops[1] {
		return stops[0] != mirrored, true
	}
	rightToLeft = 2*right > count
	return rightToLeft, count > 0 && edges[0] == edges[1] && edges[0] == rightToLeft
}

// A run is a part of a line with one direction.
type run struct {
	parts       []string
	rightToLeft bool
}

// directions divides a line into runs of alternating directions.
func directions(parts []string, rightToLeft bool) (runs []run) {
	var text strings.Builder
	options := []bidi.Option{bidi.DefaultDirection(bidi.RightToLeft)}
	marks := 0
	if !rightToLeft {
		text.WriteRune('\u200e') // otherwise the first letter would decide
		options, marks = nil, 1
	}
	for _, part := range parts {
		r, _ := utf8.DecodeRuneInString(part)
		if classOf(part) == bidi.B {
			r = ' '
		}
		text.WriteRune(r)
	}
	var p bidi.Paragraph
	p.SetString(text.String(), options...)
	order, err := p.Order()
	if err != nil || len(parts) == 0 {
		return []run{{parts, false}}
	}
	for i := range order.NumRuns() {
		r := order.Run(i)
		from, to := r.Pos()
		runs = append(runs, run{parts[max(from-marks, 0) : to+1-marks], r.Direction() == bidi.RightToLeft})
	}
	return runs
}
