// Package marker reads citation markers in the text of a language model.
//
// A model that was given numbered documents cites them in several ways: [1](id=3), [3], [1,
// 2-4], [Source 1], 【3†source】. The table of forms in this package lists them all. A model also
// writes brackets that cite nothing: arr[1].foo, a Markdown link, code. A [Scanner] separates
// them. It reads the text in pieces cut anywhere, even inside a UTF-8 sequence, and returns
// tokens: text to be shown unchanged, and markers with the ids of the documents they cite. The
// tokens depend only on the concatenated text.
//
// The scanner holds back only undecided text: at most 512 characters, not counting one run of
// backticks or white space. Its time is linear in the length of any text.
//
// Code and mathematics are text; markers in them cite nothing. A list of sources
// that the model added to the end of its text, after it has cited something, is
// left out; up to 4,096 characters are held back until that is known.
package marker

import "slices"

// A Profile selects the forms of markers that are understood.
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
	// Text is the text or the marker as written. It never ends inside a UTF-8 sequence that
	// a later piece completes.
	Text []byte
	// Code is set for text in a code span or a fenced block, including fences. Begins is
	// set for the first such text of a span or block.
	Code, Begins bool
	// Marker is set for a marker.
	Marker bool
	// Boundary ends a sequence of markers. It is set for [cite_start] and [cite_end], which
	// are not shown, and for an empty token before possible code.
	Boundary bool
	// IDs are the ids cited by a marker in the order written, each from 1 to the number of
	// known documents. Ids may repeat. A marker that must be a citation may have no ids.
	IDs []int
}

// Labels returns the ids that text cites in the default profile, each once, in order of first
// use. Only the ids 1 to known can be cited.
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
