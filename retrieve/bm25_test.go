package retrieve

import (
	"strings"
	"testing"
)

// TestRepeatedWords: a repeated word of a question counts more only if the
// question is a text of its own.
func TestRepeatedWords(t *testing.T) {
	filler := strings.Repeat("alpha beta gamma delta ", longQuestion/4)
	for _, c := range []struct {
		asked string
		more  bool
	}{
		{"harbour harbour harbour fee", false},
		{filler + "harbour harbour harbour fee", true},
	} {
		l := newLexicalScorer(question(c.asked), Stats{Chunks: 1000, MeanTerms: 10})
		score := func(text string) float64 {
			all, length := CountTerms(text)
			var s Scores
			l.score(&s, []string{all[0].Term}, []int{all[0].Count}, length)
			return s.BM25
		}
		if more := score("harbour") > score("fee"); more != c.more {
			t.Errorf("a word that is asked three times counts more is %t, want %t: %.60q", more, c.more, c.asked)
		}
	}
}
