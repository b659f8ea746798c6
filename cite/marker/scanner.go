package marker

import "unicode/utf8"

// A Scanner finds the markers in one text. Make one with [NewScanner].
type Scanner struct {
	profile Profile
	known   int

	held   []byte // the undecided end of the text so far
	state  state
	before context // the text before held
	looked int     // bytes of held that need not be read again to decide about its first character
	ids    []int   // of the marker last matched

	ticks    int  // state ticks, span, fence: length of the opening run
	fences   bool // states ticks, span: the run may open a fenced block
	distance int  // state span: characters read
	run      int  // state span: length of the run of backticks being read
	fence    fence
}

type state uint8

const (
	stateText  state = iota
	stateTicks       // in a run of backticks that may open code
	stateSpan        // after such a run, before it is known whether it does
	stateFence       // in a fenced block
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
	*s = Scanner{profile: s.profile, known: s.known, held: s.held[:0], ids: s.ids}
}

// Held returns the number of undecided characters.
func (s *Scanner) Held() int { return utf8.RuneCount(s.held) }

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
	from, i := 0, 0 // b[from:i] is decided text that take has not received
	give := func(code bool) {
		if from < i {
			take(Token{Text: b[from:i], Code: code})
			from = i
		}
	}
	for i < len(b) || final && s.state == stateSpan {
		switch s.state {
		case stateText:
			i = s.text(b, i)
			if i == len(b) {
				break
			}
			switch b[i] {
			case '`':
				s.state, s.ticks, s.fences = stateTicks, 0, s.before.prefix == prefixOpen
			case '~': // the third of a line's first run
				give(false)
				s.before.step('~')
				i++
				s.state, s.ticks, s.fence = stateFence, 3, fence{char: '~', at: fenceOpening}
			default:
				ids := list{known: s.known, ids: s.ids[:0]}
				v, after := s.match(b, i, &ids, false, final)
				s.ids = ids.ids
				switch v {
				case undecided:
					give(false)
					return i
				case yes:
					give(false)
					take(Token{Marker: true, IDs: s.ids, Text: b[i:after]})
					s.before.mark()
					i = after
					from = i
				case no:
					c := cursor{b: b, at: i, left: 1}
					s.before.step(c.peek())
					c.next()
					i = c.at
				}
				s.looked = 0
			}
		case stateTicks:
			for i < len(b) && b[i] == '`' {
				s.before.step('`')
				s.ticks++
				i++
			}
			if i < len(b) {
				s.state = stateSpan
				s.looked, s.distance, s.run = 0, 0, 0
				s.fences = s.fences && s.ticks >= 3
			}
		case stateSpan:
			after, kind := s.span(b[i:], final)
			switch kind {
			case spanUndecided:
				give(false)
				return i
			case spanCode:
				give(false)
				s.over(b[i : i+after])
				i += after
				give(true)
				s.state = stateText
			case spanText:
				s.state = stateText
			case spanFence:
				give(false)
				s.state, s.fence = stateFence, fence{char: '`', at: fenceOpened}
			}
			s.looked = 0
		case stateFence:
			give(false)
			n, closed := s.fence.scan(b[i:], &s.ticks)
			i += n
			give(true)
			if closed {
				s.state = stateText
				s.before = context{base: '\n'}
			}
		}
	}
	give(false)
	return i
}

// text reads ordinary text up to the next character that may begin something
// else.
func (s *Scanner) text(b []byte, i int) int {
	x := &s.before
	for i < len(b) {
		switch c := b[i]; classes[c] {
		case classLetter:
			for i++; i < len(b) && classes[b[i]] == classLetter; i++ {
			}
			x.letters(rune(b[i-1]))
		case classSpace:
			x.space()
			i++
		case classSpecial:
			switch {
			case c == '[',
				c == '`' && !x.backslash,
				c == '~' && x.prefix == prefixTildes:
				return i
			}
			x.step(rune(c))
			i++
		case classWide:
			r, size := utf8.DecodeRune(b[i:])
			if r == '【' && s.profile == Default {
				return i
			}
			x.step(r)
			i += size
		default:
			x.step(rune(c))
			i++
		}
	}
	return i
}

// over records a code span.
func (s *Scanner) over(b []byte) {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		s.before.step(r)
		b = b[size:]
	}
}

type verdict uint8

const (
	undecided verdict = iota
	yes
	no
)

// match decides whether there is a marker at b[at], and where it ends; it adds
// its ids to an empty list. chained means that another marker is directly before
// it.
func (s *Scanner) match(b []byte, at int, ids *list, chained, final bool) (v verdict, after int) {
	c := cursor{b: b, at: at, left: maxMarker, final: final}
	seed := false
	if s.profile == Strict {
		seed = c.strictSeed(ids)
	} else {
		seed = c.seed(ids)
	}
	switch {
	case seed:
		return yes, c.at
	case c.short:
		return undecided, 0
	case s.profile == Strict:
		return no, 0
	}

	fit := fitAlways
	if b[at] == '[' && !chained {
		if fit = s.before.fit(); fit == fitNever {
			return no, 0
		}
	}
	ids.ids, ids.bad = ids.ids[:0], false
	v, after = s.bare(b, at, ids, chained, final)
	if v == yes && fit == fitGlued {
		v = s.glue(b, at, after, final)
	}
	return v, after
}

// bare decides whether the bare form is at b[at], whatever is before it. after is
// its end if that was seen, otherwise 0.
func (s *Scanner) bare(b []byte, at int, ids *list, chained, final bool) (v verdict, after int) {
	c := cursor{b: b, at: at, left: maxMarker, final: final}
	if !c.bare(ids) {
		return c.decide(false), 0
	}
	if ids.bad {
		return no, 0
	}
	after = c.at
	c = cursor{b: b, at: after, left: len(b), final: final}
	if b[at] == '[' {
		switch r := c.peek(); {
		case r == '(': // a link
			return no, 0
		case r == ':' && !chained && !s.before.indented && s.before.indent <= 3: // a reference definition
			return no, 0
		}
	}
	switch c.brokenSeed() {
	case yes:
		return no, 0
	case undecided:
		return undecided, after
	}
	return yes, after
}

// brokenSeed finds the second half of a seed form.
func (c *cursor) brokenSeed() verdict {
	if !c.accept(' ') {
		c.accept('\n')
	}
	if !c.accept('(') {
		return c.decide(false)
	}
	c.spaces()
	return c.decide(c.keyStart())
}
