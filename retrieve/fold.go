package retrieve

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	porter "github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/tamil"
	"golang.org/x/text/unicode/norm"
)

// offLine matches superscript and subscript digits with the letter before them, if any.
var offLine = regexp.MustCompile(`[\pL\pM]?[` + small + `]+`)

const small = "⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉"

// plainDigits replaces superscript and subscript digits: H₂O becomes H2O and m² becomes m2. Digits that
// do not follow a letter, such as a footnote mark after a year, become a separate number: 10²
// becomes 10 2.
func plainDigits(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= '²' && strings.ContainsRune(small, r) }) {
		return text
	}
	return offLine.ReplaceAllStringFunc(text, func(s string) string {
		if digits := norm.NFKC.String(s); isDigit(digits[0]) {
			return " " + digits
		}
		return norm.NFKC.String(s)
	})
}

// normaliseWord normalises the characters of a word (NFKC) and writes the digits of every script as 0 to
// 9. It removes invisible characters except joiners, which separate words in Persian.
func normaliseWord(word string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf:
			return r
		case r == '٫':
			return '.'
		case r == '٬':
			return ','
		case unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d':
			return -1
		case unicode.Is(unicode.Nd, r):
			return '0' + digitOf(r)
		}
		return r
	}, norm.NFKC.String(word))
}

// digitOf returns the value of a decimal digit. Unicode has the digits of a script in blocks of
// ten.
func digitOf(r rune) rune {
	first := r
	for unicode.Is(unicode.Nd, first-1) {
		first--
	}
	return (r - first) % 10
}

// stressed lists the Cyrillic vowels that dictionaries mark with an accent.
const stressed = "аеиоуыэюяіє"

// fold removes case and optional marks: accents of Latin and Greek letters, vowel
// signs and points.
func fold(word string) string {
	word = strings.ToLower(word)
	if strings.IndexFunc(word, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return word
	}
	var b strings.Builder
	base := rune(0)
	for _, r := range norm.NFD.String(word) {
		if !unicode.Is(unicode.Mn, r) {
			base = r
		} else if isOptional(base, r) {
			continue
		}
		if folded, ok := folds[r]; ok {
			b.WriteString(folded)
		} else if !unicode.Is(unicode.Cf, r) { // joiners, soft hyphens
			b.WriteRune(r)
		}
	}
	return norm.NFC.String(b.String())
}

// isOptional reports whether writers may omit the mark over or under a letter.
func isOptional(letter, mark rune) bool {
	switch {
	case unicode.In(letter, unicode.Latin, unicode.Greek, unicode.Hebrew, unicode.Arabic): // accents, vowel signs
		return true
	case mark == '\u0300' || mark == '\u0301':
		return strings.ContainsRune(stressed, letter)
	case mark == '\u0308':
		return letter == 'е' // Russian ё is often written е
	}
	return mark == '\u093c' // the dot of sounds borrowed into Hindi
}

// folds maps letters to spellings that Unicode's decomposition does not produce.
var folds = map[rune]string{
	'ß': "ss", 'ς': "σ", 'ı': "i", 'æ': "ae", 'œ': "oe", 'ø': "o", 'ł': "l", 'đ': "d",
	'ँ': "ं",                     // the two Hindi nasal signs
	'ی': "ي", 'ک': "ك", 'ٱ': "ا", // Persian letters as in Arabic
	'ـ': "", // lengthens an Arabic word
}

// Stem reduces the forms of one word to one term ("Sailing", "sails": sail), as
// [Terms] does: it folds case and accents and removes the ending by the rules of
// the word's script.
func Stem(word string) string { return stem(fold(word)) }

// stem removes the ending of a folded word by the rules of its script.
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
	stems.RLock()
	known, ok := stems.of[word]
	stems.RUnlock()
	if ok {
		return known
	}
	env := snowballstem.NewEnv(word)
	by(env)
	stems.Lock()
	defer stems.Unlock()
	if stems.of == nil || len(stems.of) == maxStems {
		stems.of = make(map[string]string, maxStems)
	}
	stems.of[strings.Clone(word)] = env.Current() // the word may be part of a long text
	return env.Current()
}

// stems caches the stems of recent words: texts repeat most words.
var stems struct {
	sync.RWMutex
	of map[string]string
}

const maxStems = 1 << 14

// arabicPrefixes are the article, combined with prepositions and conjunctions, and "and";
// arabicEndings are the endings of number, gender and possession (Larkey, Ballesteros and Connell,
// "Light Stemming for Arabic Information Retrieval", 2007).
var arabicPrefixes, arabicEndings = strings.Fields("ال وال بال كال فال لل و"), strings.Fields("ها ان ات ون ين يه ية ه ة ي ى")

// lightArabic removes one prefix and the endings of an Arabic word, as long as at least two letters
// remain, or three after "and".
func lightArabic(env *snowballstem.Env) bool {
	word, letters := fold(env.Current()), utf8.RuneCountInString
	for _, prefix := range arabicPrefixes {
		if rest, ok := strings.CutPrefix(word, prefix); ok && letters(rest) >= 2 && (prefix != "و" || letters(rest) >= 3) {
			word = rest
			break
		}
	}
	for _, ending := range arabicEndings {
		if rest, ok := strings.CutSuffix(word, ending); ok && letters(rest) >= 2 {
			word = rest
		}
	}
	env.SetCurrent(word)
	return true
}

// hindiEndings are the inflections of Hindi nouns, adjectives and verbs, longest first (Ramanathan
// and Rao, "A Lightweight Stemmer for Hindi", 2003).
var hindiEndings = strings.Fields(`
	ाएंगी ाएंगे ाऊंगी ाऊंगा ाइयां ाइयों
	ाएगी ाएगा ाओगी ाओगे एंगी ेंगी एंगे ेंगे ूंगी ूंगा ातीं नाओं नाएं ताओं ताएं ियां ियों
	ाकर ाइए ाईं ाया ेगी ेगा ोगी ोगे ाने ाना ाते ाती ाता तीं ाओं ाएं ुओं ुएं ुआं
	कर ाओ िए ाई ाए ने नी ना ते ीं ती ता ां ों ें
	ो े ू ु ी ि ा`)

// stemHindi removes the ending of a folded Hindi word if at least two letters remain.
func stemHindi(word string) string {
	letters := utf8.RuneCountInString(word)
	for _, ending := range hindiEndings {
		if letters > utf8.RuneCountInString(ending)+1 && strings.HasSuffix(word, ending) {
			word = word[:len(word)-len(ending)]
			break
		}
	}
	return hindiSpellings.Replace(word)
}

// hindiSpellings unifies the spellings of borrowed words: it writes a joined n as the nasal sign,
// drops the sign that joins letters, and shortens long vowels.
var hindiSpellings = strings.NewReplacer("न्", "ं", "्", "", "ई", "इ", "ी", "ि", "ऊ", "उ", "ू", "ु",
	"ऐ", "ए", "ै", "े", "औ", "ओ", "ौ", "ो", "ऍ", "ए", "ॅ", "े", "ऑ", "ओ", "ॉ", "ो")
