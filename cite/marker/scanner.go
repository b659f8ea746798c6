package marker

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A Scanner finds the markers in one text. Make one with [NewScanner].
type Scanner struct {
	// Excluded reports whether a known id cites nothing; nil for none. A list of
	// sources is looked for only after something was cited.
	Excluded func(id int) bool

	profile Profile
	known   int

	held   []byte // the undecided end of the text so far
	open   int    // bytes of it that take has received
	state  state
	before context // the text before held
	cited  bool    // a marker has cited something
	looked int     // bytes of held that need not be read again to decide about its first character
	marker reading // the marker last matched

	ticks    int  // state ticks, span, fence: length of the opening run
	fences   bool // states ticks, span: the run may open a fenced block
	distance int  // state span: characters read
	run      int  // state span: length of the run of backticks being read
	fence    fence
	list     ownList

	// During a call.
	b     []byte
	i     int // b[:i] is decided
	from  int // take has received b[:from]
	final bool
	take  func(Token)
}

type state uint8

const (
	stateText  state = iota
	stateTicks       // in a run of backticks that may open code
	stateSpan        // after such a run, before it is known whether it does
	stateFence       // in a fenced block
	stateLine        // at the start of a line after one
)

// NewScanner returns a scanner for a text whose ids 1 to known exist.
func NewScanner(p Profile, known int) *Scanner {
	return &Scanner{profile: p, known: known}
}

// Feed scans the next piece of the text and calls take with what is decided.
func (s *Scanner) Feed(piece []byte, take func(Token)) {
	if len(piece) == 0 {
		return
	}
	b := piece
	if len(s.held) > 0 {
		s.held = append(s.held, piece...)
		b = s.held
	}
	whole := len(b)
	if b[whole-1] >= utf8.RuneSelf {
		whole -= Partial(b)
	}
	switch n := s.scan(b[:whole], false, take); {
	case len(s.held) > 0 && n == 0:
	case len(s.held) > 0:
		s.held = s.held[:copy(s.held, b[n:])]
	case n < len(b):
		s.held = append(s.held, b[n:]...)
	}
}

// Close ends the text and calls take with the rest. The scanner is then ready for
// another text.
func (s *Scanner) Close(take func(Token)) {
	s.scan(s.held, true, take)
	*s = Scanner{Excluded: s.Excluded, profile: s.profile, known: s.known, held: s.held[:0]}
}

// Held returns the number of characters that are held back.
func (s *Scanner) Held() int { return utf8.RuneCount(s.held[s.open:]) }

// Open returns the number of bytes at the end of the text given so far that follow
// an opening run of backticks: it is not known yet whether they are code.
func (s *Scanner) Open() int { return s.open }

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

// scan reads b as far as it can decide, and returns how far that is.
func (s *Scanner) scan(b []byte, final bool, take func(Token)) int {
	s.b, s.i, s.from, s.final, s.take = b, 0, s.open, final, take
	for (s.i < len(b) || final && s.state == stateSpan) && s.step() {
	}
	s.give(false)
	s.open = max(0, s.from-s.i)
	s.b, s.take = nil, nil
	return s.i
}

// give gives the decided text that take has not received.
func (s *Scanner) give(code bool) {
	if s.from < s.i {
		s.take(Token{Text: s.b[s.from:s.i], Code: code})
		s.from = s.i
	}
}

// giveOpen gives what is the same as code and as text: what comes after an opening
// run up to the first sign that may begin something else, without the white space
// before that.
func (s *Scanner) giveOpen() {
	s.give(false)
	rest := s.b[s.from:]
	n := bytes.IndexFunc(rest, func(r rune) bool {
		return r < utf8.RuneSelf && classes[r] == classSpecial || isPunctuation(r) && forms[r] != nil
	})
	if n >= 0 {
		rest = rest[:n]
	}
	if rest = bytes.TrimRightFunc(rest, unicode.IsSpace); len(rest) > 0 {
		s.take(Token{Text: rest})
		s.from += len(rest)
	}
}

// giveCode gives n bytes of code, of which take may have received the first as text.
func (s *Scanner) giveCode(n int) {
	back := max(0, s.from-s.i)
	s.i += n
	if s.from < s.i || back > 0 {
		s.take(Token{Text: s.b[s.from:s.i], Code: true, Back: back})
		s.from = s.i
	}
}

// step decides about what is next, and reports false if it cannot yet.
func (s *Scanner) step() bool {
	switch s.state {
	case stateTicks:
		for s.i < len(s.b) && s.b[s.i] == '`' {
			s.before.step('`')
			s.ticks++
			s.i++
		}
		if s.i < len(s.b) {
			s.state = stateSpan
			s.looked, s.distance, s.run = 0, 0, 0
			s.fences = s.fences && s.ticks >= 3
		}
		return true
	case stateSpan:
		after, kind := s.span(s.b[s.i:], s.final)
		switch kind {
		case spanUndecided:
			s.giveOpen()
			return false
		case spanCode:
			s.verbatim(after, true)
			s.state = stateText
		case spanText:
			s.state = stateText
		case spanFence:
			s.give(false)
			s.state, s.fence = stateFence, fence{char: '`', at: fenceOpened}
		}
		s.looked = 0
		return true
	case stateFence:
		s.give(false)
		n, closed := s.fence.scan(s.b[s.i:], &s.ticks)
		s.giveCode(n)
		if closed {
			s.state = stateLine
			s.before = context{base: '\n'}
		}
		return true
	}
	if s.cited && (s.state == stateLine || s.list.on || startsSpace(s.b[s.i:])) {
		if !s.ownList() {
			return false
		}
		s.state = stateText
		return true
	}
	s.state = stateText
	return !s.text() || s.special()
}

// special decides about a character that may begin something else than text.
func (s *Scanner) special() bool {
	b, i := s.b, s.i
	switch b[i] {
	case '`':
		s.state, s.ticks, s.fences = stateTicks, 0, s.before.prefix == prefixOpen
		return true
	case '~': // the third of a line's first run
		s.give(false)
		s.before.step('~')
		s.i++
		s.state, s.ticks, s.fence = stateFence, 3, fence{char: '~', at: fenceOpening}
		return true
	case '$':
		return s.mathematics()
	case '[':
		switch after, v := s.boundary(); v {
		case undecided:
			return false
		case yes:
			s.give(false)
			s.before.prefix, s.before.bounded = prefixNone, true
			s.i = after
			s.take(Token{Text: b[i:after], Boundary: true})
			s.from = after
			return true
		}
	}
	if b[i] == '\\' && s.before.backslash {
		s.literal(1)
		return true
	}
	s.marker.known = s.known
	switch v, after := s.match(b, i, &s.marker, s.before.marked, s.final); v {
	case undecided:
		return false
	case yes:
		s.give(false)
		s.cited = s.cited || s.profile == Default && slices.ContainsFunc(s.marker.ids, func(id int) bool {
			return s.Excluded == nil || !s.Excluded(id)
		})
		s.i = after
		s.take(Token{Marker: true, IDs: s.marker.ids, Text: b[i:after]})
		s.from = after
		last, _ := utf8.DecodeLastRune(b[i:after])
		s.before.mark(last)
	default:
		if b[i] == '\\' {
			return s.mathematics()
		}
		if b[i] == '[' && s.before.atMargin() && !s.before.bounded {
			c := cursor{b: b, at: i, left: maxMarker, final: true}
			s.before.definition = c.definition()
		}
		s.literal(1)
	}
	s.looked = 0
	return true
}

// boundary finds "[cite_start]" and "[cite_end]".
func (s *Scanner) boundary() (after int, v verdict) {
	if s.profile == Strict {
		return 0, no
	}
	c := cursor{b: s.b, at: s.i, left: maxMarker, final: s.final}
	v = c.decide(c.word("[cite_") && (c.word("start]") || c.word("end]")))
	return c.at, v
}

// literal passes n characters as text.
func (s *Scanner) literal(n int) {
	for range n {
		r, size := utf8.DecodeRune(s.b[s.i:])
		s.before.step(r)
		s.i += size
	}
}

// verbatim passes n bytes in which nothing is a marker.
func (s *Scanner) verbatim(n int, code bool) {
	s.give(false)
	text := s.b[s.i : s.i+n]
	if bytes.IndexByte(text, '\n') >= 0 {
		s.before.step('\n')
	}
	s.before.step(rune(text[n-1])) // a delimiter, after which nothing before it counts
	if code {
		s.giveCode(n)
		return
	}
	s.i += n
	s.give(false)
}

// text reads ordinary text up to the next character that may begin something
// else, and reports whether it may be special. White space is where the text
// before a list of sources ends.
func (s *Scanner) text() bool {
	i, special := s.ordinary(s.b, s.i)
	s.i = i
	return special
}

func (s *Scanner) ordinary(b []byte, i int) (after int, special bool) {
	x := &s.before
	for i < len(b) {
		switch c := b[i]; classes[c] {
		case classLetter:
			from := i
			for i++; i < len(b) && classes[b[i]] == classLetter; i++ {
			}
			x.letters(b[from:i])
		case classSpace:
			if s.cited && (i+1 == len(b) || classes[b[i+1]] >= classSpace && startsSpace(b[i+1:])) {
				return i, false
			}
			x.space()
			i++
		case classSpecial:
			if s.opens(b[i:]) {
				return i, true
			}
			x.step(rune(c))
			i++
		case classWide:
			r, size := utf8.DecodeRune(b[i:])
			if s.profile == Default && isPunctuation(r) && forms[r] != nil {
				return i, true
			}
			if s.cited && unicode.IsSpace(r) {
				return i, false
			}
			x.step(r)
			i += size
		default:
			if s.cited && (c == '\n' || classes[c] == classWhite) {
				return i, false
			}
			x.step(rune(c))
			i++
		}
	}
	return i, false
}

// opens reports whether b may begin something else than text.
func (s *Scanner) opens(b []byte) bool {
	switch b[0] {
	case '[':
		return true
	case '`':
		return !s.before.backslash
	case '~':
		return s.before.prefix == prefixTildes
	}
	if s.profile == Strict || len(b) == 1 {
		return s.profile == Default
	}
	switch next := b[1]; b[0] {
	case '\\':
		return next == '(' || next == '['
	case '<':
		return classes[next] == classLetter
	case '(':
		return next == ' ' || classes[next] == classLetter || classes[next] == classWide
	}
	return true
}

// startsSpace reports whether b begins with white space.
func startsSpace(b []byte) bool {
	switch classes[b[0]] {
	case classSpace, classLine, classWhite:
		return true
	case classWide:
		r, _ := utf8.DecodeRune(b)
		return unicode.IsSpace(r)
	}
	return false
}
