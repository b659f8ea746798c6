package marker

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A form is a way to write a marker: what opens it, what is in it, what closes it
// and where it may be. At each place the first form that matches decides.
type form struct {
	open, close string
	contents    contents // what is between, unless it is one of the forms that are read by rules of their own
	place       place
	following   string // what follows its first "]" and a space, one of these; empty for anything
}

// An inside says what may be between the ends of a form, besides numbers with
// separators between them.
type contents uint16

const (
	dagger     contents = 1 << iota // a number and the name of its source: 9†handbook.pdf
	carets                          // footnotes: ^1, ^2
	names                           // the name of the source at the end: 1: The handbook
	keyed                           // the first number must have a word before it: Source 1
	brackets                        // the numbers are in square brackets, perhaps several
	bracketed                       // or may be
	seed                            // [1](id=2), alone
	strictSeed                      // the same as the model was asked for it
	pair                            // [1]-[2], alone
)

// A place says where a form is a marker.
type place uint8

const (
	placeAnywhere    place = iota
	placeNotBroken         // anywhere but before the second half of a broken seed form
	placeInProse           // nor where square brackets are code, data or Markdown
	placeAfterProse        // after what is before any marker in prose
	placeAfterInText       // not at the start of a line and not in XML data
)

// forms are all forms of the default profile, by their first byte.
var forms = func() (t [256][]form) {
	const square = dagger | carets | names
	for _, f := range []form{
		{open: "[", contents: seed, following: "("},
		{open: "[[", close: "]]", contents: square, place: placeInProse},
		{open: "[", contents: pair, place: placeInProse, following: allDashes},
		{open: "[", close: "]", contents: square, place: placeInProse},
		{open: `\[`, close: `\]`, contents: square, place: placeInProse},
		{open: "【", close: "】", contents: square, place: placeNotBroken},
		{open: "［", close: "］", contents: square, place: placeNotBroken},
		{open: "〔", close: "〕", contents: square, place: placeNotBroken},
		{open: "(", close: ")", contents: keyed | names, place: placeAfterProse},
		{open: "（", close: "）", contents: keyed | names},
		{open: "<cite>", close: "</cite>", contents: carets | bracketed, place: placeAfterInText},
		{open: "<citation>", close: "</citation>", contents: carets | bracketed, place: placeAfterInText},
		{open: "<source>", close: "</source>", contents: carets | bracketed, place: placeAfterInText},
		{open: "<ref>", close: "</ref>", contents: carets | bracketed, place: placeAfterInText},
		{open: "<sup>", close: "</sup>", contents: carets | brackets},
	} {
		first := f.open[0]
		t[first] = append(t[first], f)
	}
	return t
}()

// strictForms are those of the strict profile: the seed form without liberties.
var (
	strictForms = []form{{open: "[", contents: strictSeed}}
	strict      = regexp.MustCompile(`^\[(?:\p{Nd}+|NUMBER)\]\(id=\p{Nd}*\)$`)
)

// A reading is what was read of a marker.
type reading struct {
	known     int
	ids       []int // the known ones
	invalid   bool  // it has a number that no list of ids has
	anyMarker bool  // read also markers that can cite nothing
	items     int

	sure  bool // it can be nothing but a citation: its ids are the known ones, perhaps none
	key   bool // it has "id=" or a word before a number
	named bool // it ends in the name of its source
}

func (m *reading) reset() {
	*m = reading{known: m.known, ids: m.ids[:0], anyMarker: m.anyMarker}
}

// cites reports whether its numbers are those of a marker.
func (m *reading) cites() bool { return m.sure || len(m.ids) > 0 && !m.invalid }

func (m *reading) add(id int) {
	m.items++
	switch {
	case 1 <= id && id <= m.known:
		m.ids = append(m.ids, id)
	case id < 1 || id > maxUnknown:
		m.invalid = true
	}
}

func (m *reading) addRange(a, b int) {
	m.items++
	if a >= b || b-a+1 > maxRange {
		m.invalid = true
		return
	}
	for id := a; id <= b; id++ {
		if 1 <= id && id <= m.known {
			m.ids = append(m.ids, id)
		} else {
			m.invalid = true
		}
	}
}

const (
	dashes     = "-–"
	allDashes  = "-–‐‑—−"
	separators = ",;，；、"
	quotes     = `"'`
	squares    = "[]【】［］〔〕"
)

// read reads a marker of a form.
func (c *cursor) read(f *form, m *reading) bool {
	m.reset()
	switch {
	case f.contents&seed != 0:
		return c.seed(m)
	case f.contents&strictSeed != 0:
		from := c.at
		return c.seed(m) && strict.Match(c.b[from:c.at])
	case f.contents&pair != 0:
		return c.pair(m)
	}
	return c.acceptWord(f.open) && c.contents(f, m)
}

// seed reads "[" SP label SP "]" [space] "(" SP key [ list SP ] ")".
func (c *cursor) seed(m *reading) bool {
	m.sure = true
	if !c.accept('[') {
		return false
	}
	c.spaces()
	if !c.label() || !c.accept(']') {
		return false
	}
	c.accept(' ')
	if !c.accept('(') {
		return false
	}
	c.spaces()
	if !c.id() {
		return false
	}
	if c.accept(')') {
		return true
	}
	if quote := c.peek(); c.oneOf(quotes) {
		if c.accept(quote) {
			c.spaces()
			return c.accept(')')
		}
	}
	for {
		if !c.item(m, dashes) {
			return false
		}
		c.oneOf(quotes)
		c.spaces()
		if !c.oneOf(separators) {
			return c.accept(')')
		}
		c.spaces()
		if fold(c.peek()) == 'i' && !c.id() {
			return false
		}
		c.oneOf(quotes)
	}
}

// label reads the inside of the first brackets of a seed, which is ignored, with
// the spaces after it.
func (c *cursor) label() bool {
	if fold(c.peek()) == 'n' {
		if !c.acceptWord("number") {
			return false
		}
		c.spaces()
		return true
	}
	c.accept('^')
	for {
		if _, ok := c.number(); !ok {
			return false
		}
		c.spaces()
		if !c.oneOf(",;" + dashes) {
			return true
		}
		c.spaces()
	}
}

// id reads ("id" | "ids") SP ("=" | ":") SP.
func (c *cursor) id() bool {
	if !c.idStart() {
		return false
	}
	c.spaces()
	return true
}

func (c *cursor) idStart() bool {
	if !c.acceptWord("id") {
		return false
	}
	if fold(c.peek()) == 's' {
		c.next()
	}
	c.spaces()
	return c.accept('=') || c.accept(':')
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
	return c.decide(c.idStart())
}

// pair reads a range in two pairs of brackets: "[" SP number SP "]" dash "[" SP
// number SP "]".
func (c *cursor) pair(m *reading) bool {
	var ends [2]int
	for i := range ends {
		if i == 1 && !c.oneOf(allDashes) || !c.accept('[') {
			return false
		}
		c.spaces()
		n, ok := c.number()
		if !ok {
			return false
		}
		c.spaces()
		if !c.accept(']') {
			return false
		}
		ends[i] = n
	}
	m.addRange(ends[0], ends[1])
	after := *c
	after.left = maxMarker
	broken := after.peek() == '(' || after.brokenSeed() != no
	c.short = c.short || after.short
	return !broken && (m.cites() || m.anyMarker)
}

// contents reads what is between the ends of a marker, and its end.
func (c *cursor) contents(f *form, m *reading) bool {
	saved := *c
	switch {
	case f.contents&brackets != 0:
		return c.lists(f, m) && c.acceptWord(f.close)
	case f.contents&bracketed != 0:
		c.spaces()
		if c.accept('[') {
			ok := c.list(f, m) && c.accept(']')
			c.spaces()
			return ok && c.acceptWord(f.close)
		}
		c.restore(saved)
	case f.contents&dagger != 0:
		if c.dagger(f, m) || c.restore(saved) {
			return true
		}
		m.reset()
	}
	return c.list(f, m) && c.acceptWord(f.close)
}

// dagger reads SP ( number | "NUMBER" ) [ SP ":" SP number ] SP "†" text and the
// closing bracket.
func (c *cursor) dagger(f *form, m *reading) bool {
	c.spaces()
	m.sure, m.key = true, true
	if n, ok := c.number(); ok {
		m.add(n)
	} else if !c.acceptWord("number") {
		return false
	}
	c.spaces()
	if c.accept(':') {
		c.spaces()
		if _, ok := c.number(); !ok {
			return false
		}
		c.spaces()
	}
	if !c.accept('†') {
		return false
	}
	for n := 0; ; n++ {
		saved := *c
		if c.acceptWord(f.close) || c.restore(saved) {
			return true
		}
		if r := c.peek(); n == maxDagger || r == end || r == '\n' || strings.ContainsRune(squares, r) {
			return false
		}
		c.next()
	}
}

// lists reads SP "[" list "]" { SP [","] SP "[" list "]" } SP.
func (c *cursor) lists(f *form, m *reading) bool {
	c.spaces()
	for {
		if !c.accept('[') || !c.list(f, m) || !c.accept(']') {
			return false
		}
		c.spaces()
		comma := c.accept(',')
		if c.spaces(); !comma && c.peek() != '[' {
			return true
		}
	}
}

// list reads numbers with what separates them.
func (c *cursor) list(f *form, m *reading) bool {
	c.spaces()
	if f.contents&carets != 0 && c.peek() == '^' {
		for c.accept('^') {
			n, ok := c.number()
			if !ok {
				return false
			}
			m.add(n)
			c.accept('^')
			c.spaces()
			if !c.oneOf(separators) {
				return true
			}
			c.spaces()
		}
		return false
	}
	for first := true; ; first = false {
		if !c.key(f, m, first) || !c.item(m, allDashes) || m.invalid && !m.sure && !m.anyMarker {
			return false
		}
		if c.peek() == ']' { // most end here
			return true
		}
		saved := *c
		if c.place() || c.restore(saved) {
			saved = *c
			if c.spaces(); !c.oneOf(";；") {
				c.restore(saved)
				break
			}
			c.spaces()
			c.conjunction()
			continue
		}
		if !c.separator() {
			c.restore(saved)
			break
		}
	}
	saved := *c
	if f.contents&names != 0 && (c.name() || c.restore(saved)) {
		m.named = true
	} else {
		c.spaces()
	}
	return true
}

// key reads what may be before a number: "id=", "#" in square brackets, or one or two
// words such as "source".
func (c *cursor) key(f *form, m *reading, first bool) bool {
	must := first && f.contents&keyed != 0
	if digitValue(c.peek()) >= 0 {
		return !must
	}
	m.key = true
	if fold(c.peek()) == 'i' && !must {
		return c.id()
	}
	if f.contents&dagger != 0 && c.accept('#') {
		return digitValue(c.peek()) >= 0
	}
	for _, w := range keys[fold(c.peek())] {
		saved := *c
		if !c.acceptWord(w) {
			c.restore(saved)
			continue
		}
		colon := c.keyJoint()
		if digitValue(c.peek()) >= 0 || c.secondKey() {
			m.sure = m.sure || first && colon && f.contents&dagger != 0 && (w == "cite" || w == "citation")
			return true
		}
		c.restore(saved)
	}
	return false
}

func (c *cursor) secondKey() bool {
	for _, w := range keys[fold(c.peek())] {
		saved := *c
		if c.acceptWord(w) {
			c.keyJoint()
			if digitValue(c.peek()) >= 0 {
				return true
			}
		}
		c.restore(saved)
	}
	return false
}

// keyJoint reads what joins a word and a number, and reports whether it has a colon.
func (c *cursor) keyJoint() (colon bool) {
	c.spaces()
	r := c.peek()
	if c.oneOf(":：=._-") {
		c.spaces()
	}
	c.accept('#')
	return r == ':' || r == '：'
}

// item reads a number or a range.
func (c *cursor) item(m *reading, dashes string) bool {
	a, ok := c.number()
	if !ok {
		return false
	}
	saved := *c
	if c.spaces(); !c.oneOf(dashes) {
		c.restore(saved)
		m.add(a)
		return true
	}
	c.spaces()
	b, ok := c.number()
	m.addRange(a, b)
	return ok
}

// separator reads what is between two numbers.
func (c *cursor) separator() bool {
	n := c.spaces()
	switch {
	case c.oneOf(separators):
		c.spaces()
		c.conjunction()
		return true
	case c.oneOf("&和与與及と및"):
		c.spaces()
		return true
	case n == 0:
		return false
	}
	for _, w := range conjunctions[fold(c.peek())] {
		saved := *c
		if c.acceptWord(w) && c.spaces() > 0 || c.restore(saved) {
			return true
		}
	}
	return false
}

// conjunction reads an "and" after a comma.
func (c *cursor) conjunction() {
	saved := *c
	if !(c.accept('&') || c.acceptWord("and")) || c.spaces() == 0 {
		c.restore(saved)
	}
}

// place reads where in a source: ", p. 4-6", " lines 3 and 4", "第4页".
func (c *cursor) place() bool {
	n := c.spaces()
	if c.oneOf(",，") {
		c.spaces()
	} else if n == 0 {
		return false
	}
	if c.accept('第') {
		c.spaces()
		_, ok := c.number()
		c.spaces()
		c.oneOf("页頁章节節条條")
		return ok
	}
	for _, w := range locators[fold(c.peek())] {
		saved := *c
		if c.acceptWord(w) && (c.accept('.') || w != "s") {
			c.spaces()
			if c.pages() {
				return true
			}
		}
		c.restore(saved)
	}
	return false
}

// pages reads numbers as long as they go, and what means "and following".
func (c *cursor) pages() bool {
	_, ok := c.number()
	for goes := ok; goes; {
		saved := *c
		if goes = c.nextPage(); !goes {
			c.restore(saved)
		}
	}
	if ok && c.acceptWord("f") {
		c.acceptWord("f")
		c.accept('.')
	}
	return ok
}

func (c *cursor) nextPage() bool {
	if !c.accept('.') {
		if c.spaces(); !c.oneOf(allDashes + ",，") {
			return false
		}
		c.spaces()
	}
	_, ok := c.number()
	return ok
}

// name reads the name of a source after its number: ": The handbook".
func (c *cursor) name() bool {
	c.spaces()
	if c.accept('：') {
		c.spaces()
	} else if !c.accept(':') || c.spaces() == 0 {
		return false
	}
	if !unicode.IsLetter(c.peek()) {
		return false
	}
	n := 0
	for r := c.peek(); r != end && !strings.ContainsRune(squares+"\\(){}<>（）`\n", r); r = c.peek() {
		c.next()
		n++
	}
	return minName <= n && n <= maxName
}

// formsAt returns the forms that may begin at a place.
func (s *Scanner) formsAt(b []byte) []form {
	switch {
	case len(b) == 0:
		return nil
	case s.profile == Strict:
		return strictForms
	}
	return forms[b[0]]
}

// formAt reads the first form that is here, and returns where it ends. short
// reports that more text may make it another.
func (s *Scanner) formAt(c cursor, m *reading) (f *form, after cursor, short bool) {
	fs := s.formsAt(c.b[c.at:])
	then := afterBracket(c.b[c.at:])
	for i := range fs {
		if then != end && fs[i].following != "" && !strings.ContainsRune(fs[i].following, then) {
			continue
		}
		after = c
		after.left = maxMarker
		if after.read(&fs[i], m) {
			return &fs[i], after, short
		}
		short = short || after.short
	}
	return nil, c, short || c.short
}

// afterBracket returns the character after the first "]" near, or after a space there;
// [end] if it is not known.
func afterBracket(b []byte) rune {
	b = b[:min(len(b), 24)]
	i := bytes.IndexByte(b, ']') + 1
	if i > 0 && i < len(b) && b[i] == ' ' {
		i++
	}
	if i == 0 || !utf8.FullRune(b[i:]) {
		return end
	}
	r, _ := utf8.DecodeRune(b[i:])
	return r
}

// citesKnown reports whether a label of a list cites a known id, whatever is
// around it.
func (s *Scanner) citesKnown(label []byte) bool {
	m := reading{known: s.known}
	for c := (cursor{b: label, left: len(label), final: true}); c.peek() != end; c.next() {
		if f, _, _ := s.formAt(c, &m); f != nil && m.cites() && len(m.ids) > 0 {
			return true
		}
	}
	return false
}

// anyMarker reads any marker in square brackets, also one that cites nothing, and
// reports whether one is here.
func (s *Scanner) anyMarker(c *cursor) bool {
	if !strings.ContainsRune(`[\【［〔`, c.peek()) {
		return false
	}
	f, _, short := s.formAt(*c, &reading{anyMarker: true})
	c.short = c.short || short
	return f != nil && !short
}
