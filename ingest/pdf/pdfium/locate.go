package pdfium

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// A span is a range of characters of a page.
type span struct{ from, to int }

// shortest is the smallest number of letters in a part of a quote.
const shortest = 12

// maxPlaces limits the positions tried for a part of a quote.
const maxPlaces = 64

// locate finds a quote among the characters of a page. It compares only letters and digits, so
// hyphens, spaces, ligatures and the signs between table cells don't matter. If the page does not
// have the whole quote, locate finds parts of it.
func locate(chars []rune, quote string) []span {
	page, at := lettersAndDigits(chars)
	want, _ := lettersAndDigits([]rune(quote))
	if len(want) == 0 {
		return nil
	}
	if i := indexRunes(page, want); i >= 0 {
		return []span{{at[i], at[i+len(want)-1] + 1}}
	}
	if len(want) < shortest {
		return nil
	}
	var out []span
	last := 0 // end of the previous part
	for q := 0; q+shortest <= len(want); {
		from, length := -1, 0
		for p, tried := 0, 0; tried < maxPlaces; p, tried = p+1, tried+1 {
			i := indexRunes(page[p:], want[q:q+shortest])
			if i < 0 {
				break
			}
			p += i
			n := shortest
			for q+n < len(want) && p+n < len(page) && want[q+n] == page[p+n] {
				n++
			}
			// Among equals, prefer the first after the previous part.
			if n > length || n == length && from < last && p >= last {
				from, length = p, n
			}
		}
		if from < 0 {
			q++
			continue
		}
		out = append(out, span{at[from], at[from+length-1] + 1})
		q, last = q+length, from+length
	}
	return out
}

// lettersAndDigits returns the letters and digits of a text in lower case, with their indexes.
func lettersAndDigits(chars []rune) (out []rune, at []int) {
	for i, r := range chars {
		if r < 0x80 {
			if r = unicode.ToLower(r); r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				out, at = append(out, r), append(at, i)
			}
			continue
		}
		if !unicode.IsPrint(r) {
			continue
		}
		for _, c := range strings.ToLower(norm.NFKC.String(string(r))) {
			if unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c) {
				out, at = append(out, c), append(at, i)
			}
		}
	}
	return out, at
}

// indexRunes returns the index of the first occurrence of what in in, or -1.
func indexRunes(in, what []rune) int {
	for i := 0; i+len(what) <= len(in); i++ {
		if in[i] == what[0] && slices.Equal(in[i:i+len(what)], what) {
			return i
		}
	}
	return -1
}
