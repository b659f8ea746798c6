package marker

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSpan is the largest number of characters between the two runs of backticks of a code span.
// It is also how far the opening line of a fence is checked for backticks.
const maxSpan = 400

type span uint8

const (
	spanUndecided span = iota
	spanCode           // a code span ends after its closing run
	spanText           // the opening run is ordinary text
	spanFence          // the opening run opens a fenced block
)

// scanSpan decides what a run of s.ticks backticks before b opens. It continues where the last
// call stopped, so that it reads every character once.
func (s *Scanner) scanSpan(b []byte, final bool) (after int, kind span) {
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

// minFence is the length of the shortest run that opens a fenced block.
const minFence = 3

// openFence begins a fenced block with a run of sign.
func (s *Scanner) openFence(sign byte, run int) {
	s.emitCode(run, true)
	s.state, s.fence, s.ticks, s.opening, s.line = stateFence, sign, run, false, -1
}

// scanFence passes a fenced block, up to its end or the end of the text so far.
func (s *Scanner) scanFence() {
	n := 0
	for s.opening {
		if s.i+n == len(s.b) {
			s.emitCode(n, false)
			return
		}
		if s.opening = s.b[s.i+n] == s.fence; s.opening {
			s.ticks++
			n++
		}
	}
	for s.state == stateFence {
		line := bytes.IndexByte(s.b[s.i+n:], '\n')
		if line < 0 {
			s.emitCode(len(s.b)-s.i, false)
			return
		}
		n += line + 1
		if s.closesFence(s.lineBefore(s.i + n - 1)) {
			s.state = stateLine
		}
		s.beginLine(s.i + n)
	}
	s.emitCode(n, false)
}

// closesFence reports whether a line ends a fenced block.
func (s *Scanner) closesFence(line []byte) bool {
	run := bytes.TrimLeft(line, " \t>")
	rest := bytes.TrimLeft(run, string(s.fence))
	return len(run)-len(rest) >= s.ticks && len(bytes.TrimLeft(bytes.TrimSuffix(rest, []byte("\r")), " \t")) == 0
}

// scanMathematics passes a formula at the current offset, including its delimiters. It reports
// false if more text is needed to decide.
func (s *Scanner) scanMathematics() bool {
	c := s.newCursor(s.i)
	open := c.peek()
	c.next()
	next := c.peek()
	d := delimiters{}
	switch {
	case c.short:
		return false
	case s.isEscaped(s.i):
	case open == '$' && next == '$':
		d = delimiters{open: 2, close: "$$"}
	case open == '$':
		if s.opensMath() && !unicode.IsSpace(next) && !unicode.IsNumber(next) {
			d = delimiters{open: 1, close: "$", line: true}
		}
	case next == '(':
		d = delimiters{open: 2, close: `\)`, excluded: `\(`, line: true}
	case next == '[':
		d = delimiters{open: 2, close: `\]`, excluded: `\[`}
	}
	if d.open == 0 {
		s.passLiteral()
		return true
	}
	c.at, c.left = s.i+d.open, maxMath+3
	switch v := c.findClosing(d); {
	case v == undecided:
		return false
	case v == yes:
		s.emitText()
		if line := bytes.LastIndexByte(s.b[s.i:c.at], '\n'); line >= 0 {
			s.beginLine(s.i + line + 1)
		}
		s.i = c.at
		s.emitText()
	case d.close == "$$":
		s.i += 2
	default: // a marker may follow a backslash
		s.i++
	}
	return true
}

// maxMath is the largest number of characters between two delimiters.
const maxMath = 200

// opensMath reports whether a dollar sign at the current offset may open a formula, instead of
// being part of a price or a variable.
func (s *Scanner) opensMath() bool {
	r, after := s.runeBefore(s.i)
	return after == s.i && (r == end || unicode.IsSpace(r) || unicode.In(r, unicode.Lo, unicode.Lm) ||
		strings.ContainsRune("([{\"'*|>—–:,;，。：；（「“‘、", r))
}

// delimiters describes the pair around a formula.
type delimiters struct {
	open     int // length of the opening one
	close    string
	excluded string // must not be in the formula
	line     bool   // both are on one line
}

// findClosing finds the closing delimiter.
func (c *cursor) findClosing(d delimiters) verdict {
	for n := 0; n <= maxMath; n++ {
		if c.hasPrefix(d.close) {
			before := rune(c.b[c.at-1])
			if before >= utf8.RuneSelf {
				before, _ = utf8.DecodeLastRune(c.b[:c.at])
			}
			c.acceptWord(d.close)
			if d.close == "$" {
				return c.decide(!unicode.IsSpace(before) && before != '\\' && !unicode.IsNumber(c.peek()))
			}
			return yes
		}
		r := c.peek()
		if r == end || r == '`' || d.excluded != "" && c.hasPrefix(d.excluded) || r == '\n' && (d.line || c.startsEmptyLine()) {
			return c.decide(false)
		}
		c.next()
	}
	return c.decide(false)
}

// hasPrefix reports whether w follows.
func (c *cursor) hasPrefix(w string) bool {
	next := *c
	ok := next.acceptWord(w)
	c.short = c.short || next.short
	return ok
}

// startsEmptyLine reports whether a line end and an empty line follow.
func (c *cursor) startsEmptyLine() bool {
	next := *c
	next.next()
	next.spacing()
	next.accept('\r')
	ok := next.accept('\n')
	c.short = c.short || next.short
	return ok
}
