package marker

import (
	"bytes"
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
