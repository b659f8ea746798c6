package ingest

import (
	"unicode"
	"unicode/utf8"
)

// LeastShare returns the smallest fraction of [CountTokens], about 1/7 to 2/3, that a current
// model's tokeniser counts for a text: its vocabulary covers more languages than cl100k_base. A
// lower count means that part of the text is missing.
func LeastShare(text string) float64 {
	least, bytes := asciiShare, 1.
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsMark(r) {
			n := float64(utf8.RuneLen(r)) // letters of all scripts have about equally many tokens per byte
			least, bytes = least+n*scriptShare(r), bytes+n
		}
	}
	return least / bytes
}

const asciiShare = .65

// scriptShare returns the share for a letter: about three quarters of the o200k_base tokens per
// cl100k_base token in its script, as TestLeastShare measures. If a text is cut in half, its count
// falls below this share.
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
