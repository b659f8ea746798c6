package statement

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"ibid/cite/marker"
	"ibid/cite/sentence"
)

// A Splitter finds the units of a text. Make one with [NewSplitter].
type Splitter struct {
	scanner   *marker.Scanner
	sentences sentence.Splitter

	text  []byte
	marks []Mark
	refs  []sentence.Span // the spans of the marks
	code  []sentence.Span // code spans and fenced blocks, with their fences

	unitEnd   int             // end of the last unit
	next      sentence.Span   // the next unit so far; empty if it has not begun
	inCode    bool            // the last sentence of next ends in a code span
	following []sentence.Span // sentences after next that have been found
	afterRow  bool            // the last unit was a row of a table
}

// NewSplitter returns a splitter for a text whose labels are 1 to known.
func NewSplitter(known int) *Splitter {
	return &Splitter{scanner: marker.NewScanner(marker.Default, known)}
}

// Add adds the next piece of the text and returns the units that end in it.
func (s *Splitter) Add(piece string) []Unit {
	s.scanner.Feed([]byte(piece), s.addToken)
	return s.endedUnits(false)
}

// End returns the remaining units, and the white space after the last one.
func (s *Splitter) End() (units []Unit, space string) {
	s.scanner.Close(s.addToken)
	units = s.endedUnits(true)
	return units, string(s.text[s.unitEnd:])
}

func (s *Splitter) addToken(t marker.Token) {
	start := len(s.text)
	s.text = append(s.text, t.Text...)
	at := sentence.Span{Start: start, End: len(s.text)}
	switch {
	case t.Marker && !t.Boundary:
		s.marks = append(s.marks, Mark{at, slices.Clone(t.IDs)})
		s.refs = append(s.refs, at)
	case t.Begins:
		s.code = append(s.code, at)
	case t.Code:
		s.code[len(s.code)-1].End = at.End
	}
}

func (s *Splitter) isBlock(c sentence.Span) bool {
	return bytes.HasPrefix(s.text[c.Start:], []byte("```")) || bytes.HasPrefix(s.text[c.Start:], []byte("~~~"))
}

func (s *Splitter) endedUnits(final bool) (units []Unit) {
	for {
		more := s.next.End > 0
		if more {
			var known bool
			if more, known = s.unitContinues(final); !known {
				return units
			}
			if !more {
				units = append(units, s.unit())
			}
		}
		found, ok := s.sentence(final)
		switch {
		case !ok && more && final:
			return append(units, s.unit())
		case !ok:
			return units
		case found.End <= s.unitEnd: // in a block of the last unit
		case more:
			s.extendUnit(found.End)
		default:
			s.beginUnit(found)
		}
	}
}

// sentence returns the next sentence that has ended.
func (s *Splitter) sentence(final bool) (sentence.Span, bool) {
	if n := len(s.following); n > 0 {
		found := s.following[n-1]
		s.following = s.following[:n-1]
		return found, true
	}
	return s.sentences.Next(s.text, s.refs, s.code, final)
}

// beginUnit begins a unit with a sentence. If the sentence has a block of code, the unit ends
// before the block.
func (s *Splitter) beginUnit(found sentence.Span) {
	found = s.trimSpan(sentence.Span{Start: max(found.Start, s.unitEnd), End: found.End})
	s.next = found
	s.extendUnit(found.End)
	for i, m := range s.marks { // split before a lower-case sentence after a reference
		last := i+1 == len(s.marks) || s.marks[i+1].Start > m.End
		if last && m.Start > found.Start && m.End < found.End && unicode.IsSpace(rune(s.text[m.End])) && s.isEnded(i) {
			s.next.End = m.End
			s.following = append(s.following, s.trimSpan(sentence.Span{Start: m.End, End: found.End}))
			return
		}
	}
	for _, c := range s.code {
		if !s.isBlock(c) || c.End <= found.Start || c.Start >= found.End {
			continue
		}
		rest := sentence.Span{Start: c.Start, End: found.End}
		if c.Start <= found.Start {
			rest.Start = c.End
		}
		if rest.Start < rest.End {
			s.next = s.trimSpan(sentence.Span{Start: found.Start, End: rest.Start})
			if rest = s.trimSpan(rest); rest.Start < rest.End {
				s.following = append(s.following, rest)
			}
		}
		return
	}
}

// isEnded reports whether a full stop is before a mark, or before the marks directly
// before it.
func (s *Splitter) isEnded(mark int) bool {
	for mark > 0 && s.marks[mark-1].End == s.marks[mark].Start {
		mark--
	}
	before := string(s.text[s.next.Start:s.marks[mark].Start])
	if before == "" || strings.IndexByte(".!?;", before[len(before)-1]) < 0 {
		return false
	}
	runsOn, _ := sentence.RunsOn(strings.TrimSuffix(before, "."), "", true)
	return !runsOn
}

func (s *Splitter) extendUnit(end int) {
	s.next.End, s.inCode = max(s.next.End, end), false
	for _, c := range s.code {
		if !s.isBlock(c) && c.Start < s.next.End && s.next.End < c.End {
			s.next.End, s.inCode = c.End, true
		}
	}
}

func (s *Splitter) trimSpan(a sentence.Span) sentence.Span {
	inner := s.text[a.Start:a.End]
	a.Start += len(inner) - len(bytes.TrimLeftFunc(inner, unicode.IsSpace))
	a.End = max(a.Start, a.End-len(inner)+len(bytes.TrimRightFunc(inner, unicode.IsSpace)))
	return a
}

// listLead matches the marker of a list item, as in package sentence.
var listLead = regexp.MustCompile(`^(?:[-*+•–—]|\d{1,9}[.)])(?:[ \t]|$)`)

// unitContinues reports whether further sentences belong to the next unit: a unit has all
// sentences of its list item, and does not end in a code span. If known is false, the text
// that decides has not arrived.
func (s *Splitter) unitContinues(final bool) (more, known bool) {
	u := &s.next
	for _, c := range s.code {
		if s.isBlock(c) && c.Start < u.End && u.End <= c.End {
			u.End = s.trimSpan(c).End
			return false, final || c.End < len(s.text)
		}
	}
	if s.inCode {
		return true, true
	}
	item := s.text[u.Start:u.End]
	if !listLead.Match(item) || endsInColon(string(item)) {
		return false, true
	}
	rest := s.text[u.End:]
	at := bytes.IndexFunc(rest, func(r rune) bool { return r == '\n' || !unicode.IsSpace(r) })
	if at < 0 {
		return false, final
	}
	if rest[at] != '\n' {
		return true, true
	}
	line := bytes.TrimLeft(rest[at+1:], " \t\r")
	const longest = len("123456789. ")
	switch {
	case len(line) == 0:
		return false, final
	case strings.IndexByte("\n#|>`~", line[0]) >= 0:
		return false, true
	case len(line) < longest && !final:
		return false, false
	}
	return !listLead.Match(line), true
}

func endsInColon(text string) bool {
	text = strings.TrimRight(text, "*_ ")
	return strings.HasSuffix(text, ":") || strings.HasSuffix(text, "：")
}

// delimiters matches the row under the head of a table.
var delimiters = regexp.MustCompile(`^[|: \t-]+$`)

// bold is the level of bold lines, which are the lowest headings.
const bold = 7

// boldLine matches a bold line that does not end like a sentence.
var boldLine = regexp.MustCompile(`^(?:\*\*[^*\n]*[^*\n.!?。！？]\*\*|__[^_\n]*[^_\n.!?。！？]__)$`)

// unit returns the next unit and prepares for the one after it.
func (s *Splitter) unit() Unit {
	a := s.next
	u := Unit{Space: string(s.text[s.unitEnd:a.Start]), Text: string(s.text[a.Start:a.End])}
	var plain []byte
	var prose strings.Builder
	from := a.Start
	for _, m := range s.marks {
		if m.Start < a.Start || m.End > a.End {
			continue
		}
		plain = appendPlain(plain, s.text[from:m.Start])
		from = m.End
		u.Marks = append(u.Marks, Mark{sentence.Span{Start: m.Start - a.Start, End: m.End - a.Start}, m.Labels})
	}
	plain = appendPlain(plain, s.text[from:a.End])
	from, verbatim := a.Start, u.Text[0] == '>'
	for _, c := range s.code {
		if c.Start < a.Start || c.End > a.End {
			verbatim = verbatim || s.isBlock(c) && c.Start < a.End && a.Start < c.End
			continue
		}
		prose.Write(s.text[from:c.Start])
		from = c.End
		verbatim = verbatim || s.isBlock(c)
	}
	prose.Write(s.text[from:a.End])
	u.Plain = strings.TrimSpace(sentence.WithoutLead(string(plain)))
	s.classifyUnit(&u, verbatim, prose.String(), string(plain))
	s.unitEnd, s.next = a.End, sentence.Span{}
	return u
}

// appendPlain appends the text after a mark. If it begins with a punctuation mark, spaces
// before the mark are removed.
func appendPlain(plain, after []byte) []byte {
	if len(after) > 0 && strings.IndexByte(".,;:!?", after[0]) >= 0 {
		plain = bytes.TrimRight(plain, " ")
	}
	return append(plain, after...)
}

func (s *Splitter) classifyUnit(u *Unit, verbatim bool, prose, plain string) {
	head := u.Text[0] == '|' && !(s.afterRow && strings.Count(u.Space, "\n") == 1)
	item := listLead.MatchString(u.Text)
	u.listed = item || u.Text[0] == '|'
	if item {
		u.indent = len(u.Space) - strings.LastIndexByte(u.Space, '\n')
	}
	s.afterRow = u.Text[0] == '|'
	switch words := sentence.Pointers(u.Plain); {
	case verbatim:
		u.Kind = Verbatim
	case u.Text[0] == '#':
		u.Kind, u.level = Lead, len(u.Text)-len(strings.TrimLeft(u.Text, "#"))
	case head, s.afterRow && delimiters.MatchString(u.Text):
		u.Kind, u.head = Lead, true
	case words >= 0 && len(u.Marks) > 0:
		u.Kind = Trailer
	case words == 0:
		u.Kind = Aside
	case endsInColon(u.Plain):
		u.Kind = Lead
	case len(u.Marks) == 0 && boldLine.MatchString(u.Text):
		u.Kind, u.level = Lead, bold
	case u.listed || len(u.Marks) > 0 || sentence.States(u.Text, prose, plain):
		u.Kind = Claim
	default:
		u.Kind = Aside
	}
}
