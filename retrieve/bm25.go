package retrieve

import "math"

// The parameters of Okapi BM25 (Robertson and Zaragoza, "The Probabilistic
// Relevance Framework: BM25 and Beyond", 2009).
const (
	// BM25K1 is how soon repeating a term stops to help.
	BM25K1 = 1.2
	// BM25B is how much a long chunk is held back, 0 to 1.
	BM25B = 0.75
)

// IDF is the weight of a term that stands in frequency of all chunks: the
// inverse document frequency of BM25, in the form that is never negative.
func IDF(chunks, frequency int) float64 {
	n, df := float64(chunks), float64(frequency)
	return math.Log1p((n - df + 0.5) / (df + 0.5))
}

// Saturation is what a term that stands count times in a chunk of length terms
// gives of its IDF: 0 when it is absent, and less than BM25K1 + 1.
func Saturation(count, length int, mean float64) float64 {
	if count == 0 {
		return 0
	}
	if mean <= 0 {
		mean = 1
	}
	c := float64(count)
	return c * (BM25K1 + 1) / (c + BM25K1*(1-BM25B+BM25B*float64(length)/mean))
}

// A TermCount says how often a term stands in a chunk.
type TermCount struct {
	Term  string
	Count int
}

// CountTerms gives the different terms of [IndexTerms] in order of their first
// use, and the number of all.
func CountTerms(text string) (counts []TermCount, length int) {
	terms := IndexTerms(text)
	at := make(map[string]int, len(terms))
	for _, t := range terms {
		i, ok := at[t]
		if !ok {
			i = len(counts)
			at[t] = i
			counts = append(counts, TermCount{Term: t})
		}
		counts[i].Count++
	}
	return counts, len(terms)
}

// A lexicalScorer gives chunks their BM25 scores for one question.
type lexicalScorer struct {
	position  map[string]int // of each distinct term of the question
	idf       []float64
	weight    float64 // sum of idf
	reachable float64 // least upper bound of the BM25 score of any chunk
	mean      float64
}

func newLexicalScorer(terms []string, s Stats) *lexicalScorer {
	l := &lexicalScorer{position: make(map[string]int, len(terms)), idf: make([]float64, len(terms)), mean: s.MeanTerms}
	for i, t := range terms {
		l.position[t] = i
		l.idf[i] = IDF(s.Chunks, s.Frequency[t])
		l.weight += l.idf[i]
	}
	l.reachable = l.weight * (BM25K1 + 1)
	return l
}

// score sets the lexical parts of the scores of a chunk. It sums in the order
// of the question's terms, so that equal chunks have equal scores.
func (l *lexicalScorer) score(s *Scores, counts []TermCount, length int) {
	if l.weight == 0 {
		return
	}
	found := make([]int, len(l.idf))
	for _, c := range counts {
		if i, ok := l.position[c.Term]; ok {
			found[i] = c.Count
		}
	}
	for i, n := range found {
		if n > 0 {
			s.BM25 += l.idf[i] * Saturation(n, length, l.mean)
			s.Coverage += l.idf[i]
		}
	}
	s.Lexical, s.Coverage = s.BM25/l.reachable, s.Coverage/l.weight
}
