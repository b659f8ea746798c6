package rewrite

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An Escaper prints a text for clients that render Markdown, while it streams: the rendered
// words are the same, without links, images or elements. The zero value is ready to use.
//
// Addresses, HTML and character references become code, which no renderer makes active:
//
//	https://a.b/c     `https://a.b/c`
//	#include <a.h>    #include `<a.h>`
//
// It puts a backslash, which renderers remove, before characters that would form a link, an
// image or a link definition ("](", "![", "]:"), and before backticks and tildes that may not
// be code. Text that all renderers treat as code is unchanged: fenced blocks, code spans on one
// line, lines indented after a paragraph. Invisible characters with an effect are removed (see
// [Visible]).
type Escaper struct {
	// Unknown returns the addresses in a text that are not in the sources; they are marked.
	// Nil marks only addresses of more than 2 KB.
	Unknown func(text string) []string
	// Plain says that the text's only Markdown is the "- " and "1. " of list items and
	// fenced code. Words that Markdown would change become code too.
	Plain bool

	decoder decoder
	held    []byte // undecided text
	next    next   // what follows held
	title   bool   // the text is a title: no Markdown in it
	out     []byte // the caller's slice, during a call

	// The end of the output.
	last    byte // 0 at the beginning
	slashed bool // it ends in an odd number of backslashes
	tildes  int  // at its end

	// The line.
	begun      bool // the kind of the line is known
	verbatim   bool // it is code
	item       bool // it is a list item of a plain text
	fenced     bool // it closes a fenced block
	hasUnknown bool // its code, or its fenced block, has an address that is not in the sources
	piped      bool // it has a code span with "|", or the end of one: rows of a table would split it
	cut        bool // the line before was piped

	// The lines before.
	fence   fence
	table   bool // the text since the last blank line may begin the rows of a table
	wrapped bool // no blank line since the last paragraph
	nested  bool // the last paragraph may be part of a list, quote or note
}

// A fence is an open fenced block.
type fence struct {
	prefix string // of each of its lines: spaces and ">"
	run    string // the characters that opened it
	span   bool   // some renderers take it for a code span in a paragraph, which a blank line ends
}

type next uint8

const (
	nextMore   next = iota // more of the text
	nextNumber             // the number of a source
	nextEnd                // the end of the text
)

// Limits in bytes.
const (
	maxWord    = 256  // a word; longer ones are decided in parts
	maxSpan    = 400  // a code span; an element
	maxLine    = 4096 // a line whose beginning decides what it is
	maxRun     = 64   // backticks in a row
	maxElement = 64   // the beginning of an element without an end
)

// unknownAddress follows addresses that are not in the sources.
const unknownAddress = " [address not in the sources]"

// Escape returns a whole text as an [Escaper] prints it.
func Escape(text string) string {
	var e Escaper
	return string(e.Close(e.Append(nil, []byte(text))))
}

// EscapeTitle returns a document's words, such as its title, on one line of Markdown that may
// be in a link.
func EscapeTitle(words string) string {
	e := Escaper{title: true}
	return string(e.Close(e.Append(nil, []byte(strings.Join(strings.Fields(words), " ")))))
}

// Append adds the next piece, cut anywhere, and appends the text decided so far.
func (e *Escaper) Append(dst, piece []byte) []byte {
	return e.advance(dst, e.decoder.decode(piece), nextMore)
}

// AppendNumber appends the printed number of a source and returns its offset.
func (e *Escaper) AppendNumber(dst, number []byte) (out []byte, start int) {
	e.out = e.advance(dst, e.decoder.flush(), nextNumber)
	if !e.begun {
		e.begun, e.wrapped, e.nested = true, true, true
	}
	e.insert("")
	start = len(e.out)
	e.emit(string(number))
	return e.out, start
}

// Close appends the text held back, and ends an open block of code.
func (e *Escaper) Close(dst []byte) []byte {
	e.out = e.advance(dst, e.decoder.flush(), nextEnd)
	if e.fence.run != "" {
		if e.last != '\n' {
			e.emit("\n")
		}
		e.emit(e.fence.prefix + e.fence.run)
		e.fenced = true
	}
	switch {
	case e.hasUnknown && e.fenced:
		e.emit("\n" + strings.TrimSpace(unknownAddress))
	case e.hasUnknown:
		e.emit(unknownAddress)
	}
	return e.out
}

func (e *Escaper) advance(dst, text []byte, next next) []byte {
	e.out, e.held, e.next = dst, append(e.held, text...), next
	whole := e.held
	for len(e.held) > 0 {
		decided := false
		switch {
		case e.begun || e.title:
			decided = e.escapeInline()
		case e.fence.run != "":
			decided = e.beginCode()
		case e.Plain:
			decided = e.beginPlain()
		default:
			decided = e.beginLine()
		}
		if !decided {
			break
		}
	}
	e.held = whole[:copy(whole, e.held)]
	return e.out
}

// appendNext appends the next n bytes of the text.
func (e *Escaper) appendNext(n int) bool {
	text := e.held[:n]
	e.held = e.held[n:]
	if !e.title {
		e.emit(string(text))
		return true
	}
	for _, r := range string(text) {
		if r < utf8.RuneSelf && strings.IndexByte("\\`*_[]<>|~&!$#{}", byte(r)) >= 0 {
			e.insert(`\`)
		}
		e.emit(string(r))
	}
	return true
}

// insert appends a character of Markdown, and keeps a backslash in the text before it from
// escaping it.
func (e *Escaper) insert(sign string) {
	if e.slashed {
		e.emit(`\`)
	}
	e.emit(sign)
}

func (e *Escaper) emit(s string) {
	if s == "" {
		return
	}
	e.out = append(e.out, s...)
	slashes := len(s) - len(strings.TrimRight(s, `\`))
	e.slashed = (slashes%2 == 1) != (slashes == len(s) && e.slashed)
	tildes := len(s) - len(strings.TrimRight(s, `~`))
	if tildes == len(s) {
		tildes += e.tildes
	}
	e.tildes, e.last = tildes, s[len(s)-1]
}

// restOfLine returns the line from here to its end. whole is false if its end is missing or too
// far away; wait reports whether more text may contain it.
func (e *Escaper) restOfLine() (line []byte, whole, wait bool) {
	line = e.held[:min(len(e.held), maxLine)]
	if n := bytes.IndexByte(line, '\n'); n >= 0 {
		return line[:n+1], true, false
	}
	short := len(line) < maxLine
	return line, short && e.next == nextEnd, short && e.next == nextMore
}

// beginLine decides the kind of the next line.
func (e *Escaper) beginLine() bool {
	line, whole, wait := e.restOfLine()
	text := bytes.TrimLeft(line, " \t>")
	prefix := line[:len(line)-len(text)]
	if len(text) == 0 && wait {
		return false
	}
	sign, _ := utf8.DecodeRune(text)
	switch {
	case whole && (len(text) == 0 || sign == '\n'):
		e.begun, e.wrapped = true, false
		e.table = e.table && bytes.IndexByte(prefix, '>') >= 0
		return true
	case !e.wrapped && !e.nested && isIndented(prefix):
		e.begun, e.verbatim = true, true
		return true
	case sign == '`', sign == '~':
		run := countSigns(text, byte(sign))
		if wait && (run >= 3 || run == len(text)) {
			return false
		}
		if whole && e.opensFence(prefix, text, run) {
			return true
		}
	case len(text) > 0 && strings.IndexByte("-:|+=", text[0]) >= 0:
		if !e.beginTable(text, len(prefix), whole, wait) {
			return false
		}
	}
	if sign == '*' && len(text) == 1 && wait {
		return false
	}
	e.nested = e.wrapped && e.nested || len(prefix) > 0 || !beginsPlain(text)
	e.begun, e.wrapped = true, true
	return true
}

// beginPlain decides the kind of the next line of a plain text.
func (e *Escaper) beginPlain() bool {
	line, whole, wait := e.restOfLine()
	if n := len(line) - len(bytes.TrimLeft(line, " \t")); n > 0 { // it would be code
		e.held = e.held[n:]
		return true
	}
	run, digits := countSigns(line, '`'), len(line)-len(bytes.TrimLeft(line, "0123456789"))
	if wait && (run >= 3 || run == len(line) || len(line) == 1 && line[0] == '-' ||
		digits > 0 && len(line) < digits+2 && digits <= maxDigits) {
		return false
	}
	if run >= 3 && whole && !e.item && e.opensFence(nil, line, run) {
		return true
	}
	numbered := digits > 0 && digits < len(line) && strings.IndexByte(".)", line[digits]) >= 0
	item := bytes.HasPrefix(line, []byte("- ")) || numbered && digits <= maxItem && bytes.HasPrefix(line[digits+1:], []byte(" "))
	if item && !e.item {
		e.item = true
		return e.appendNext(bytes.IndexByte(line, ' ') + 1)
	}
	e.begun, e.item = true, false
	if numbered && len(bytes.TrimSpace(line[digits+1:min(digits+2, len(line))])) == 0 {
		e.appendNext(digits)
	} else if len(line) == 0 || strings.IndexByte("#>+-=|:[", line[0]) < 0 {
		return true
	}
	e.insert(`\`)
	return e.appendNext(1)
}

// The most digits in the number of a list item.
const (
	maxItem   = 3 // as Ibid writes numbers
	maxDigits = 9 // as Markdown allows
)

// escapePlainWord decides about the current word of a plain text, which becomes code if
// Markdown would change it. found reports whether it would.
func (e *Escaper) escapePlainWord() (found, decided bool) {
	b := e.held[:min(len(e.held), maxWord)]
	n := 0
	for n < len(b) && b[n] > ' ' && b[n] < utf8.RuneSelf {
		n++
	}
	n = max(n, wordEnd(b))
	if n == len(e.held) && n < maxWord && e.next == nextMore {
		return false, false
	}
	if !isMarkup(e.last, b[:n]) {
		return false, true
	}
	if end := len(bytes.TrimRight(b[:n], ".,;:!?")); end > 0 {
		n = end
	}
	return true, e.appendCode(n)
}

// isMarkup reports whether Markdown would remove characters from a word that follows last.
func isMarkup(last byte, word []byte) bool {
	for i, c := range word {
		next, ends := byte(' '), i+1 == len(word)
		if !ends {
			next = word[i+1]
		}
		switch c {
		case '*', '`', '~':
			return true
		case '\\':
			if ends || isPunctuation(next) {
				return true
			}
		case '_':
			if ends || last <= ' ' || isPunctuation(last) || last >= utf8.RuneSelf || isPunctuation(next) {
				return true
			}
		}
		last = c
	}
	return false
}

// isPunctuation reports whether an ASCII character is punctuation in Markdown.
func isPunctuation(c byte) bool {
	return c < utf8.RuneSelf && unicode.IsPunct(rune(c)) || strings.IndexByte("$+<=>^`|~", c) >= 0
}

// beginTable notes whether a line, after its prefix, is the delimiter row of a table. It
// reports false if more text is needed.
func (e *Escaper) beginTable(text []byte, prefix int, whole, wait bool) bool {
	rest := bytes.TrimLeft(text, "-:|+= \t>")
	if len(rest) == 0 && wait {
		return false
	}
	if !whole || len(bytes.TrimLeft(rest, "\n")) > 0 || bytes.IndexByte(text, '-') < 0 {
		return true
	}
	e.table = true
	if e.cut { // not a delimiter row: code would be split at "|"
		e.appendNext(prefix)
		e.insert(`\`)
	}
	return true
}

// beginsPlain reports whether a line that begins with text is part of a paragraph or is
// a heading.
func beginsPlain(text []byte) bool {
	sign, _ := utf8.DecodeRune(text)
	return unicode.IsLetter(sign) || sign == '#' || bytes.HasPrefix(text, []byte("**"))
}

// isIndented reports whether a line with this prefix is code.
func isIndented(prefix []byte) bool {
	tab := bytes.IndexByte(prefix, '\t')
	return bytes.IndexByte(prefix, '>') < 0 && (len(prefix) >= 4 || tab >= 0)
}

func countSigns(b []byte, sign byte) (n int) {
	for n < len(b) && b[n] == sign {
		n++
	}
	return n
}

// opensFence reports whether all renderers take a line for the opening of a fenced block, and
// begins the block. In lists and quotes some may see a paragraph with a code span, so the block
// must have backticks there and beginCode is strict.
func (e *Escaper) opensFence(prefix, text []byte, run int) bool {
	if run < 3 || bytes.ContainsAny(text[run:], "`~") || bytes.IndexByte(prefix, '\t') >= 0 || len(prefix) > 0 && text[0] == '~' {
		return false
	}
	span := e.wrapped && len(prefix)-len(bytes.TrimRight(prefix, " ")) >= 4
	if span && e.table { // the ends of rows would split it
		return false
	}
	e.fence = fence{string(prefix), string(text[:run]), span}
	e.begun, e.verbatim = true, true
	return true
}

// beginCode decides the kind of the next line of a fenced block.
func (e *Escaper) beginCode() bool {
	f := e.fence
	line, whole, wait := e.restOfLine()
	text := bytes.TrimLeft(line, " ")
	if wait && (f.prefix != "" || len(text) == 0 || text[0] == f.run[0]) {
		return false
	}
	var closes, doubtful bool
	if f.prefix == "" {
		run := countSigns(text, f.run[0])
		ends := run >= len(f.run) && len(line)-len(text) <= 3 && len(bytes.Trim(text, "`~ \t\n")) == 0
		closes = ends && len(bytes.Trim(text[run:], " \n")) == 0
		doubtful = ends && !closes
	} else {
		inside, within := bytes.CutPrefix(bytes.TrimRight(line, " \n"), []byte(f.prefix))
		blank := string(inside) == strings.TrimRight(f.prefix, " ")
		closes = within && string(inside) == f.run
		doubtful = !closes && (!within && !blank || blank && f.span || bytes.Contains(inside, []byte("```")) || !whole)
	}
	switch {
	case doubtful: // some renderers end the block here
		e.emit(f.prefix + f.run + "\n")
		e.fence, e.nested, e.wrapped, e.cut = fence{}, true, true, f.span
		return true
	case closes:
		e.fence, e.nested, e.wrapped, e.fenced, e.piped = fence{}, f.prefix != "", false, true, f.span
	}
	e.begun, e.verbatim = true, true
	return true
}

// escapeInline decides the next part of a line.
func (e *Escaper) escapeInline() bool {
	b := e.held
	if e.verbatim && b[0] != '\n' {
		return e.appendCodeLine()
	}
	if e.Plain && b[0] != '\n' {
		if found, decided := e.escapePlainWord(); found || !decided {
			return decided
		}
	}
	switch c := b[0]; c {
	case '\n':
		return e.endLine()
	case '`':
		if !e.title {
			return e.escapeBackticks()
		}
	case '~':
		if e.tildes == 2 && !e.title {
			e.insert(`\`)
		}
	case '(', ':':
		if e.last == ']' {
			e.insert(`\`)
			return e.appendNext(1)
		}
	case '!', '^', '<':
		return e.escapeBefore(c)
	}
	return e.escapeWord()
}

// escapeBefore handles a character that has a meaning only before certain others.
func (e *Escaper) escapeBefore(c byte) bool {
	b := e.held
	switch {
	case len(b) == 1 && e.next == nextMore:
		return false
	case c == '<' && len(b) > 1 && opensElement(b[1]):
		return e.escapeElement()
	case c != '<' && !e.title && !e.slashed && (len(b) == 1 && e.next == nextNumber || len(b) > 1 && b[1] == '['):
		e.insert(`\`)
	}
	return e.escapeWord()
}

// appendCodeLine appends the line of code from here to its end.
func (e *Escaper) appendCodeLine() bool {
	n := bytes.IndexByte(e.held, '\n')
	if n < 0 {
		if n = len(e.held); n < maxLine && e.Unknown != nil && e.next == nextMore {
			return false
		}
	}
	e.hasUnknown = e.hasUnknown || e.isUnknown(string(e.held[:n]))
	return e.appendNext(n)
}

func (e *Escaper) isUnknown(text string) bool { return e.Unknown != nil && len(e.Unknown(text)) > 0 }

// endLine ends a line. It adds a note if the line's code, or the fenced block that it ends,
// has an address that is not in the sources.
func (e *Escaper) endLine() bool {
	ended := e.hasUnknown && e.fence.run == ""
	e.hasUnknown = e.hasUnknown && !ended
	if ended && !e.fenced {
		e.emit(unknownAddress)
	}
	e.appendNext(1)
	if ended && e.fenced {
		e.emit(strings.TrimSpace(unknownAddress) + "\n\n")
	}
	e.begun, e.verbatim, e.item, e.fenced, e.cut, e.piped = false, false, false, false, e.piped, false
	return true
}

func opensElement(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '/' || c == '!' || c == '?' || c == '\\'
}

// escapeBackticks decides whether a run of backticks opens a code span or is text.
func (e *Escaper) escapeBackticks() bool {
	b := e.held
	run := countSigns(b[:min(len(b), maxRun)], '`')
	if e.slashed {
		return e.appendNext(1)
	}
	if run == len(b) && run < maxRun && e.next == nextMore {
		return false
	}
	if e.last != '`' && e.last != '\\' && run < maxRun {
		end, known := spanEnd(b, run, e.next != nextMore)
		if !known {
			return false
		}
		if piped := end > 0 && bytes.IndexByte(b[:end], '|') >= 0; end > 0 && !(piped && e.table) {
			e.piped = e.piped || piped
			strange := e.isUnknown(string(b[:end]))
			e.appendNext(end)
			if strange {
				e.emit(unknownAddress)
			}
			return true
		}
	}
	for range run {
		e.insert(`\`)
		e.appendNext(1)
	}
	return true
}

// spanEnd returns the end of the code span that a run of backticks opens, or 0 if it opens
// none. known is false if more text is needed.
func spanEnd(b []byte, run int, final bool) (end int, known bool) {
	for i := run; i < run+maxSpan; {
		if i == len(b) {
			return 0, final
		}
		if b[i] == '\n' {
			break
		}
		n := countSigns(b[i:], '`')
		if n <= run && i+n == len(b) && !final {
			return 0, false
		}
		if i += n; n == run {
			return i, true
		}
		if n == 0 {
			i++
		}
	}
	return 0, true
}

// escapeElement prints a possible HTML element as code: to its end if that is on the line,
// otherwise only its beginning.
func (e *Escaper) escapeElement() bool {
	b := e.held
	end := bytes.IndexAny(b[:min(len(b), maxSpan)], ">|\n")
	if end < 0 && len(b) < maxSpan && e.next == nextMore {
		return false
	}
	if end > 0 && b[end] == '>' {
		return e.appendCode(end + 1)
	}
	n := 1
	for n < min(len(b), maxElement) && b[n] < utf8.RuneSelf && strings.IndexByte(" \t\n<>`|", b[n]) < 0 {
		n++
	}
	return e.appendCode(n)
}

// escapeWord decides about a word or a separator.
func (e *Escaper) escapeWord() bool {
	b := e.held
	n := wordEnd(b[:min(len(b), maxWord)])
	switch {
	case n == 0:
		_, n = utf8.DecodeRune(b)
		return e.appendNext(n)
	case n == len(b) && n < maxWord && e.next == nextMore:
		return false
	case !isActive(b[:n]):
		if n > maxWord-utf8.UTFMax {
			for n = maxWord / 2; !utf8.RuneStart(b[n]); {
				n--
			}
		}
		return e.appendNext(n)
	}
	if n = addressEnd(b, n); n == len(b) && n < maxAddress && e.next == nextMore {
		return false
	}
	if marks := countSigns(b, '_'); marks > 0 {
		return e.appendNext(marks)
	}
	if !isTooLong(n) {
		n = len(trimAddress(b[:n]))
	}
	return e.appendCode(n)
}

// isTooLong reports whether an address of n bytes may have been cut.
func isTooLong(n int) bool { return n > maxAddress-utf8.UTFMax }

// appendCode prints the next n bytes as code. It adds a note if they contain an address
// that is not in the sources.
func (e *Escaper) appendCode(n int) bool {
	text := string(e.held[:n])
	unknown := isTooLong(n) || e.isUnknown(text)
	if e.last == '`' { // two adjacent code spans would be one
		_, first := utf8.DecodeRuneInString(text)
		if isPunctuation(text[0]) {
			e.insert(`\`)
		}
		e.emit(text[:first])
		text = text[first:]
	}
	e.held = e.held[n:]
	run := "`"
	for strings.Contains(text, run) {
		run += "`"
	}
	switch {
	case text == "":
	case text[0] == '`' || text[len(text)-1] == '`' ||
		// Some finders of mail addresses accept a backtick as part of one.
		strings.Contains(text, "@") && strings.IndexByte(" \t\n(\x00", e.last) < 0:
		e.insert(run + " ")
		e.emit(text + " " + run)
	default:
		e.insert(run)
		e.emit(text + run)
	}
	if unknown {
		e.emit(unknownAddress)
	}
	return true
}
