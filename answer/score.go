package answer

import (
	"math"

	"ibid/retrieve"
)

// The numbers in this file were fitted by TestCalibrate on squad2-a, clapnq-a,
// anthropic-docs, cranfield, msmarco-dl-5k and scifact-train (the public sets
// that IBID_DATASETS names; calibrate_test.go tells how), with the embedding
// model of calibratedSpace. A new table of package embed calls for a new fit.
// The topic's are what it prints now; CALIBRATION.md says why the others are of
// an earlier fit.
const calibratedSpace = "ibid-static-2/256"

// onTopic is the chance from which a passage is kept when no model judges it.
const onTopic = .2

// A chance is the estimated probability that a passage is on topic, with the
// reason in words.
type chance struct {
	p      float64
	reason string
}

// topicModel estimates the chance from a passage's scores by logistic
// regression; the constant, then the signals below.
var topicModel = [1 + topicSignals]float64{-9.680, 13.706, 10.551, -12.713, 12.894, 1.306, 1.329}

const (
	topicLexical = iota // BM25 over the highest the question could reach
	topicDense          // cosine of question and passage
	topicExact          // share of the question's weight that stands in it
	topicNear           // … that stands in it in words of like meaning
	topicNamed          // share of its names and numbers
	topicCount          // how many of its words stand in it, as ln(1 + n)
	topicSignals
)

func (d *reading) topic(found retrieve.Passage) [topicSignals]float64 {
	p := d.passages[found.ID]
	return [topicSignals]float64{
		topicLexical: p.lexical,
		topicDense:   p.dense,
		topicExact:   d.needs.exact(p.all),
		topicNear:    d.needs.near(p.all),
		topicNamed:   d.needs.named(p.all),
		topicCount:   math.Log1p(float64(d.needs.count(p.all))),
	}
}

func logistic(weights []float64, features []float64) float64 {
	z := weights[0]
	for i, x := range features {
		z += weights[i+1] * x
	}
	return 1 / (1 + math.Exp(-z))
}

func (r *run) chances(passages []retrieve.Passage) []chance {
	out := make([]chance, len(passages))
	for i, p := range passages {
		f := r.reading.topic(p)
		out[i] = chance{logistic(topicModel[:], f[:]), r.reading.needs.reason(r.reading.passages[p.ID].all)}
	}
	return out
}

// sentenceModel gives the log-odds of a sentence to hold the answer, against
// the other sentences that were found: the signals of sentence in their order.
// Two are set by hand, since the sets have no such cases: 2 for the answer under
// a question like the one asked, -3 for a document of another year than asked for.
var sentenceModel = [sentenceSignals]float64{-0.443, 1.253, 2.235, 2.347, 0.913, 0.385, 2.235, 1.270, 1.280, 0.018, 1.291, 0.062, 1.421, 2, -3, 2.531, 0.822, 1.338, 2.378, -1.614, -0.265, -0.016, 1.845, 0.520}

// answerableModel estimates the chance that the kept passages answer the
// question; the constant, then the signals of answerable.
var answerableModel = [1 + answerableSignals]float64{-8.915, -7.193, 8.736, -1.273, 1.038, 1.375, -3.966, 7.201, 3.515, 5.687, -0.135, 5.955}
