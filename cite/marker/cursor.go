package marker

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of the grammar, in characters.
const (
	maxMarker  = 200 // a marker, without the spaces before it
	maxChain   = 200 // a chain of markers that passes the glue test
	maxSpaces  = 3   // spaces between the parts of a marker
	maxRange   = 10  // ids in a range a-b
	maxUnknown = 999 // a number that may be an unknown id
	maxDagger  = 160 // the text after a dagger
	minName    = 3   // the name of a source after its number, at least
	maxName    = 80
)

// maxNumber represents every number that is too large to be an id.
const maxNumber = 1 << 30

// end is the rune that a cursor reads at the end of the text, or of the part that it may
// read. It matches nothing.
const end rune = -1

// A cursor reads a text from an offset. It sets short at the end of a text that may continue: a
// failed match is then undecided.
type cursor struct {
	b     []byte
	at    int
	left  int  // characters that may still be read
	final bool // b is the end of the text
	short bool
}

func (c *cursor) peek() rune {
	if c.left > 0 && c.at < len(c.b) && c.b[c.at] < utf8.RuneSelf {
		return rune(c.b[c.at])
	}
	return c.peekWide()
}

func (c *cursor) peekWide() rune {
	if c.left == 0 {
		return end
	}
	if c.at >= len(c.b) {
		c.short = !c.final
		return end
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

// acceptWord accepts a word in any case; w must be in lower case.
func (c *cursor) acceptWord(w string) bool {
	for _, r := range w {
		if fold(c.peek()) != r {
			return false
		}
		c.next()
	}
	return true
}

// restore returns to a saved position after a failed attempt and reports false.
func (c *cursor) restore(saved cursor) bool {
	saved.short = saved.short || c.short
	*c = saved
	return false
}

// oneOf accepts a character of the set.
func (c *cursor) oneOf(set string) bool {
	if !strings.ContainsRune(set, c.peek()) {
		return false
	}
	c.next()
	return true
}

type verdict uint8

const (
	undecided verdict = iota
	yes
	no
)

// decide returns the verdict of a test that ended at the cursor's position.
func (c *cursor) decide(holds bool) verdict {
	switch {
	case c.short:
		return undecided
	case holds:
		return yes
	}
	return no
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
		d := digitValue(c.peek())
		if d < 0 {
			return n, ok
		}
		c.next()
		n, ok = min(n*10+d, maxNumber), true
	}
}

// digitValue returns the value of a decimal digit (category Nd), or -1. Every range of the
// category begins with a zero and has rows of ten.
func digitValue(r rune) int {
	if '0' <= r && r <= '9' {
		return int(r - '0')
	}
	if r < utf8.RuneSelf || !unicode.Is(unicode.Nd, r) {
		return -1
	}
	first := r
	for unicode.Is(unicode.Nd, first-1) {
		first--
	}
	return int(r-first) % 10
}
