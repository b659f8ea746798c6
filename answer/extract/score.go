package extract

import (
	"math"
	"unicode"

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
		topicExact:   d.needs.exact(p.all),
		topicNear:    d.needs.near(p.all),
		topicNamed:   d.needs.named(p.all),
		topicCount:   math.Log1p(float64(d.needs.count(p.all))),
	}
}

// Chance estimates the probability that a passage is on topic, and says what of
// the question the passage covers. In another language than the question's, it is
// the chance that its best sentence answers.
func (d *Reading) Chance(p retrieve.Passage) (chance float64, reason string) {
	if d.foreign != nil {
		return d.foreign.chance(p), "its sentences are compared by the encoder, since they are in another language than the question"
	}
	f := d.topic(p.ID)
	return logistic(topicModel[:], f[:]), d.needs.reason(d.passages[p.ID].all)
}

func logistic(weights, signals []float64) float64 {
	z := weights[0]
	for i, x := range signals {
		z += weights[i+1] * x
	}
	return 1 / (1 + math.Exp(-z))
}

// sentenceModel gives the log-odds that a sentence holds the answer, against
// the other sentences that were found: the sentence signals in their order. Four
// weights are set by hand, since the sets have no such cases: 2 for a row with a
// cell that is asked for, 2 for the answer under a question like the one asked, -3
// for a document of another year, -3 for the test of a program.
var sentenceModel = [sentenceSignals]float64{
	3.75, 3.71, 2.22, -1.42, 2.24, 1.2, 3.24, 2, 2, -3, 3.19, 2.78, -3,
}

// secondWeight is the weight of a sentence's second score, by the encoder.
const secondWeight = 4

// The chance that the best sentence answers: the constant, then the weight of its
// score, with an encoder that of the highest second score. The first is a logistic
// regression. Of the second, the regression gave the weight of the second score; the
// others were chosen by hand on the same sets and the sample library.
var (
	confidenceModel = [2]float64{-8.1, .68}
	encodedModel    = [3]float64{-8.9, .35, 8.76}
)

// unrelated is the cosine of texts that have nothing in common, by the space of the
// encoder; 0 where it is not given. The sentences of other topics in XQuAD and in
// anthropic-docs are at .76 to .79 for the first. That of the second was chosen on the
// sample library, where it answers as much as all-MiniLM-L6-v2 does.
var unrelated = map[string]float64{"multilingual-e5-small-int8/384": .7, "bge-small-en-v1.5-int8/384": .35}

// confidence is the chance that the best of the sentences, which are in the order
// of their scores, answers the question.
func (d *Reading) confidence(best []*sentence) float64 {
	if d.foreign != nil {
		return d.foreign.confidence(best[0].second)
	}
	if d.encoder != nil {
		second := 0.0
		for _, s := range best[:min(encoded, len(best))] {
			second = max(second, s.second)
		}
		return logistic(encodedModel[:], []float64{best[0].score - secondWeight*best[0].second, second})
	}
	if !isLatin(d.question) {
		return logistic(scriptModel[:], []float64{best[0].lexical})
	}
	return logistic(confidenceModel[:], []float64{best[0].score})
}

// scriptModel is the chance that a passage answers a question in another script than
// Latin, whose words the vectors do not know: the constant, then the weight of the
// lexical score. A logistic regression on five languages of xquad-a gave the weight;
// the constant is higher than its, so that few answerable questions are refused.
var scriptModel = [2]float64{-4.8, 28.1}

// isLatin reports whether at least half of the letters of a text are Latin.
func isLatin(text string) bool {
	latin, others := 0, 0
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Latin, r):
			latin++
		case unicode.IsLetter(r):
			others++
		}
	}
	return latin >= others
}

// DefaultConfidence is the confidence from which a sentence is an answer.
const DefaultConfidence = .2
