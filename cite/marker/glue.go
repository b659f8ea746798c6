package marker

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Closes reports whether no space belongs before r: whether it is white space or
// closing punctuation.
func Closes(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune(".,;:!?)]}»”’…。、，；：！？）】」", r)
}

// match decides whether there is a marker at a place, and where it ends. chained
// means that another marker is directly before it. If it is undecided only for
// what may come after it, the end is returned too.
func (s *Scanner) match(at int, m *reading, chained bool) (v verdict, after int) {
	f, c, short := s.formAt(s.cursor(at), m)
	switch {
	case f == nil && short:
		return undecided, 0
	case short:
		return undecided, c.at
	case f == nil || !m.cites():
		return no, 0
	}
	return s.fits(f, m, at, c.at, chained), c.at
}

// cursor returns a cursor for one marker.
func (s *Scanner) cursor(at int) cursor {
	return cursor{b: s.b, at: at, left: maxMarker, final: s.final}
}

// fits decides whether what is around b[at:after] lets it be a marker.
func (s *Scanner) fits(f *form, m *reading, at, after int, chained bool) verdict {
	switch v := s.brokenAfter(f, m, at, after, chained); v {
	case yes:
		return no
	case undecided:
		return v
	}
	if chained || m.sure {
		return yes
	}
	switch f.at {
	case afterInText:
		if r, _ := s.base(at); r == '>' || !s.isInked(at) {
			return no
		}
	case afterProse:
		if s.fit(at) != fitAlways {
			return no
		}
	case inProse:
		fit := s.fit(at)
		switch {
		case !m.key && s.isData(at, m.items > 1), fit == fitNever:
			return no
		case fit == fitGlued && (m.named || s.isCode(at, m.key)):
			return no
		case fit == fitGlued:
			return s.glue(at, after)
		}
	}
	return yes
}

// brokenAfter decides whether what is after a marker makes it something else: a
// link, the definition of one, a pattern, or the first half of a broken seed form.
func (s *Scanner) brokenAfter(f *form, m *reading, at, after int, chained bool) verdict {
	c := s.cursor(after)
	if f.at == inProse {
		switch r := c.peek(); {
		case r == '(', (r == '+' || r == '{') && !m.key, r == ':' && !chained && s.atMargin(at):
			return yes
		}
	}
	if f.at == inProse || f.at == notBroken {
		return c.brokenSeed()
	}
	return no
}

// glue decides whether the marker at b[at:after], which follows a letter or a
// number, is a citation: the text after it must read like prose.
func (s *Scanner) glue(at, after int) verdict {
	for {
		chain := utf8.RuneCount(s.b[at:after])
		if chain > maxChain {
			return no
		}
		if s.formsAt(s.b[after:]) == nil {
			return s.followed(at, after)
		}
		v, next := s.match(after, &reading{known: s.known}, true)
		if v == undecided {
			// Can it end within the bound?
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
			return s.followed(at, after)
		}
		after = next
	}
}

// followed decides whether what is after the chain of markers b[at:f] lets it be
// one in prose.
func (s *Scanner) followed(at, f int) verdict {
	c := cursor{b: s.b, at: f, left: len(s.b), final: s.final}
	switch r := c.peek(); {
	case r == end:
		return c.decide(true)
	case r == ' ':
		// A long run of spaces is read once, not at every piece.
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
	case Closes(r) || strings.ContainsRune("–—|", r):
		return yes
	}
	return no
}
