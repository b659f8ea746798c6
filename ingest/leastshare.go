package ingest

import (
	"unicode"
	"unicode/utf8"
)

// LeastShare returns the least share of [CountTokens] that the tokenisers of
// today's models count, about 1/7 to 2/3: their vocabularies cover more
// languages than the one that Ibid counts with. A lower count is that of less
// text.
func LeastShare(text string) float64 {
	least, bytes := asciiShare, 1.
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsMark(r) {
			n := float64(utf8.RuneLen(r)) // tokens have about equally many in all scripts
			least, bytes = least+n*scriptShare(r), bytes+n
		}
	}
	return least / bytes
}

const asciiShare = .65

// scriptShare returns the share for a letter: about three
// quarters of the tokens of o200k_base per token of cl100k_base in the script,
// as TestLeastShare measures. A text cut in half is still below it.
func scriptShare(r rune) float64 {
	switch {
	case r < 0x80:
		return asciiShare
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Ethiopic, unicode.Lao):
		return .45
	case unicode.In(r, unicode.Latin, unicode.Inherited, unicode.Cyrillic, unicode.Greek, unicode.Hebrew, unicode.Thai):
		return .32
	case unicode.In(r, unicode.Arabic, unicode.Khmer):
		return .26
	case unicode.In(r, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Sinhala, unicode.Myanmar,
		unicode.Tamil, unicode.Gujarati, unicode.Telugu):
		return .18
	}
	return .14
}
