package retrieve

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	porter "github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

// Analysis numbers the rules of [Terms]. Term lists that were stored under
// another number must be made anew.
const Analysis = 3

// maxTerm is the longest term in bytes. What is longer (an encoded image, a
// key) is cut: it can still be found by its beginning, and costs no more.
const maxTerm = 64

// Terms gives the terms by which a text is compared with others, in order and
// as often as they stand there: words by Unicode's rules, without case and
// accents, stemmed; pairs of characters where a script writes no spaces;
// identifiers whole and in parts ("getUserName": getusername, get, user,
// name); versions and numbers whole. The words of a text in another language of
// the Latin script than English stand there twice, stemmed by the rules of
// English, as they are without any sentence around them, and by those of their
// own language. Function words ("the", "and", "what") of English and of the
// text's language are left out, unless the text has nothing else.
func Terms(text string) []string { return flat(question(text)) }

// IndexTerms is [Terms] with every function word kept, and with what only helps
// to be found. An engine's lexical index is built over it, so that a question
// made of function words alone finds something.
func IndexTerms(text string) []string { return flat(indexed(text)) }

func indexed(text string) []word {
	var a analyser
	a.read(text)
	return a.words
}

// A word of a text, as the terms that stand for it.
type word struct {
	// own is the stem in the text's language, where that is not English and
	// the stem is another than term.
	term, own string
	// again says that the same words have given a word before.
	again bool
}

// question gives the words of a question in order.
func question(text string) []word {
	a := analyser{dropFunction: true}
	if a.read(text); len(a.words) == 0 {
		return indexed(text)
	}
	return a.words
}

// flat gives all terms of the words.
func flat(words []word) []string {
	terms := make([]string, 0, len(words))
	for _, w := range words {
		terms = append(terms, w.term)
		if w.own != "" {
			terms = append(terms, w.own)
		}
	}
	return terms
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
	words        []word
	dropFunction bool
	// spoken are those of the words that another language may see otherwise.
	spoken []spoken
	tally  tally
	// The last characters of a run without spaces; pairs are made across the
	// single characters into which Unicode's rules cut such a run.
	previous string
	paired   bool
	end      int // byte offset behind previous
}

type spoken struct {
	written  string // in small letters
	at       int    // index of the word
	function languages
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
				a.written(word)
				a.marked(text, it.Start(), it.End())
			}
		case unspaced(first):
			a.run(norm.NFKC.String(word), it.Start(), it.End())
		case unicode.IsLetter(first) || unicode.IsNumber(first):
			a.flush()
			a.written(norm.NFKC.String(word))
		default:
			a.flush()
		}
	}
	a.flush()
	if l := a.tally.language(); l != english {
		a.translate(l)
	}
}

// translate sees the words again as the language sees them.
func (a *analyser) translate(l language) {
	stem := stemmers[languageCodes[l]]
	for _, s := range a.spoken {
		w := &a.words[s.at]
		switch {
		case s.function.has(l):
			if a.dropFunction {
				w.term = ""
			}
		case stem != nil:
			env := snowballstem.NewEnv(s.written)
			stem(env)
			if own := fold(env.Current()); own != w.term {
				w.own = own
			}
		}
	}
	if a.dropFunction {
		a.words = slices.DeleteFunc(a.words, func(w word) bool { return w.term == "" })
	}
}

// run takes a piece of text in a script without spaces and adds the pairs of
// neighbouring characters. A Chinese character, and any that stands alone, is a
// term by itself too.
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
		if first, _ := utf8.DecodeRuneInString(c); unicode.Is(unicode.Han, first) {
			a.character(c)
			a.paired = true
		}
		if a.previous != "" {
			a.character(a.previous + c)
			a.paired = true
		}
		a.previous = c
		piece = piece[n:]
	}
	a.end = end
}

// character adds one or two of a run.
func (a *analyser) character(c string) {
	if !a.dropFunction || !functionWords[c].has(chinese) {
		a.add(c)
	}
}

func (a *analyser) flush() {
	if a.previous != "" && !a.paired {
		a.add(a.previous)
	}
	a.previous, a.paired, a.end = "", false, -1
}

// marked adds what the signs around an ASCII word make of it: the languages C++
// and C#, a name with a dot before it (.NET, .env), and the whole of a name or
// number that is written with a hyphen as often as without (A-320, e-mail). Such
// a whole finds "A320"; a question needs it less, since its parts find either.
func (a *analyser) marked(text string, start, end int) {
	name, rest := text[start:end], text[end:]
	switch {
	case strings.HasPrefix(rest, "++"):
		a.repeat(strings.ToLower(name) + "++")
	case len(name) == 1 && strings.HasPrefix(rest, "#") && (len(rest) == 1 || !isASCIIAlnum(rest[1])):
		a.repeat(strings.ToLower(name) + "#")
	}
	if start == 0 || !isASCIIAlnum(name[0]) {
		return
	}
	switch before := text[:start-1]; text[start-1] {
	case '.':
		if before == "" || strings.IndexByte(" \t\n\"'`(", before[len(before)-1]) >= 0 {
			a.repeat("." + strings.ToLower(name))
		}
	case '-':
		left := before[len(strings.TrimRightFunc(before, func(r rune) bool { return r < utf8.RuneSelf && isASCIIAlnum(byte(r)) })):]
		if left != "" && (!a.dropFunction && joins(left, name) || strings.EqualFold(left, "e")) {
			a.repeat(stem(strings.ToLower(left + name)))
		}
	}
}

// joins says whether the parts of a hyphenated word are often written as one:
// when a part is a single letter, or letters meet digits.
func joins(left, right string) bool {
	return strings.ContainsAny(left, digits) != strings.ContainsAny(right, digits) ||
		len(left) == 1 && isASCIIAlpha(left[0]) || len(right) == 1 && isASCIIAlpha(right[0])
}

const digits = "0123456789"

// written adds the terms of one word, which starts with a letter, digit or "_".
func (a *analyser) written(word string) {
	word = strings.Trim(word, "_.'’:")
	if word == "" {
		return
	}
	plain := true
	for i := 0; i < len(word) && plain; i++ {
		plain = word[i]|0x20 >= 'a' && word[i]|0x20 <= 'z'
	}
	if plain && !humped(word) {
		a.simple(word)
		return
	}
	a.compound(word)
}

// simple adds one word without inner structure.
func (a *analyser) simple(word string) {
	written := strings.ToLower(word)
	function := functionWords[written]
	a.tally.add(written, function)
	folded := fold(written)
	if function.has(english) {
		if !a.dropFunction {
			a.add(folded)
		}
		return
	}
	a.spoken = append(a.spoken, spoken{written, len(a.words), function})
	a.add(stem(folded))
}

// compound adds a word whole and in the parts it is written of.
func (a *analyser) compound(word string) {
	// An apostrophe joins: "don't" is one word, and "boat's" is a boat. What
	// French and Italian put before one is another word: "l'eau".
	word = strings.ReplaceAll(word, "’", "'")
	if cut, ok := strings.CutSuffix(strings.ToLower(word), "'s"); ok {
		word = word[:len(cut)]
	}
	if before, after, ok := strings.Cut(word, "'"); ok && elided[strings.ToLower(before)] && len(after) > 1 {
		word = after
	}
	word = strings.ReplaceAll(word, "'", "")
	if numeric(word) {
		number := strings.ToLower(strings.ReplaceAll(word, ",", ""))
		if strings.Contains(number, ".") {
			number = strings.TrimPrefix(number, "v")
		}
		a.add(number)
		return
	}
	if initials(word) {
		a.simple(strings.ReplaceAll(word, ".", ""))
		return
	}
	a.simple(word)
	for _, part := range parts(word) {
		if len(part) < len(word) && utf8.RuneCountInString(part) > 1 {
			a.simple(part)
		}
	}
}

func (a *analyser) add(term string) { a.enter(word{term: term}) }

// repeat adds another term of words that have been added.
func (a *analyser) repeat(term string) { a.enter(word{term: term, again: true}) }

func (a *analyser) enter(w word) {
	if n := len(w.term); n > maxTerm {
		n = maxTerm
		for !utf8.RuneStart(w.term[n]) {
			n--
		}
		w.term = w.term[:n]
	}
	if w.term != "" {
		a.words = append(a.words, w)
	}
}

// elided are the articles, pronouns and prepositions of French and Italian that
// lose their vowel before another.
var elided = func() map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields("l d c j m n s t qu jusqu lorsqu puisqu quoiqu un all dall dell nell sull coll quell quest") {
		m[w] = true
	}
	return m
}()

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
			case r == '\u093c': // the dot of borrowed Hindi sounds, often left out
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
		case 'ँ': // one Hindi nasal sign for the other
			b.WriteRune('ं')
		case 'ـ', '\u200c', '\u200d': // Arabic lengthening; joiners
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
		by = porter.Stem
	case unicode.Is(unicode.Cyrillic, first):
		by = russian.Stem
	case unicode.Is(unicode.Arabic, first):
		by = arabic.Stem
	case unicode.Is(unicode.Devanagari, first):
		return stemHindi(word)
	case unicode.Is(unicode.Tamil, first):
		by = tamil.Stem
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
