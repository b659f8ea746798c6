// Package sentence finds the sentences of a growing text and distinguishes statements from
// headings, announcements and lists of sources. It knows English best, and imports no layer of
// Ibid.
package sentence

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
	"ibid/cite/rewrite"
)

// A Span is a byte range of a text.
type Span = rewrite.Span

// A Splitter finds the sentences of a growing text. A sentence has no white
// space at its ends; a printed reference after a full stop belongs to the
// sentence before it. Headings, list items, lines of a table and fenced blocks are
// sentences.
type Splitter struct {
	at    int  // the text before it has been read
	start int  // of the sentence, once open
	end   int  // after its last character that is not white space
	open  bool // the sentence has begun
}

// maxLook is how many characters the splitter looks ahead after a full stop or
// a line end.
const maxLook = 64

// Next returns the next sentence that has ended. refs are the printed references in
// the text and code its code spans and fenced blocks, in order; final means that the
// text is complete.
func (s *Splitter) Next(text []byte, refs, code []Span, final bool) (Span, bool) {
	for s.at < len(text) {
		if end := RefAt(refs, s.at); end > 0 {
			s.extend(end)
			continue
		}
		r, size := utf8.DecodeRune(text[s.at:])
		end, known := 0, true
		switch {
		case !s.open:
			if end, known = blockEnd(text, code, s.at, final); end > 0 {
				s.start, end = s.at, len(bytes.TrimRight(text[:end], " \t\r\n"))
			}
		case r == '\n':
			end, known = s.endOfLine(text, refs, code, final)
		case marker.IsStop(r):
			end, known = s.endOfStop(text, refs, final)
		}
		switch {
		case !known:
			return Span{}, false
		case end > 0:
			return s.close(end), true
		case unicode.IsSpace(r):
			s.at += size
		default:
			s.extend(s.at + size)
		}
	}
	if final && s.open {
		return s.close(s.end), true
	}
	return Span{}, false
}

// blockEnd returns the end of the fenced block that begins at an offset, or 0 if none does.
// known is false if more text is needed.
func blockEnd(text []byte, code []Span, at int, final bool) (end int, known bool) {
	end = RefAt(code, at)
	switch {
	case end > 0 && end == len(text) && !final:
		return 0, false
	case bytes.IndexByte(text[at:max(at, end)], '\n') < 0:
		return 0, true
	}
	return end, true
}

func (s *Splitter) extend(end int) {
	if !s.open {
		s.open, s.start = true, s.at
	}
	s.at, s.end = end, end
}

func (s *Splitter) close(end int) Span {
	s.open = false
	s.at = max(s.at, end)
	return Span{Start: s.start, End: end}
}

// RefAt returns the end of the reference, or of the code, that begins at an offset, or 0.
func RefAt(refs []Span, at int) int {
	i, ok := slices.BinarySearchFunc(refs, at, func(r Span, at int) int { return r.Start - at })
	if !ok {
		return 0
	}
	return refs[i].End
}

// endOfLine returns the end of the sentence if the line end at s.at ends it, otherwise 0. known
// is false if more text is needed.
func (s *Splitter) endOfLine(text []byte, refs, code []Span, final bool) (end int, known bool) {
	if c := text[s.start]; c == '#' || c == '|' {
		return s.end, true
	}
	last := bytes.TrimRight(text[s.start:s.end], "*_")
	if bytes.HasSuffix(last, []byte(":")) || bytes.HasSuffix(last, []byte("|")) || onlyPoints(text, refs, Span{Start: s.start, End: s.end}) {
		return s.end, true
	}
	next := s.at + 1
	for next < len(text) && next <= s.at+maxLook && (text[next] == ' ' || text[next] == '\t' || text[next] == '\r') {
		next++
	}
	if RefAt(refs, s.start) > 0 && RefAt(refs, next) > 0 {
		return s.end, true // each line begins with its own reference
	}
	// A line that begins a block does not belong to the sentence.
	const longest = len("123456789. ")
	rest := text[next:]
	end, known = blockEnd(text, code, next, final)
	switch {
	case len(rest) == 0 && !final:
		return 0, false
	case len(rest) == 0 || end > 0 || strings.IndexByte("\n#|>", rest[0]) >= 0:
		return s.end, true
	case !known || isListLead(rest[0]) && len(rest) < longest && !final:
		return 0, false
	case listItem.Match(rest):
		return s.end, true
	}
	return 0, true
}

func isListLead(c byte) bool {
	return strings.IndexByte("-*+", c) >= 0 || '0' <= c && c <= '9' || c >= utf8.RuneSelf
}

// listItem matches a line that begins with a bullet or an item number.
var listItem = regexp.MustCompile(`^(?:[-*+•–—]|\d{1,9}[.)])(?:[ \t]|$)`)

// endOfStop returns the end of the sentence if the full stop at s.at ends it, otherwise 0.
// known is false if more text is needed.
func (s *Splitter) endOfStop(text []byte, refs []Span, final bool) (end int, known bool) {
	first, size := utf8.DecodeRune(text[s.at:])
	i := s.at + size
	spaced := isWide(first)
	end = i
	blank := false
	for looked := 0; ; looked++ {
		if looked == maxLook {
			return end, true
		}
		if i == len(text) {
			return end, final
		}
		if to := RefAt(refs, i); to > 0 {
			i, end = to, to
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == '\n':
			return refLine(text, refs, i+1, end, final)
		case unicode.IsSpace(r):
			spaced, blank = true, true
			i += size
			continue
		case !blank && marker.IsStop(r):
			return 0, true // the last one decides
		case !blank && strings.ContainsRune("\"'”’)]»」』）】*_`", r):
			i += size
			end = i
			continue
		case spaced && strings.ContainsRune("<(“‘«", r): // the sentence goes on if a lower-case letter follows
			i += size
			continue
		case !spaced || unicode.IsLower(r) || strings.ContainsRune(".,;:!?", r), InBrackets(string(text[s.start:end])):
			return 0, true
		case first != '.':
			return end, true
		}
		runsOn, known := RunsOn(string(text[s.start:s.at]), string(text[i:]), final)
		if runsOn {
			end = 0
		}
		return end, known
	}
}

// refLine ends a sentence at end, or after the line at next if that has only references.
func refLine(text []byte, refs []Span, next, end int, final bool) (to int, known bool) {
	i, last := next, 0
	for range maxLook {
		if to := RefAt(refs, i); to > 0 {
			i, last = to, to
		} else if i < len(text) && strings.IndexByte(" \t\r,;()", text[i]) >= 0 {
			i++
			if text[i-1] == ')' && last > 0 {
				last = i
			}
		} else {
			break
		}
	}
	switch {
	case i == len(text) && !final:
		return 0, false
	case last > 0 && (i == len(text) || text[i] == '\n'):
		return last, true
	}
	return end, true
}

// isWide reports whether r is a full stop that needs no space after it.
func isWide(r rune) bool { return r >= 0x3000 && marker.IsStop(r) }
