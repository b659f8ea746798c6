package retrieve

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/clipperhouse/uax29/v2/words"
)

// Analysis is the version of the rules of [Terms]. Term lists stored under another version must be
// rebuilt.
const Analysis = 7

// maxTerm is the length of the longest term in bytes. A longer term (an encoded image, a key) is
// cut and can be found by its beginning.
const maxTerm = 64

// maxStemmed is the length in bytes of the longest word that is stemmed by the rules of its text's
// language: some stemmers copy the word at every letter.
const maxStemmed = 4 * maxTerm

// Terms returns the terms by which a text is compared with other texts, in order and with
// repetitions: words by Unicode's rules, without case and accents, stemmed; pairs of characters in
// scripts without spaces; identifiers as a whole and by their parts ("getUserName": getusername,
// get, user, name); versions and numbers as a whole. A word in a text in Arabic, or in a language
// of the Latin script other than English, has two terms: its stem by the rules of English, which is
// also the term of a single word without context, and its stem by the rules of its language.
// Function words ("the", "and", "what") of English and of the text's language are dropped, unless
// the text has no other words.
func Terms(text string) []string { return termsOf(contentWords(text, false)) }

// QuestionTerms returns the [Terms] of a question. An English verb followed by its adverb has the
// two words in one as a further term ("back up" also asks for backup).
func QuestionTerms(question string) []string { return termsOf(questionWords(question)) }

func questionWords(question string) []word { return contentWords(question, true) }

// indexWords returns all words of a text in order, including function words, so that a question of
// function words alone finds something, and further terms that only documents have.
func indexWords(text string) []word {
	var a analyser
	a.read(text)
	return a.words
}

// A word is the terms of one word of a text.
type word struct {
	// stem is the stem in the text's language if the language is not English and the stem differs from
	// term.
	term, stem string
	// further marks a further term of text that already has a word.
	further bool
	// joined marks the term of a verb joined to its adverb, which counts only if a document
	// contains it.
	joined bool
}

// contentWords returns the words of a text in order, with verbs joined to their adverbs if asked is true.
func contentWords(text string, asked bool) []word {
	a := analyser{dropFunction: true, asked: asked}
	if a.read(text); len(a.words) == 0 {
		return indexWords(text)
	}
	return a.words
}

// termsOf returns all terms of the words.
func termsOf(words []word) []string {
	terms := make([]string, 0, len(words))
	for _, w := range words {
		terms = append(terms, w.term)
		if w.stem != "" {
			terms = append(terms, w.stem)
		}
	}
	return terms
}

// distinct returns the distinct elements in order of their first use.
func distinct[E comparable](all []E) []E {
	seen := make(map[E]bool, len(all))
	out := make([]E, 0, len(all))
	for _, t := range all {
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
	asked        bool // join verbs to their adverbs
	// spoken lists the words that the rules of another language may change.
	spoken []spokenWord
	tally  tally
	// previous is the last character of a run without spaces. Unicode's rules cut such runs into
	// single characters; pairs are made across the cuts.
	previous string
	paired   bool
	end      int // byte offset of the end of previous
}

type spokenWord struct {
	written  string // in lower case
	index    int    // index of the word
	function languages
}

// bytesPerWord is a low estimate of the bytes per word, spaces included.
const bytesPerWord = 5

func (a *analyser) read(text string) {
	text = plainDigits(text)
	a.words, a.spoken = slices.Grow(a.words, len(text)/bytesPerWord), slices.Grow(a.spoken, len(text)/bytesPerWord)
	it := words.FromString(text)
	for it.Next() {
		word := it.Value()
		first, _ := utf8.DecodeRuneInString(word)
		switch {
		case first < utf8.RuneSelf:
			a.flush()
			if isASCIIAlnum(word[0]) || first == '_' {
				a.addWord(word)
				a.addMarked(text, it.Start(), it.End())
			}
		case isUnspaced(first):
			if word = normaliseWord(word); strings.ContainsFunc(word, isSpacedLetter) {
				a.addMixed(word)
			} else {
				a.addPairs(word, it.Start(), it.End())
			}
		case unicode.IsLetter(first) || unicode.IsNumber(first) || strings.HasPrefix(word, narrowSpace):
			a.flush()
			a.addWord(word)
		default:
			a.flush()
		}
	}
	a.flush()
	if l := a.tally.language(); l != english {
		a.translate(l)
	}
}

// translate applies the stemmer and function words of the language.
func (a *analyser) translate(l language) {
	stem := stemmers[languageCodes[l]]
	for _, s := range a.spoken {
		w := &a.words[s.index]
		switch {
		case s.function.has(l):
			if a.dropFunction {
				w.term = ""
			}
		case stem != nil && len(s.written) <= maxStemmed:
			env := snowballstem.NewEnv(s.written)
			stem(env)
			if own := clipTerm(fold(env.Current())); own != w.term {
				w.stem = own
			}
		}
	}
	if a.dropFunction {
		a.words = slices.DeleteFunc(a.words, func(w word) bool { return w.term == "" || w.joined })
	}
}

// addPairs adds the pairs of neighbouring characters of a text in a script without spaces. A Chinese
// character, or a character without neighbours, is also a term by itself.
func (a *analyser) addPairs(piece string, start, end int) {
	if start != a.end {
		a.flush()
	}
	first, n := utf8.DecodeRuneInString(piece)
	if unicode.Is(unicode.Hangul, first) && isParticle(piece[n:]) {
		a.addRepeat(piece[:n]) // no pair would find the noun with another ending
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
			a.addCharacter(c)
			a.paired = true
		}
		if a.previous != "" {
			a.addCharacter(a.previous + c)
			a.paired = true
		}
		a.previous = c
		piece = piece[n:]
	}
	a.end = end
}

// addCharacter adds one or two characters of a run.
func (a *analyser) addCharacter(c string) {
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

// addMarked adds the terms that an ASCII word forms with the signs around it: the languages C++ and
// C#, a name that begins with a dot (.NET, .env), short names joined by an ampersand (AT&T), and a
// word that is written with or without a hyphen (A-320, e-mail).
func (a *analyser) addMarked(text string, start, end int) {
	name, rest := text[start:end], text[end:]
	switch {
	case strings.HasPrefix(rest, "++"):
		a.addRepeat(strings.ToLower(name) + "++")
	case len(name) == 1 && strings.HasPrefix(rest, "#") && (len(rest) == 1 || !isASCIIAlnum(rest[1])):
		a.addRepeat(strings.ToLower(name) + "#")
	}
	if start == 0 || !isASCIIAlnum(name[0]) {
		return
	}
	switch before := text[:start-1]; text[start-1] {
	case '.':
		if before == "" || strings.IndexByte(" \t\n\"'`(", before[len(before)-1]) >= 0 {
			a.addRepeat("." + strings.ToLower(name))
		}
	case '-':
		a.addHyphenated(lastName(before), name)
	case ' ':
		left := strings.ToLower(lastName(before))
		if a.asked && left != "" && !functionWords[left].has(english) && adverbs[strings.ToLower(name)] {
			a.appendWord(word{term: stem(stem(left) + strings.ToLower(name)), further: true, joined: true})
		}
	case '&':
		if left := lastName(before); left != "" && len(left)+len(name) <= 4 {
			a.addRepeat(strings.ToLower(left + "&" + name))
		}
	}
}

// lastName returns the ASCII letters and digits at the end of a text, or "" if they are the end of
// a longer name.
func lastName(text string) string {
	rest := strings.TrimRightFunc(text, func(r rune) bool { return r < utf8.RuneSelf && isASCIIAlnum(byte(r)) })
	if rest != "" && strings.IndexByte(".,_", rest[len(rest)-1]) >= 0 {
		return ""
	}
	return text[len(rest):]
}

// addHyphenated adds two hyphenated words as one term. A question has the term only if its parts would
// not find the other spelling: e-mail must find email and Wi-Fi wifi, but A-320 and A320 share a
// number.
func (a *analyser) addHyphenated(left, right string) {
	if left == "" {
		return
	}
	left, right = strings.ToLower(left), strings.ToLower(right)
	if asked := left == "e" || len(left) == 2 && len(right) <= 3 && !strings.ContainsAny(left+right, digits) &&
		!functionWords[left].has(english) && !functionWords[right].has(english); asked || !a.dropFunction && areJoined(left, right) {
		a.addRepeat(stem(left + right))
	}
}

// areJoined reports whether the parts of a hyphenated word are often written as one word: a part is a
// single letter, the first or both are short, or one has letters and the other digits.
func areJoined(left, right string) bool {
	return strings.ContainsAny(left, digits) != strings.ContainsAny(right, digits) ||
		len(left) == 1 && isASCIIAlpha(left[0]) || len(right) == 1 && isASCIIAlpha(right[0]) ||
		(len(left) <= 2 || len(left) <= 3 && len(right) <= 3) && !strings.ContainsAny(left+right, digits)
}

const digits = "0123456789"

// adverbs form nouns and adjectives with verbs: backup, login, checkout, kickoff, plugin.
var adverbs = map[string]bool{"up": true, "in": true, "out": true, "on": true, "off": true, "over": true, "down": true}

func (a *analyser) add(term string) { a.appendWord(word{term: term}) }

// addRepeat adds a further term of text that already has a word.
func (a *analyser) addRepeat(term string) { a.appendWord(word{term: term, further: true}) }

// addIndexOnly adds a further term to documents, but not to questions.
func (a *analyser) addIndexOnly(term string) {
	if !a.dropFunction {
		a.addRepeat(term)
	}
}

func (a *analyser) appendWord(w word) {
	w.term, w.stem = clipTerm(w.term), clipTerm(w.stem)
	if w.term != "" {
		a.words = append(a.words, w)
	}
}

// clipTerm cuts a term to maxTerm bytes.
func clipTerm(term string) string {
	if len(term) <= maxTerm {
		return term
	}
	n := maxTerm
	for !utf8.RuneStart(term[n]) {
		n--
	}
	return term[:n]
}

// isUnspaced reports whether a letter's script is written without spaces or, like Korean, with spaces
// between units larger than words.
func isUnspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && (unicode.IsLetter(r) || unicode.IsMark(r))
}

// isSpacedLetter reports whether r is a letter or digit of a script with spaces. The Japanese sign
// for a long vowel belongs to no script.
func isSpacedLetter(r rune) bool {
	return (unicode.IsDigit(r) || unicode.IsLetter(r) && !unicode.Is(unicode.Common, r)) && !isUnspaced(r)
}

// particles are the Korean noun endings of one syllable.
const particles = "은는이가을를에의도로와과만"

func isParticle(syllable string) bool {
	return utf8.RuneCountInString(syllable) == 1 && strings.Contains(particles, syllable)
}

func isASCIIAlpha(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func isASCIIAlnum(b byte) bool { return isASCIIAlpha(b) || b >= '0' && b <= '9' }
