package marker

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSpan is the largest number of characters between the two runs of backticks
// of a code span. As many characters of a fence's opening line must not be
// backticks.
const maxSpan = 400

type span uint8

const (
	spanUndecided span = iota
	spanCode           // a code span ends after its closing run
	spanText           // the opening run is ordinary text
	spanFence          // the opening run opens a fenced block
)

// span finds out what a run of s.ticks backticks before b opens. It continues
// where the last call stopped, so that it reads every character once.
func (s *Scanner) span(b []byte, final bool) (after int, kind span) {
	for {
		rest := b[s.looked:]
		decided := s.distance > maxSpan || s.fences && s.distance == maxSpan
		switch {
		case s.run > 0 || !decided && len(rest) > 0 && rest[0] == '`':
			s.fences = false
			n := 0
			for n < len(rest) && rest[n] == '`' {
				n++
			}
			s.run += n
			s.looked += n
			if n == len(rest) && !final {
				return 0, spanUndecided
			}
			if s.run == s.ticks {
				return s.looked, spanCode
			}
			s.distance += s.run
			s.run = 0
			continue
		case !decided && len(rest) == 0 && !final:
			return 0, spanUndecided
		case decided, len(rest) == 0, s.distance == maxSpan, rest[0] == '\n':
			if s.fences {
				return 0, spanFence
			}
			return 0, spanText
		}
		size := 1
		if rest[0] >= utf8.RuneSelf {
			_, size = utf8.DecodeRune(rest)
		}
		s.looked += size
		s.distance++
	}
}

// A fence is the place in a fenced block.
type fence struct {
	char byte
	at   fencePlace
	run  int // length of the run that may close the block
}

type fencePlace uint8

const (
	fenceOpening fencePlace = iota // in the opening run
	fenceOpened                    // in the rest of the opening line
	fenceLead                      // on a line that has only spaces, tabs and ">" so far
	fenceRun                       // in a run that may close the block
	fenceTail                      // after it, with only spaces and tabs between
	fenceReturn                    // after a CR there
	fenceLine                      // in a line that does not close the block
)

// scan reads the block's text to its end or the end of b. It adds the length of
// the opening run to *opening.
func (f *fence) scan(b []byte, opening *int) (n int, closed bool) {
	for n < len(b) {
		c := b[n]
		if f.at == fenceOpened || f.at == fenceLine {
			i := bytes.IndexByte(b[n:], '\n')
			if i < 0 {
				return len(b), false
			}
			n += i
			c = '\n'
		}
		n++
		if c == '\n' {
			closes := f.at == fenceRun || f.at == fenceTail || f.at == fenceReturn
			if closes && f.run >= *opening {
				return n, true
			}
			f.at, f.run = fenceLead, 0
			continue
		}
		f.step(c, opening)
	}
	return n, false
}

// step records one character that is no line end.
func (f *fence) step(c byte, opening *int) {
	switch blank := c == ' ' || c == '\t'; {
	case f.at == fenceOpening && c == f.char:
		*opening++
	case f.at == fenceOpening:
		f.at = fenceOpened
	case f.at == fenceLead && (blank || c == '>'):
	case (f.at == fenceLead || f.at == fenceRun) && c == f.char:
		f.at = fenceRun
		f.run++
	case (f.at == fenceRun || f.at == fenceTail) && blank:
		f.at = fenceTail
	case (f.at == fenceRun || f.at == fenceTail) && c == '\r':
		f.at = fenceReturn
	default:
		f.at = fenceLine
	}
}

// mathematics decides whether a pair of delimiters is here, which is verbatim with
// everything between, and reports false if it cannot yet.
func (s *Scanner) mathematics() bool {
	c := cursor{b: s.b, at: s.i, left: 2, final: s.final}
	open := c.peek()
	c.next()
	next := c.peek()
	d := delimiters{}
	switch {
	case c.short:
		return false
	case s.before.backslash:
	case open == '$' && next == '$':
		d = delimiters{open: 2, close: "$$"}
	case open == '$':
		if s.opensMath() && !unicode.IsSpace(next) && !unicode.IsNumber(next) {
			d = delimiters{open: 1, close: "$", line: true}
		}
	case next == '(':
		d = delimiters{open: 2, close: `\)`, again: `\(`, line: true}
	case next == '[':
		d = delimiters{open: 2, close: `\]`, again: `\[`}
	}
	if d.open == 0 {
		s.literal(1)
		return true
	}
	c.at, c.left = s.i+d.open, maxMath+3
	switch v := c.mathematics(d); {
	case v == undecided:
		return false
	case v == yes:
		s.verbatim(c.at-s.i, false)
	case d.close == "$$":
		s.literal(2)
	default: // a marker may follow a backslash
		s.literal(1)
	}
	return true
}

// maxMath is the largest number of characters between two delimiters.
const maxMath = 200

// opensMath reports whether a dollar sign after this place may open a formula: it
// may not where a price or a variable has one.
func (s *Scanner) opensMath() bool {
	x := &s.before
	if x.combined {
		return false
	}
	return x.base == 0 || unicode.IsSpace(x.base) || unicode.In(x.base, unicode.Lo, unicode.Lm) ||
		strings.ContainsRune("([{\"'*|>—–:,;，。：；（「“‘、", x.base)
}

// delimiters are a pair around a formula.
type delimiters struct {
	open  int // length of the first
	close string
	again string // what must not be between them
	line  bool   // both are on one line
}

// mathematics finds the second delimiter.
func (c *cursor) mathematics(d delimiters) verdict {
	for n := 0; n <= maxMath; n++ {
		if c.starts(d.close) {
			before := rune(c.b[c.at-1])
			if before >= utf8.RuneSelf {
				before, _ = utf8.DecodeLastRune(c.b[:c.at])
			}
			c.exactly(d.close)
			if d.close == "$" {
				return c.decide(!unicode.IsSpace(before) && before != '\\' && !unicode.IsNumber(c.peek()))
			}
			return yes
		}
		r := c.peek()
		if r == end || r == '`' || d.again != "" && c.starts(d.again) || r == '\n' && (d.line || c.startsEmptyLine()) {
			return c.decide(false)
		}
		c.next()
	}
	return no
}

// starts reports whether w is next.
func (c *cursor) starts(w string) bool {
	saved := *c
	ok := c.exactly(w)
	c.back(saved)
	return ok
}

// startsEmptyLine reports whether a line end is next and an empty line after it.
func (c *cursor) startsEmptyLine() bool {
	saved := *c
	c.next()
	for c.oneOf(" \t") {
	}
	c.accept('\r')
	ok := c.accept('\n')
	c.back(saved)
	return ok
}
