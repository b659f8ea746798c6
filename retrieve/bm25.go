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

// A profile is what BM25 needs to know of one chunk.
type profile struct {
	counts map[string]int
	length int
}

func newProfile(text string) *profile {
	terms := IndexTerms(text)
	p := &profile{counts: make(map[string]int, len(terms)), length: len(terms)}
	for _, t := range terms {
		p.counts[t]++
	}
	return p
}

// lexical gives the BM25 part of the scores of a chunk for the distinct terms
// of a question.
func (p *profile) lexical(terms []string, s Stats) (bm25, share, coverage float64) {
	var reachable, weight float64
	for _, t := range terms {
		idf := IDF(s.Chunks, s.Frequency[t])
		reachable += idf * (BM25K1 + 1)
		weight += idf
		if n := p.counts[t]; n > 0 {
			bm25 += idf * Saturation(n, p.length, s.MeanTerms)
			coverage += idf
		}
	}
	if weight > 0 {
		share, coverage = bm25/reachable, coverage/weight
	}
	return bm25, share, coverage
}
