package retrieve

import (
	"cmp"
	"math"
	"slices"
)

// The parameters of Okapi BM25 (Robertson and Zaragoza, "The Probabilistic
// Relevance Framework: BM25 and Beyond", 2009).
const (
	// BM25K1 sets how soon repetitions of a term stop adding to the score.
	BM25K1 = 1.2
	// BM25B is how much the length of a chunk counts against it, 0 to 1.
	BM25B = 0.75
	// longQuestion is the number of content words at which a question is treated as a text: its
	// repeated words count more than once, saturated by k3. If half an abstract is the question,
	// this gains .011 to .016 nDCG@10; if people type the question, it costs up to .015
	// (README.md).
	longQuestion = 50
	k3           = 3
)

// IDF returns the inverse document frequency (BM25, in the form that is never negative) of a term
// that occurs in the given number of chunks.
func IDF(chunks, frequency int) float64 {
	n, df := float64(chunks), float64(frequency)
	return math.Log1p((n - df + 0.5) / (df + 0.5))
}

// Saturation returns the factor by which BM25 multiplies the IDF of a term that occurs count times
// in a chunk of length terms: 0 if the term is absent, and less than BM25K1 + 1.
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

// A TermCount is the number of times that a term occurs in a chunk.
type TermCount struct {
	Term  string
	Count int
}

// CountTerms returns the distinct terms of a text in order of first use, and the number of words.
// Unlike [Terms], it includes function words. A word counts once, however many terms it has.
func CountTerms(text string) (counts []TermCount, length int) {
	words := indexWords(text)
	at := make(map[string]int, len(words))
	count := func(term string) {
		i, ok := at[term]
		if !ok {
			i = len(counts)
			at[term] = i
			counts = append(counts, TermCount{Term: term})
		}
		counts[i].Count++
	}
	for _, w := range words {
		count(w.term)
		if w.stem != "" {
			count(w.stem)
		}
		if !w.further {
			length++
		}
	}
	return counts, length
}

// plainWeight is the weight of a word that matches only by its English stem although the question
// is in another language. Such matches find chunks that are too short to show their language, but
// also translations of the right chunk, by the names in them.
const plainWeight = 0.5

// A lexicalScorer computes the BM25 scores of chunks for one question. A word of
// the question with two terms counts once; a repeated word counts more only in a
// question of [longQuestion] words.
type lexicalScorer struct {
	own, plain map[string]int // positions of the terms among the words
	idf        []float64
	weight     float64 // sum of idf
	reachable  float64 // least upper bound of the BM25 score of any chunk
	mean       float64
}

func newLexicalScorer(words []word, s Stats) *lexicalScorer {
	l := &lexicalScorer{own: make(map[string]int, len(words)), plain: make(map[string]int), mean: s.MeanTerms}
	length, count := 0, make(map[string]int, len(words))
	for _, w := range words {
		count[cmp.Or(w.stem, w.term)]++
		if !w.further {
			length++
		}
	}
	for _, w := range words {
		first := cmp.Or(w.stem, w.term)
		if _, ok := l.own[first]; ok || w.joined && s.Frequency[first] == 0 {
			continue
		}
		l.own[first] = len(l.idf)
		if _, ok := l.plain[w.term]; !ok && w.stem != "" {
			l.plain[w.term] = len(l.idf)
		}
		idf := IDF(s.Chunks, s.Frequency[first])
		if length >= longQuestion {
			n := float64(count[first])
			idf *= n * (k3 + 1) / (n + k3)
		}
		l.idf = append(l.idf, idf)
		l.weight += idf
	}
	l.reachable = l.weight * (BM25K1 + 1)
	return l
}

// score sets the lexical scores of a chunk from its length and the counts of the terms in it. It
// sums in the order of the question's words, so that equal chunks have equal scores.
func (l *lexicalScorer) score(s *Scores, terms []string, counts []int, length int) {
	if l.weight == 0 {
		return
	}
	own, plain := make([]int, len(l.idf)), make([]int, len(l.idf))
	for at, term := range terms {
		if i, ok := l.own[term]; ok {
			own[i] = counts[at]
		}
		if i, ok := l.plain[term]; ok {
			plain[i] = counts[at]
		}
	}
	for i, idf := range l.idf {
		n, sure := own[i], idf
		if n == 0 {
			n, sure = plain[i], plainWeight*idf
		}
		if n > 0 {
			s.BM25 += sure * Saturation(n, length, l.mean)
			s.Coverage += sure
		}
	}
	s.Lexical, s.Coverage = s.BM25/l.reachable, s.Coverage/l.weight
}

// scoreText returns the lexical scores of a text.
func (l *lexicalScorer) scoreText(text string, terms []string) (s Scores) {
	found, length := CountTerms(text)
	counts := make([]int, len(terms))
	for _, c := range found {
		if at := slices.Index(terms, c.Term); at >= 0 {
			counts[at] = c.Count
		}
	}
	l.score(&s, terms, counts, length)
	return s
}
