package marker

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A context is what the scanner knows of the text before a place. The zero value
// is the start of a text.
type context struct {
	// base is the last character except combining marks; 0 at the start.
	base     rune
	combined bool // combining marks are after it
	marked   bool // directly after a marker
	data     bool // the last character except spaces is one before data

	// The last word on the line, for the glue test.
	word     bool // a word ends here
	name     [8]byte
	size     int  // its length; one above that of name if it is longer
	solid    bool // it has more than "_"
	snake    bool // it has "_" after that
	operated bool // it does not begin with a number and follows an operator
	operator bool // the last character except spaces is an operator
	gap      bool // spaces follow that character
	inked    bool // the line has more than white space

	indent    int  // spaces since the start of the line
	indented  bool // the line has more than spaces
	backslash bool // an odd number of backslashes is before this place
	prefix    prefix
	digits    int // of the list marker that is being read

	bounded    bool // the line has a [cite_start], of which the other fields know nothing
	definition bool // the line begins like the definition of a footnote
}

// A prefix says whether a fenced block can open here: the line so far must
// consist of spaces, tabs, ">" and list markers.
type prefix uint8

const (
	prefixOpen   prefix = iota // a fence can open here
	prefixNumber               // in the digits of a list marker
	prefixMarked               // after a list marker, before its space
	prefixTilde                // after one ~
	prefixTildes               // after two
	prefixNone                 // not on this line
)

// The classes of bytes.
const (
	classOther  = iota
	classLetter // ASCII letters
	classDigit
	classSpace
	classLine
	classWhite // other white space
	classSpecial
	classWide // part of a character beyond ASCII
)

var classes = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= utf8.RuneSelf:
			t[c] = classWide
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			t[c] = classLetter
		case '0' <= c && c <= '9':
			t[c] = classDigit
		case c == ' ':
			t[c] = classSpace
		case c == '\n':
			t[c] = classLine
		case c == '\t', c == '\v', c == '\f', c == '\r':
			t[c] = classWhite
		case strings.ContainsRune("[`~(<\\$", rune(c)):
			t[c] = classSpecial
		}
	}
	return t
}()

// letters records a run of ASCII letters.
func (x *context) letters(run []byte) {
	if !x.word {
		x.startWord(false)
	}
	x.spell(run)
	x.solid = true
	x.base, x.combined, x.marked, x.data = rune(run[len(run)-1]), false, false, false
	x.indented = true
	x.backslash = false
	x.prefix = prefixNone
}

func (x *context) startWord(number bool) {
	x.word, x.size, x.solid, x.snake = true, 0, false, false
	x.operated = x.operator && x.gap && !number
	x.operator, x.gap, x.inked = false, false, true
}

// spell adds letters to the word.
func (x *context) spell(letters []byte) {
	if x.size < len(x.name) {
		copy(x.name[x.size:], letters)
	}
	x.size = min(x.size+len(letters), len(x.name)+1)
}

// spelled returns the last word in lower case, "" if there is none or it is long.
func (x *context) spelled() string {
	if x.size > len(x.name) {
		return ""
	}
	return strings.ToLower(string(x.name[:x.size]))
}

// mark records a marker that ends in last.
func (x *context) mark(last rune) {
	x.other(']')
	x.base, x.marked, x.data = last, true, false
	x.inked = true
	x.indented = true
	x.backslash = false
	x.prefix = prefixNone
}

// step records one character.
func (x *context) step(r rune) {
	switch {
	case r == '\n':
		*x = context{base: r}
		return
	case r == ' ':
		x.space()
		return
	}
	x.indented = true
	x.backslash = r == '\\' && !x.backslash
	if x.prefix != prefixNone {
		x.stepPrefix(r)
	}
	part, mark := wordPart(r)
	if !part {
		x.other(r)
		return
	}
	if !x.word {
		x.startWord(unicode.IsNumber(r))
	}
	x.wordPart(r, mark)
}

// wordPart records a character of a word.
func (x *context) wordPart(r rune, mark bool) {
	switch {
	case r == '_':
		x.snake = x.snake || x.solid
		x.spell([]byte{'_'})
	case r < utf8.RuneSelf:
		x.solid = true
		x.spell([]byte{byte(r)})
	default:
		x.solid = true
		x.size = len(x.name) + 1
		if mark {
			x.combined = true
			return
		}
	}
	x.base, x.combined, x.marked, x.data = r, false, false, false
}

// space records a space.
func (x *context) space() {
	x.word, x.gap = false, true
	x.base, x.combined, x.marked = ' ', false, false
	x.backslash = false
	if !x.indented {
		x.indent++
	}
	if x.prefix == prefixMarked {
		x.prefix = prefixOpen
	} else if x.prefix != prefixOpen {
		x.prefix = prefixNone
	}
}

// other records a character that is neither space, line end nor part of a word.
func (x *context) other(r rune) {
	switch r {
	case '=':
		x.operator = x.inked
	case '+', '*', '/', '<', '>':
		x.operator = x.inked && x.gap
	default:
		x.operator = false
	}
	switch r {
	case '=', '[', '{':
		x.data = true
	case ':':
		x.data = (x.base == '"' || x.base == '\'') && !x.combined
	case ',':
		x.data = x.base == ']' && !x.combined && !x.marked
	default:
		x.data = false
	}
	x.word, x.gap, x.size = false, false, 0
	x.inked = x.inked || !unicode.IsSpace(r)
	x.base, x.combined, x.marked = max(r, 1), false, false // a NUL is not the start of the text
}

func (x *context) stepPrefix(r rune) {
	p := x.prefix
	x.prefix = prefixNone
	switch {
	case p == prefixNone:
	case r == '\t':
		if p == prefixOpen || p == prefixMarked {
			x.prefix = prefixOpen
		}
	case p == prefixOpen && r == '>':
		x.prefix = prefixOpen
	case p == prefixOpen && (r == '-' || r == '*' || r == '+'):
		x.prefix = prefixMarked
	case p == prefixOpen && r == '~':
		x.prefix = prefixTilde
	case p == prefixTilde && r == '~':
		x.prefix = prefixTildes
	case (p == prefixOpen || p == prefixNumber) && '0' <= r && r <= '9':
		if p == prefixOpen {
			x.digits = 0
		}
		if x.digits++; x.digits <= 9 {
			x.prefix = prefixNumber
		}
	case p == prefixNumber && (r == '.' || r == ')'):
		x.prefix = prefixMarked
	}
}

// wordPart reports whether r is a letter, a combining mark, a number or "_".
func wordPart(r rune) (part, mark bool) {
	if r < utf8.RuneSelf {
		c := classes[r]
		return c == classLetter || c == classDigit || r == '_', false
	}
	if unicode.IsLetter(r) || unicode.IsNumber(r) {
		return true, false
	}
	mark = unicode.IsMark(r)
	return mark, mark
}

// atMargin reports whether only spaces are before this place on its line, and
// few enough for a definition.
func (x *context) atMargin() bool { return !x.indented && x.indent <= maxSpaces }

// A fit says whether a bare marker in square brackets may follow a character.
type fit uint8

const (
	fitNever fit = iota
	fitGlued     // if the glue test holds
	fitAlways
)

func (x *context) fit() fit {
	r := x.base
	switch {
	case x.marked || r == 0 || unicode.IsSpace(r):
		return fitAlways
	case strings.ContainsRune(".,;:!?\"'(*|%`…–—”’»›、。，；：！？）（」』】》〉〕・", r):
		return fitAlways
	case unicode.In(r, unicode.Lo, unicode.Lm, unicode.So) || 0x1F3FB <= r && r <= 0x1F3FF:
		return fitAlways
	case r == ')' || isCased(r) || unicode.IsNumber(r) || unicode.Is(unicode.Sc, r):
		return fitGlued
	}
	return fitNever
}

// isCased reports whether r is a letter with case.
func isCased(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt)
}

func isCasedOrNumber(r rune) bool { return isCased(r) || unicode.IsNumber(r) }
