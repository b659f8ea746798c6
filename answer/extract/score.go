package extract

import (
	"cmp"
	"math"
	"slices"

	"ibid/retrieve"
)

// The weights in this file were fitted on squad2-a, clapnq-a, anthropic-docs,
// cranfield, msmarco-dl-5k and scifact-train (the public sets that IBID_DATASETS
// names) with the embedding model of calibratedSpace, and TestCalibrationHolds
// measures them. A new table of package embed needs a new fit.
const calibratedSpace = "ibid-static-2/256"

// topicModel estimates the chance that a passage is on topic by logistic
// regression: the constant, then the topic signals.
var topicModel = [1 + topicSignals]float64{-9.680, 13.706, 10.551, -12.713, 12.894, 1.306, 1.329}

const (
	topicLexical = iota // BM25 over the highest the question could reach
	topicDense          // cosine of question and passage
	topicExact          // share of the question's weight in the passage
	topicNear           // … counting words of like meaning in part
	topicNamed          // share of its names and numbers
	topicCount          // how many of its words are in the passage, as ln(1 + n)
	topicSignals
)

func (d *Reading) topic(passage string) [topicSignals]float64 {
	p := d.passages[passage]
	return [topicSignals]float64{
		topicLexical: p.lexical,
		topicDense:   p.dense,
		topicExact:   d.query.needs.exact(p.all),
		topicNear:    d.query.needs.near(p.all),
		topicNamed:   d.query.needs.named(p.all),
		topicCount:   math.Log1p(float64(d.query.needs.count(p.all))),
	}
}

// Chance estimates the probability that a passage is on topic, and says what of
// the question the passage covers. In another language than the question's, it is
// the chance that its best sentence answers.
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

// sentenceModel gives the log-odds that a sentence holds the answer, against
// the other sentences that were found: the sentence signals in their order. Five
// weights are set by hand, since the sets have few such cases: 2 for a row with a
// cell that is asked for, 2 for the answer under a question like the one asked, -3
// for a document of another year, -6 for a sentence that denies nothing where the
// question does, -3 for the test of a program.
var sentenceModel = [sentenceSignals]float64{
	3.75, 3.71, 2.22, -1.42, 2.24, 3.24, 2, 2, -3, 3.19, 2.78, -6, -3,
}

// confidenceModel gives the chance that the best sentence answers: the constant, then the
// sure signals. It is a logistic regression on questions with an answer, without one, and
// about other documents. The weight of the second score is lower than that of a fit on
// encyclopedias, where it is best; on other documents it misleads. TestFitConfidence measures
// it without an encoder and with each of them.
var confidenceModel = [1 + sureSignals]float64{-8.18, .246, .258, 1.89, 1.66, 4}

// technicalDoubt is added for documents about programs, where most passages have the
// question's words, whether they answer it or not. It was chosen on the sets of
// TestFitConfidence, where it loses .15 of the answers of product documentation.
const technicalDoubt = -2

const (
	sureScore  = iota // of the best sentence
	sureLead          // … over the best of the other passages
	sureDense         // cosine of question and its passage
	sureWords         // how many words of the question are in any passage, as ln(1 + n)
	sureSecond        // by how much the highest second score exceeds usualSecond; 0 without an encoder
	sureSignals
)

const (
	maxLead     = 5  // the lead from which a longer one says no more
	usualSecond = .5 // second score that says neither
)

func (d *Reading) signalsOf(best []*sentence) (f [sureSignals]float64) {
	f[sureScore], f[sureLead], f[sureDense] = best[0].score, maxLead, best[0].about.dense
	other := slices.IndexFunc(best, func(s *sentence) bool { return s.passage != best[0].passage })
	if other > 0 {
		f[sureLead] = min(maxLead, best[0].score-best[other].score)
	}
	all := make(coverage, len(d.query.needs.terms))
	for _, s := range best {
		all = all.with(s.about.all)
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

// unrelated is the cosine of texts that have nothing in common, by the space of the
// encoder, and by the language of the texts where that differs; 0 where it is not given.
// The sentences of other topics in XQuAD and in anthropic-docs are at .76 to .79 for the
// first, in Chinese .85. That of the last was chosen on the sample library, where it
// answers as much as all-MiniLM-L6-v2 does.
var unrelated = map[string]float64{
	"multilingual-e5-small-int8/384": .7, "multilingual-e5-small-int8/384 zh": .77, "bge-small-en-v1.5-int8/384": .35,
}

// confidence is the chance that the best of the sentences, which are in the order
// of their scores, answers the question.
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

// lexicalModel is the chance that a passage in another language than English, whose words
// the vectors hardly know, is on topic: the constant, then the weight of the lexical score.
// otherModels are the chance that its best sentence answers, by language: the constant,
// then the weights of the lexical score and of sigWindow. They are logistic regressions
// on xquad-a; in Thai, where the vectors find all words alike, on the lexical score alone.
// secondModel is that chance where an encoder knows the language: the weight of its score.
var (
	lexicalModel = [2]float64{-4.2, 18.9}
	secondModel  = [2]float64{.6, 30}
	otherModels  = map[string][3]float64{"": {-5.35, 12, 7}, "th": {-5.2, 21.1, 0}}
)

// DefaultConfidence is the confidence from which a sentence is an answer.
const DefaultConfidence = .12
