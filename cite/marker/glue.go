package marker

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsClosing reports whether r is white space or closing punctuation, before which no space
// belongs.
func IsClosing(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune(".,;:!?)]}»”’…。、，；：！？）】」", r)
}

// IsStop reports whether a sentence may end with r.
func IsStop(r rune) bool { return strings.ContainsRune(".!?…。！？．｡", r) }

// match decides whether a marker begins at an offset, and where it ends. chained means that
// another marker is directly before it. If only the text after the marker is undecided, match
// returns the end too.
func (s *Scanner) match(at int, m *reading, chained bool) (v verdict, after int) {
	f, c, short := s.formAt(s.newCursor(at), m)
	switch {
	case f == nil && short:
		return undecided, 0
	case short:
		return undecided, c.at
	case f == nil || !m.cites():
		return no, 0
	}
	return s.fitsContext(f, m, at, c.at, chained), c.at
}

// newCursor returns a cursor for one marker.
func (s *Scanner) newCursor(at int) cursor {
	return cursor{b: s.b, at: at, left: maxMarker, final: s.final}
}

// fitsContext decides whether the text around b[at:after] allows a marker there.
func (s *Scanner) fitsContext(f *form, m *reading, at, after int, chained bool) verdict {
	switch v := s.isBrokenAfter(f, m, at, after, chained); v {
	case yes:
		return no
	case undecided:
		return v
	}
	if chained || m.sure {
		return yes
	}
	switch f.place {
	case placeAfterInText:
		if r, _ := s.runeBefore(at); r == '>' || !s.hasTextBefore(at) {
			return no
		}
	case placeAfterProse:
		if s.fitAt(at) != fitAlways {
			return no
		}
	case placeInProse:
		fit := s.fitAt(at)
		switch {
		case !m.key && s.isData(at, m.items > 1), fit == fitNever:
			return no
		case fit == fitGlued && (m.named || s.isCode(at, m.key)):
			return no
		case fit == fitGlued:
			return s.fitsProse(at, after)
		}
	}
	return yes
}

// isBrokenAfter decides whether the text after a marker makes it something else: a link, a link
// definition, a pattern, or the first half of a broken seed form.
func (s *Scanner) isBrokenAfter(f *form, m *reading, at, after int, chained bool) verdict {
	c := s.newCursor(after)
	if f.place == placeInProse {
		switch r := c.peek(); {
		case r == '(', (r == '+' || r == '{') && !m.key, r == ':' && !chained && s.atMargin(at):
			return yes
		}
	}
	if f.place == placeInProse || f.place == placeNotBroken {
		return c.brokenSeed()
	}
	return no
}

// fitsProse decides whether the marker at b[at:after], directly after a letter or number, is a
// citation: the text after it must read like prose.
func (s *Scanner) fitsProse(at, after int) verdict {
	for {
		chain := utf8.RuneCount(s.b[at:after])
		if chain > maxChain {
			return no
		}
		if s.formsAt(s.b[after:]) == nil {
			return s.fitsNext(at, after)
		}
		v, next := s.match(after, &reading{known: s.known}, true)
		if v == undecided {
			// Can it end within the limit?
			least := utf8.RuneCount(s.b[after:]) + 1
			if next > 0 {
				least = utf8.RuneCount(s.b[after:next])
			}
			if chain+least > maxChain {
				return no
			}
			return undecided
		}
		if v == no {
			return s.fitsNext(at, after)
		}
		after = next
	}
}

// fitsNext decides whether the text after the chain of markers b[at:f] allows it in prose.
func (s *Scanner) fitsNext(at, f int) verdict {
	c := cursor{b: s.b, at: f, left: len(s.b), final: s.final}
	switch r := c.peek(); {
	case r == end:
		return c.decide(true)
	case r == ' ':
		// Read a long run of spaces once, not with every piece.
		c.at = max(f, at+s.looked)
		for c.accept(' ') {
		}
		s.looked = c.at - at
		switch r := c.peek(); r {
		case '=', '+', '/', '<', '>':
			return no
		case '*':
			c.next()
			return c.decide(c.peek() != ' ')
		}
		return c.decide(true)
	case strings.ContainsRune(".,;:!?", r):
		c.next()
		r := c.peek()
		return c.decide(!isCasedOrNumber(r) && r != '_')
	case r == '*' || r == '_':
		c.next()
		for range 2 {
			c.oneOf("*_")
		}
		return c.decide(!isCasedOrNumber(c.peek()))
	case IsClosing(r) || strings.ContainsRune("–—|", r):
		return yes
	}
	return no
}
