package pdf

import (
	"bytes"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
)

// An operand is a number, a string, a name, or an array of operands.
type operand struct {
	kind  operandKind
	num   float64
	str   string // of a string or a name
	items []operand
}

type operandKind uint8

const (
	opNumber operandKind = iota
	opString
	opName
	opArray
	opDict // its keys and values in turn
)

// entries returns the outermost entries of a dictionary.
func (o operand) entries() map[string]operand {
	out := make(map[string]operand)
	for i := 0; o.kind == opDict && i+1 < len(o.items); i++ {
		if o.items[i].kind == opName {
			out[o.items[i].str] = o.items[i+1]
		}
	}
	return out
}

// maxNesting limits nested arrays and dictionaries.
const maxNesting = 32

// interpret parses a content stream or a character map and calls do for each operator with its
// operands. It skips invalid syntax.
func interpret(src []byte, do func(op string, args []operand)) {
	l := lexer{src: src}
	var args []operand
	for {
		l.skipSpace()
		if l.pos >= len(l.src) {
			return
		}
		if v, ok := l.value(0); ok {
			if args = append(args, v); len(args) > 4096 {
				args = args[:0]
			}
			continue
		}
		op := l.keyword()
		if op == "" {
			l.pos++ // an unmatched delimiter
			continue
		}
		if op == "BI" {
			l.inlineImage()
			args = args[:0]
			continue
		}
		do(op, args)
		args = args[:0]
	}
}

type lexer struct {
	src []byte
	pos int
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isDelimiter(c byte) bool { return bytes.IndexByte([]byte("()<>[]{}/%"), c) >= 0 }

func (l *lexer) skipSpace() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case isSpace(c):
			l.pos++
		case c == '%':
			for l.pos < len(l.src) && l.src[l.pos] != '\n' && l.src[l.pos] != '\r' {
				l.pos++
			}
		default:
			return
		}
	}
}

// value reads an operand; ok is false at an operator.
func (l *lexer) value(depth int) (v operand, ok bool) {
	c := l.src[l.pos]
	switch {
	case c == '(':
		return operand{kind: opString, str: l.literal()}, true
	case c == '<' && l.pos+1 < len(l.src) && l.src[l.pos+1] == '<':
		l.pos += 2
		return operand{kind: opDict, items: l.operandsUntil(">>", depth)}, true
	case c == '<':
		return operand{kind: opString, str: l.hex()}, true
	case c == '/':
		l.pos++
		return operand{kind: opName, str: l.name()}, true
	case c == '[':
		l.pos++
		return operand{kind: opArray, items: l.operandsUntil("]", depth)}, true
	case c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.':
		return operand{kind: opNumber, num: l.number()}, true
	}
	return operand{}, false
}

// operandsUntil reads operands up to a closing bracket.
func (l *lexer) operandsUntil(end string, depth int) []operand {
	var items []operand
	for {
		l.skipSpace()
		if l.pos >= len(l.src) {
			return items
		}
		if bytes.HasPrefix(l.src[l.pos:], []byte(end)) {
			l.pos += len(end)
			return items
		}
		if depth < maxNesting {
			if v, ok := l.value(depth + 1); ok {
				items = append(items, v)
				continue
			}
		}
		if l.keyword() == "" {
			l.pos++
		}
	}
}

func (l *lexer) keyword() string {
	start := l.pos
	for l.pos < len(l.src) && !isSpace(l.src[l.pos]) && !isDelimiter(l.src[l.pos]) {
		l.pos++
	}
	return string(l.src[start:l.pos])
}

func (l *lexer) name() string {
	raw := l.keyword()
	if plain, err := url.PathUnescape(strings.ReplaceAll(raw, "#", "%")); err == nil {
		return plain
	}
	return raw
}

// number parses a number as tolerantly as common readers do, including "--5" and "1.2.3".
func (l *lexer) number() float64 {
	start := l.pos
	for l.pos < len(l.src) && bytes.IndexByte([]byte("0123456789.-+"), l.src[l.pos]) >= 0 {
		l.pos++
	}
	raw := string(l.src[start:l.pos])
	s := strings.TrimLeft(raw, "+-")
	if i := strings.IndexAny(s, "+-"); i >= 0 {
		s = s[:i]
	}
	if whole, rest, ok := strings.Cut(s, "."); ok {
		fraction, _, _ := strings.Cut(rest, ".")
		s = whole + "." + fraction
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	if raw[0] == '-' {
		return -n
	}
	return n
}

func (l *lexer) literal() string {
	var out []byte
	depth := 1
	for l.pos++; l.pos < len(l.src); l.pos++ {
		c := l.src[l.pos]
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				l.pos++
				return string(out)
			}
		case '\\':
			out = l.escape(out)
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

// escape decodes an escape sequence and stops at its last byte.
func (l *lexer) escape(out []byte) []byte {
	if l.pos++; l.pos >= len(l.src) {
		return out
	}
	rest := l.src[l.pos:]
	digits := 0
	for digits < min(3, len(rest)) && rest[digits] >= '0' && rest[digits] <= '7' {
		digits++
	}
	switch c := rest[0]; {
	case digits > 0:
		n, _ := strconv.ParseUint(string(rest[:digits]), 8, 16) // at most three octal digits
		l.pos += digits - 1
		return append(out, byte(n))
	case bytes.HasPrefix(rest, []byte("\r\n")):
		l.pos++
		return out
	case c == '\r' || c == '\n':
		return out
	default:
		if i := strings.IndexByte("nrtbf", c); i >= 0 {
			c = "\n\r\t\b\f"[i]
		}
		return append(out, c)
	}
}

func (l *lexer) hex() string {
	end := bytes.IndexByte(l.src[l.pos:], '>')
	if end < 0 {
		end = len(l.src) - l.pos
	}
	digits := bytes.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789abcdefABCDEF", r) {
			return r
		}
		return -1
	}, l.src[l.pos:l.pos+end])
	l.pos = min(l.pos+end+1, len(l.src))
	if len(digits)%2 == 1 {
		digits = append(digits, '0')
	}
	out, _ := hex.DecodeString(string(digits)) // digits holds only hexadecimal digits
	return string(out)
}

// inlineImage skips the picture between BI and EI.
func (l *lexer) inlineImage() {
	i := bytes.Index(l.src[l.pos:], []byte("ID"))
	if i < 0 {
		return
	}
	l.pos += i + 2
	for {
		i := bytes.Index(l.src[l.pos:], []byte("EI"))
		if i < 0 {
			l.pos = len(l.src)
			return
		}
		l.pos += i + 2
		before := l.pos-3 < 0 || isSpace(l.src[l.pos-3])
		after := l.pos >= len(l.src) || isSpace(l.src[l.pos])
		if before && after {
			return
		}
	}
}
