package marker

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A view is the part of a text that decisions about a character need.
type view struct {
	b          []byte // without [cite_start] and [cite_end]
	begin      int    // b[:begin] is not text
	cut        bool   // text before b was discarded
	line       int    // start of the line in b; negative if too far away
	bounded    bool   // the line has a [cite_start]
	definition bool   // the line begins like a footnote definition
	marked     int    // end of the last marker in b; negative if too far away
}

// beginLine records where a line begins.
func (v *view) beginLine(at int) { v.line, v.bounded, v.definition = at, false, false }

// textBefore returns up to maxBefore bytes of the text before an offset.
func (v *view) textBefore(at int) []byte { return v.b[max(v.begin, at-maxBefore):at] }

// isEscaped reports whether an odd number of backslashes precedes an offset.
func (v *view) isEscaped(at int) bool {
	before := v.textBefore(at)
	return (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 1
}

// lineBefore returns the line up to an offset, or nil if it begins too far away.
func (v *view) lineBefore(at int) []byte {
	if before := v.textBefore(at); at-v.line <= len(before) {
		return before[len(before)-(at-v.line):]
	}
	return nil
}

// hasTextBefore reports whether the line has more than white space before an offset.
func (v *view) hasTextBefore(at int) bool {
	line := v.lineBefore(at)
	return line == nil || len(bytes.TrimSpace(line)) > 0
}

// atMargin reports whether a footnote definition may begin here: at most maxSpaces spaces
// precede it on its line.
func (v *view) atMargin(at int) bool {
	return at-v.line <= maxSpaces && len(bytes.Trim(v.b[v.line:at], " ")) == 0
}

// opensFence reports whether a fence may begin at an offset: the line before it has only
// spaces, tabs, ">" and list markers.
func (v *view) opensFence(at int) bool {
	line := v.lineBefore(at)
	return line != nil && !v.bounded && fencePrefix.Match(line)
}

var fencePrefix = regexp.MustCompile(`^(?:[ \t>]|(?:[-*+]|[0-9]{1,9}[.)])[ \t])*$`)

// runeBefore returns the last character before an offset, skipping combining marks, and the
// offset after it. It returns [end] at the start of the text.
func (v *view) runeBefore(at int) (r rune, after int) {
	before := v.textBefore(at)
	for len(before) > 0 {
		r, size := utf8.DecodeLastRune(before)
		if r < utf8.RuneSelf || !unicode.IsMark(r) {
			return r, at
		}
		before, at = before[:len(before)-size], at-size
	}
	if at == v.begin && !v.cut {
		return end, at
	}
	return utf8.RuneError, at
}

// isChained reports whether a marker ends directly before an offset.
func (v *view) isChained(at int) bool {
	if v.marked < 0 {
		return false
	}
	_, after := v.runeBefore(at)
	return after == v.marked
}

// A fit says whether a bare marker in square brackets may follow a character.
type fit uint8

const (
	fitNever fit = iota
	fitGlued     // if the glue test holds
	fitAlways
)

func (v *view) fitAt(at int) fit {
	r, after := v.runeBefore(at)
	switch {
	case after == v.marked || r == end || unicode.IsSpace(r):
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
func (v *view) isData(at int, several bool) bool {
	before := v.textBefore(at)
	spaces := len(before) - len(bytes.TrimRight(before, " "))
	if several && spaces > 0 && dataWords[v.wordBefore(at-spaces)] {
		return true
	}
	before = bytes.TrimRightFunc(before, func(r rune) bool { return r == ' ' || r >= utf8.RuneSelf && unicode.IsMark(r) })
	n := len(before) - 1
	at += n - len(v.textBefore(at))
	if n < 0 || at+1 == v.marked {
		return false
	}
	switch q := before[max(0, n-1)]; before[n] {
	case '=', '[', '{':
		return true
	case ':':
		return q == '"' || q == '\''
	case ',':
		return q == ']' && at != v.marked
	}
	return false
}

// wordBefore returns the word before an offset in lower case: letters, combining marks, numbers
// and "_".
func (v *view) wordBefore(at int) string {
	before := v.textBefore(at)
	rest := bytes.TrimRightFunc(before, isWordPart)
	return strings.Map(fold, string(before[len(rest):]))
}

func isWordPart(r rune) bool {
	return r == '_' || isCasedOrNumber(r) || r >= utf8.RuneSelf && r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r))
}

// isCode reports whether the word before a marker makes the marker code: the word is the name
// of a variable or follows an operator.
func (v *view) isCode(at int, key bool) bool {
	w := v.wordBefore(at)
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
	before := v.textBefore(at)
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
	return v.hasTextBefore(at - len(before) + n)
}
