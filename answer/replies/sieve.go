// Package replies reads what a model replies in place of an answer or in one: whether it
// says that there is none, and which labels it cites. It is pure: it works on text alone,
// which comes in pieces.
package replies

import (
	"bytes"
	"slices"
	"strconv"

	"ibid/cite/marker"
)

// A Sieve removes the labels from a text that the model was not shown, since an
// invented label must not pass for a citation. It takes the text in pieces, as a
// [marker.Scanner] does.
type Sieve struct {
	scanner  *marker.Scanner
	shown    map[int]bool
	out      []byte
	invented []int
	cited    []int
	// sure writes labels in the seed form, which is a label in any context, and
	// marks the place of removed ones, so that package cite closes up the space
	// before them.
	sure bool
	// Verbatim leaves a marker as it was written unless it has a label that was
	// not shown.
	Verbatim bool
}

// HighestLabel is the highest number that is read as a label. A larger one of
// four digits is a year or the like: "[2010] EWHC 123".
func HighestLabel(shown []int) int {
	highest := 999
	for _, l := range shown {
		highest = max(highest, l)
	}
	return highest
}

// NewSieve returns a sieve for a model that was shown these labels. sure says how
// it writes labels.
func NewSieve(shown []int, sure bool) *Sieve {
	s := &Sieve{scanner: marker.NewScanner(marker.Default, HighestLabel(shown)), shown: make(map[int]bool, len(shown)), sure: sure}
	for _, l := range shown {
		s.shown[l] = true
	}
	return s
}

// Add takes the next piece and returns what is certain of the text.
func (s *Sieve) Add(piece string) string {
	s.out = s.out[:0]
	s.scanner.Feed([]byte(piece), s.addToken)
	return string(s.out)
}

// End returns the rest of the text.
func (s *Sieve) End() string {
	s.out = s.out[:0]
	s.scanner.Close(s.addToken)
	return string(s.out)
}

func (s *Sieve) addToken(t marker.Token) {
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
			s.out = AppendLabels(s.out, []int{id})
		} else {
			s.out = append(s.out, "["+strconv.Itoa(id)+"]"...)
		}
	}
	switch {
	case s.Verbatim && known:
		s.out = append(s.out[:from], t.Text...)
	case kept:
	case s.sure:
		s.out = AppendLabels(s.out, nil)
	default:
		s.out = bytes.TrimRight(s.out, " ")
	}
}

// AppendLabels writes labels in the seed form, or marks the place of removed ones.
func AppendLabels(out []byte, labels []int) []byte {
	if len(labels) == 0 {
		return append(out, "[0](id=)"...)
	}
	for _, l := range labels {
		n := strconv.Itoa(l)
		out = append(out, "["+n+"](id="+n+")"...)
	}
	return out
}

// Sift sieves a whole text. Its labels have the form that a model is asked for,
// unless that would change how the text is read.
func Sift(text string, shown []int) (out string, cited, invented []int) {
	for _, sure := range []bool{false, true} {
		s := NewSieve(shown, sure)
		out = s.Add(text)
		out += s.End()
		cited, invented = s.cited, s.invented
		if slices.Equal(marker.Labels(out, HighestLabel(shown)), cited) {
			break
		}
	}
	return out, cited, invented
}
