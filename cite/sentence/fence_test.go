package sentence_test

import (
	"slices"
	"testing"

	"ibid/cite/marker"
	"ibid/cite/rewrite"
	"ibid/cite/sentence"
)

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
			r := rewrite.New(nil, rewrite.Text, marker.Default)
			var s sentence.Splitter
			var text []byte
			var got []string
			next := func(final bool) {
				for at, ok := s.Next(text, nil, r.Code(), final); ok; at, ok = s.Next(text, nil, r.Code(), final) {
					got = append(got, string(text[at.Start:at.End]))
				}
			}
			for piece := range slices.Chunk([]byte(tt.text), size) {
				text = r.Append(text, piece)
				next(false)
			}
			text = r.Close(text)
			next(true)
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q in pieces of %d: got %q, want %q", tt.text, size, got, tt.want)
			}
		}
	}
}
