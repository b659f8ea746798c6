package retrieve

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/clipperhouse/uax29/v2/words"
)

// Analysis numbers the rules of [Terms]. Term lists that were stored under
// another number must be made anew.
const Analysis = 4

// maxTerm is the longest term in bytes. What is longer (an encoded image, a
// key) is cut: it can still be found by its beginning, and costs no more.
const maxTerm = 64

// maxStemmed is the longest word in bytes that is stemmed by the rules of its
// text's language: some of them copy the word at every letter.
const maxStemmed = 4 * maxTerm

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
	text = onLine(text)
	it := words.FromString(text)
	end := 0 // of the number in groups that was read last
	for it.Next() {
		if it.Start() < end && a.dropFunction {
			continue // its groups mean nothing by themselves
		}
		word := it.Value()
		first, _ := utf8.DecodeRuneInString(word)
		switch {
		case first < utf8.RuneSelf:
			a.flush()
			if isDigit(word[0]) {
				var number string
				if number, end = spaced(text, it.Start()); number != "" {
					a.repeat(number)
				}
				if number != "" && a.dropFunction {
					continue
				}
			}
			if isASCIIAlnum(word[0]) || first == '_' {
				a.written(word)
				a.marked(text, it.Start(), it.End())
			}
		case unspaced(first):
			if word = ordinary(word); strings.ContainsFunc(word, spacedLetter) {
				a.mixed(word)
			} else {
				a.run(word, it.Start(), it.End())
			}
		case unicode.IsLetter(first) || unicode.IsNumber(first) || strings.HasPrefix(word, narrowSpace):
			a.flush()
			a.written(word)
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
		case stem != nil && len(s.written) <= maxStemmed:
			env := snowballstem.NewEnv(s.written)
			stem(env)
			if own := short(fold(env.Current())); own != w.term {
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
	if noun := beforeParticle(piece); noun != "" {
		a.repeat(noun)
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
// and C#, a name with a dot before it (.NET, .env), letters with an ampersand
// between them (AT&T), and the whole of a word that is written with a hyphen as
// often as without (A-320, e-mail).
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
		a.hyphenated(lastName(before), name)
	case '&':
		a.ampersand(lastName(before), name, 3)
	case ' ':
		if before, ok := strings.CutSuffix(before, " &"); ok {
			a.ampersand(lastName(before), name, 1)
		}
	}
}

// lastName gives the ASCII letters and digits that a text ends with; empty
// where they are the end of a longer one.
func lastName(text string) string {
	rest := strings.TrimRightFunc(text, func(r rune) bool { return r < utf8.RuneSelf && isASCIIAlnum(byte(r)) })
	if rest != "" && strings.IndexByte(".,_", rest[len(rest)-1]) >= 0 {
		return ""
	}
	return text[len(rest):]
}

// hyphenated adds two words with a hyphen between them as one. Where that finds
// what the words do not, a question has it too: e-mail finds email and Wi-Fi
// wifi, but A-320 and A320 share a number.
func (a *analyser) hyphenated(left, right string) {
	if left == "" {
		return
	}
	left, right = strings.ToLower(left), strings.ToLower(right)
	if asked := left == "e" || len(left) == 2 && len(right) <= 3 && !strings.ContainsAny(left+right, digits) &&
		!functionWords[left].has(english) && !functionWords[right].has(english); asked || !a.dropFunction && joins(left, right) {
		a.repeat(stem(left + right))
	}
}

// joins says whether the parts of a hyphenated word are often written as one:
// when a part is a single letter, the first or both are short, or letters meet
// digits.
func joins(left, right string) bool {
	return strings.ContainsAny(left, digits) != strings.ContainsAny(right, digits) ||
		len(left) == 1 && isASCIIAlpha(left[0]) || len(right) == 1 && isASCIIAlpha(right[0]) ||
		(len(left) <= 2 || len(left) <= 3 && len(right) <= 3) && !strings.ContainsAny(left+right, digits)
}

const digits = "0123456789"

// ampersand adds short names of letters with an ampersand between them as one.
func (a *analyser) ampersand(left, right string, longest int) {
	if i := strings.IndexFunc(right, func(r rune) bool { return r >= utf8.RuneSelf || !isASCIIAlnum(byte(r)) }); i >= 0 {
		right = right[:i] // a possessive
	}
	if left != "" && len(left) <= longest && len(right) <= longest && !strings.ContainsAny(left+right, digits) {
		a.repeat(strings.ToLower(left + "&" + right))
	}
}

func (a *analyser) add(term string) { a.enter(word{term: term}) }

// repeat adds another term of words that have been added.
func (a *analyser) repeat(term string) { a.enter(word{term: term, again: true}) }

// indexOnly adds another term of words that have been added, by which they are
// found and do not ask.
func (a *analyser) indexOnly(term string) {
	if !a.dropFunction {
		a.repeat(term)
	}
}

func (a *analyser) enter(w word) {
	w.term, w.own = short(w.term), short(w.own)
	if w.term != "" {
		a.words = append(a.words, w)
	}
}

// short cuts a term that is too long.
func short(term string) string {
	if len(term) <= maxTerm {
		return term
	}
	n := maxTerm
	for !utf8.RuneStart(term[n]) {
		n--
	}
	return term[:n]
}

// unspaced says whether a letter's script is written without spaces (or, as
// Korean, with spaces that part more than words).
func unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && (unicode.IsLetter(r) || unicode.IsMark(r))
}

// spacedLetter says whether a letter or digit is of a script with spaces. The
// sign that lengthens a Japanese vowel is of none.
func spacedLetter(r rune) bool {
	return (unicode.IsDigit(r) || unicode.IsLetter(r) && !unicode.Is(unicode.Common, r)) && !unspaced(r)
}

// particles are the endings of one syllable that Korean puts to nouns.
const particles = "은는이가을를에의도로와과만"

// beforeParticle gives the noun of one syllable that a Korean word of two is
// made of: it has no pair that it would be found by with another ending.
func beforeParticle(piece string) string {
	first, n := utf8.DecodeRuneInString(piece)
	if unicode.Is(unicode.Hangul, first) && particle(piece[n:]) {
		return piece[:n]
	}
	return ""
}

func particle(syllable string) bool {
	return utf8.RuneCountInString(syllable) == 1 && strings.Contains(particles, syllable)
}

func isASCIIAlpha(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func isASCIIAlnum(b byte) bool { return isASCIIAlpha(b) || b >= '0' && b <= '9' }
