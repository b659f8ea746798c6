package answer

import (
	"bytes"
	"slices"
	"strconv"

	"ibid/cite/marker"
)

// A sieve removes the labels from a text that the model was not shown, since an
// invented label must not pass for a citation. It takes the text in pieces, as a
// [marker.Scanner] does.
type sieve struct {
	scanner  *marker.Scanner
	shown    map[int]bool
	out      []byte
	invented []int
	cited    []int
	// sure writes labels in the seed form, which is a label in any context, and
	// marks the place of removed ones, so that package cite closes up the space
	// before them.
	sure bool
	// verbatim leaves a marker as it was written unless it has a label that was
	// not shown.
	verbatim bool
}

// highestLabel is the highest number that is read as a label. A larger one of
// four digits is a year or the like: "[2010] EWHC 123".
func highestLabel(shown []int) int {
	highest := 999
	for _, l := range shown {
		highest = max(highest, l)
	}
	return highest
}

func newSieve(shown []int, sure bool) *sieve {
	s := &sieve{scanner: marker.NewScanner(marker.Default, highestLabel(shown)), shown: make(map[int]bool, len(shown)), sure: sure}
	for _, l := range shown {
		s.shown[l] = true
	}
	return s
}

// addPiece takes the next piece and returns what is certain of the text.
func (s *sieve) addPiece(piece string) string {
	s.out = s.out[:0]
	s.scanner.Feed([]byte(piece), s.addToken)
	return string(s.out)
}

// endText returns the rest of the text.
func (s *sieve) endText() string {
	s.out = s.out[:0]
	s.scanner.Close(s.addToken)
	return string(s.out)
}

func (s *sieve) addToken(t marker.Token) {
	if !t.Marker {
		s.out = append(s.out, t.Text...)
		return
	}
	kept, from, known := false, len(s.out), true
	for _, id := range t.IDs {
		if !s.shown[id] {
			known = false
			if !slices.Contains(s.invented, id) {
				s.invented = append(s.invented, id)
			}
			continue
		}
		kept = true
		if !slices.Contains(s.cited, id) {
			s.cited = append(s.cited, id)
		}
		if s.sure {
			s.out = appendLabels(s.out, []int{id})
		} else {
			s.out = append(s.out, "["+strconv.Itoa(id)+"]"...)
		}
	}
	switch {
	case s.verbatim && known:
		s.out = append(s.out[:from], t.Text...)
	case kept:
	case s.sure:
		s.out = appendLabels(s.out, nil)
	default:
		s.out = bytes.TrimRight(s.out, " ")
	}
}

// appendLabels writes labels in the seed form, or marks the place of removed ones.
func appendLabels(out []byte, labels []int) []byte {
	if len(labels) == 0 {
		return append(out, "[0](id=)"...)
	}
	for _, l := range labels {
		n := strconv.Itoa(l)
		out = append(out, "["+n+"](id="+n+")"...)
	}
	return out
}

// siftText sieves a whole text. Its labels have the form that a model is asked for,
// unless that would change how the text is read.
func siftText(text string, shown []int) (out string, cited, invented []int) {
	for _, sure := range []bool{false, true} {
		s := newSieve(shown, sure)
		out = s.addPiece(text)
		out += s.endText()
		cited, invented = s.cited, s.invented
		if slices.Equal(marker.Labels(out, highestLabel(shown)), cited) {
			break
		}
	}
	return out, cited, invented
}
