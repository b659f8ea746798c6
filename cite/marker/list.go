package marker

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// The limits of a list of sources by the model, in characters.
const (
	maxList = 4096 // the longest list that is dropped
	maxLine = 400  // a line of the list
)

// An ownList is the state of a possible list of sources that the model added to its answer, and
// of the white space before it. Offsets are relative to the start of that white space, the
// first byte held.
type ownList struct {
	active   bool
	inLine   bool // the current line began before the white space
	line     int  // start of the current line
	seen     int  // number of its bytes read that are white space or part of a rule
	blank    bool // the line before is blank
	ruled    bool // the current line is a rule and white space
	rule     bool // a rule was read
	found    bool // a line of the list was read
	end      int  // end of the last line of the list
	chars    int  // characters of the list
	headed   bool // the list has a heading
	entries  bool // the list has an entry
	stays    bool // the list is too long to be dropped
	noDefine bool // it may not begin with a definition
}

type line uint8

const (
	lineOpen line = iota // undecided
	lineBlank
	lineRule
	lineHeading
	lineDefinition
	lineEntry
	lineOther
)

// findOwnList decides whether a list of sources ends the text. It reports false if more text is
// needed. It is called at the start of white space or of a line.
func (s *Scanner) findOwnList() bool {
	o := &s.list
	if !o.active {
		*o = ownList{active: true, inLine: s.state != stateLine, noDefine: s.definition}
		s.emitText()
	}
	for {
		rest := s.b[s.i+o.line:]
		if len(rest) == 0 && s.final {
			s.endList()
			return true
		}
		n := bytes.IndexByte(rest[o.seen:], '\n')
		text, complete := rest, s.final
		if n >= 0 {
			text, complete = rest[:o.seen+n], true
		}
		kind := s.lineKind(text, complete)
		switch kind {
		case lineOpen:
			if o.found && !o.stays && o.chars+utf8.RuneCount(rest) > maxList {
				s.passList()
				o.stays = true
			}
			return false
		case lineOther:
			s.leaveList()
			return true
		}
		s.addLine(kind, len(text), n >= 0)
		if o.stays {
			s.passList()
		}
	}
}

// addLine adds a line to the list, or to the lines before the list.
func (s *Scanner) addLine(kind line, n int, ended bool) {
	o := &s.list
	switch kind {
	case lineBlank:
		o.blank = !o.inLine
	case lineRule:
		o.rule = true
	default:
		o.found = true
		o.headed = o.headed || kind == lineHeading
		o.entries = o.entries || kind != lineHeading
		o.end = o.line + n
	}
	if ended {
		n++
	}
	if o.found && !o.stays {
		o.chars += utf8.RuneCount(s.b[s.i+o.line : s.i+o.line+n])
	}
	o.line += n
	o.seen, o.inLine, o.ruled = 0, false, false
	o.stays = o.stays || o.found && o.chars > maxList
}

// passList emits the lines of a list that is not dropped.
func (s *Scanner) passList() {
	o := &s.list
	if o.end == 0 {
		return
	}
	last := s.b[s.i : s.i+o.end]
	last = last[bytes.LastIndexByte(last, '\n')+1:]
	c := cursor{b: last, left: maxLine, final: true}
	s.i += o.end
	s.emitText()
	s.beginLine(s.i - len(last))
	s.definition = c.definition()
	o.line -= o.end
	o.end = 0
}

// leaveList ends a list that is not dropped, or white space without a list.
func (s *Scanner) leaveList() {
	found := s.list.found
	s.passList()
	s.list = ownList{}
	for !found && s.i < len(s.b) && startsSpace(s.b[s.i:]) {
		s.passLiteral()
	}
}

// endList ends a list at the end of the text.
func (s *Scanner) endList() {
	if o := &s.list; o.entries && !o.stays {
		s.i = len(s.b)
		s.from = s.i
		s.list = ownList{}
		return
	}
	s.leaveList()
}

// lineKind returns the kind of a line, as far as it is decided before the line is complete.
func (s *Scanner) lineKind(text []byte, complete bool) line {
	o := &s.list
	space := o.seen
	for space < len(text) && startsSpace(text[space:]) {
		_, size := utf8.DecodeRune(text[space:])
		space += size
	}
	if !o.ruled {
		o.seen = space
	}
	if space == len(text) && !o.ruled {
		if complete {
			return lineBlank
		}
		return lineOpen
	}
	if o.inLine {
		return lineOther
	}
	text = bytes.TrimSuffix(text, []byte("\r"))
	c := cursor{b: text, left: maxLine + 1, final: complete}
	if o.blank && !o.rule && !o.found {
		switch v := o.isRule(text, complete); {
		case v == yes:
			return lineRule
		case v == undecided:
			return lineOpen
		}
	}
	if len(text) > maxLine && utf8.RuneCount(text) > maxLine {
		return lineOther
	}
	kind, short := s.partKind(c)
	if short || kind != lineOther && !complete {
		return lineOpen
	}
	return kind
}

// partKind returns which part of a list a line is, and whether more text could change it.
func (s *Scanner) partKind(c cursor) (kind line, short bool) {
	o := &s.list
	kind = lineOther
	if h := c; h.heading() {
		kind = lineHeading
	} else if short = h.short; o.found || o.rule || !o.noDefine {
		if d := c; d.definition() {
			kind = lineDefinition
		} else {
			short = short || d.short
		}
	}
	if kind == lineOther && o.headed {
		if e := c; s.entry(&e) {
			kind = lineEntry
		} else {
			short = short || e.short
		}
	}
	return kind, short
}

// isRule decides whether a line is a rule of "-", "*" or "_".
func (o *ownList) isRule(text []byte, complete bool) verdict {
	c := cursor{b: text, left: len(text) + 1, final: complete}
	c.spaces()
	r, n := c.peek(), 0
	if r != '-' && r != '*' && r != '_' {
		return c.decide(false)
	}
	for c.accept(r) {
		n++
	}
	if n > 80 || n < 3 && c.peek() != end {
		return no
	}
	if o.seen > c.at {
		c.at = o.seen // read a long run of white space once, not with every piece
	}
	for unicode.IsSpace(c.peek()) {
		c.next()
	}
	if c.peek() == end && n >= 3 {
		o.seen, o.ruled = c.at, true
	}
	return c.decide(n >= 3 && c.peek() == end)
}

// heading reads a heading of a list of sources.
func (c *cursor) heading() bool {
	for range maxSpaces {
		c.oneOf(" \t")
	}
	n := 0
	for n <= 6 && c.accept('#') {
		n++
	}
	if n > 6 || n > 0 && !c.spacing() {
		return false
	}
	c.emphasis()
	for _, w := range headings[fold(c.peek())] {
		saved := *c
		if c.acceptWord(w) && c.headingEnd() || c.restore(saved) {
			return true
		}
	}
	return false
}

func (c *cursor) headingEnd() bool {
	for range 2 {
		c.spaces()
		c.oneOf(":：")
		c.emphasis()
	}
	c.spacing()
	return c.peek() == end && !c.short
}

// definition reads the beginning of the definition of a footnote.
func (c *cursor) definition() bool {
	c.spaces()
	if !c.acceptWord("[^") {
		return false
	}
	_, ok := c.number()
	return ok && c.acceptWord("]:")
}

// entry reads an entry of a list of sources.
func (g grammar) entry(c *cursor) bool {
	c.spacing()
	saved := *c
	bullet := c.oneOf("-*+•") && c.spacing()
	if !bullet {
		c.restore(saved)
		if bullet = c.accept('・'); bullet {
			c.spacing()
		}
	}
	saved = *c
	c.emphasis()
	if g.anyMarker(c) {
		return true
	}
	if c.ordinal() {
		if c.emphasis(); c.oneOf(" \t") && g.label(c) {
			return true
		}
	}
	c.restore(saved)
	return bullet && g.label(c)
}

// ordinal reads "1.", "2)" or "(3)".
func (c *cursor) ordinal() bool {
	round := c.accept('(')
	n := 0
	for n < 4 && c.oneOf("0123456789") {
		n++
	}
	if n == 0 || n > 3 {
		return false
	}
	return round && c.accept(')') || !round && c.oneOf(".)")
}

// label reports whether the text from here on is the name of a source, which cites nothing.
func (g grammar) label(c *cursor) bool {
	rest := c.b[c.at:]
	if !c.final {
		c.short = true
		return false
	}
	return len(bytes.TrimSpace(rest)) > 0 && !g.citesKnown(rest)
}

// emphasis reads up to three "*" or "_".
func (c *cursor) emphasis() {
	for range 3 {
		c.oneOf("*_")
	}
}

// spacing skips spaces and tabs and reports whether there were any.
func (c *cursor) spacing() bool {
	ok := false
	for c.oneOf(" \t") {
		ok = true
	}
	return ok
}

// startsSpace reports whether b begins with white space.
func startsSpace(b []byte) bool {
	r, _ := utf8.DecodeRune(b)
	return unicode.IsSpace(r)
}
