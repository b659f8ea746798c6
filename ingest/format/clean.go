package format

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxMarks is the largest number of marks on a letter. No script needs more, and more are an attack
// on programs that draw or normalise the text.
const maxMarks = 16

// Clean makes text fit for [Document.Text]: valid UTF-8 in normal form C, lines ended by LF without
// trailing space, every kind of space a plain one, and no characters that are invisible to people
// but not to a model. Joiners stay between the letters of scripts that need them.
func Clean(s string) string {
	out := make([]byte, 0, len(s))
	marks := 0
	last, joiner := rune(0), rune(0) // the last character kept, and a joiner after it
	for i, r := range s {
		switch {
		case r == '\r':
			if strings.HasPrefix(s[i+1:], "\n") {
				continue
			}
			r = '\n'
		case r == '\u200c' || r == '\u200d':
			if unicode.In(last, joined...) && joiner == 0 {
				joiner = r
			}
			continue
		}
		r, ok := plainRune(r)
		if !ok {
			continue
		}
		if unicode.Is(unicode.M, r) {
			if marks++; marks > maxMarks {
				continue
			}
		} else {
			marks = 0
		}
		if r == '\n' {
			out = bytes.TrimRight(out, " \t")
		}
		if joiner != 0 && unicode.In(r, joined...) {
			out = utf8.AppendRune(out, joiner)
		}
		out = utf8.AppendRune(out, r)
		if joiner = 0; !unicode.Is(unicode.Inherited, r) { // not a vowel sign
			last = r
		}
	}
	out = bytes.TrimRight(out, " \t")
	return string(norm.NFC.Bytes(out))
}

// plainRune returns the character to write for r, if any.
func plainRune(r rune) (rune, bool) {
	switch {
	case r == '\f' || r == '\v' || r == '\u0085' || r == '\u2028' || r == '\u2029':
		return '\n', true
	case r == '\t' || r == '\n':
		return r, true
	case r < 0x80:
		return r, r >= ' ' && r != 0x7f
	case unicode.Is(unicode.Zs, r):
		return ' ', true
	}
	return r, r != utf8.RuneError && !isInvisible(r)
}

// joined are the scripts written with joiners.
var joined = []*unicode.RangeTable{unicode.Arabic, unicode.Bengali, unicode.Devanagari, unicode.Gujarati, unicode.Gurmukhi,
	unicode.Kannada, unicode.Malayalam, unicode.Oriya, unicode.Sinhala, unicode.Tamil, unicode.Telugu}

// isInvisible reports whether a character is invisible: format characters (zero width,
// bidirectional, tags), variation selectors, fillers, and code points that are not characters.
func isInvisible(r rune) bool {
	switch {
	case unicode.Is(unicode.Cc, r):
		return true
	case unicode.Is(unicode.Cf, r):
		return !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Noncharacter_Code_Point, r),
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	}
	return r == '\ufffc' || r == '\u180e'
}
