package rewrite

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Neutral returns text that a model wrote as mere text: no Markdown renderer,
// HTML parser, finder of links or terminal makes a link, an image, an element or
// a command of it. It is for places that others show as Markdown, and for messages.
// A [Neutralizer] does the same to a text that streams. Most texts are unchanged,
// and so are its own results.
//
// Invisible characters that act are removed: control characters, bidirectional
// controls, tag characters. A space is added where a reader of Markdown, HTML or
// addresses would see more than words:
//
//	](      ] (        no link has a target
//	[a]:    [a] :      at the start of a line: no target is defined
//	![      ! [        no image
//	<a      < a        also before "/", "!" and "?": no element, no comment
//	&lt;    &l t ;     no character reference (&#60; &colon; &lt)
//	a@b     a@ b       no mail address
//	//a     // a       no host
//	data:a  data: a    no scheme that readers know
//
// Addresses lose https://, http://, ftp:// and www. at their beginning, so that
// they read well: "https://a.b/c" becomes "a.b/c". Code is no exception, since
// readers do not agree on where code is.
func Neutral(text string) string {
	var n Neutralizer
	return string(n.Close(n.Append(make([]byte, 0, len(text)+8), []byte(text))))
}

// A Neutralizer makes a text that comes in pieces [Neutral]. Its zero value is ready
// to use.
type Neutralizer struct {
	decoder decoder
	text    neutralizer
}

// Append appends what is decided after the next piece, cut anywhere.
func (n *Neutralizer) Append(dst, piece []byte) []byte {
	return n.text.append(dst, n.decoder.decode(piece))
}

// AppendNumber appends the printed number of a source, and returns where it is.
func (n *Neutralizer) AppendNumber(dst, number []byte) (out []byte, start int) {
	dst = n.text.append(dst, n.decoder.end())
	dst = n.text.before(dst, number[0])
	return n.text.print(dst, number), len(dst)
}

// Close appends what was held back.
func (n *Neutralizer) Close(dst []byte) []byte {
	return n.text.release(n.text.append(dst, n.decoder.end()))
}

// MarkdownText returns words of a document, such as a title, as text for a line
// of Markdown, also inside a link: [Neutral], on one line, and with every sign
// escaped that Markdown might act on.
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

// A neutralizer makes a text that comes in pieces [Neutral], after a decoder. It
// decides by its own output, never by the input, so that removing a part cannot
// join the parts around it into something else. It holds back at most eight
// bytes: what may be the beginning of one of leads.
type neutralizer struct {
	held    []byte // the beginning of one of leads
	swallow bool   // a scheme was removed, and the slashes after it are too
	dull    bool   // nothing is held, and the last byte of the piece was dull

	tail    []byte // the last bytes of the output
	escaped bool   // after a backslash that is not escaped itself
	inked   bool   // the line has begun with something that no definition of a link can follow
	label   label
}

// maxTail is the number of output bytes that the neutralizer looks back on: "&"
// and the longest name of a character reference.
const maxTail = 33

// A label is the place in what may be the definition of a link's target: "[a]: b".
type label uint8

const (
	labelNone  label = iota
	labelOpen        // after the bracket that opens it, at the start of a line
	labelEnded       // after a bracket that may close it, on that line
)

// leads are beginnings of addresses that are removed.
var leads = [...]string{"https://", "http://", "ftp://", "www."}

var (
	wwwEnd       = regexp.MustCompile(`(?i)www\\*\.$`)
	ltEnd        = regexp.MustCompile(`(?i)&[lg]$`)
	referenceEnd = regexp.MustCompile(`&[a-zA-Z0-9]{1,32}$`)
	// The schemes that lead to a host, after any number of slashes.
	webSchemes = strings.Fields("http https ftp ftps sftp file smb ws wss")
	// Schemes that are linked without slashes, or run or carry something.
	otherSchemes = strings.Fields(`mailto xmpp tel sms callto sip skype javascript vbscript livescript data blob about filesystem
		view-source jar intent ms-msdt ms-word ms-excel search-ms vscode`)
)

// append appends to dst what is decided after the next piece of the text, cut
// between characters.
func (n *neutralizer) append(dst, b []byte) []byte {
	for _, c := range b {
		if isDull(c) && n.dull {
			dst = n.emit(dst, c)
		} else {
			dst = n.appendByte(dst, c)
		}
		n.dull = isDull(c) && len(n.held) == 0 && !n.swallow
	}
	return dst
}

// isDull reports whether c, after another such byte, needs no decision. Most
// bytes of a text are.
func isDull(c byte) bool {
	return c == ' ' || c >= utf8.RuneSelf || isDigit(c) || isAlpha(c) && strings.IndexByte("fhtwFHTW", c) < 0
}

// print appends a printed number unchanged. It begins and ends with a bracket.
func (n *neutralizer) print(dst, number []byte) []byte {
	n.dull = false
	for _, c := range number {
		dst = n.emit(dst, c)
	}
	return dst
}

// before decides what is held as if c came next, and makes room for it.
func (n *neutralizer) before(dst []byte, c byte) []byte {
	n.dull = false
	dst = n.decide(dst, c)
	if n.breaks(c) {
		dst = n.emit(dst, ' ')
	}
	return dst
}

func (n *neutralizer) appendByte(dst []byte, c byte) []byte {
	dst = n.decide(dst, c)
	if n.swallow {
		return dst
	}
	if len(n.held) > 0 || begins(nil, c) && (len(n.tail) == 0 || !inScheme(n.tail[len(n.tail)-1]) || n.breaks(c)) {
		n.held = append(n.held, c)
		return dst
	}
	return n.add(dst, c)
}

// decide decides what is held when c comes next: it stays held, is appended or
// is dropped.
func (n *neutralizer) decide(dst []byte, c byte) []byte {
	if n.swallow {
		if n.swallow = isSlash(c); n.swallow {
			return dst
		}
	}
	if len(n.held) == 0 || begins(n.held, c) {
		return dst
	}
	switch {
	case bytes.HasSuffix(n.held, []byte("//")) && (isSlash(c) || opensHost(c)):
		n.held = n.held[:0]
		n.swallow = isSlash(c)
		return dst
	case bytes.HasSuffix(n.held, []byte(".")) && opensHost(c):
		n.held = n.held[:0]
		return dst
	}
	return n.release(dst)
}

// release appends what is held.
func (n *neutralizer) release(dst []byte) []byte {
	for _, c := range n.held {
		dst = n.add(dst, c)
	}
	n.held = n.held[:0]
	return dst
}

// begins reports whether c after what is held continues one of leads.
func begins(held []byte, c byte) bool {
	for _, lead := range leads {
		if len(held) < len(lead) && lead[len(held)] == lowered(c) && strings.EqualFold(lead[:len(held)], string(held)) {
			return true
		}
	}
	return false
}

// add appends c, after a space if it would complete more than words.
func (n *neutralizer) add(dst []byte, c byte) []byte {
	if n.breaks(c) {
		dst = n.emit(dst, ' ')
	}
	return n.emit(dst, c)
}

// breaks reports whether c must not directly follow the output. Readers of
// Markdown remove backslashes, so these do not separate slashes.
func (n *neutralizer) breaks(c byte) bool {
	if c == ' ' || c == '\n' || c == '\t' || len(n.tail) == 0 {
		return false
	}
	last := len(n.tail) - 1
	switch prev := n.tail[last]; prev {
	case '<', ']', '!', '&':
		return n.breaksMarkup(prev, c)
	case '/', '\\':
		return c != '/' && opensHost(c) && n.endsInSlashes()
	case '.':
		return opensHost(c) && wwwEnd.Match(n.tail)
	case '@':
		return last > 0 && namesMailbox(n.tail[last-1]) && (inScheme(c) && c != '+' && c != '.' || c >= utf8.RuneSelf || c == '_')
	case ':':
		return c != '/' && n.hasScheme(n.tail[:last], webSchemes) || n.hasScheme(n.tail[:last], otherSchemes)
	default: // &lt and &gt are read without a semicolon too
		return c == ';' && referenceEnd.Match(n.tail) || lowered(c) == 't' && ltEnd.Match(n.tail)
	}
}

// breaksMarkup is breaks for signs of Markdown and HTML.
func (n *neutralizer) breaksMarkup(prev, c byte) bool {
	switch prev {
	case '<':
		return isAlpha(c) || c == '/' || c == '!' || c == '?'
	case ']':
		return c == '(' || c == ':' && n.label != labelNone
	case '!':
		return c == '['
	default:
		return c == '#'
	}
}

// endsInSlashes reports whether the output ends in slashes that a host may
// follow: two, or one after a scheme.
func (n *neutralizer) endsInSlashes() bool {
	before := bytes.TrimRight(n.tail, `/\`)
	run := n.tail[len(before):]
	before, afterColon := bytes.CutSuffix(before, []byte(":"))
	return bytes.Count(run, []byte("/")) > 1 || afterColon && run[0] == '/' && n.hasScheme(before, webSchemes)
}

// hasScheme reports whether output ends in one of the names of schemes. A name
// begins where no letter or digit is before it.
func (n *neutralizer) hasScheme(output []byte, names []string) bool {
	output = bytes.TrimRight(output, `\`)
	return slices.ContainsFunc(names, func(name string) bool {
		at := len(output) - len(name)
		return at >= 0 && strings.EqualFold(name, string(output[at:])) &&
			(at == 0 || !isAlpha(output[at-1]) && !isDigit(output[at-1]))
	})
}

// emit appends a byte.
func (n *neutralizer) emit(dst []byte, c byte) []byte {
	n.note(c)
	n.escaped = c == '\\' && !n.escaped
	if len(n.tail) == 2*maxTail {
		n.tail = n.tail[:copy(n.tail, n.tail[maxTail:])]
	}
	n.tail = append(n.tail, c)
	return append(dst, c)
}

// note notes what c means for the definition of a link's target. A definition
// begins at the start of a line, after the signs of lists, quotes and tables at
// most; its label may span lines, but has no brackets in it. Lenient readers end
// it at any bracket of the line.
func (n *neutralizer) note(c byte) {
	switch {
	case c == '\n':
		if n.label == labelEnded {
			n.label = labelNone
		}
		n.inked = false
	case c == '[' && !n.inked:
		n.label, n.inked = labelOpen, true
	case (c == '[' || c == ']') && n.label == labelOpen && !n.escaped:
		n.label = labelEnded
	case n.inked:
	case isDigit(c), strings.IndexByte(" \t>-*+.)|#~:_", c) >= 0:
	default:
		n.inked = true
	}
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }

// opensHost reports whether c can follow slashes in an address: neither white
// space nor what closes or ends something.
func opensHost(c byte) bool { return c > ' ' && strings.IndexByte("/)]}\"'`>,;|*", c) < 0 }

// inScheme reports whether c can be in the name of a scheme or of a host.
func inScheme(c byte) bool { return isAlpha(c) || isDigit(c) || c == '+' || c == '.' || c == '-' }

// namesMailbox reports whether c can precede the at sign of an address.
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
