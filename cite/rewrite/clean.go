package rewrite

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
)

// A decoder makes valid UTF-8 of text that comes in pieces and removes invisible characters
// with an effect: those that control a terminal, change the reading direction or hide words.
//
// Tab and line feed stay; vertical tab, form feed, next line and the line and paragraph
// separators become a space. A single joiner or variation selector stays after a character that
// can combine with it in its script or emoji.
type decoder struct {
	held []byte // an incomplete sequence
	last rune   // the last character kept
}

// decode returns the next piece without those characters. It holds back an incomplete sequence
// at the end.
func (d *decoder) decode(piece []byte) []byte {
	b := append(d.held, piece...)
	n := len(b) - marker.Partial(b)
	d.held = slices.Clone(b[n:])
	return d.clean(b[:n])
}

// flush returns the bytes held back.
func (d *decoder) flush() []byte {
	b := d.held
	d.held = nil
	return d.clean(b)
}

// Visible returns text, for display, without invisible characters with an effect: those that
// control a terminal, change the reading direction or hide words.
func Visible(text []byte) []byte {
	var d decoder
	return d.clean(text)
}

// VisibleName returns a file name with escapes for the characters that [Visible] removes or
// turns into spaces: a line feed becomes a backslash and an "n".
func VisibleName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) || isHidden(r) && r != 0x200C && r != 0x200D {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (d *decoder) clean(b []byte) []byte {
	return bytes.Map(func(r rune) rune {
		r = d.visibleRune(r)
		if r >= 0 {
			d.last = r
		}
		return r
	}, b)
}

// visibleRune returns the character to show for r, or -1 to remove it.
func (d *decoder) visibleRune(r rune) rune {
	switch {
	case ' ' <= r && r < 0x7F, r == '\n', r == '\t', 0xA0 <= r && r < 0x0300 && r != 0xAD, 0x3000 <= r && r < 0xFB00 && r != 0x3164:
		return r
	case r == '\v', r == '\f', r == 0x85, r == 0x2028, r == 0x2029:
		return ' '
	case r < 0xA0: // the other control characters, including escape and return
		return -1
	case r == 0x200C, r == 0x200D:
		if d.last < utf8.RuneSelf || d.last == 0x200C || d.last == 0x200D || isBracket(d.last) {
			return -1
		}
		return r
	case 0xFE00 <= r && r <= 0xFE0F, 0x180B <= r && r <= 0x180D, r == 0x180F:
		if !takesVariation(d.last) {
			return -1
		}
		return r
	case 0xE0100 <= r && r <= 0xE01EF:
		if !unicode.Is(unicode.Han, d.last) {
			return -1
		}
		return r
	case isHidden(r):
		return -1
	}
	return r
}

// takesVariation reports whether a variation selector can belong to r.
func takesVariation(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return '0' <= r && r <= '9' || r == '#' || r == '*' // keycaps
	case 0xFE00 <= r && r <= 0xFE0F, 0x180B <= r && r <= 0x180F, 0xE0100 <= r && r <= 0xE01EF, r == 0x200C, r == 0x200D:
		return false
	}
	return !unicode.IsSpace(r) && !isBracket(r)
}

// isBracket reports whether r is a bracket, which may belong to a marker.
func isBracket(r rune) bool { return unicode.In(r, unicode.Ps, unicode.Pe) }

// isHidden reports whether r is a format character, such as a bidirectional control or a tag,
// or has no visible form. visibleRune decides about joiners and selectors.
func isHidden(r rune) bool {
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Cf) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}
