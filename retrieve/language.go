package retrieve

import (
	_ "embed"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

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

// A language is one of those whose function words are known: its place in the
// table, of which English is the first.
type language int

const english = language(0)

// chinese is the last. Its function words are single characters and pairs, the
// terms of a run, and are left out of questions whatever stands beside them.
var chinese = language(len(languageCodes) - 1)

// languages are sets of them, a bit each.
type languages uint32

func (s languages) has(l language) bool { return s&(1<<l) != 0 }

//go:embed functionwords.txt
var functionWordTable string

// functionWords tells of a word, in small letters and composed characters, in
// which languages it says nothing of a subject. Words of three letters and more
// are found without their accents too.
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
			// In Vietnamese the accents are what tells words apart.
			if plain := fold(w); len(plain) > 2 && fields[0] != "vi" {
				words[plain] |= bit
			}
		}
	}
	return words, codes, latin
}()

// stemmers are those of the languages that share the Latin script with
// English, by code.
var stemmers = map[string]func(*snowballstem.Env) bool{
	"da": danish.Stem, "de": german.Stem, "es": spanish.Stem, "fi": finnish.Stem, "fr": french.Stem,
	"hu": hungarian.Stem, "it": italian.Stem, "nl": dutch.Stem, "no": norwegian.Stem, "pt": portuguese.Stem,
	"ro": romanian.Stem, "sv": swedish.Stem, "tr": turkish.Stem,
}

// A tally counts the function words of a text by language, to tell its own.
type tally struct {
	words  int
	hits   [32]int
	weight [32]float64
}

// add counts a word, with the languages in which it is a function word. One
// that belongs to many tells less, but of English not less than half: its own
// text is full of foreign names, and mistaking it costs most.
func (t *tally) add(word string, of languages) {
	t.words++
	if of == 0 || len(word) == 1 { // a lone letter is a name of something as often
		return
	}
	share := 1 / float64(bits.OnesCount32(uint32(of)))
	for ; of != 0; of &= of - 1 {
		l := bits.TrailingZeros32(uint32(of))
		t.hits[l]++
		if language(l) == english {
			t.weight[l] += max(share, 0.5)
		} else {
			t.weight[l] += share
		}
	}
}

// language is what the text is written in: that of most of its function words,
// if they are enough to tell, and else English.
func (t *tally) language() language {
	best := english
	for l := range language(len(languageCodes)) {
		if t.weight[l] > t.weight[best] {
			best = l
		}
	}
	least := 1
	if latin.has(best) {
		least = 2 // one may be a foreign name or an English word
	}
	if t.hits[best] < least || 8*t.hits[best] < t.words || t.weight[best] < float64(least)/2 {
		return english
	}
	return best
}

// Language tells what a text is written in, by its function words and its
// script: the code of ISO 639-1, and "en" where there is too little to tell.
func Language(text string) string {
	var a analyser
	a.read(text)
	if l := a.tally.language(); l != english {
		return languageCodes[l]
	}
	code := "en"
	if a.tally.hits[english] > 0 {
		return code
	}
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			return "ja"
		case unicode.Is(unicode.Hangul, r):
			return "ko"
		case unicode.Is(unicode.Han, r):
			code = "zh"
		}
	}
	return code
}
