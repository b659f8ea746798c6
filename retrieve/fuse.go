package retrieve

import (
	"math"
	"slices"
)

// A scored is a candidate with its scores.
type scored struct {
	Passage // without the chunk, until a [reading] has read it
	hit     Hit
	// The mixture uses vector and its cosine with the question, both from the embedder or both from
	// the encoder.
	vector []float32
	cosine float64
	// encoded is the encoder's vector, or nil. If it is nil, encode sets vector to nil too and
	// estimates cosine.
	encoded []float32
	// byEncoder is set if only the dense search by the encoder found the candidate.
	byEncoder bool
	read      bool
}

// denseWeight is the share of the dense score in the mixture if the embedder knows all words of the
// question. Between 0.3 and 0.5 the mean nDCG@10 of the public sets of TestRetrievalQuality hardly
// changes. Rank fusion without weights is worse than BM25, since the dense list is the weaker one.
const denseWeight = 0.4

// Pseudo-relevance feedback (Rocchio, 1971): the mean of the best candidates is added to the
// question's vector, and the dense scores are computed again. The weight of a candidate falls to
// 1/e at feedbackScale standard deviations below the best one, so that a single outstanding passage
// decides alone. Feedback on the terms (RM3) gains as much for questions that many passages answer,
// and loses for questions with one answer.
const (
	feedback      = 5
	feedbackScale = 0.6
)

// Similar texts answer the same questions: a share of each score is the mean score of the nearest
// candidates (Diaz, "Regularizing ad hoc retrieval scores", 2005). Of the values tried, 3 to 15
// neighbours and shares of 0.2 to 0.5, these lower the score of no set of TestRetrievalQuality.
// Among few candidates even the nearest are not similar, so there is one neighbour for every eight
// candidates, and none in a small library.
const (
	neighbours     = 8
	perNeighbour   = 8
	neighbourShare = 0.3
	// mostEvened is the number of best candidates whose scores are smoothed: each is compared with
	// every other.
	mostEvened = 200
)

// fuse sets the Score of each candidate to a mixture of its dense score, with the given weight, and
// its lexical score. Both are measured in standard deviations from their mean over the candidates
// of this question, so that the range of an embedder's cosines does not matter. If both scores have
// a weight, the mixture is computed again with feedback and smoothed between neighbours, in
// proportion to the weight. The scores are then scaled to 0 … 1.
func fuse(all []*scored, question []float32, weight float64) {
	if len(all) == 0 {
		return
	}
	dense, lexical := make([]float64, len(all)), make([]float64, len(all))
	for i, s := range all {
		dense[i], lexical[i] = s.cosine, s.Scores.BM25
	}
	standardise(lexical)
	mixScores(all, dense, lexical, weight)
	if weight > 0 && weight < 1 {
		widened := expandQuestion(all, question)
		shift, n := 0., 0.
		for i, s := range all {
			if dense[i] = s.cosine; s.vector != nil {
				dense[i] = Cosine(s.vector, widened)
				shift, n = shift+dense[i]-s.cosine, n+1
			}
		}
		for i, s := range all {
			if s.vector == nil { // use the mean shift of the candidates with a vector
				dense[i] += shift / n
			}
		}
		mixScores(all, dense, lexical, weight)
		known := slices.DeleteFunc(slices.Clone(all), func(s *scored) bool { return s.vector == nil })
		if len(known) > mostEvened {
			sortByScore(known)
		}
		smoothScores(known[:min(len(known), mostEvened)], min(1, weight/denseWeight)*neighbourShare)
	}
	rescale(all, 0, 1)
}

// rescale maps the scores linearly to the range from low to high. If all are equal, they become
// high.
func rescale(all []*scored, low, high float64) {
	least, most := scoreRange(all)
	for _, s := range all {
		share := 1.
		if most > least {
			share = (s.Score - least) / (most - least)
		}
		s.Score = low + (high-low)*share
	}
}

func scoreRange(all []*scored) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range all {
		low, high = min(low, s.Score), max(high, s.Score)
	}
	return low, high
}

// mixScores sets the Score of each candidate. It standardises the dense scores in place.
func mixScores(all []*scored, dense, lexical []float64, weight float64) {
	standardise(dense)
	for i := range all {
		all[i].Score = float64(weight*dense[i]) + float64((1-weight)*lexical[i]) // without a fused multiply-add, as below
	}
}

// expandQuestion returns the unit vector of the sum of the question and the best candidates.
func expandQuestion(all []*scored, question []float32) []float32 {
	order := slices.Clone(all)
	sortByScore(order)
	sum := make([]float64, len(question))
	for _, s := range order[:min(feedback, len(order))] {
		share := math.Exp((s.Score - order[0].Score) / feedbackScale)
		for at, x := range s.vector {
			sum[at] += float64(share * float64(x)) // the conversion forbids a fused multiply-add
		}
	}
	length := euclid(sum)
	for at, x := range question {
		if length > 0 {
			sum[at] *= 1 / length
		}
		sum[at] += float64(x)
	}
	out := make([]float32, len(question))
	if length = euclid(sum); length == 0 {
		copy(out, question)
		return out
	}
	for at, x := range sum {
		out[at] = float32(x / length)
	}
	return out
}

// smoothScores moves each score by the given share towards the mean score of the nearest candidates,
// weighted by the squares of their cosines.
func smoothScores(all []*scored, share float64) {
	n := len(all)
	k := min(neighbours, n/perNeighbour)
	if k == 0 {
		return
	}
	cosines := make([]float32, n*n)
	for i := range all {
		for j := range i {
			cosine := max(0, innerProduct(all[i].vector, all[j].vector))
			cosines[i*n+j], cosines[j*n+i] = cosine, cosine
		}
	}
	means := make([]float64, n)
	for i := range all {
		row := cosines[i*n : (i+1)*n]
		var sum, weight float64
		for _, j := range largest(row, k) {
			square := float64(float64(row[j]) * float64(row[j]))
			sum += float64(square * all[j].Score)
			weight += square
		}
		if means[i] = all[i].Score; weight > 0 {
			means[i] = sum / weight
		}
	}
	for i := range all {
		all[i].Score = float64((1-share)*all[i].Score) + float64(share*means[i])
	}
}

// largest returns the indexes of the k largest values, largest first. Among equal values the first
// ones win.
func largest(values []float32, k int) []int {
	places := make([]int, 0, k+1)
	for i, v := range values {
		if len(places) == k && v <= values[places[k-1]] {
			continue
		}
		at := len(places)
		for at > 0 && v > values[places[at-1]] {
			at--
		}
		places = slices.Insert(places, at, i)
		places = places[:min(k, len(places))]
	}
	return places
}

// innerProduct returns the inner product in float32 with four partial sums: three times as fast as dot,
// and the same on every machine.
func innerProduct(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for ; len(a) >= 8 && len(b) >= 8; a, b = a[8:], b[8:] {
		s0 += float32(a[0] * b[0]) // the conversions forbid fused multiply-adds
		s1 += float32(a[1] * b[1])
		s2 += float32(a[2] * b[2])
		s3 += float32(a[3] * b[3])
		s0 += float32(a[4] * b[4])
		s1 += float32(a[5] * b[5])
		s2 += float32(a[6] * b[6])
		s3 += float32(a[7] * b[7])
	}
	for i := range a {
		s0 += float32(a[i] * b[i])
	}
	return s0 + s1 + s2 + s3
}

// euclid returns the Euclidean length of v.
func euclid(v []float64) float64 {
	var square float64
	for _, x := range v {
		square += float64(x * x) // the conversion forbids a fused multiply-add
	}
	return math.Sqrt(square)
}

// standardise converts scores to standard deviations above their mean.
func standardise(scores []float64) {
	var sum, square float64
	for _, x := range scores {
		sum += x
	}
	mean := sum / float64(len(scores))
	for _, x := range scores {
		square += float64((x - mean) * (x - mean))
	}
	deviation := math.Sqrt(square / float64(len(scores)))
	for i, x := range scores {
		if deviation < 1e-9 {
			scores[i] = 0
		} else {
			scores[i] = (x - mean) / deviation
		}
	}
}
