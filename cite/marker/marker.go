// Package marker reads citation markers in the text of a language model.
//
// A model that was given numbered documents cites them in several ways: the
// seed form [1](id=3), bare brackets like [3] or [1, 2-4], and the CJK brackets
// 【3】. It also writes brackets that cite nothing: arr[1].foo, a Markdown link,
// code. A [Scanner] tells them apart. It takes the text in pieces cut anywhere,
// inside a UTF-8 sequence too, and gives what it found as tokens: text to be
// shown as it stands, and markers with the document ids they cite. The result
// depends on the concatenated text only.
//
// The scanner holds back only what is still undecided: at most 512 characters,
// not counting one run of backticks, or two runs of spaces: the one in front of
// markers, and the one behind them. The latter may belong to the next marker,
// and whether the former is shown depends on what follows both. Its time is
// linear in the length of the text, whatever the text is.
//
// Code spans and fenced blocks are text; what looks like a marker in them cites
// nothing.
package marker

import "slices"

// A Profile says which forms of markers are understood.
type Profile int

const (
	// Default understands the seed form with liberties (spaces, several ids,
	// quotes), bare brackets and CJK brackets.
	Default Profile = iota
	// Strict understands the seed form alone, exactly as the model was asked
	// to write it: [1](id=3).
	Strict
)

// A Token is the next part of a scanned text: text, or one marker. What its
// slices hold is valid until the function it was given to returns.
type Token struct {
	// Text is the part as it stands, a marker as it was written. It never ends
	// inside a UTF-8 sequence that a later piece completes.
	Text []byte
	// Code says that the text stands in a code span or a fenced block.
	Code bool
	// Marker says that the token is a marker.
	Marker bool
	// IDs are the ids cited by a marker in the order written, each from 1 to
	// the number of known documents. Ids may repeat, and a marker in the seed
	// form may cite none.
	IDs []int
}

// Labels gives the ids that text cites by the default profile, each once, in
// order of first use. The ids 1 to known exist; others cite nothing.
func Labels(text string, known int) []int {
	var labels []int
	s := NewScanner(Default, known)
	take := func(t Token) {
		for _, id := range t.IDs {
			if !slices.Contains(labels, id) {
				labels = append(labels, id)
			}
		}
	}
	s.Feed([]byte(text), take)
	s.Close(take)
	return labels
}
