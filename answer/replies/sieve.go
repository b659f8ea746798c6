// Package replies reads the replies of models as they stream. It recognizes replies in
// place of an answer, and finds the labels that an answer cites.
package replies

import (
	"bytes"
	"slices"
	"strconv"

	"ibid/cite/marker"
)

// A Sieve removes invented labels, which the model was not shown, from a text. It reads
// the text in pieces, like a [marker.Scanner].
type Sieve struct {
	scanner  *marker.Scanner
	shown    map[int]bool
	out      []byte
	invented []int
	cited    []int
	// sure makes the sieve write labels in the seed form, which is a label in any
	// context, and mark the places of removed labels, so that package cite removes the
	// space before them.
	sure bool
	// Verbatim leaves a marker unchanged unless it has an invented label.
	Verbatim bool
}

// HighestLabel returns the highest number that is read as a label. A larger number of
// four digits may be a year: "[2010] EWHC 123".
func HighestLabel(shown []int) int {
	highest := 999
	for _, l := range shown {
		highest = max(highest, l)
	}
	return highest
}

// NewSieve returns a sieve for a model that was shown these labels. If sure is set, it
// writes labels in the seed form.
func NewSieve(shown []int, sure bool) *Sieve {
	s := &Sieve{scanner: marker.NewScanner(marker.Default, HighestLabel(shown)), shown: make(map[int]bool, len(shown)), sure: sure}
	for _, l := range shown {
		s.shown[l] = true
	}
	return s
}

// Add adds the next piece and returns the text that is certain so far.
func (s *Sieve) Add(piece string) string {
	s.out = s.out[:0]
	s.scanner.Feed([]byte(piece), s.addToken)
	return string(s.out)
}

// End returns the remaining text.
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

// AppendLabels appends labels in the seed form. Without labels it appends the mark of
// removed ones.
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

// Sift sieves a whole text. It writes labels in the form that prompts request, unless
// that would change how the text is read.
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
