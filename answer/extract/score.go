package extract

import (
	"cmp"
	"math"
	"slices"

	"ibid/retrieve"
)

// The weights in this file are fitted on squad2-a, clapnq-a, anthropic-docs, cranfield,
// msmarco-dl-5k and scifact-train (public sets in IBID_DATASETS) with the embedding model of
// calibratedSpace. TestCalibrationHolds measures them. A new vector table in package embed needs
// a new fit.
const calibratedSpace = "ibid-static-2/256"

// topicModel is a logistic regression for the chance that a passage is on topic: a constant,
// then the weights of the topic signals.
var topicModel = [1 + topicSignals]float64{-9.680, 13.706, 10.551, -12.713, 12.894, 1.306, 1.329}

const (
	topicLexical = iota // BM25 divided by the highest score possible for the question
	topicDense          // cosine of question and passage
	topicExact          // share of the question's weight in the passage
	topicNear           // topicExact, where words with a similar meaning count in part
	topicNamed          // share of the question's names and numbers
	topicCount          // ln(1 + number of the question's words in the passage)
	topicSignals
)

func (d *Reading) topic(passage string) [topicSignals]float64 {
	p := d.passages[passage]
	return [topicSignals]float64{
		topicLexical: p.lexical,
		topicDense:   p.dense,
		topicExact:   d.query.needs.exactShare(p.all),
		topicNear:    d.query.needs.nearShare(p.all),
		topicNamed:   d.query.needs.nameShare(p.all),
		topicCount:   math.Log1p(float64(d.query.needs.count(p.all))),
	}
}

// Chance estimates the probability that a passage is on topic, and says which words of the
// question it has. If the question is in another language, Chance estimates the
// probability that the best sentence answers.
func (d *Reading) Chance(p retrieve.Passage) (chance float64, reason string) {
	if d.foreign != nil {
		return d.foreign.confidence(d.foreign.best[p.ID]), "compared with the question by the encoder, since they are in different languages"
	}
	reason = d.query.needs.reason(d.passages[p.ID].all)
	if d.query.language != "en" {
		return logistic(lexicalModel[:], []float64{d.passages[p.ID].lexical}), reason
	}
	f := d.topic(p.ID)
	return logistic(topicModel[:], f[:]), reason
}

func logistic(weights, signals []float64) float64 {
	z := weights[0]
	for i, x := range signals {
		z += weights[i+1] * x
	}
	return 1 / (1 + math.Exp(-z))
}

// sentenceModel gives the log-odds that a sentence, among all found, holds the answer: the
// weights of the sentence signals in order. The weights of sigCell, sigAfter, sigYear, sigDenies
// and sigAside are set by hand, since the sets have few such cases.
var sentenceModel = [sentenceSignals]float64{
	3.75, 3.71, 2.22, -1.42, 2.24, 3.24, 2, 2, -3, 3.19, 2.78, -6, -3,
}

// confidenceModel is a logistic regression for the chance that the best sentence answers: a
// constant, then the weights of the sure signals. It is fitted on questions with an answer,
// without one, and about other documents. The weight of the second score is lower than in a fit
// on encyclopedias, which would mislead on other documents. TestFitConfidence measures the
// model with and without each encoder.
var confidenceModel = [1 + sureSignals]float64{-8.18, .246, .258, 1.89, 1.66, 4}

// technicalDoubt is added for documents about programs: most of their kept passages have the words of
// a question whether they answer it or not. It was chosen on the sets of TestFitConfidence, and
// loses .15 of the answers from product documentation.
const technicalDoubt = -2

const (
	sureScore  = iota // score of the best sentence
	sureLead          // lead over the best sentence of another passage
	sureDense         // cosine of the question and its passage
	sureWords         // ln(1 + number of the question's words in any passage)
	sureSecond        // highest second score minus usualSecond; 0 without an encoder
	sureSignals
)

const (
	maxLead     = 5  // a greater lead says no more
	usualSecond = .5 // second score that is evidence neither for nor against an answer
)

func (d *Reading) signalsOf(best []*sentence) (f [sureSignals]float64) {
	f[sureScore], f[sureLead], f[sureDense] = best[0].score, maxLead, best[0].about.dense
	other := slices.IndexFunc(best, func(s *sentence) bool { return s.passage != best[0].passage })
	if other > 0 {
		f[sureLead] = min(maxLead, best[0].score-best[other].score)
	}
	all := make(coverage, len(d.query.needs.terms))
	for _, s := range best {
		all = all.union(s.about.all)
	}
	f[sureWords] = math.Log1p(float64(d.query.needs.count(all)))
	if d.encoder != nil {
		f[sureSecond] = -usualSecond
		for _, s := range best[:min(encoded, len(best))] {
			f[sureSecond] = max(f[sureSecond], s.second-usualSecond)
		}
	}
	return f
}

// unrelated is the cosine of unrelated texts by the space of the encoder, or by space and
// language. Unrelated sentences of XQuAD and anthropic-docs have .76 to .79 in the first space,
// .85 in Chinese. The value of the last was chosen on the sample library, to answer as many
// questions as with all-MiniLM-L6-v2.
var unrelated = map[string]float64{
	"multilingual-e5-small-int8/384": .7, "multilingual-e5-small-int8/384 zh": .77, "bge-small-en-v1.5-int8/384": .35,
}

// confidence is the chance that the first of the sentences, best first, answers the question.
func (d *Reading) confidence(best []*sentence) float64 {
	switch f := d.signalsOf(best); {
	case d.foreign != nil:
		return d.foreign.confidence(best[0].second - foreignDoubt)
	case d.query.language == "en":
		model := confidenceModel
		if !best[0].inAsked {
			model[0] += technicalDoubt * d.technical
		}
		return logistic(model[:], f[:])
	case d.encoder != nil:
		return logistic(secondModel[:], f[sureSecond:])
	}
	model := cmp.Or(otherModels[d.query.language], otherModels[""])
	return logistic(model[:], []float64{best[0].about.lexical, best[0].signals[sigWindow]})
}

// lexicalModel is the chance that a passage in another language than English is on topic: a
// constant, and the weight of the lexical score, since the vectors hardly know other languages.
// otherModels are the chances that the best sentence answers, by language: a constant, and the
// weights of the lexical score and of sigWindow. They are logistic regressions on xquad-a; in
// Thai, the vectors find all words alike, so sigWindow has no weight. secondModel replaces them
// if an encoder knows the language: a constant, and the weight of the second score.
var (
	lexicalModel = [2]float64{-4.2, 18.9}
	secondModel  = [2]float64{.6, 30}
	otherModels  = map[string][3]float64{"": {-5.35, 12, 7}, "th": {-5.2, 21.1, 0}}
)

// DefaultConfidence is the least confidence for an answer.
const DefaultConfidence = .12
