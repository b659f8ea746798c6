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

// glue decides whether the marker at b[at:after], which follows a letter or a
// number, is a citation: the text after it must read like prose.
func (s *Scanner) glue(b []byte, at, after int, final bool) verdict {
	if s.before.word && s.before.operated {
		return no
	}
	f := after
	for {
		chain := utf8.RuneCount(b[at:f])
		if chain > maxChain {
			return no
		}
		c := cursor{b: b, at: f, left: 1, final: final}
		if r := c.peek(); r != '[' && r != '【' {
			break
		}
		v, after := s.match(b, f, &list{known: s.known}, true, final)
		if v == undecided {
			// Can it end within the bound?
			least := utf8.RuneCount(b[f:]) + 1
			if v, end := s.bare(b, f, &list{known: s.known}, true, final); v == undecided && end > 0 {
				least = utf8.RuneCount(b[f:end])
			}
			if chain+least > maxChain {
				return no
			}
			return undecided
		}
		if v == no {
			return no
		}
		f = after
	}

	c := cursor{b: b, at: f, left: len(b), final: final}
	r := c.peek()
	switch {
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
			if !c.accept('*') {
				c.accept('_')
			}
		}
		return c.decide(!isCasedOrNumber(c.peek()))
	case Closes(r) || strings.ContainsRune("–—|", r):
		return yes
	}
	return no
}

// decide returns the verdict of a test that last read the cursor's place.
func (c *cursor) decide(holds bool) verdict {
	switch {
	case c.short:
		return undecided
	case holds:
		return yes
	}
	return no
}
