package answer

import (
	"math"

	"ibid/retrieve"
)

// onTopic is the chance from which a passage is kept when no model judges it.
const onTopic = .5

// A chance is the estimated probability that a passage is on topic, with the
// reason in words.
type chance struct {
	p      float64
	reason string
}

// topicModel estimates the chance from a passage's scores by logistic
// regression; the features are those of topicFeatures, after the constant.
var topicModel = [...]float64{-6, 9, 4, 4, 2}

// topicFeatures: the lexical score over the highest the question could reach,
// the cosine of the vectors, the covered share of the question's inverse
// document frequency, and that of its names and numbers alone.
func topicFeatures(s retrieve.Scores, named float64) [4]float64 {
	return [4]float64{s.Lexical, s.Dense, s.Coverage, named}
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
		terms := termSet(p.Title, p.Heading, p.Text)
		_, named := r.needs.has(terms)
		f := topicFeatures(p.Scores, named)
		out[i] = chance{logistic(topicModel[:], f[:]), r.needs.reason(terms)}
	}
	return out
}

// sentenceModel estimates the chance that a sentence holds the answer; the
// constant, then the signals of sentence.
var sentenceModel = [1 + sentenceSignals]float64{-4, 2, 1.5, 1.5, .5, .5, 2, 2, .6, .8, 1, -1, -.5}

// answerableModel estimates the chance that the kept passages answer the
// question; the constant, then the signals of answerable.
var answerableModel = [1 + answerableSignals]float64{-4, 2, 2, .5, .5, 2, 2, 2, 1, .3}
