package cite

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quoted finds the words of a claim in a passage: the same words in the same
// order, whatever white space, punctuation and capitals. They are absent when
// too few to prove anything, and denied when every sentence of the passage that
// has them denies them.
func quoted(claim, text string, spans []span) (span, quotation) {
	needle := spell(claim)
	if !needle.telling() {
		return span{}, absent
	}
	found := absent
	hay := spell(text)
	// A place that denies the words is passed over; a text that says them so
	// often repeats itself.
	const maxDenied = 32
	from := 0
	for range maxDenied {
		i := strings.Index(hay.text[from:], needle.text)
		if i < 0 {
			return span{}, found
		}
		i += from
		first := hay.at(i)
		last := first + len(needle.spans) - 1
		at := span{hay.spans[first].start, hay.spans[last].end}
		how := present
		if denies(text, spans, at) {
			how = denied
		} else if hay.cutsNumber(text, first, last) {
			how = absent
		} else {
			how = min(needle.crossed(hay, first, text, spans, at), asked(claim, text, spans, at))
		}
		if how == present {
			at.end += closing(text[at.end:])
			return at, present
		}
		if how == denied {
			found = denied
		}
		from = i + 1
	}
	return span{}, found
}

// A quotation says how the words of a claim stand in a passage.
type quotation uint8

const (
	denied quotation = iota
	absent
	present
)

// crossed says how words stand that run over the end of a sentence of the text
// from its word first on: quoted when the claim ends a sentence there too, denied
// when it says them in one breath.
func (s *spelling) crossed(hay *spelling, first int, text string, spans []span, at span) quotation {
	how := present
	for i := sort.Search(len(spans), func(i int) bool { return spans[i].end > at.start }); i < len(spans) && spans[i].end < at.end; i++ {
		end := spans[i].end
		next := sort.Search(len(hay.spans), func(k int) bool { return hay.spans[k].start >= end }) - first
		if next <= 0 || next >= len(s.spans) {
			continue
		}
		switch last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text[:end], "\"'”’)]*_» ")); {
		case s.ends[next] == sentenceEnd:
		case s.ends[next] == wordEnd && isStop(last):
			return denied
		default:
			how = absent
		}
	}
	return how
}

// asked says how words stand that the text only asks for: denied unless the
// answer behind the question may bear them out.
func asked(claim, text string, spans []span, at span) quotation {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].end >= at.end })
	if i == len(spans) || !asks(text[at.end:spans[i].end]) || asks(claim) {
		return present
	}
	if i+1 == len(spans) {
		return denied
	}
	const reach = 48 // of the answer's first word
	next := text[spans[i+1].start:spans[i+1].end]
	reply := (&lexer{}).read(next[:min(len(next), reach)])
	if len(reply) == 0 || isNegator(reply[0]) || replies[reply[0].plain] {
		return denied
	}
	return absent
}

// asks says whether a sentence ends with a question mark.
func asks(sentence string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(sentence, "\"'”’)]*_» \n"))
	return last == '?' || last == '？'
}

// replies deny a question and are no negators.
var replies = wordSet("nein non niet nej いい")

// cutsNumber says whether the words of a text from first to last begin or end
// inside of a number whose digits are grouped by spaces.
func (s *spelling) cutsNumber(text string, first, last int) bool {
	joined := func(i int) bool {
		if i <= 0 || i >= len(s.spans) {
			return false
		}
		a, b := s.spans[i-1], s.spans[i]
		head, tail := text[a.start:a.end], text[b.start:b.end]
		return len(head) <= 3 && onlyDigits(head) && len(tail) >= 3 && onlyDigits(tail[:3]) && isGroupSpace(text[a.end:b.start])
	}
	return joined(first) || joined(last+1)
}

// onlyDigits says whether a text is ASCII digits.
func onlyDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// isGroupSpace says whether a text is a single space, as it stands between the
// digits of a long number.
func isGroupSpace(s string) bool {
	switch s {
	case " ", "\u00a0", "\u2009", "\u202f":
		return true
	}
	return false
}

// denies says whether the words around a quote in its own sentence deny it:
// "not" or "never" right before it, "it is not true that", or a last "nicht".
func denies(text string, spans []span, at span) bool {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].end > at.start })
	if i == len(spans) {
		return false
	}
	// What is farther away than this speaks of something else.
	const reach = 48
	if end := spans[i].end; at.end < end && end-at.end < reach {
		if behind := (&lexer{}).read(text[at.end:end]); len(behind) == 1 && lastNegators[behind[0].plain] {
			return true
		}
	}
	if end := spans[i].end; at.end < end && deniedBehind((&lexer{}).read(text[at.end:min(end, at.end+reach)])) {
		return true
	}
	if spans[i].start >= at.start {
		return false
	}
	words := (&lexer{}).read(text[max(spans[i].start, at.start-reach):at.start])
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	if negators[last.plain] {
		return true
	}
	if sayings[last.plain] {
		for _, w := range words[max(0, len(words)-6):] {
			if negators[w.plain] || falsehoods[w.plain] {
				return true
			}
		}
		return false
	}
	return len(words) > 1 && (last.kind == light || filler[last.plain]) && negators[words[len(words)-2].plain]
}

// deniedBehind says whether words behind a quote deny it: "is false", "was never
// true".
func deniedBehind(words []word) bool {
	const reach = 4
	if len(words) == 0 || words[0].kind != light {
		return false
	}
	turned := false
	for _, w := range words[:min(len(words), reach)] {
		if w.parted {
			return false
		}
		turned = turned || negators[w.plain]
		if falsehoods[w.plain] || turned && truths[w.plain] {
			return true
		}
	}
	return false
}

// sayings are the last words before what somebody says or believes.
var sayings = wordSet("that whether say says said claim claims claimed think thinks thought believe believes assume suggest suppose")

// falsehoods deny what follows them after "that", or comes before them.
var falsehoods = wordSet("false untrue wrong incorrect mistaken denied denies deny myth untruth disproved refuted doubtful invented")

// truths do so behind a negator.
var truths = wordSet("true correct right so case")

// filler may stand between a negator and what it negates.
var filler = wordSet("always yet usually generally necessarily really normally ever longer fully")

// closing gives the length of the punctuation that ends a quote.
func closing(rest string) int {
	n := 0
	for n < len(rest) {
		r, size := utf8.DecodeRuneInString(rest[n:])
		if !isStop(r) && !strings.ContainsRune("\"'”’)]»」』）】", r) {
			break
		}
		n += size
	}
	return n
}

// A spelling is a text as a row of words in lower case, each with a space
// before and behind it.
type spelling struct {
	text   string
	starts []int // of each word in text
	spans  []span
	ends   []ending // what stands before each word
	wide   int      // words that are ideographs
}

// An ending is what stands between two words of a spelling.
type ending uint8

const (
	wordEnd     ending = iota
	clauseEnd          // a comma, a dash
	sentenceEnd        // a full stop, a colon, a line end
)

// telling says whether the words are enough to prove that they were quoted.
func (s *spelling) telling() bool {
	return len(s.spans)-s.wide >= minVerbatim || s.wide >= 2*minVerbatim
}

// at gives the word that begins behind the space at place i of the text.
func (s *spelling) at(i int) int { return sort.SearchInts(s.starts, i+1) }

// isSign says whether a character is one of money or of arithmetic.
func isSign(r rune) bool {
	if r < utf8.RuneSelf {
		return strings.ContainsRune("$+<=>~", r)
	}
	return unicode.In(r, unicode.Sc, unicode.Sm)
}

// spell cuts a text at white space and punctuation. Signs that change what is
// said (%, $, +, <) are words, as is every ideograph; a point between digits
// and an apostrophe between letters do not cut.
func spell(text string) *spelling {
	s := &spelling{}
	var b strings.Builder
	b.Grow(len(text) + 2)
	b.WriteByte(' ')
	open := false
	var at span
	var before rune
	mark := wordEnd
	end := func() {
		if open {
			b.WriteByte(' ')
			s.spans = append(s.spans, at)
			open = false
		}
	}
	begin := func(i int) {
		if !open {
			open = true
			at = span{start: i}
			s.starts = append(s.starts, b.Len())
			s.ends = append(s.ends, mark)
			mark = wordEnd
		}
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		next := i + size
		after, _ := utf8.DecodeRuneInString(text[next:])
		switch {
		case isWideWord(r):
			end()
			begin(i)
			b.WriteRune(r)
			at.end = next
			end()
			s.wide++
		case isLetter(r) || isDigit(r):
			begin(i)
			b.WriteRune(unicode.ToLower(r))
			at.end = next
		case open && (r == '.' || r == ',') && isDigit(before) && isDigit(after):
			b.WriteRune(r)
			at.end = next
		case open && (r == '\'' || r == '’') && isLetter(before) && isLetter(after):
			b.WriteByte('\'')
			at.end = next
		case r == 0xAD || r == 0x200B || r == 0x200C || r == 0x200D: // not seen
		case r == '%' || isSign(r),
			(r == '-' || r == '−') && isDigit(after) && (before == 0 || unicode.IsSpace(before)):
			end()
			begin(i)
			b.WriteRune(r)
			at.end = next
			end()
		default:
			end()
			if isStop(r) || r == '\n' || r == ':' || r == ';' {
				mark = sentenceEnd
			} else if partsClauses(r) || r == '-' || r == '|' {
				mark = max(mark, clauseEnd)
			}
		}
		before = r
		i = next
	}
	end()
	s.text = b.String()
	return s
}
