package rewrite

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Neutral gives text that a model wrote as text that is nothing else: no
// Markdown renderer, HTML parser, finder of links or terminal makes a link, an
// image, an element or a command of it. What an answer says goes through the
// same while it streams (see [Number]); this is for the rest, an error that
// quotes a model server for one. Of most texts it changes nothing, and of its
// own results never.
//
// What is not seen and yet acts is taken out: control characters, bidirectional
// controls, invisible and tag characters. A space is put in where a reader of
// Markdown, HTML or addresses would see more than words:
//
//	](      ] (        no link has a target
//	[a]:    [a] :      at the start of a line: no target is defined
//	![      ! [        no image
//	<a      < a        nor before "/", "!" and "?": no element, no comment
//	&lt;    &l t ;     no character reference (&#60; &colon; &lt)
//	a@b     a@ b       no address of mail
//	//a     // a       no host
//	data:a  data: a    no scheme that readers know
//
// An address that begins with http, https or ftp loses that, and one that begins
// with "www." loses that, so that it reads well: "https://a.b/c" is "a.b/c". Code is no
// exception, since readers do not agree on where code is.
func Neutral(text string) string {
	var d decoder
	var n neutralizer
	b := d.clean([]byte(text))
	return string(n.close(n.append(make([]byte, 0, len(b)+8), b)))
}

// MarkdownText gives words of a document, such as a title, as text for a line of
// Markdown, the text of a link included: [Neutral], on one line, and with
// every sign that Markdown might act on escaped.
func MarkdownText(words string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(Neutral(words)), " ") {
		if r < utf8.RuneSelf && strings.IndexByte("\\`*_[]<>|~&!$#{}", byte(r)) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// A neutralizer is the part of [Neutral] behind the cleaner, for a text that
// comes in pieces. It works on what is given out, never on what came in, so
// that nothing can be put together out of parts by what is taken from between
// them. It holds back only the beginning of a word that may be one of leads:
// eight bytes at most.
type neutralizer struct {
	held    []byte // the beginning of one of leads
	swallow bool   // a scheme was taken out: the slashes behind it go too

	// The end of what was given out.
	prev      byte     // the last byte; 0 before the first
	tail      [12]byte // the last bytes of earlier calls, for the name of a scheme
	slashes   uint8    // slashes in a row, 2 at most
	www       uint8    // letters of "www", 4 behind its full stop
	mail      bool     // an at sign behind what can name a mailbox
	scheme    scheme   // behind the colon of a known scheme
	reference uint8    // bytes of what may be a character reference, "&" included; 0 outside one
	escaped   bool     // behind a backslash that is not escaped itself
	inked     bool     // the line has begun with something that no definition of a link can stand behind
	label     label
}

// A label is the place in what may be the definition of a link's target: "[a]: b".
type label uint8

const (
	labelNone  label = iota
	labelOpen        // behind the bracket that opens it, at the start of a line
	labelEnded       // behind a bracket that may close it, on that line
)

// leads are what an address begins with that loses it.
var leads = [...]string{"https://", "http://", "ftp://", "www."}

// longestScheme is the length of the longest name that schemeOf knows.
const longestScheme = len("view-source")

// A scheme is what kind of address begins with a name.
type scheme uint8

const (
	schemeNone  scheme = iota
	schemeOther        // what follows may be anything
	schemeWeb          // what follows is slashes, more or fewer, and a host
)

// schemeOf gives the kind of a scheme by its name in lower case: those that lead
// to a host, that readers of Markdown link without slashes, or that run or carry
// something.
func schemeOf(name string) scheme {
	switch name {
	case "http", "https", "ftp", "ftps", "sftp", "file", "smb", "ws", "wss":
		return schemeWeb
	case "mailto", "xmpp", "tel", "sms", "callto", "sip", "skype",
		"javascript", "vbscript", "livescript", "data", "blob", "about", "filesystem", "view-source", "jar", "intent",
		"ms-msdt", "ms-word", "ms-excel", "search-ms", "vscode":
		return schemeOther
	}
	return schemeNone
}

// append takes the next piece of the text, cut between characters, and appends
// to dst what is decided by now.
func (n *neutralizer) append(dst, b []byte) []byte {
	base := len(dst)
	for _, c := range b {
		dst = n.take(dst, base, c)
	}
	n.remember(dst[base:])
	return dst
}

// print appends a printed reference as it is: it begins with a bracket and
// ends with one.
func (n *neutralizer) print(dst, mark []byte) []byte {
	base := len(dst)
	for _, c := range mark {
		n.step(dst[base:], c)
		dst = append(dst, c)
	}
	n.remember(dst[base:])
	return dst
}

// before decides what is held, as for a text that goes on with c, and makes room
// for it.
func (n *neutralizer) before(dst []byte, c byte) []byte {
	base := len(dst)
	dst = n.decide(dst, base, c)
	if n.breaks(c) {
		dst = n.give(dst, base, ' ')
	}
	n.remember(dst[base:])
	return dst
}

// close ends the text: what is held is given.
func (n *neutralizer) close(dst []byte) []byte {
	base := len(dst)
	dst = n.release(dst, base)
	n.remember(dst[base:])
	return dst
}

// take takes one byte.
func (n *neutralizer) take(dst []byte, base int, c byte) []byte {
	dst = n.decide(dst, base, c)
	if n.swallow {
		return dst
	}
	if len(n.held) > 0 || begins(nil, c) && (!inScheme(n.prev) || n.breaks(c)) {
		n.held = append(n.held, c)
		return dst
	}
	return n.give(dst, base, c)
}

// decide decides what is held when c comes next: all of it goes on being held,
// is given or is dropped.
func (n *neutralizer) decide(dst []byte, base int, c byte) []byte {
	if n.swallow {
		if n.swallow = isSlash(c); n.swallow {
			return dst
		}
	}
	if len(n.held) == 0 || begins(n.held, c) {
		return dst
	}
	switch n.held[len(n.held)-1] {
	case '/':
		if len(n.held) < len("ftp://") || n.held[len(n.held)-2] != '/' {
			break
		}
		if isSlash(c) || opensHost(c) {
			n.held = n.held[:0]
			n.swallow = isSlash(c)
			return dst
		}
	case '.':
		if opensHost(c) {
			n.held = n.held[:0]
			return dst
		}
	}
	return n.release(dst, base)
}

func (n *neutralizer) release(dst []byte, base int) []byte {
	for _, c := range n.held {
		dst = n.give(dst, base, c)
	}
	n.held = n.held[:0]
	return dst
}

// begins says whether c behind what is held goes on with one of leads.
func begins(held []byte, c byte) bool {
	for _, lead := range leads {
		if len(held) < len(lead) && lead[len(held)] == lowered(c) && strings.EqualFold(lead[:len(held)], string(held)) {
			return true
		}
	}
	return false
}

// give appends c, with a space before it if it would complete more than words.
func (n *neutralizer) give(dst []byte, base int, c byte) []byte {
	if n.breaks(c) {
		n.step(dst[base:], ' ')
		dst = append(dst, ' ')
	}
	n.step(dst[base:], c)
	return append(dst, c)
}

// breaks says whether c must not stand directly behind what was given.
func (n *neutralizer) breaks(c byte) bool {
	if c == ' ' || c == '\n' || c == '\t' {
		return false
	}
	switch n.prev {
	case '<':
		if isAlpha(c) || c == '/' || c == '!' || c == '?' {
			return true
		}
	case ']':
		if c == '(' || c == ':' && n.label != labelNone {
			return true
		}
	case '!':
		if c == '[' {
			return true
		}
	}
	switch {
	case n.slashes == 2 && c != '/' && opensHost(c):
		return true
	case n.www == 4 && opensHost(c):
		return true
	case n.mail && (isAlpha(c) || isDigit(c) || c >= utf8.RuneSelf || c == '_' || c == '-'):
		return true
	case n.scheme == schemeOther || n.scheme == schemeWeb && c != '/':
		return true
	case n.reference == 1:
		return c == '#'
	case n.reference > 1:
		// &lt and &gt are read without a semicolon too.
		return c == ';' || n.reference == 2 && lowered(c) == 't' && (lowered(n.prev) == 'l' || lowered(n.prev) == 'g')
	}
	return false
}

// step notes that c is given behind given, which is all of this call.
func (n *neutralizer) step(given []byte, c byte) {
	// A reader of Markdown takes a backslash out.
	switch {
	case c == '/' && n.scheme == schemeWeb:
		n.slashes = 2 // one will do
	case c == '/':
		n.slashes = min(n.slashes+1, 2)
	case c != '\\':
		n.slashes = 0
	}
	switch {
	case lowered(c) == 'w' && n.www < 4:
		n.www = min(n.www+1, 3)
	case lowered(c) == 'w':
		n.www = 1
	case c == '.' && n.www == 3:
		n.www = 4
	case c != '\\' || n.www != 3:
		n.www = 0
	}
	n.mail = c == '@' && namesMailbox(n.prev)
	n.scheme = schemeNone
	if c == ':' {
		n.scheme = n.endsIn(given)
	}
	const longestReference = 33 // with "&": &CounterClockwiseContourIntegral;
	switch {
	case c == '&':
		n.reference = 1
	case n.reference > 0 && n.reference < longestReference && (isAlpha(c) || isDigit(c)):
		n.reference++
	default:
		n.reference = 0
	}
	n.line(c)
	n.escaped = c == '\\' && !n.escaped
	n.prev = c
}

// line notes what c is to the definition of a link's target. A definition
// begins at the start of a line, behind the signs of lists, quotes and tables
// at most; its label may go over line ends, but has no brackets in it. Readers
// that are less strict end it at any bracket of the line.
func (n *neutralizer) line(c byte) {
	switch {
	case c == '\n':
		if n.label == labelEnded {
			n.label = labelNone
		}
		n.inked = false
	case c == '[' && !n.inked:
		n.label, n.inked = labelOpen, true
	case c == '[' && n.label == labelOpen && !n.escaped:
		n.label = labelEnded
	case c == ']' && n.label == labelOpen && !n.escaped:
		n.label = labelEnded
	case n.inked:
	case '0' <= c && c <= '9', strings.IndexByte(" \t>-*+.)|#~:_", c) >= 0:
	default:
		n.inked = true
	}
}

// endsIn gives the kind of the scheme that what was given ends in the name of.
func (n *neutralizer) endsIn(given []byte) scheme {
	if len(given) < len(n.tail) {
		given = append(n.tail[:len(n.tail):len(n.tail)], given...)
	}
	given = bytes.TrimRight(given, `\`)
	first := len(given)
	for first > 0 && len(given)-first < longestScheme && (isAlpha(given[first-1]) || given[first-1] == '-') {
		first--
	}
	for i := first; i < len(given); i++ {
		// A name begins where no letter or digit stands before it.
		if i > 0 && (isAlpha(given[i-1]) || isDigit(given[i-1])) {
			continue
		}
		if kind := schemeOf(strings.ToLower(string(given[i:]))); kind != schemeNone {
			return kind
		}
	}
	return schemeNone
}

// remember keeps the last bytes given for calls to come.
func (n *neutralizer) remember(given []byte) {
	k := copy(n.tail[:], n.tail[min(len(given), len(n.tail)):])
	copy(n.tail[k:], given[len(given)-(len(n.tail)-k):])
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }

// opensHost says whether c can follow slashes in an address: neither white
// space nor what closes or ends something.
func opensHost(c byte) bool { return c > ' ' && strings.IndexByte("/)]}\"'`>,;|*", c) < 0 }

// inScheme says whether c can stand in the name of a scheme, or of a host.
func inScheme(c byte) bool {
	return isAlpha(c) || isDigit(c) || c == '+' || c == '.' || c == '-'
}

// namesMailbox says whether c can stand before the at sign of an address.
func namesMailbox(c byte) bool {
	return isAlpha(c) || isDigit(c) || c >= utf8.RuneSelf || strings.IndexByte(`-;:&=+$,._%!#?^~\`, c) >= 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func lowered(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}
