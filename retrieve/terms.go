package retrieve

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

// Analysis numbers the rules of [Terms]. Term lists that were stored under
// another number must be made anew.
const Analysis = 1

// maxTerm is the longest term in bytes. What is longer (an encoded image, a
// key) is cut: it can still be found by its beginning, and costs no more.
const maxTerm = 64

// Terms gives the terms by which a text is compared with others, in order and
// as often as they stand there: words by Unicode's rules, without case and
// accents, stemmed; pairs of characters where a script writes no spaces;
// identifiers whole and in parts ("getUserName": getusername, get, user,
// name); versions and numbers whole. English stop words are left out, unless
// the text has nothing else.
func Terms(text string) []string {
	a := analyser{dropStops: true}
	if a.read(text); len(a.terms) == 0 {
		a = analyser{}
		a.read(text)
	}
	return a.terms
}

// IndexTerms is [Terms] with every stop word kept. An engine's lexical index is
// built over it, so that a question made of stop words alone finds something.
func IndexTerms(text string) []string {
	a := analyser{}
	a.read(text)
	return a.terms
}

// distinct gives the different terms in order of their first use.
func distinct(terms []string) []string {
	seen := make(map[string]bool, len(terms))
	out := make([]string, 0, len(terms))
	for _, t := range terms {
		if !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}

type analyser struct {
	terms     []string
	dropStops bool
	// The last characters of a run without spaces; pairs are made across the
	// single characters into which Unicode's rules cut such a run.
	previous string
	paired   bool
	end      int // byte offset behind previous
}

func (a *analyser) read(text string) {
	it := words.FromString(text)
	for it.Next() {
		word := it.Value()
		first, _ := utf8.DecodeRuneInString(word)
		switch {
		case first < utf8.RuneSelf:
			a.flush()
			if isASCIIAlnum(byte(first)) || first == '_' {
				a.word(word)
			}
		case unspaced(first):
			a.run(norm.NFKC.String(word), it.Start(), it.End())
		case unicode.IsLetter(first) || unicode.IsNumber(first):
			a.flush()
			a.word(norm.NFKC.String(word))
		default:
			a.flush()
		}
	}
	a.flush()
}

// run takes a piece of text in a script without spaces and adds the pairs of
// neighbouring characters. A character that stands alone is a term by itself.
func (a *analyser) run(piece string, start, end int) {
	if start != a.end {
		a.flush()
	}
	for len(piece) > 0 {
		_, n := utf8.DecodeRuneInString(piece)
		// A mark belongs to the letter before it.
		for n < len(piece) {
			r, m := utf8.DecodeRuneInString(piece[n:])
			if !unicode.IsMark(r) {
				break
			}
			n += m
		}
		c := piece[:n]
		if a.previous != "" {
			a.add(a.previous + c)
			a.paired = true
		}
		a.previous = c
		piece = piece[n:]
	}
	a.end = end
}

func (a *analyser) flush() {
	if a.previous != "" && !a.paired {
		a.add(a.previous)
	}
	a.previous, a.paired, a.end = "", false, -1
}

// word adds the terms of one word, which starts with a letter, digit or "_".
func (a *analyser) word(word string) {
	word = strings.Trim(word, "_.'’:")
	if word == "" {
		return
	}
	plain := true
	for i := 0; i < len(word) && plain; i++ {
		plain = word[i]|0x20 >= 'a' && word[i]|0x20 <= 'z'
	}
	if plain && !humped(word) {
		a.simple(fold(word))
		return
	}
	a.compound(word)
}

// simple adds one folded word without inner structure.
func (a *analyser) simple(w string) {
	if stopWords[w] {
		if !a.dropStops {
			a.add(w)
		}
		return
	}
	a.add(stem(w))
}

// compound adds a word whole and in the parts it is written of.
func (a *analyser) compound(word string) {
	// An apostrophe joins: "don't" is one word, and "boat's" is a boat.
	word = strings.ReplaceAll(word, "’", "'")
	if cut, ok := strings.CutSuffix(strings.ToLower(word), "'s"); ok {
		word = word[:len(cut)]
	}
	word = strings.ReplaceAll(word, "'", "")
	if numeric(word) {
		a.add(strings.ToLower(strings.ReplaceAll(word, ",", "")))
		return
	}
	if initials(word) {
		a.simple(fold(strings.ReplaceAll(word, ".", "")))
		return
	}
	whole := fold(word)
	a.simple(whole)
	for _, part := range parts(word) {
		if p := fold(part); p != whole && utf8.RuneCountInString(p) > 1 {
			a.simple(p)
		}
	}
}

func (a *analyser) add(term string) {
	if len(term) > maxTerm {
		n := maxTerm
		for !utf8.RuneStart(term[n]) {
			n--
		}
		term = term[:n]
	}
	if term != "" {
		a.terms = append(a.terms, term)
	}
}

// numeric says whether a word is a number or version that means nothing in
// parts: 1,234.5 or v1.2.3 or 2024-01.
func numeric(word string) bool {
	digits := false
	for i, r := range word {
		switch {
		case r >= '0' && r <= '9':
			digits = true
		case r == '.' || r == ',' || r == '-' || r == ':':
		case i == 0 && (r == 'v' || r == 'V'):
		default:
			return false
		}
	}
	return digits
}

// initials says whether a word is letters with a full stop between each two:
// U.S.A.
func initials(word string) bool {
	for i := 0; i < len(word); i++ {
		if letter := word[i]|0x20 >= 'a' && word[i]|0x20 <= 'z'; letter != (i%2 == 0) || !letter && word[i] != '.' {
			return false
		}
	}
	return len(word) > 2
}

// humped says whether a capital follows a small letter, or a small letter
// follows two capitals, as in identifiers.
func humped(word string) bool {
	for i := 1; i < len(word); i++ {
		if upper(word[i]) && !upper(word[i-1]) {
			return true
		}
		if i > 1 && !upper(word[i]) && upper(word[i-1]) && upper(word[i-2]) {
			return true
		}
	}
	return false
}

func upper(b byte) bool { return b >= 'A' && b <= 'Z' }

// parts cuts an identifier at punctuation, between letters and digits, and
// where a capital starts a new word.
func parts(word string) []string {
	var out []string
	start := 0
	cut := func(end, next int) {
		if end > start {
			out = append(out, word[start:end])
		}
		start = next
	}
	var before, last rune
	lastAt := 0
	for i, r := range word {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r):
			cut(i, i+utf8.RuneLen(r))
		case last == 0:
		case unicode.IsDigit(r) != unicode.IsDigit(last) && !unicode.IsMark(r):
			cut(i, i)
		case unicode.IsUpper(r) && unicode.IsLower(last):
			cut(i, i)
		case unicode.IsLower(r) && unicode.IsUpper(last) && unicode.IsUpper(before):
			cut(lastAt, lastAt)
		}
		before, last, lastAt = last, r, i
	}
	cut(len(word), len(word))
	return out
}

// fold takes away case and, from Latin and Greek letters, accents.
func fold(word string) string {
	ascii := true
	for i := 0; i < len(word) && ascii; i++ {
		ascii = word[i] < utf8.RuneSelf
	}
	word = strings.ToLower(word)
	if ascii {
		return word
	}
	var b strings.Builder
	base := rune(0)
	for _, r := range norm.NFD.String(word) {
		if unicode.Is(unicode.Mn, r) {
			switch {
			case unicode.In(base, unicode.Latin, unicode.Greek):
				continue
			case base == 'е' && r == '\u0308': // Russian ё is written е as often
				continue
			case unicode.Is(unicode.Arabic, base): // vowel signs
				continue
			}
		} else {
			base = r
		}
		switch r {
		case 'ß':
			b.WriteString("ss")
		case 'ς':
			b.WriteRune('σ')
		case 'ı':
			b.WriteByte('i')
		case 'æ':
			b.WriteString("ae")
		case 'œ':
			b.WriteString("oe")
		case 'ø':
			b.WriteByte('o')
		case 'ł':
			b.WriteByte('l')
		case 'đ':
			b.WriteByte('d')
		case 'ـ': // Arabic lengthening
		default:
			b.WriteRune(r)
		}
	}
	return norm.NFC.String(b.String())
}

// stem takes the ending off a folded word, by its script.
func stem(word string) string {
	if len(word) < 3 || len(word) > maxTerm {
		return word
	}
	first, _ := utf8.DecodeRuneInString(word)
	var by func(*snowballstem.Env) bool
	switch {
	case first < utf8.RuneSelf:
		if !isASCIIAlpha(byte(first)) {
			return word
		}
		by = english.Stem
	case unicode.Is(unicode.Cyrillic, first):
		by = russian.Stem
	case unicode.Is(unicode.Arabic, first):
		by = arabic.Stem
	default:
		return word
	}
	env := snowballstem.NewEnv(word)
	by(env)
	return env.Current()
}

// unspaced says whether a letter's script is written without spaces (or, as
// Korean, with spaces that part more than words).
func unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && (unicode.IsLetter(r) || unicode.IsMark(r))
}

func isASCIIAlpha(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func isASCIIAlnum(b byte) bool { return isASCIIAlpha(b) || b >= '0' && b <= '9' }

// stopWords are English words that say nothing of a text's subject: articles,
// pronouns, auxiliaries, common prepositions and question words.
var stopWords = func() map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(`
		a about above after again all also am an and any are arent as at be because been before being
		below between both but by can cannot could couldnt did didnt do does doesnt doing dont down during each
		few for from further had hadnt has hasnt have havent having he her here hers herself him himself his how
		i if in into is isnt it its itself just me more most must my myself no nor not of off on once only or
		other our ours ourselves out over own same shall she should shouldnt so some such than that the their
		theirs them themselves then there these they this those through to too under until up upon us very was
		wasnt we were werent what when where which while who whom whose why will with wont would wouldnt you
		your yours yourself yourselves`) {
		m[w] = true
	}
	return m
}()
