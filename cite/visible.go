package cite

import (
	"unicode"
	"unicode/utf8"
)

// A cleaner takes out of a text what is not seen and yet acts: characters that
// command a terminal, that turn the direction of what is read, or that hide
// words between the words. It is given whole characters.
//
// Tab and line feed stay; vertical tab, form feed, next line and the line and
// paragraph separators become a space. Joiners and variation selectors stay
// where a script or an emoji needs them: one, behind a character that takes it.
type cleaner struct {
	last rune // the last character kept
}

// clean gives b without those characters; b itself when there are none.
func (c *cleaner) clean(b []byte) []byte {
	var out []byte // what is kept of b[:i], once something was not
	changed := false
	for i := 0; i < len(b); {
		if !changed {
			from := i
			for i < len(b) && (' ' <= b[i] && b[i] < 0x7F || b[i] == '\n') {
				i++
			}
			if i > from {
				c.last = rune(b[i-1])
				continue
			}
		}
		r, size := rune(b[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(b[i:])
		}
		kept := c.keep(r)
		if kept == r {
			if changed {
				out = append(out, b[i:i+size]...)
			}
		} else {
			if !changed {
				out, changed = append(make([]byte, 0, len(b)), b[:i]...), true
			}
			if kept >= 0 {
				out = utf8.AppendRune(out, kept)
			}
		}
		if kept >= 0 {
			c.last = kept
		}
		i += size
	}
	if !changed {
		return b
	}
	return out
}

// keep gives the character to show for r, -1 for none.
func (c *cleaner) keep(r rune) rune {
	switch {
	case ' ' <= r && r < 0x7F, r == '\n', r == '\t', 0xA0 <= r && r < 0x0300 && r != 0xAD, 0x3000 <= r && r < 0xFB00 && r != 0x3164:
		return r
	case r == '\v', r == '\f', r == 0x85, r == 0x2028, r == 0x2029:
		return ' '
	case r < 0xA0: // the other controls, escape and return among them
		return -1
	case r == 0x200C, r == 0x200D:
		if c.last < utf8.RuneSelf || c.last == 0x200C || c.last == 0x200D || isBracket(c.last) {
			return -1
		}
		return r
	case 0xFE00 <= r && r <= 0xFE0F, 0x180B <= r && r <= 0x180D, r == 0x180F:
		if !takesVariation(c.last) {
			return -1
		}
		return r
	case 0xE0100 <= r && r <= 0xE01EF:
		if !unicode.Is(unicode.Han, c.last) {
			return -1
		}
		return r
	case isHidden(r):
		return -1
	}
	return r
}

// takesVariation says whether a variation selector can belong to r.
func takesVariation(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return '0' <= r && r <= '9' || r == '#' || r == '*' // keycaps
	case 0xFE00 <= r && r <= 0xFE0F, 0x180B <= r && r <= 0x180F, 0xE0100 <= r && r <= 0xE01EF, r == 0x200C, r == 0x200D:
		return false
	}
	return !unicode.IsSpace(r) && !isBracket(r)
}

// isBracket says whether r is a bracket, which may be that of a marker.
func isBracket(r rune) bool { return unicode.In(r, unicode.Ps, unicode.Pe) }

// isHidden knows the characters with the property Default_Ignorable_Code_Point
// (Unicode 17, DerivedCoreProperties.txt) less those that keep deals with, and
// the interlinear annotations: among them all bidirectional controls and tags.
func isHidden(r rune) bool {
	switch {
	case r == 0xAD, r == 0x034F, r == 0x061C, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x180E,
		0x200B <= r && r <= 0x200F, 0x202A <= r && r <= 0x202E, 0x2060 <= r && r <= 0x206F, r == 0x3164,
		r == 0xFEFF, r == 0xFFA0, 0xFFF0 <= r && r <= 0xFFFB, 0x1BCA0 <= r && r <= 0x1BCA3,
		0x1D173 <= r && r <= 0x1D17A, 0xE0000 <= r && r <= 0xE0FFF:
		return true
	}
	return false
}
