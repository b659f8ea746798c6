package eval

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Grades are the judgements of one query: the grade of each judged document by
// its id. A document is relevant if its grade is 1 or more; a document without a
// judgement is not relevant.
type Grades map[string]int

// Relevant returns the number of relevant documents.
func (g Grades) Relevant() int {
	n := 0
	for _, grade := range g {
		if grade > 0 {
			n++
		}
	}
	return n
}

// A Metric is a measure of one ranking, cut at rank K. BEIR reports these kinds
// with pytrec_eval, the Python interface of NIST's trec_eval, with one difference: trec_eval
// sorts documents of equal score by id, whereas a Metric keeps the order of the ranking.
//
//   - ndcg: discounted cumulative gain, divided by the gain of the best possible
//     order (Järvelin and Kekäläinen 2002, with trec_eval's discount
//     1/log2(rank+1)). The gain is the grade itself, not 2^grade-1; grades below
//     0 gain nothing. The best order includes relevant documents that the corpus
//     does not have.
//   - recall: the share of the relevant documents that are among the first K.
//   - mrr: 1 / rank of the first relevant document, 0 if it is not among the
//     first K.
//
// All are between 0 and 1, and 0 for a query without relevant documents.
type Metric struct {
	Kind string // "ndcg", "recall" or "mrr"
	K    int    // 1 or more
}

func (m Metric) String() string { return m.Kind + "@" + strconv.Itoa(m.K) }

// Measure returns the measure of a ranking of distinct document ids, best first.
func (m Metric) Measure(ranking []string, grades Grades) float64 {
	top := ranking[:min(m.K, len(ranking))]
	found := make([]int, len(top))
	hits, first := 0, 0
	for i, id := range top {
		found[i] = grades[id]
		if found[i] > 0 {
			if hits++; first == 0 {
				first = i + 1
			}
		}
	}
	switch {
	case hits == 0:
		return 0
	case m.Kind == "ndcg":
		best := make([]int, 0, len(grades))
		for _, grade := range grades {
			best = append(best, grade)
		}
		slices.SortFunc(best, func(a, b int) int { return b - a })
		return dcg(found) / dcg(best[:min(m.K, len(best))])
	case m.Kind == "recall":
		return Share(hits, grades.Relevant())
	}
	return 1 / float64(first)
}

func dcg(grades []int) float64 {
	sum := 0.0
	for i, grade := range grades {
		if grade > 0 {
			sum += float64(grade) / math.Log2(float64(i+2))
		}
	}
	return sum
}

// Share returns n/of, or 0 if of is 0.
func Share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// Mean returns the mean of the values, or 0 without values.
func Mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// A Comparison says how two systems differ on the same queries.
type Comparison struct {
	Difference float64 `json:"difference"` // mean of a minus mean of b
	P          float64 `json:"p"`          // two-sided, in (0, 1]
	Better     int     `json:"better"`     // queries on which a is better
	Worse      int     `json:"worse"`      // queries on which b is better
}

// drawn is the number of random sign assignments used to estimate a p-value. Near p = .05 the
// standard error is .0007.
const drawn = 100_000

// Compare tests whether two systems differ, by Fisher's paired randomisation
// test on the difference of the means. a[i] and b[i] are the figures of one
// query; if the systems were the same, either could have produced either. P is
// the share of sign assignments to the differences whose mean is at least as far
// from 0 as the observed one. Smucker, Allan and Carterette (CIKM 2007) recommend
// this test for retrieval. The assignments are drawn with a fixed seed, and the
// observed one is counted among them, so P is never 0 (Phipson and Smyth 2010).
func Compare(a, b []float64) (c Comparison) {
	var differences []float64 // without zeros, whose signs do not matter
	sum := 0.0
	for i := range a {
		d := a[i] - b[i]
		if d == 0 {
			continue
		}
		if d > 0 {
			c.Better++
		} else {
			c.Worse++
		}
		differences = append(differences, d)
		sum += d
	}
	c.Difference = sum / float64(max(len(a), 1))
	random := rand.New(rand.NewPCG(2007, 623))
	count, extreme := 1, math.Abs(sum)-1e-9 // sums in another order differ in the last bits
	for range drawn {
		sum := 0.0
		for chunk := range slices.Chunk(differences, 64) {
			signs := random.Uint64()
			for _, d := range chunk {
				// Flip the sign bit by the lowest random bit, without a branch.
				sum += math.Float64frombits(math.Float64bits(d) ^ signs<<63)
				signs >>= 1
			}
		}
		if math.Abs(sum) >= extreme {
			count++
		}
	}
	c.P = float64(count) / (drawn + 1)
	return c
}

// AUROC is the area under the receiver operating characteristic: the probability that a value
// drawn from good is larger than one drawn from bad, with ties counting half. It is 1 if they
// are perfectly separated, and ½ if either is empty.
func AUROC(good, bad []float64) float64 {
	if len(good) == 0 || len(bad) == 0 {
		return .5
	}
	won := 0.0
	for _, g := range good {
		for _, b := range bad {
			switch {
			case g > b:
				won++
			case !(g < b):
				won += .5
			}
		}
	}
	return won / float64(len(good)*len(bad))
}
