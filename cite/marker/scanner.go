package marker

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A Scanner finds the markers in one text. Make one with [NewScanner].
type Scanner struct {
	// Excluded reports whether a known id cites nothing; nil excludes none. Until a marker
	// has cited something, lists of sources are not dropped.
	Excluded func(id int) bool

	grammar
	view
	i      int // b[:i] is decided
	from   int // take has received b[:from]
	final  bool
	take   func(Token)
	state  state
	cited  bool    // a marker has cited something
	looked int     // bytes after i that need not be read again to decide about b[i]
	marker reading // the marker last matched

	ticks    int  // states ticks, span, fence: length of the opening run, which begins at i
	fences   bool // state span: the run may open a fenced block
	distance int  // state span: characters read
	run      int  // state span: length of the run of backticks being read
	fence    byte // state fence: the sign
	opening  bool // state fence: in the opening run
	list     ownList
}

// How much text is kept and read, in bytes.
const (
	maxBefore = 1000 // text before the current offset that may affect decisions
	maxChunk  = 4096 // text read at once
)

type state uint8

const (
	stateText  state = iota
	stateTicks       // in a run of backticks that may open code
	stateSpan        // after such a run, until it is known whether it opens code
	stateFence       // in a fenced block
	stateLine        // at the start of a line after a fenced block
)

// NewScanner returns a scanner for a text that may cite the ids 1 to known.
func NewScanner(p Profile, known int) *Scanner {
	return &Scanner{grammar: grammar{p, known}, view: view{marked: -1}}
}

// Feed scans the next piece of the text and calls take with each decided token.
func (s *Scanner) Feed(piece []byte, take func(Token)) {
	for len(piece) > 0 {
		if far := s.i - maxBefore; far > maxChunk {
			s.b = s.b[:copy(s.b, s.b[far:])]
			s.cut = s.cut || s.begin < far
			s.begin = max(0, s.begin-far)
			s.i, s.from, s.line, s.marked = s.i-far, s.from-far, s.line-far, s.marked-far
		}
		n := min(len(piece), maxChunk)
		s.b = append(s.b, piece[:n]...)
		piece = piece[n:]
		s.scan(take)
	}
}

// Close ends the text and calls take with the tokens held back. The scanner is then ready for
// another text.
func (s *Scanner) Close(take func(Token)) {
	s.final = true
	s.scan(take)
	*s = Scanner{Excluded: s.Excluded, grammar: s.grammar, view: view{b: s.b[:0], marked: -1}}
}

// Held returns the number of characters that are held back.
func (s *Scanner) Held() int { return utf8.RuneCount(s.b[s.from:]) }

// Partial returns the length of the incomplete UTF-8 sequence at the end of b.
func Partial(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// scan reads b as far as decisions are possible.
func (s *Scanner) scan(take func(Token)) {
	s.take = take
	whole := s.b
	if !s.final {
		s.b = whole[:len(whole)-Partial(whole)]
	}
	for (s.i < len(s.b) || s.final && s.state == stateSpan) && s.step() {
	}
	s.emitText()
	s.b, s.take = whole, nil
}

// emitText emits the decided text that take has not received.
func (s *Scanner) emitText() {
	if s.from < s.i {
		s.take(Token{Text: s.b[s.from:s.i]})
		s.from = s.i
	}
}

// emitCode emits the text before i, then the next n bytes as code.
func (s *Scanner) emitCode(n int, begins bool) {
	s.emitText()
	if n > 0 {
		s.take(Token{Text: s.b[s.i : s.i+n], Code: true, Begins: begins})
	}
	s.i += n
	s.from = s.i
}

// step decides about the text at i. It reports false if more text is needed.
func (s *Scanner) step() bool {
	switch s.state {
	case stateTicks:
		for s.i+s.ticks < len(s.b) && s.b[s.i+s.ticks] == '`' {
			s.ticks++
		}
		if s.i+s.ticks == len(s.b) && !s.final {
			return false
		}
		s.state = stateSpan
		s.looked, s.distance, s.run = 0, 0, 0
		s.fences = s.ticks >= minFence && s.opensFence(s.i)
		return true
	case stateSpan:
		after, kind := s.scanSpan(s.b[s.i+s.ticks:], s.final)
		switch kind {
		case spanUndecided:
			return false
		case spanCode:
			s.emitCode(s.ticks+after, true)
			s.state = stateText
		case spanText:
			s.i += s.ticks
			s.state = stateText
		case spanFence:
			s.openFence('`', s.ticks)
		}
		s.looked = 0
		return true
	case stateFence:
		s.scanFence()
		return true
	}
	if s.cited && (s.state == stateLine || s.list.active) {
		ended := s.findOwnList()
		if ended {
			s.state = stateText
		}
		return ended
	}
	s.state = stateText
	switch s.passText() {
	case stopSign:
		return s.scanSpecial()
	case stopSpace:
		return s.findOwnList()
	}
	return true
}

// scanSpecial decides about a character that may begin a marker, code, a formula or a list.
func (s *Scanner) scanSpecial() bool {
	b, i := s.b, s.i
	switch b[i] {
	case '`':
		s.emitText()
		s.take(Token{Boundary: true})
		s.state, s.ticks = stateTicks, 0
		return true
	case '~':
		return s.scanTildes()
	case '$':
		return s.scanMathematics()
	case '[':
		switch after, v := s.findBoundary(); v {
		case undecided:
			return false
		case yes:
			s.passBoundary(after - i)
			return true
		}
	case '\\':
		if s.isEscaped(i) {
			s.i++
			return true
		}
	}
	s.marker.known = s.known
	switch v, after := s.match(i, &s.marker, s.isChained(i)); v {
	case undecided:
		return false
	case yes:
		s.emitText()
		s.cited = s.cited || s.profile == Default && slices.ContainsFunc(s.marker.ids, func(id int) bool {
			return s.Excluded == nil || !s.Excluded(id)
		})
		s.take(Token{Marker: true, IDs: s.marker.ids, Text: b[i:after]})
		s.i, s.from, s.marked = after, after, after
	default:
		if b[i] == '\\' {
			return s.scanMathematics()
		}
		if b[i] == '[' && s.atMargin(i) && !s.bounded {
			c := cursor{b: b, at: i, left: maxMarker, final: true}
			s.definition = c.definition()
		}
		s.passLiteral()
	}
	s.looked = 0
	return true
}

// scanTildes decides about tildes, three of which open a fence.
func (s *Scanner) scanTildes() bool {
	run := s.b[s.i:min(len(s.b), s.i+minFence)]
	switch n := len(run) - len(bytes.TrimLeft(run, "~")); {
	case n == minFence:
		s.openFence('~', minFence)
		s.opening = true
	case s.i+n == len(s.b) && !s.final:
		return false
	default:
		s.i += n
	}
	return true
}

// findBoundary finds "[cite_start]" and "[cite_end]".
func (s *Scanner) findBoundary() (after int, v verdict) {
	if s.profile == Strict {
		return 0, no
	}
	c := s.newCursor(s.i)
	v = c.decide(c.acceptWord("[cite_") && (c.acceptWord("start]") || c.acceptWord("end]")))
	return c.at, v
}

// passBoundary removes a [cite_start] of n bytes from the text.
func (s *Scanner) passBoundary(n int) {
	s.emitText()
	s.take(Token{Text: s.b[s.i : s.i+n], Boundary: true})
	before := s.textBefore(s.i)
	s.cut = s.cut || len(before) < s.i-s.begin
	s.begin = s.i - len(before) + n
	copy(s.b[s.begin:], before)
	s.i, s.line, s.marked = s.i+n, s.line+n, s.marked+n
	s.from, s.bounded = s.i, true
}

// passLiteral passes a character as text.
func (s *Scanner) passLiteral() {
	_, size := utf8.DecodeRune(s.b[s.i:])
	if s.i += size; s.b[s.i-1] == '\n' {
		s.beginLine(s.i)
	}
}

// A stop is the reason why passText stopped.
type stop uint8

const (
	stopEnd   stop = iota
	stopSign       // at a character in signs
	stopSpace      // at white space that may precede a list of sources
)

// passText passes ordinary text.
func (s *Scanner) passText() stop {
	b, first := s.b, s.i
	for {
		for s.i < len(b) && !signs[b[s.i]] {
			s.i++
		}
		switch {
		case s.i == len(b):
			if s.cited && !s.final && s.trimSpace(first) {
				return stopSpace
			}
			return stopEnd
		case b[s.i] == '\n':
			if s.cited {
				s.trimSpace(first)
				return stopSpace
			}
			s.beginLine(s.i + 1)
		case s.mayOpen(s.i):
			return stopSign
		}
		s.i++
	}
}

// trimSpace moves i back over white space and reports whether it moved.
func (s *Scanner) trimSpace(first int) bool {
	n := len(bytes.TrimRightFunc(s.b[first:s.i], unicode.IsSpace))
	found := first+n < s.i
	s.i = first + n
	return found
}

// signs are the bytes that may begin something other than text, including line ends and the
// first bytes of wide brackets.
var signs = func() (t [256]bool) {
	for _, c := range []byte("[`~(<\\$\n\xE3\xEF") {
		t[c] = true
	}
	return t
}()

// mayOpen reports whether b[at:] may begin something other than text.
func (s *Scanner) mayOpen(at int) bool {
	b := s.b[at:]
	switch b[0] {
	case '[':
		return true
	case '`':
		return !s.isEscaped(at)
	case '~':
		return s.opensFence(at)
	}
	if s.profile == Strict || len(b) == 1 {
		return s.profile == Default
	}
	switch next := b[1]; b[0] {
	case '\\':
		return next == '(' || next == '['
	case '<':
		return isASCIILetter(next)
	case '(':
		return next == ' ' || isASCIILetter(next) || next >= utf8.RuneSelf
	case '$':
		return true
	}
	return (b[1] == 0x80 || b[1] == 0xBC) && s.opensWide(at) // as in the blocks of wide brackets
}

// opensWide reports whether a wide bracket at an offset opens a marker.
func (s *Scanner) opensWide(at int) bool {
	if s.profile == Strict || s.b[at] < utf8.RuneSelf || !signs[s.b[at]] {
		return false
	}
	return slices.ContainsFunc(forms[s.b[at]], func(f form) bool { return bytes.HasPrefix(s.b[at:], []byte(f.open)) })
}

func isASCIILetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
