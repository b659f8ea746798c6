package marker

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textBefore returns up to maxBefore bytes of the text before an offset.
func (s *Scanner) textBefore(at int) []byte { return s.b[max(s.begin, at-maxBefore):at] }

// isEscaped reports whether an odd number of backslashes precedes an offset.
func (s *Scanner) isEscaped(at int) bool {
	before := s.textBefore(at)
	return (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 1
}

// lineBefore returns the line up to an offset, or nil if it begins too far away.
func (s *Scanner) lineBefore(at int) []byte {
	if before := s.textBefore(at); at-s.line <= len(before) {
		return before[len(before)-(at-s.line):]
	}
	return nil
}

// hasTextBefore reports whether the line has more than white space before an offset.
func (s *Scanner) hasTextBefore(at int) bool {
	line := s.lineBefore(at)
	return line == nil || len(bytes.TrimSpace(line)) > 0
}

// atMargin reports whether a footnote definition may begin here: at most maxSpaces spaces
// precede it on its line.
func (s *Scanner) atMargin(at int) bool {
	return at-s.line <= maxSpaces && len(bytes.Trim(s.b[s.line:at], " ")) == 0
}

// opensFence reports whether a fence may begin at an offset: the line before it has only
// spaces, tabs, ">" and list markers.
func (s *Scanner) opensFence(at int) bool {
	line := s.lineBefore(at)
	return line != nil && !s.bounded && fencePrefix.Match(line)
}

var fencePrefix = regexp.MustCompile(`^(?:[ \t>]|(?:[-*+]|[0-9]{1,9}[.)])[ \t])*$`)

// runeBefore returns the last character before an offset, skipping combining marks, and the
// offset after it. It returns [end] at the start of the text.
func (s *Scanner) runeBefore(at int) (r rune, after int) {
	before := s.textBefore(at)
	for len(before) > 0 {
		r, size := utf8.DecodeLastRune(before)
		if r < utf8.RuneSelf || !unicode.IsMark(r) {
			return r, at
		}
		before, at = before[:len(before)-size], at-size
	}
	if at == s.begin && !s.cut {
		return end, at
	}
	return utf8.RuneError, at
}

// isChained reports whether a marker ends directly before an offset.
func (s *Scanner) isChained(at int) bool {
	if s.marked < 0 {
		return false
	}
	_, after := s.runeBefore(at)
	return after == s.marked
}

// A fit says whether a bare marker in square brackets may follow a character.
type fit uint8

const (
	fitNever fit = iota
	fitGlued     // if the glue test holds
	fitAlways
)

func (s *Scanner) fitAt(at int) fit {
	r, after := s.runeBefore(at)
	switch {
	case after == s.marked || r == end || unicode.IsSpace(r):
		return fitAlways
	case strings.ContainsRune(".,;:!?\"'(*|%`…–—”’»›、。，；：！？）（」』】》〉〕・", r):
		return fitAlways
	case unicode.In(r, unicode.Lo, unicode.Lm, unicode.So) || 0x1F3FB <= r && r <= 0x1F3FF:
		return fitAlways
	case r == ')' || isCasedOrNumber(r) || unicode.Is(unicode.Sc, r):
		return fitGlued
	}
	return fitNever
}

func isCasedOrNumber(r rune) bool {
	if r < utf8.RuneSelf {
		return isASCIILetter(byte(r)) || '0' <= r && r <= '9'
	}
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt) || unicode.IsNumber(r)
}

// IsUnspaced reports whether a script without spaces between words uses a character.
func IsUnspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// isData reports whether one number in brackets, or several, would be data: after "=", a key in
// quotes, or another list.
func (s *Scanner) isData(at int, several bool) bool {
	before := s.textBefore(at)
	spaces := len(before) - len(bytes.TrimRight(before, " "))
	if several && spaces > 0 && dataWords[s.wordBefore(at-spaces)] {
		return true
	}
	before = bytes.TrimRightFunc(before, func(r rune) bool { return r == ' ' || r >= utf8.RuneSelf && unicode.IsMark(r) })
	n := len(before) - 1
	at += n - len(s.textBefore(at))
	if n < 0 || at+1 == s.marked {
		return false
	}
	switch q := before[max(0, n-1)]; before[n] {
	case '=', '[', '{':
		return true
	case ':':
		return q == '"' || q == '\''
	case ',':
		return q == ']' && at != s.marked
	}
	return false
}

// wordBefore returns the word before an offset in lower case: letters, combining marks, numbers
// and "_".
func (s *Scanner) wordBefore(at int) string {
	before := s.textBefore(at)
	rest := bytes.TrimRightFunc(before, isWordPart)
	return strings.Map(fold, string(before[len(rest):]))
}

func isWordPart(r rune) bool {
	return r == '_' || isCasedOrNumber(r) || r >= utf8.RuneSelf && r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r))
}

// isCode reports whether the word before a marker makes the marker code: the word is the name
// of a variable or follows an operator.
func (s *Scanner) isCode(at int, key bool) bool {
	w := s.wordBefore(at)
	if w == "" {
		return false
	}
	if !key && (arrayNames[w] || strings.Contains(strings.TrimLeft(w, "_"), "_")) {
		return true
	}
	if r, _ := utf8.DecodeRuneInString(w); unicode.IsNumber(r) {
		return false
	}
	at -= len(w)
	before := s.textBefore(at)
	left := bytes.TrimRight(before, " ")
	n := len(left) - 1
	if n < 0 || len(left) == len(before) {
		return false
	}
	switch left[n] {
	case '=':
	case '+', '*', '/', '<', '>':
		if n == 0 || left[n-1] != ' ' {
			return false
		}
	default:
		return false
	}
	return s.hasTextBefore(at - len(before) + n)
}
