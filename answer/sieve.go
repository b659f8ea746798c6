package answer

import (
	"bytes"
	"slices"
	"strconv"

	"ibid/cite/marker"
)

// A sieve lets the labels of a text through that a model was shown, and no
// others: what a model makes up must not pass for a citation. It takes text in
// pieces, as a [marker.Scanner] does.
type sieve struct {
	scanner  *marker.Scanner
	shown    map[int]bool
	out      []byte
	invented []int
	cited    []int
	// sure writes labels in the seed form, which is a label wherever it
	// stands, and keeps the place of those taken out, so that package cite
	// closes up the space before them.
	sure bool
	// verbatim leaves a marker as it was written unless it names a label that
	// was not shown.
	verbatim bool
}

// highestLabel is the highest number that is taken for a label. What is beyond
// the labels shown and has four digits is a year or the like: "[2010] EWHC 123".
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

func (s *sieve) feed(piece string) string {
	s.out = s.out[:0]
	s.scanner.Feed([]byte(piece), s.take)
	return string(s.out)
}

func (s *sieve) close() string {
	s.out = s.out[:0]
	s.scanner.Close(s.take)
	return string(s.out)
}

func (s *sieve) take(t marker.Token) {
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
		n := strconv.Itoa(id)
		s.out = append(s.out, "["+n+"]"...)
		if s.sure {
			s.out = append(s.out, "(id="+n+")"...)
		}
	}
	switch {
	case s.verbatim && known:
		s.out = append(s.out[:from], t.Text...)
	case kept:
	case s.sure:
		s.out = append(s.out, "[0](id=)"...)
	default:
		s.out = bytes.TrimRight(s.out, " ")
	}
}

// sift puts a whole text through a sieve. The labels stand in the form that a
// model is asked for, unless that would change how the text is read.
func sift(text string, shown []int) (out string, cited, invented []int) {
	for _, sure := range []bool{false, true} {
		s := newSieve(shown, sure)
		out = s.feed(text)
		out += s.close()
		cited, invented = s.cited, s.invented
		if slices.Equal(marker.Labels(out, highestLabel(shown)), cited) {
			break
		}
	}
	return out, cited, invented
}
