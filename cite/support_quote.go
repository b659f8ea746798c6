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
		if !denies(text, spans, at) {
			at.end += closing(text[at.end:])
			return at, present
		}
		found = denied
		from = i + 1
	}
	return span{}, found
}

// A quotation says how the words of a claim stand in a passage.
type quotation uint8

const (
	absent quotation = iota
	present
	denied
)

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
	if last.plain == "that" {
		for _, w := range words[max(0, len(words)-5):] {
			if negators[w.plain] || falsehoods[w.plain] {
				return true
			}
		}
		return false
	}
	return len(words) > 1 && (last.kind == light || filler[last.plain]) && negators[words[len(words)-2].plain]
}

// falsehoods deny what follows them after "that".
var falsehoods = wordSet("false untrue wrong denied denies deny myth untruth disproved refuted doubtful")

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
	wide   int // words that are ideographs
}

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
		}
	}
	var before rune
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
		}
		before = r
		i = next
	}
	end()
	s.text = b.String()
	return s
}
