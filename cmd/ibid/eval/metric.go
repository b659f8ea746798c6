package eval

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Grades are the judgements of one query: the grade of each judged document by
// its id. A document is relevant when its grade is 1 or more; one that is not
// judged is not relevant.
type Grades map[string]int

// Relevant counts the relevant documents.
func (g Grades) Relevant() int {
	n := 0
	for _, grade := range g {
		if grade > 0 {
			n++
		}
	}
	return n
}

// A Metric is a measure of one ranking, cut at rank K.
//
// The measures are those that BEIR reports with pytrec_eval, the Python face of
// NIST's trec_eval. They differ from trec_eval in one thing: it sorts what has
// one score by document id, and here the order of the ranking stands.
//
//   - ndcg: discounted cumulative gain over that of the best order there could
//     be (Järvelin and Kekäläinen 2002, with trec_eval's discount 1/log2(rank+1)
//     at every rank). The gain is the grade itself, not 2^grade-1; grades below
//     0 gain nothing. Relevant documents that no search could find count in the
//     best order.
//   - recall: the share of the relevant documents that stand in the first K.
//   - p: precision, the share of the first K ranks that hold a relevant
//     document; a shorter ranking is not excused.
//   - hit: 1 when a relevant document stands in the first K, else 0 (trec_eval's
//     success).
//   - mrr: 1 / rank of the first relevant document, 0 when it is not in the
//     first K.
//
// All lie between 0 and 1, and are 0 for a query without relevant documents.
type Metric struct {
	Kind string // "ndcg", "recall", "hit", "p" or "mrr"
	K    int    // 1 or more
}

// maxCut is the deepest rank at which a metric may cut.
const maxCut = 1000

// metricKinds are the measures there are.
var metricKinds = [...]string{"ndcg", "recall", "hit", "mrr", "p"}

// ParseMetric reads a metric as [Metric.String] writes it: "ndcg@10".
func ParseMetric(s string) (Metric, error) {
	kind, cut, _ := strings.Cut(strings.ToLower(strings.TrimSpace(s)), "@")
	k, err := strconv.Atoi(cut)
	if err != nil || k < 1 || k > maxCut || !slices.Contains(metricKinds[:], kind) {
		return Metric{}, fmt.Errorf("%q is no metric: give ndcg, recall, hit, mrr or p with a rank from 1 to %d, as in ndcg@10", s, maxCut)
	}
	return Metric{kind, k}, nil
}

func (m Metric) String() string { return m.Kind + "@" + strconv.Itoa(m.K) }

// Of measures a ranking: document ids, best first, none twice.
func (m Metric) Of(ranking []string, grades Grades) float64 {
	top := ranking[:min(m.K, len(ranking))]
	switch m.Kind {
	case "ndcg":
		return ndcg(top, grades, m.K)
	case "recall":
		return Share(hits(top, grades), grades.Relevant())
	case "p":
		return Share(hits(top, grades), m.K)
	case "hit":
		return float64(min(hits(top, grades), 1))
	case "mrr":
		for i, id := range top {
			if grades[id] > 0 {
				return 1 / float64(i+1)
			}
		}
	}
	return 0
}

func hits(top []string, grades Grades) int {
	n := 0
	for _, id := range top {
		if grades[id] > 0 {
			n++
		}
	}
	return n
}

func ndcg(top []string, grades Grades, k int) float64 {
	best := make([]int, 0, len(grades))
	for _, grade := range grades {
		best = append(best, grade)
	}
	slices.SortFunc(best, func(a, b int) int { return b - a })
	ideal := dcg(best[:min(k, len(best))])
	if ideal == 0 {
		return 0
	}
	found := make([]int, len(top))
	for i, id := range top {
		found[i] = grades[id]
	}
	return dcg(found) / ideal
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

// Share is n/of, and 0 for nothing of nothing.
func Share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// Mean is the mean of the values; 0 for none.
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
