package sentence_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"ibid/cite/sentence"
)

// A block on one line takes a time that is linear in its length.
func BenchmarkFencedLine(b *testing.B) {
	for _, size := range []int{256 << 10, 1 << 20} {
		text := []byte("```\n" + strings.Repeat("x = `y` ", size/8))
		b.Run(strconv.Itoa(size>>10)+"K", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				var s sentence.Splitter
				for end := 0; end < len(text); end += 64 {
					s.Next(text[:end], nil, false)
				}
			}
		})
	}
}

// TestFencedBlocks checks that a fenced block is one sentence, however the text is cut.
func TestFencedBlocks(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"Run:\n```sh\ncurl x. Y\n\n- z\n```\nThen go on. Done.", []string{"Run:", "```sh\ncurl x. Y\n\n- z\n```", "Then go on.", "Done."}},
		{"A line\n~~~\nx\n~~~\n", []string{"A line", "~~~\nx\n~~~"}},
		{"````\n```\nx\n````\nEnd", []string{"````\n```\nx\n````", "End"}},
		{"```\nab ```\nab``` c\n ```  \nEnd", []string{"```\nab ```\nab``` c\n ```", "End"}},
		{"``\nx. End", []string{"``\nx.", "End"}},
		{"```\nopen. Still", []string{"```\nopen. Still"}},
		{"Say ```x``` now.\n```x``` too.", []string{"Say ```x``` now.", "```x``` too."}},
	} {
		for _, size := range []int{1, 3, len(tt.text)} {
			var s sentence.Splitter
			var got []string
			for end := 0; end < len(tt.text); {
				end = min(end+size, len(tt.text))
				for {
					at, ok := s.Next([]byte(tt.text[:end]), nil, end == len(tt.text))
					if !ok {
						break
					}
					got = append(got, tt.text[at.Start:at.End])
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q in pieces of %d: got %q, want %q", tt.text, size, got, tt.want)
			}
		}
	}
}
