// Package marker reads citation markers in the text of a language model.
//
// A model that was given numbered documents cites them in several ways: [1](id=3),
// [3], [1, 2-4], [Source 1], 【3†source】. The table of forms in this package has
// them all. A model also writes brackets that cite nothing: arr[1].foo, a Markdown
// link, code. A [Scanner] separates them. It reads the text in pieces cut anywhere,
// also inside a UTF-8 sequence, and returns tokens: text to be shown unchanged, and
// markers with the ids of the documents they cite. The tokens depend on the
// concatenated text only.
//
// The scanner holds back only what is undecided: at most 512 characters, not
// counting one run of backticks or white space. Its time is linear in the length
// of any text.
//
// Code and mathematics are text; markers in them cite nothing. A list of sources
// that the model added to the end of its text, after it has cited something, is
// left out; up to 4,096 characters are held back until that is known.
package marker

import "slices"

// A Profile says which forms of markers are understood.
type Profile int

const (
	// Default understands all forms.
	Default Profile = iota
	// Strict understands only the seed form that the model was asked to write:
	// [1](id=3).
	Strict
)

// A Token is the next part of a scanned text: text, or one marker. Its slices are
// valid until the function that receives it returns.
type Token struct {
	// Text is the part, or the marker, as it was written. It never ends
	// inside a UTF-8 sequence that a later piece completes.
	Text []byte
	// Code is set for text in a code span or a fenced block, with its fences, and
	// Begins for the beginning of such a text.
	Code, Begins bool
	// Marker is set for a marker.
	Marker bool
	// Boundary is set for [cite_start] and [cite_end], which are not shown, and without
	// a text before what may be code: a sequence of markers ends there.
	Boundary bool
	// IDs are the ids cited by a marker in the order written, each from 1 to
	// the number of known documents. Ids may repeat, and a marker that can be
	// nothing else may cite none.
	IDs []int
}

// Labels returns the ids that text cites by the default profile, each once, in
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
