package marker

import (
	"unicode"
	"unicode/utf8"
)

// The bounds of the grammar, in characters.
const (
	maxMarker = 200 // a marker, without the spaces before it
	maxChain  = 200 // a chain of markers that passes the glue test
	maxSpaces = 3   // spaces between the parts of a marker
	maxRange  = 10  // ids in a range a-b
)

// maxNumber represents every number that is too large to be an id.
const maxNumber = 1 << 30

// end is what a cursor reads at the end of the text, or of the part that it may
// read. It matches nothing.
const end rune = -1

// A cursor reads a text from a place on. It sets short at the end of a text that
// may continue: what failed to match is then undecided.
type cursor struct {
	b     []byte
	at    int
	left  int  // characters that may still be read
	final bool // nothing comes after b
	short bool
}

func (c *cursor) peek() rune {
	if c.left == 0 {
		return end
	}
	if c.at >= len(c.b) {
		c.short = !c.final
		return end
	}
	if r := c.b[c.at]; r < utf8.RuneSelf {
		return rune(r)
	}
	r, _ := utf8.DecodeRune(c.b[c.at:])
	return r
}

// next moves past the character that peek returned.
func (c *cursor) next() {
	if c.b[c.at] < utf8.RuneSelf {
		c.at++
	} else {
		_, size := utf8.DecodeRune(c.b[c.at:])
		c.at += size
	}
	c.left--
}

func (c *cursor) accept(r rune) bool {
	if c.peek() != r {
		return false
	}
	c.next()
	return true
}

// word accepts an ASCII word in any case; w is in lower case.
func (c *cursor) word(w string) bool {
	for _, r := range w {
		if lower(c.peek()) != r {
			return false
		}
		c.next()
	}
	return true
}

func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// spaces accepts up to maxSpaces spaces and returns their number.
func (c *cursor) spaces() int {
	n := 0
	for n < maxSpaces && c.accept(' ') {
		n++
	}
	return n
}

// number reads one or more decimal digits of any script.
func (c *cursor) number() (n int, ok bool) {
	for {
		d := digit(c.peek())
		if d < 0 {
			return n, ok
		}
		c.next()
		n, ok = min(n*10+d, maxNumber), true
	}
}

// digit returns the value of a decimal digit (category Nd), or -1. Such digits
// come in rows of ten from zero on, so every range of the category begins with a
// zero.
func digit(r rune) int {
	if '0' <= r && r <= '9' {
		return int(r - '0')
	}
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10
		}
	}
	return -1
}

func isDash(r rune) bool { return r == '-' || r == '–' }

func isQuote(r rune) bool { return r == '"' || r == '\'' }

func isSeparator(r rune) bool {
	switch r {
	case ',', ';', '，', '；', '、':
		return true
	}
	return false
}

// A list collects the ids of one marker.
type list struct {
	known int
	ids   []int // the known ones
	bad   bool  // it has an unknown id or a bad range
}

func (l *list) add(id int) {
	if id < 1 || id > l.known {
		l.bad = true
		return
	}
	l.ids = append(l.ids, id)
}

func (l *list) addRange(a, b int) {
	if a >= b || b-a+1 > maxRange {
		l.bad = true
		return
	}
	for id := a; id <= b; id++ {
		l.add(id)
	}
}

// strictSeed reads "[" (digits or NUMBER) "](id=" digits ")".
func (c *cursor) strictSeed(l *list) bool {
	if !c.accept('[') {
		return false
	}
	if c.peek() == 'N' {
		if !c.exactly("NUMBER") {
			return false
		}
	} else if _, ok := c.number(); !ok {
		return false
	}
	if !c.exactly("](id=") {
		return false
	}
	if n, ok := c.number(); ok {
		l.add(n)
	}
	return c.accept(')')
}

func (c *cursor) exactly(w string) bool {
	for _, r := range w {
		if !c.accept(r) {
			return false
		}
	}
	return true
}

// seed reads "[" SP label SP "]" [space] "(" SP key [ list SP ] ")".
func (c *cursor) seed(l *list) bool {
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
	if !c.key() {
		return false
	}
	if c.accept(')') {
		return true
	}
	if quote := c.peek(); isQuote(quote) {
		c.next()
		if c.accept(quote) {
			c.spaces()
			return c.accept(')')
		}
	}
	for {
		if !c.item(l, true) {
			return false
		}
		if !isSeparator(c.peek()) {
			return c.accept(')')
		}
		c.next()
		c.spaces()
		if lower(c.peek()) == 'i' && !c.key() {
			return false
		}
		if isQuote(c.peek()) {
			c.next()
		}
	}
}

// label reads the inside of the first brackets of a seed, which is ignored, with
// the spaces after it.
func (c *cursor) label() bool {
	if lower(c.peek()) == 'n' {
		if !c.word("number") {
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
		if r := c.peek(); r != ',' && r != ';' && !isDash(r) {
			return true
		}
		c.next()
		c.spaces()
	}
}

// key reads ("id" | "ids") SP ("=" | ":") SP.
func (c *cursor) key() bool {
	if !c.keyStart() {
		return false
	}
	c.spaces()
	return true
}

func (c *cursor) keyStart() bool {
	if !c.word("id") {
		return false
	}
	if lower(c.peek()) == 's' {
		c.next()
	}
	c.spaces()
	return c.accept('=') || c.accept(':')
}

// item reads a number or a range, its closing quote if quotes are allowed, and
// the spaces after it.
func (c *cursor) item(l *list, quotes bool) bool {
	a, ok := c.number()
	if !ok {
		return false
	}
	if n := c.spaces(); isDash(c.peek()) {
		c.next()
		c.spaces()
		b, ok := c.number()
		if !ok {
			return false
		}
		l.addRange(a, b)
	} else {
		l.add(a)
		if n > 0 {
			return true
		}
	}
	if quotes && isQuote(c.peek()) {
		c.next()
	}
	c.spaces()
	return true
}

// bare reads "[" body "]" or "【" body "】". It fails at an unknown id.
func (c *cursor) bare(l *list) bool {
	closing := ']'
	if c.accept('【') {
		closing = '】'
	} else if !c.accept('[') {
		return false
	}
	c.spaces()
	for {
		if lower(c.peek()) == 'i' && !c.key() {
			return false
		}
		if !c.item(l, false) || l.bad && !c.short {
			return false
		}
		if !isSeparator(c.peek()) {
			return c.accept(closing)
		}
		c.next()
		c.spaces()
	}
}
