package cite

import (
	"unicode"

	"ibid/retrieve"
)

// A Quote is the part of a passage that a sentence rests on.
type Quote struct {
	// Start and End are its byte range in the passage's text.
	Start, End int
	// Support is the estimated chance, 0 to 1, that it bears the sentence out.
	Support float64
	Verdict Verdict
}

// A Finder finds the part of a passage that best bears out a sentence of an
// answer. The sentence comes without references. The range it gives lies within
// the passage's text and does not cut a character; it is empty only for an
// empty text.
type Finder func(sentence string, p retrieve.Passage) Quote

// minVerbatim is how many words of a sentence must stand in a passage in the
// same order to count as quoted: fewer stand in any text.
const minVerbatim = 3

// isIdeograph says whether r belongs to a script that is written without spaces.
func isIdeograph(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}
