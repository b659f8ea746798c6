package marker

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A form is a way to write a marker: its delimiters, its contents and the context that it
// needs. The first form that matches at an offset decides.
type form struct {
	open, close string
	contents    contents // ignored for the forms that have reading functions
	place       place
	following   string // characters allowed after the first "]" and a space; empty allows any
}

// contents is a set of what a form may have between its delimiters, besides numbers and
// separators.
type contents uint16

const (
	dagger     contents = 1 << iota // a number and the name of its source: 9†handbook.pdf
	carets                          // footnotes: ^1, ^2
	names                           // the name of the source at the end: 1: The handbook
	keyed                           // a word must precede the first number: Source 1
	brackets                        // the numbers must be in square brackets, in one pair or several
	bracketed                       // the numbers may be in square brackets
	seed                            // only [1](id=2)
	strictSeed                      // only [1](id=2), exactly as the model was asked to write it
	pair                            // only [1]-[2]
)

// A place is the context that a form needs.
type place uint8

const (
	placeAnywhere    place = iota
	placeNotBroken         // anywhere except before the second half of a broken seed form
	placeInProse           // like placeNotBroken, but not if square brackets are code, data or Markdown there
	placeAfterProse        // after characters that may precede a marker in prose
	placeAfterInText       // not at the start of a line and not in XML data
)

// forms has all forms of the default profile, by first byte.
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

// strictForms has the forms of the strict profile: the exact seed form.
var (
	strictForms = []form{{open: "[", contents: strictSeed}}
	strict      = regexp.MustCompile(`^\[(?:\p{Nd}+|NUMBER)\]\(id=\p{Nd}*\)$`)
)

// A reading is the result of reading a marker.
type reading struct {
	known     int
	ids       []int // known ids
	invalid   bool  // it has a number that cannot be in a list of ids
	anyMarker bool  // also read markers that cite nothing
	items     int

	sure  bool // it must be a citation, although it may have no known id
	key   bool // it has "id=" or a word before a number
	named bool // it ends in the name of its source
}

func (m *reading) reset() {
	*m = reading{known: m.known, ids: m.ids[:0], anyMarker: m.anyMarker}
}

// cites reports whether the numbers cite documents.
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

// label reads the first brackets of a seed form, which are ignored, and the spaces after them.
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

// contents reads the contents of a marker and its closing delimiter.
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

// list reads numbers and separators.
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
		if c.peek() == ']' { // the usual end
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

// key reads an optional key before a number: "id=", "#" in square brackets, or one or two words
// such as "source".
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

// keyJoint reads the separator between a word and a number and reports whether it has a colon.
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

// separator reads the separator of two numbers.
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

// conjunction reads an optional "and" after a comma.
func (c *cursor) conjunction() {
	saved := *c
	if !(c.accept('&') || c.acceptWord("and")) || c.spaces() == 0 {
		c.restore(saved)
	}
}

// place reads a place in a source: ", p. 4-6", " lines 3 and 4", "第4页".
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

// pages reads a sequence of numbers, with abbreviations for "and following".
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

// A grammar has the forms of a profile, for a text that may cite the ids 1 to known.
type grammar struct {
	profile Profile
	known   int
}

// formsAt returns the forms that b may begin with.
func (g grammar) formsAt(b []byte) []form {
	switch {
	case len(b) == 0:
		return nil
	case g.profile == Strict:
		return strictForms
	}
	return forms[b[0]]
}

// formAt reads the first matching form and returns where it ends. short reports whether more
// text could match another form.
func (g grammar) formAt(c cursor, m *reading) (f *form, after cursor, short bool) {
	fs := g.formsAt(c.b[c.at:])
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

// afterBracket returns the character after the first "]" nearby, or after "] "; [end] if it is
// not known.
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

// citesKnown reports whether a label cites a known id, ignoring its context.
func (g grammar) citesKnown(label []byte) bool {
	m := reading{known: g.known}
	for c := (cursor{b: label, left: len(label), final: true}); c.peek() != end; c.next() {
		if f, _, _ := g.formAt(c, &m); f != nil && m.cites() && len(m.ids) > 0 {
			return true
		}
	}
	return false
}

// anyMarker reads a marker in square brackets, even one that cites nothing, and reports whether
// one was there.
func (g grammar) anyMarker(c *cursor) bool {
	if !strings.ContainsRune(`[\【［〔`, c.peek()) {
		return false
	}
	f, _, short := g.formAt(*c, &reading{anyMarker: true})
	c.short = c.short || short
	return f != nil && !short
}
