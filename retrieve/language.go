package retrieve

import (
	"cmp"
	_ "embed"
	"fmt"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
)

// A language is an index into languageCodes, which lists the languages whose function words are
// known. English is the first.
type language int

const english = language(0)

// chinese is the last language. Its function words are single characters and pairs, which are the
// terms of Chinese text, and are always dropped from questions.
var chinese = language(len(languageCodes) - 1)

// languages is a bit set.
type languages uint32

func (s languages) has(l language) bool { return s&(1<<l) != 0 }

//go:embed functionwords.txt
var functionWordTable string

// functionWords maps a word, in lower case and composed characters, to the languages in which it is
// a function word. A word of three letters or more is also a key without its accents.
var functionWords, languageCodes, latin = func() (words map[string]languages, codes []string, latin languages) {
	words = make(map[string]languages)
	for line := range strings.Lines(functionWordTable) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(codes) == 0 || codes[len(codes)-1] != fields[0] {
			codes = append(codes, fields[0])
		}
		bit := languages(1) << (len(codes) - 1)
		for _, w := range fields[1:] {
			if first, _ := utf8.DecodeRuneInString(w); unicode.Is(unicode.Latin, first) {
				latin |= bit
			}
			words[w] |= bit
			// In Vietnamese only the accents distinguish words.
			if plain := fold(w); len(plain) > 2 && fields[0] != "vi" {
				words[plain] |= bit
			}
		}
	}
	return words, codes, latin
}()

// stemmers maps language codes to the stemmers of the languages that share the Latin script with
// English, and to a second stemmer for Arabic.
var stemmers = map[string]func(*snowballstem.Env) bool{
	"ar": lightArabic,
	"da": danish.Stem, "de": german.Stem, "es": spanish.Stem, "fi": finnish.Stem, "fr": french.Stem,
	"hu": hungarian.Stem, "it": italian.Stem, "nl": dutch.Stem, "no": norwegian.Stem, "pt": portuguese.Stem,
	"ro": romanian.Stem, "sv": swedish.Stem, "tr": turkish.Stem,
}

// A tally counts the function words of a text by language, to detect its language.
type tally struct {
	words  int
	hits   [32]int
	weight [32]float64
	first  [32]string // the first function word found in each language
	varied languages  // languages with two different function words
	shared languages  // languages that have all English function words of the text
}

// add counts a word with the languages in which it is a function word. A word that is shared by
// several languages counts less, but at least half for English: English text is full of foreign
// names, and misjudging it is the worst mistake.
func (t *tally) add(word string, of languages) {
	t.words++
	if of == 0 || len(word) == 1 { // a single letter is as often a name
		return
	}
	share, whole := 1/float64(bits.OnesCount32(uint32(of))), of
	for ; of != 0; of &= of - 1 {
		l := bits.TrailingZeros32(uint32(of))
		t.hits[l]++
		if t.first[l] == "" {
			t.first[l] = word
		} else if word != t.first[l] {
			t.varied |= 1 << l
		}
		if language(l) == english {
			t.weight[l] += max(share, 0.5)
			if t.hits[l] == 1 {
				t.shared = whole
			}
			t.shared &= whole
		} else {
			t.weight[l] += share
		}
	}
}

// likeliestLanguage returns the language with the greatest weight of function words.
func (t *tally) likeliestLanguage() language {
	best := english
	for l := range language(len(languageCodes)) {
		if t.weight[l] > t.weight[best] {
			best = l
		}
	}
	return best
}

// wider is like likeliestLanguage, but prefers a language that has all English function words of
// the text and another function word in it: "Was steht in der Satzung?"
func (t *tally) wider() language {
	best := english
	for l := range language(len(languageCodes)) {
		if t.shared.has(l) && t.hits[l] > t.hits[english] && (best == english || t.weight[l] > t.weight[best]) {
			best = l
		}
	}
	if best == english {
		return t.likeliestLanguage()
	}
	return best
}

// language returns the likeliest language, or English if the text has too few of its function
// words.
func (t *tally) language() language {
	best := t.likeliestLanguage()
	// One word may be a foreign name or an English word, as in a list of prices "per metre".
	few := latin.has(best) && (t.weight[best] < 1 || !t.varied.has(best))
	if few || 8*t.hits[best] < t.words || t.weight[best] < .5 {
		return english
	}
	return best
}

// Language detects the language of a text by its function words and its script. It returns an ISO
// 639-1 code, or "en" if there is too little evidence.
func Language(text string) string { return cmp.Or(evidentLanguage(text), "en") }

// evidentLanguage is like Language, but returns "" if there is too little evidence.
func evidentLanguage(text string) (code string) {
	var a analyser
	a.read(text)
	if l := a.tally.language(); l != english {
		return languageCodes[l]
	}
	if a.tally.hits[english] > 0 {
		return "en"
	}
	script, mixed := "", false
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			return "ja"
		case unicode.Is(unicode.Hangul, r):
			return "ko"
		case unicode.Is(unicode.Han, r):
			code = "zh"
		case unicode.Is(unicode.Latin, r):
			mixed = true // letters of another script may be symbols
		case script == "" && unicode.IsLetter(r):
			for name, code := range scriptCodes {
				if unicode.Is(unicode.Scripts[name], r) {
					script = code
				}
			}
		}
	}
	if code == "" && !mixed {
		return script
	}
	return code
}

// AskedLanguage returns the language of a question and whether it is evident. Otherwise the
// language is a guess, or empty. A guess rests on two function words of another language that
// outweigh the English ones or include them, as in "Was kostet Strom im Verein?". If the question
// has no English function word, one foreign function word suffices, or a letter that English has
// only in names. A word that begins with or precedes a capital may belong to a name, such as Las
// Vegas, and is ignored unless it is longer than the words of names.
func AskedLanguage(question string) (code string, evident bool) {
	if code = evidentLanguage(question); code == "en" {
		var a analyser
		a.read(question)
		if likeliest := a.tally.wider(); a.tally.varied.has(likeliest) {
			return languageCodes[likeliest], likeliest == english
		}
		return code, true
	} else if code != "" {
		return code, true
	}
	most, words := 0., strings.FieldsFunc(question, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
	letter := ""
	for i, w := range words {
		inName := i > 0 && startsUpper(w) || i+1 < len(words) && startsUpper(words[i+1])
		if n := utf8.RuneCountInString(w); n < 3 || inName && n <= longestName {
			continue
		}
		w = strings.ToLower(norm.NFC.String(w))
		for l := range language(len(languageCodes)) {
			if of := functionWords[w]; of.has(l) && 1/float64(bits.OnesCount32(uint32(of))) > most {
				code, most = languageCodes[l], 1/float64(bits.OnesCount32(uint32(of)))
			}
		}
		for _, l := range foreignLetters {
			if letter == "" && strings.ContainsAny(w, l.letters) {
				letter = l.code
			}
		}
	}
	return cmp.Or(code, letter), false
}

// longestName is the number of letters that words of names rarely exceed: among 2,404 names and
// titles in English texts of public sets, six have a longer word with a letter of foreignLetters.
const longestName = 11

func startsUpper(w string) bool {
	r, _ := utf8.DecodeRuneInString(w)
	return unicode.IsUpper(r)
}

// foreignLetters lists letters that suggest one language more than any other.
var foreignLetters = []struct{ code, letters string }{
	{"de", "äöüß"}, {"fr", "éèêçàâîôû"}, {"es", "áíóúñ"}, {"pt", "ãõ"}, {"sv", "å"}, {"da", "øæ"}, {"pl", "łęąż"}, {"cs", "řěů"},
	{"hu", "őű"}, {"ro", "șță"}, {"tr", "şğı"},
}

// scriptCodes maps scripts to the likeliest language of a text without function words.
var scriptCodes = map[string]string{"Cyrillic": "ru", "Arabic": "ar", "Greek": "el", "Hebrew": "he", "Devanagari": "hi", "Thai": "th"}

// A LanguageError reports that hardly any of the passages nearest to a question are in its
// language, and that no encoder compared them with the question.
type LanguageError struct {
	Language string // of most passages, an ISO 639-1 code
	// Encoding is set if an encoder that knows both languages has not encoded all chunks yet.
	Encoding bool
}

// languageNames maps the codes of the languages that can be detected to their English names.
var languageNames = map[string]string{
	"ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish", "fa": "Persian",
	"fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese",
	"ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
	"sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}

// Name returns the English name of the language.
func (e *LanguageError) Name() string { return cmp.Or(languageNames[e.Language], e.Language) }

func (e *LanguageError) Error() string {
	name := e.Name()
	if e.Encoding {
		return fmt.Sprintf("your documents seem to be mostly in %s, and the multilingual encoder has not read all of them yet: "+
			"asking in %s finds more, or ask again later ('ibid ingest --encode' waits for it)", name, name)
	}
	return fmt.Sprintf("your documents seem to be mostly in %s: asking in %s finds more, or add the multilingual encoder, "+
		"under Settings or with 'ibid setup multilingual'", name, name)
}

// scarce is the share of passages below which a language counts as rare in the library.
const scarce = .2

// warnOfLanguage warns if hardly any of the passages are in the language of the question. It does
// not warn if the first passage is, if a passage in the language contains most of the question's
// words, or if the search compared vectors of an encoder that knows both languages.
func (x *Index) warnOfLanguage(q Query, passages []Passage, encoded bool) {
	asked, evident := AskedLanguage(q.Text)
	if q.Warn == nil || asked == "" {
		return
	}
	found, all, usual := map[string]int{}, 0, ""
	for i, p := range passages {
		language := evidentLanguage(p.Text)
		if (language == asked || !evident) && (p.Scores.Coverage > .5 || evident && i == 0) {
			return
		}
		if language == "" {
			continue
		}
		all++
		if found[language]++; found[language] > found[usual] {
			usual = language
		}
	}
	if all == 0 || float64(found[asked]) >= scarce*float64(all) {
		return
	}
	knows := x.encoded != nil && x.opts.Encoder.Knows(asked) && x.opts.Encoder.Knows(usual)
	if !(knows && encoded) {
		q.Warn(&LanguageError{usual, knows})
	}
}
