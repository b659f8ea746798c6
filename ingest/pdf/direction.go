package pdf

import (
	"cmp"
	"math"
	"regexp"
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
	return len(g.Text) <= longestGlyph && isRight(g.Text)
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

// counterparts turns brackets and quotes round.
var counterparts = strings.NewReplacer("(", ")", ")", "(", "[", "]", "]", "[", "{", "}", "}", "{", "«", "»", "»", "«")

// drawnBrackets gives brackets the texts of what is drawn. Some writers, LibreOffice
// among them, give the glyph of a bracket the character that it had where it was
// first used, which is its counterpart in a line read from right to left. Then most
// of its kind on the page have words on the other side.
func drawnBrackets(glyphs []glyph) []glyph {
	out := slices.Clone(glyphs)
	byLine := slices.SortedFunc(slices.Values(glyphs), func(a, b glyph) int {
		return cmp.Or(cmp.Compare(b.Y, a.Y), cmp.Compare(a.X0, b.X0))
	})
	for _, kind := range [][]string{{"(", ")"}, {"[", "]"}, {"{", "}"}, {"«", "»"}} {
		right := 0 // brackets, less those that are the wrong way round
		for i := 1; i+1 < len(byLine); i++ {
			if side := slices.Index(kind, byLine[i].Text); side >= 0 {
				right += (isWord(byLine[i-1], byLine[i]) - isWord(byLine[i+1], byLine[i])) * (2*side - 1)
			}
		}
		for i, g := range out {
			if right < 0 && slices.Contains(kind, g.Text) {
				out[i].Text = counterparts.Replace(g.Text)
			}
		}
	}
	return out
}

// isWord returns 1 if a glyph next to a bracket is a letter or a digit, else 0. Only
// languages written from right to left agree on the direction of quotes.
func isWord(g, bracket glyph) int {
	r, _ := utf8.DecodeRuneInString(g.Text)
	if g.Y != bracket.Y || max(g.X0, bracket.X0)-min(g.X1, bracket.X1) > 2*wordGap*g.Size ||
		!unicode.IsLetter(r) && !unicode.IsDigit(r) || len(bracket.Text) > 1 && !isRight(g.Text) {
		return 0
	}
	return 1
}

// sortByPlace puts the glyphs that begin with the first one and have its base line in
// the order of their places, marks after their letters, if the page is mirrored or a
// letter among them is read from right to left. It returns how many there are.
func sortByPlace(glyphs []glyph, mirrored bool) (end int, found bool) {
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
	inOrder := slices.Clone(row)
	for i, g := range row {
		if !isMark(g.Text) || len(letters) == 0 {
			continue
		}
		letter, ok := letterUnder(inOrder, i, mirrored)
		if !ok {
			at, _ := slices.BinarySearchFunc(letters, middle(g), func(l glyph, x float64) int { return cmp.Compare(l.X1, x) })
			letter = letters[min(at, len(letters)-1)]
		}
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

// letterUnder returns the letter of a mark in a line that is drawn from left to right on
// the page: then a mark is drawn before its letter, perhaps in the place of the letter
// before it. ok is false if the letters before and after the mark say nothing of it.
func letterUnder(row []glyph, mark int, mirrored bool) (letter glyph, ok bool) {
	from, to := mark, mark
	for from >= 0 && isMark(row[from].Text) {
		from--
	}
	for to < len(row) && isMark(row[to].Text) {
		to++
	}
	if from < 0 || to == len(row) {
		return letter, false
	}
	a, b := row[from], row[to]
	if mirrored {
		a, b = b, a
	}
	near := 0.3 * row[to].Size
	return row[to], math.Abs(b.X0-a.X1) < near && isRightToLeft(row[to]) &&
		row[mark].X1 > row[to].X0-near && row[mark].X0 < row[to].X1+near
}

func middle(g glyph) float64 { return (g.X0 + g.X1) / 2 }

// sameCell reports whether b, the next glyph by its place, is in a's cell.
func sameCell(a, b glyph) bool { return b.X0-a.X1 <= cellGap*max(a.Size, b.Size) }

// isMark reports whether a text is marks, which are drawn on the letter before them.
func isMark(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.Is(unicode.Mn, r) })
}

// inReadingOrder joins the parts of a line, the texts of its glyphs and the spaces
// between them. They are in the order of their places, from right to left if
// mirrored is set.
func inReadingOrder(glyphs []string, mirrored bool) string {
	if !mirrored && !slices.ContainsFunc(glyphs, isRight) {
		return strings.Join(glyphs, "")
	}
	var parts []string
	for _, s := range glyphs {
		switch n := len(parts); {
		case n > 0 && isMark(s):
			parts[n-1] += s
		case n == 0 || s != "\u200c" || isRight(parts[n-1]): // else it joins no letters
			parts = append(parts, s)
		}
	}
	rightToLeft, ok := ownDirection(parts, mirrored)
	if mirrored {
		slices.Reverse(parts)
	}
	if ok && rightToLeft || !ok && mirrored {
		return reverseParts(parts)
	}
	var out strings.Builder
	for i := 0; i < len(parts); {
		end := i
		if isRight(parts[i]) { // words of such a script, with the numbers between them
			for j := i; j < len(parts) && classOf(parts[j]) != bidi.L; j++ {
				if isRight(parts[j]) {
					end = j + 1
				}
			}
			out.WriteString(reverseParts(parts[i:end]))
		} else {
			out.WriteString(parts[i])
			end++
		}
		i = end
	}
	return out.String()
}

// isRight reports whether a text begins with a letter that is read from right to left.
func isRight(s string) bool {
	c := classOf(s)
	return c == bidi.R || c == bidi.AL
}

// reverseParts joins the parts of a line that is read from right to left; they are in the
// order of their places from left to right, which words and numbers in it keep.
func reverseParts(parts []string) string {
	var out strings.Builder
	arabic := false // is the last letter, and so the next number
	for end := len(parts); end > 0; {
		start := leftToRight(parts[:end], parts[end:], arabic)
		if start == end {
			start--
			part := parts[start]
			if isRight(part) {
				arabic = classOf(part) == bidi.AL
			}
			if len(part) <= len("«") {
				part = counterparts.Replace(part) // it is drawn as its counterpart
			}
			out.WriteString(part)
		} else {
			out.WriteString(strings.Join(parts[start:end], ""))
		}
		end = start
	}
	return out.String()
}

const (
	longestGap  = 8  // parts between words or numbers
	longestCode = 80 // parts in brackets or a telephone number
)

// leftToRight returns where the words and numbers begin that end a part of a line from
// right to left and are read from left to right; its end if there are none. Of two texts
// that the bidirectional algorithm draws alike it takes the one with the number after
// the word ("Writer 7.6", "b?x=1"), unless the word is a short unit ("5 MB"). rest is what
// follows on the right.
func leftToRight(parts, rest []string, arabic bool) int {
	end := len(parts)
	if start, ok := telephoneStart(parts); ok {
		return start
	}
	start, latin := end, false
	if closesWords(parts) {
		start, latin = end-1, true
	}
	for {
		i := start
		for i > 0 && start-i < longestGap && isNeutral(parts[i-1]) {
			i--
		}
		if i == 0 || isNeutral(parts[i-1]) || isRight(parts[i-1]) {
			break
		}
		if !isJoined(parts, rest, i, start, latin, arabic) {
			break
		}
		start, latin = i-1, latin || classOf(parts[i-1]) == bidi.L
	}
	if start > 0 && start < end {
		switch before := classOf(parts[start-1]); {
		case latin && hasOpenBracket(parts[start-1], parts[start:]),
			!latin && before == bidi.ET && !arabic,
			before == bidi.ES && classOf(parts[start]) == bidi.EN && start > 1 && isBlank(parts[start-2]): // the sign of a number
			start--
		}
	}
	return start
}

// isJoined reports whether the letter or digit before a gap, parts[from:to], belongs to what
// is read from left to right after the gap; latin means that this has letters.
func isJoined(parts, rest []string, from, to int, latin, arabic bool) bool {
	class, gap := classOf(parts[from-1]), strings.Join(parts[from:to], "")
	switch {
	case from == to:
		return true
	case to == len(parts): // a sign after a number
		return !arabic && class == bidi.EN && !slices.ContainsFunc(parts[from:], func(s string) bool { return classOf(s) != bidi.ET })
	case latin:
		return !strings.ContainsAny(gap, "([{") || hasOpenBracket(gap, parts[to:]) || !hasOpenBracket(gap, rest)
	case class != bidi.L: // two numbers
		between := classOf(gap)
		return to-from == 1 && (between == bidi.CS || between == bidi.ES && !arabic)
	case strings.Contains(gap, "="):
		return true
	case isBlank(parts[from]):
		return to-from == 1 && isName(parts[:from])
	}
	return !strings.Contains(gap, " ") || strings.ContainsAny(gap[:1], ".,:;")
}

var telephoneNumber = regexp.MustCompile(`^(\+\d|\(\d+\) ?\d)[\d .()-]*\d$`)

// telephoneStart returns where a telephone number with a plus or an area code in brackets
// begins that ends a part of a line.
func telephoneStart(parts []string) (start int, ok bool) {
	for i := len(parts) - 1; i >= max(0, len(parts)-longestCode) && strings.Contains("0123456789 -.()+", parts[i]); i-- {
		if strings.Contains("(+", parts[i]) && (i == 0 || isNeutral(parts[i-1])) && telephoneNumber.MatchString(strings.Join(parts[i:], "")) {
			start, ok = i, true
		}
	}
	return start, ok
}

// closesWords reports whether a bracket ends a part of a line that was opened after other
// words and has words in it, all read from left to right.
func closesWords(parts []string) bool {
	end := len(parts) - 1
	if !strings.Contains(")]}", parts[end]) {
		return false
	}
	for i := end - 1; i > max(0, end-longestCode) && !isRight(parts[i]); i-- {
		if parts[i] == bidi.ReverseString(parts[end]) {
			before := i - 1
			if before > 0 && isBlank(parts[before]) {
				before--
			}
			return !isNeutral(parts[before]) && !isRight(parts[before]) &&
				slices.ContainsFunc(parts[i:end], func(s string) bool { return classOf(s) == bidi.L })
		}
	}
	return false
}

// hasOpenBracket reports whether a text has a bracket that is closed in a run.
func hasOpenBracket(s string, run []string) bool {
	at := strings.IndexAny(s, "([{")
	return at >= 0 && slices.Contains(run, bidi.ReverseString(s[at:at+1]))
}

// isName reports whether the words that end a part of a line are more than a unit: a word
// of four letters or of three capitals.
func isName(parts []string) bool {
	letters, capitals := 0, 0
	for i := len(parts) - 1; i >= 0 && letters < 4 && capitals < 3 && (classOf(parts[i]) == bidi.L || isNeutral(parts[i])); i-- {
		if classOf(parts[i]) == bidi.L {
			letters++
			if r, _ := utf8.DecodeRuneInString(parts[i]); unicode.IsUpper(r) {
				capitals++
			}
		}
	}
	return letters >= 4 || capitals >= 3
}

// isNeutral reports whether a text has no direction of its own and is no number.
func isNeutral(s string) bool {
	switch classOf(s) {
	case bidi.L, bidi.R, bidi.AL, bidi.EN, bidi.AN:
		return false
	}
	return true
}

// ownDirection returns the direction of a line in which no full stop or the like would
// begin it, else that of its first and last letter, unless one letter in four is enough
// for the other. The parts are in the order of their places, from right to left if mirrored is set.
func ownDirection(parts []string, mirrored bool) (rightToLeft, ok bool) {
	var edges, stops [2]bool // of the first and the last: letters from right to left; stops
	count, right, begun := 0, 0, false
	for _, s := range parts {
		if isBlank(s) {
			continue
		}
		stops[1] = len(s) < 3 && strings.Contains(".,:;!?\u060c\u061b\u061f", s)
		if !begun {
			stops[0], begun = stops[1], true
		}
		turned := isRight(s)
		if !turned && classOf(s) != bidi.L {
			continue
		}
		if count == 0 {
			edges[0] = turned
		}
		edges[1] = turned
		count++
		if turned {
			right++
		}
	}
	if stops[0] != stops[1] {
		return stops[0] != mirrored, true
	}
	rightToLeft = 4*right >= count
	return rightToLeft, count > 0 && edges[0] == edges[1] && edges[0] == rightToLeft
}
