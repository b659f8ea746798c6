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

// match decides whether there is a marker at b[at], and where it ends. chained
// means that another marker is directly before it. If it is undecided only for
// what may come after it, the end is returned too.
func (s *Scanner) match(b []byte, at int, m *reading, chained, final bool) (v verdict, after int) {
	f, c, short := s.formAt(cursor{b: b, at: at, left: maxMarker, final: final}, m)
	switch {
	case f == nil && short:
		return undecided, 0
	case short:
		return undecided, c.at
	case f == nil || !m.cites():
		return no, 0
	}
	return s.fits(f, m, b, at, c.at, chained, final), c.at
}

// fits decides whether what is around b[at:after] lets it be a marker.
func (s *Scanner) fits(f *form, m *reading, b []byte, at, after int, chained, final bool) verdict {
	x := &s.before
	c := cursor{b: b, at: after, left: len(b), final: final}
	switch s.brokenAfter(f, m, c, chained) {
	case yes:
		return no
	case undecided:
		return undecided
	}
	switch {
	case chained || m.sure:
		return yes
	case f.at == afterInText && (!x.inked || x.base == '>'),
		f.at == afterProse && x.fit() != fitAlways,
		f.at == inProse && !m.key && (x.data || m.items > 1 && x.gap && dataWords[x.spelled()]):
		return no
	case f.at != inProse:
		return yes
	}
	switch fit := x.fit(); {
	case fit == fitAlways:
		return yes
	case fit == fitNever || m.named || x.word && (x.operated || !m.key && (x.snake || arrayNames[x.spelled()])):
		return no
	}
	return s.glue(b, at, after, final)
}

// brokenAfter decides whether what is after a marker makes it something else: a
// link, the definition of one, a pattern, or the first half of a broken seed form.
func (s *Scanner) brokenAfter(f *form, m *reading, c cursor, chained bool) verdict {
	if f.at == inProse {
		switch r := c.peek(); {
		case r == '(', (r == '+' || r == '{') && !m.key, r == ':' && !chained && s.before.atMargin():
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
func (s *Scanner) glue(b []byte, at, after int, final bool) verdict {
	f := after
	for {
		chain := utf8.RuneCount(b[at:f])
		if chain > maxChain {
			return no
		}
		c := cursor{b: b, at: f, left: 1, final: final}
		if s.formsAt(c.peek()) == nil {
			break
		}
		v, after := s.match(b, f, &reading{known: s.known}, true, final)
		if v == undecided {
			// Can it end within the bound?
			least := utf8.RuneCount(b[f:]) + 1
			if after > 0 {
				least = utf8.RuneCount(b[f:after])
			}
			if chain+least > maxChain {
				return no
			}
			return undecided
		}
		if v == no {
			break
		}
		f = after
	}
	return s.followed(b, at, f, final)
}

// followed decides whether what is after the chain of markers b[at:f] lets it be
// one in prose.
func (s *Scanner) followed(b []byte, at, f int, final bool) verdict {
	c := cursor{b: b, at: f, left: len(b), final: final}
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
