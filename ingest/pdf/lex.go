package pdf

import (
	"bytes"
	"strconv"
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

// maxNesting limits nested arrays and dictionaries.
const maxNesting = 32

// interpret parses a content stream or a character map and calls do for each
// operator with its operands. It skips broken syntax.
func interpret(src []byte, do func(op string, args []operand)) {
	l := lexer{src: src}
	var args []operand
	for {
		l.space()
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

func (l *lexer) space() {
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
		return operand{kind: opDict, items: l.until(">>", depth)}, true
	case c == '<':
		return operand{kind: opString, str: l.hex()}, true
	case c == '/':
		l.pos++
		return operand{kind: opName, str: l.name()}, true
	case c == '[':
		l.pos++
		return operand{kind: opArray, items: l.until("]", depth)}, true
	case c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.':
		return operand{kind: opNumber, num: l.number()}, true
	}
	return operand{}, false
}

// until reads operands up to a closing bracket.
func (l *lexer) until(end string, depth int) []operand {
	var items []operand
	for {
		l.space()
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
	if !bytes.Contains([]byte(raw), []byte("#")) {
		return raw
	}
	var out []byte
	for i := 0; i < len(raw); i++ {
		if raw[i] == '#' && i+2 < len(raw) {
			if n, err := strconv.ParseUint(raw[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(n))
				i += 2
				continue
			}
		}
		out = append(out, raw[i])
	}
	return string(out)
}

// number parses a number as tolerantly as common readers do: "--5" and "1.2.3"
// occur.
func (l *lexer) number() float64 {
	start := l.pos
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' {
			break
		}
		l.pos++
	}
	s := l.src[start:l.pos]
	negative := s[0] == '-'
	s = bytes.TrimLeft(s, "+-")
	if i := bytes.IndexAny(s, "+-"); i >= 0 {
		s = s[:i]
	}
	if i := bytes.IndexByte(s, '.'); i >= 0 {
		if j := bytes.IndexByte(s[i+1:], '.'); j >= 0 {
			s = s[:i+1+j]
		}
	}
	n, err := strconv.ParseFloat(string(s), 64)
	if err != nil {
		return 0
	}
	if negative {
		return -n
	}
	return n
}

func (l *lexer) literal() string {
	var out []byte
	depth := 0
	for ; l.pos < len(l.src); l.pos++ {
		switch c := l.src[l.pos]; c {
		case '(':
			if depth++; depth > 1 {
				out = append(out, c)
			}
		case ')':
			if depth--; depth == 0 {
				l.pos++
				return string(out)
			}
			out = append(out, c)
		case '\\':
			if l.pos++; l.pos >= len(l.src) {
				return string(out)
			}
			switch e := l.src[l.pos]; e {
			case 'n':
				out = append(out, '\n')
			case 'r':
				out = append(out, '\r')
			case 't':
				out = append(out, '\t')
			case 'b':
				out = append(out, '\b')
			case 'f':
				out = append(out, '\f')
			case '\r':
				if l.pos+1 < len(l.src) && l.src[l.pos+1] == '\n' {
					l.pos++
				}
			case '\n':
			default:
				if e < '0' || e > '7' {
					out = append(out, e)
					break
				}
				n := 0
				for i := 0; i < 3 && l.pos < len(l.src) && l.src[l.pos] >= '0' && l.src[l.pos] <= '7'; i++ {
					n = n<<3 | int(l.src[l.pos]-'0')
					l.pos++
				}
				l.pos--
				out = append(out, byte(n))
			}
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

func (l *lexer) hex() string {
	var out []byte
	half := -1
	for l.pos++; l.pos < len(l.src); l.pos++ {
		c := l.src[l.pos]
		d := -1
		switch {
		case c >= '0' && c <= '9':
			d = int(c - '0')
		case c >= 'a' && c <= 'f':
			d = int(c-'a') + 10
		case c >= 'A' && c <= 'F':
			d = int(c-'A') + 10
		case c == '>':
			l.pos++
			if half >= 0 {
				out = append(out, byte(half<<4))
			}
			return string(out)
		}
		if d < 0 {
			continue
		}
		if half < 0 {
			half = d
		} else {
			out = append(out, byte(half<<4|d))
			half = -1
		}
	}
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
