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

// A PDF gives the position of a glyph but not the reading order, and writers draw right-to-left
// text in either order. So lines with such letters are sorted by position, and then put in reading
// order by applying the Unicode bidirectional algorithm (UAX #9) in reverse.

// longestGlyph is the longest text of a glyph in bytes. A longer one is a line that another program
// has already put in order.
const longestGlyph = 32

// isRightToLeft reports whether a glyph is a letter of Hebrew, Arabic or another right-to-left
// script.
func isRightToLeft(g glyph) bool {
	return len(g.Text) <= longestGlyph && isRight(g.Text)
}

// classOf returns the bidirectional class of the first character.
func classOf(s string) bidi.Class {
	p, _ := bidi.LookupString(s)
	return p.Class()
}

// mirror flips a page horizontally if most of its letters are right-to-left, and reports whether it
// did. Columns, cells and lines then begin on the left, as on other pages.
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

// counterparts swaps opening and closing brackets and quotes.
var counterparts = strings.NewReplacer("(", ")", ")", "(", "[", "]", "]", "[", "{", "}", "}", "{", "«", "»", "»", "«")

// drawnBrackets replaces the text of brackets by the bracket that is drawn. Some writers, such as
// LibreOffice, map the glyph of a bracket to the first character that it was used for, which in
// right-to-left lines is the opposite bracket. On such a page, most brackets of one kind have words
// on the wrong side.
func drawnBrackets(glyphs []glyph) []glyph {
	out := slices.Clone(glyphs)
	byLine := slices.SortedFunc(slices.Values(glyphs), func(a, b glyph) int {
		return cmp.Or(cmp.Compare(b.Y, a.Y), cmp.Compare(a.X0, b.X0))
	})
	for _, kind := range [][]string{{"(", ")"}, {"[", "]"}, {"{", "}"}, {"«", "»"}} {
		right := 0 // brackets drawn correctly, minus swapped ones
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

// isWord returns 1 if a glyph next to a bracket is a letter or a digit, else 0. It counts quotes
// only next to right-to-left letters, since other languages disagree on the direction of quotes.
func isWord(g, bracket glyph) int {
	r, _ := utf8.DecodeRuneInString(g.Text)
	if g.Y != bracket.Y || max(g.X0, bracket.X0)-min(g.X1, bracket.X1) > 2*wordGap*g.Size ||
		!unicode.IsLetter(r) && !unicode.IsDigit(r) || len(bracket.Text) > 1 && !isRight(g.Text) {
		return 0
	}
	return 1
}

// sortByPlace sorts the leading glyphs that share a baseline by position, with marks after their
// letters, if the page is mirrored or one of them is right-to-left. It returns their number, and
// whether it sorted them.
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
				row[i].Text = "\u200c" // inside a word, drawn as a zero-width space
			}
		}
	}
	return end, true
}

// letterUnder returns the letter that a mark belongs to in a line drawn from left to right: such a
// mark is drawn before its letter, perhaps at the position of the letter before. ok is false if the
// neighbouring letters don't show such a line.
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

// sameCell reports whether b, the next glyph by position, is in the same cell as a.
func sameCell(a, b glyph) bool { return b.X0-a.X1 <= cellGap*max(a.Size, b.Size) }

// isMark reports whether a text consists of combining marks.
func isMark(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.Is(unicode.Mn, r) })
}

// inReadingOrder joins the parts of a line: the texts of its glyphs and the spaces between them.
// The parts are sorted by position, from right to left if mirrored is set.
func inReadingOrder(glyphs []string, mirrored bool) string {
	if !mirrored && !slices.ContainsFunc(glyphs, isRight) {
		return strings.Join(glyphs, "")
	}
	var parts []string
	for _, s := range glyphs {
		switch n := len(parts); {
		case n > 0 && isMark(s):
			parts[n-1] += s
		case n == 0 || s != "\u200c" || isRight(parts[n-1]): // elsewhere it joins no letters
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
		if isRight(parts[i]) { // right-to-left words, with the numbers between them
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

// isRight reports whether a text begins with a right-to-left letter.
func isRight(s string) bool {
	c := classOf(s)
	return c == bidi.R || c == bidi.AL
}

// reverseParts joins the parts of a right-to-left line, which are sorted by position from left to
// right. Left-to-right words and numbers in it keep their order.
func reverseParts(parts []string) string {
	var out strings.Builder
	arabic := false // whether the last letter is Arabic, which decides the class of the next number
	for end := len(parts); end > 0; {
		start := leftToRight(parts[:end], parts[end:], arabic)
		if start == end {
			start--
			part := parts[start]
			if isRight(part) {
				arabic = classOf(part) == bidi.AL
			}
			if len(part) <= len("«") {
				part = counterparts.Replace(part) // it was drawn mirrored
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

// leftToRight returns the start of the left-to-right words and numbers that end a part of a
// right-to-left line, or len(parts). If the bidirectional algorithm draws two texts alike, it
// chooses the text with the number after the word ("Writer 7.6", "b?x=1"), unless the word is a
// short unit ("5 MB"). rest is the text to the right of parts.
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

// isJoined reports whether the letter or digit before the gap parts[from:to] belongs to the
// left-to-right text after it. latin reports whether that text has letters.
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

// telephoneStart returns the start of a telephone number at the end of parts, if it begins with a
// plus or an area code in brackets.
func telephoneStart(parts []string) (start int, ok bool) {
	for i := len(parts) - 1; i >= max(0, len(parts)-longestCode) && strings.Contains("0123456789 -.()+", parts[i]); i-- {
		if strings.Contains("(+", parts[i]) && (i == 0 || isNeutral(parts[i-1])) && telephoneNumber.MatchString(strings.Join(parts[i:], "")) {
			start, ok = i, true
		}
	}
	return start, ok
}

// closesWords reports whether parts end with a closing bracket whose contents and the word before
// it are left-to-right.
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

// hasOpenBracket reports whether run contains the closing bracket of the first opening bracket in
// s.
func hasOpenBracket(s string, run []string) bool {
	at := strings.IndexAny(s, "([{")
	return at >= 0 && slices.Contains(run, bidi.ReverseString(s[at:at+1]))
}

// isName reports whether the words at the end of parts are more than a unit: they have four letters
// or three capitals.
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

// isNeutral reports whether a text has no direction of its own and is not a number.
func isNeutral(s string) bool {
	switch classOf(s) {
	case bidi.L, bidi.R, bidi.AL, bidi.EN, bidi.AN:
		return false
	}
	return true
}

// ownDirection returns the direction of a line: the one in which no punctuation such as a full stop
// begins the line, or else the direction of its first and last letters if they agree. A line is
// right-to-left only if at least a quarter of its letters are. The parts are sorted by position,
// from right to left if mirrored is set.
func ownDirection(parts []string, mirrored bool) (rightToLeft, ok bool) {
	var edges, stops [2]bool // of the first and last part: letters from right to left; punctuation
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
