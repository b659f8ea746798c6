package ingest

import (
	"strings"
	"unicode"
)

// LeastShare returns the least share of [CountTokens] that the tokenisers of
// today's models count, about 1/7 to 2/3: their vocabularies cover more
// languages than the one that Ibid counts with. A lower count is that of less
// text.
func LeastShare(text string) float64 {
	// Words are gathered by their share. That does not change the sum of their
	// counts, because no token spans the space before a word.
	words := map[float64]*strings.Builder{}
	start, share := 0, asciiShare
	inside := false // a word, after the space before it
	add := func(end int) {
		if words[share] == nil {
			words[share] = &strings.Builder{}
		}
		words[share].WriteString(text[start:end])
		start, share, inside = end, asciiShare, false
	}
	for i, r := range text {
		if space := unicode.IsSpace(r); space && inside {
			add(i)
		} else if !space {
			inside = true
			share = min(share, scriptShare(r))
		}
	}
	add(len(text))
	all, least := 0, 0.
	for share, w := range words {
		n := CountTokens(w.String())
		all += n
		least += share * float64(n)
	}
	if all == 0 {
		return asciiShare
	}
	return least / float64(all)
}

const asciiShare = .65

// scriptShare returns the share for a word with the letter r: about three
// quarters of the tokens of o200k_base per token of cl100k_base in the script,
// as TestLeastShare measures. A text cut in half is still below it.
func scriptShare(r rune) float64 {
	switch {
	case r < 0x80, !unicode.IsLetter(r) && !unicode.IsMark(r):
		return asciiShare
	case unicode.Is(unicode.Latin, r), unicode.Is(unicode.Inherited, r):
		return .42
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Ethiopic, unicode.Lao):
		return .45
	case unicode.Is(unicode.Cyrillic, r):
		return .33
	case unicode.In(r, unicode.Greek, unicode.Hebrew, unicode.Thai):
		return .3
	case unicode.In(r, unicode.Arabic, unicode.Khmer):
		return .26
	case unicode.In(r, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Sinhala, unicode.Myanmar,
		unicode.Tamil, unicode.Gujarati, unicode.Telugu):
		return .18
	}
	return .14
}
