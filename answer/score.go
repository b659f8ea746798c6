package answer

import (
	"math"

	"ibid/retrieve"
)

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
var topicModel = [1 + topicSignals]float64{-10.582, 21.026, 11.842, -4.147, 4.770, 0.688, 0.032}

const (
	topicLexical = iota // BM25 over the highest the question could reach
	topicDense          // cosine of question and passage
	topicExact          // share of the question's weight that stands in it
	topicNear           // … that stands in it in words of like meaning
	topicNamed          // share of its names and numbers
	topicLeast          // how near it comes to what it misses most
	topicSignals
)

func (d *reading) topic(found retrieve.Passage) [topicSignals]float64 {
	p := d.passages[found.ID]
	return [topicSignals]float64{
		topicLexical: found.Scores.Lexical,
		topicDense:   p.dense,
		topicExact:   d.needs.exact(p.all),
		topicNear:    d.needs.near(p.all),
		topicNamed:   d.needs.named(p.all),
		topicLeast:   d.needs.least(p.all),
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
var sentenceModel = [sentenceSignals]float64{0.650, 0.616, 1.924, 2.059, 0.064, 0.441, 2.371, 1.573, 1.182, -0.157, 1.582, 0.769, 1.107, 3, -1.5, 3.258, 1.594, 0.235, 1.591, -0.881, -0.441, -0.061}

// answerableModel estimates the chance that the kept passages answer the
// question; the constant, then the signals of answerable.
var answerableModel = [1 + answerableSignals]float64{-9.617, -2.955, 6.025, -1.569, 1.128, 0.099, -5.307, 9.516, -1.526, 7.803, -0.340, 8.231}
