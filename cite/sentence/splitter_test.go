package sentence

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ibid/data/datatest"
)

func TestSentences(t *testing.T) {
	spaces := strings.Repeat(" ", 200)
	rows := append(datatest.Rows(t, "testdata/sentences.txt", "sentences"), []string{"Wait" + spaces + "for it. ", spaces + "Now."})
	for _, row := range rows {
		text := strings.Join(row, "")
		var want []string
		for _, s := range row {
			if s = strings.TrimSpace(s); s != "" {
				want = append(want, s)
			}
		}
		var got []string
		for _, s := range splitSentences(text) {
			got = append(got, text[s.Start:s.End])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
		// The sentences of a growing text are the same.
		var grown []string
		var sp Splitter
		for n := 0; n <= len(text); n++ {
			for n < len(text) && !utf8.RuneStart(text[n]) {
				n++
			}
			for {
				s, ok := sp.Next([]byte(text[:n]), nil, nil, n == len(text))
				if !ok {
					break
				}
				grown = append(grown, text[s.Start:s.End])
			}
		}
		if !slices.Equal(grown, want) {
			t.Errorf("%q growing:\n got %q\nwant %q", text, grown, want)
		}
	}
}

// splitSentences returns the sentences of a whole text.
func splitSentences(text string) (found []Span) {
	var s Splitter
	for {
		sentence, ok := s.Next([]byte(text), nil, nil, true)
		if !ok {
			return found
		}
		found = append(found, sentence)
	}
}

func TestStates(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/sentences.txt", "states") {
		if got := States(row[1], row[1], row[1]); fmt.Sprint(got) != row[0] {
			t.Errorf("States(%q) = %t, want %s", row[1], got, row[0])
		}
	}
}
