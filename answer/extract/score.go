package extract

import (
	"math"

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
// the question the passage covers.
func (d *Reading) Chance(p retrieve.Passage) (chance float64, reason string) {
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
// the other sentences that were found: the sentence signals in their order. Two
// weights are set by hand, since the sets have no such cases: 2 for the answer
// under a question like the one asked, -3 for a document of another year.
var sentenceModel = [sentenceSignals]float64{
	-0.443, 1.253, 2.235, 2.347, 0.913, 0.385, 2.235, 1.270, 1.280, 1.291, 1.421,
	2, -3, 2.531, 0.822, 1.338, 2.378, -1.614, -0.265, 1.845, 0.520,
}

// answerableModel estimates the chance that the passages answer the question:
// the constant, then the answerable signals.
var answerableModel = [1 + answerableSignals]float64{
	-9.000, -7.193, 8.736, -1.273, 1.038, 1.375, -3.966, 7.201, 3.515, 5.687, 5.955,
}

// answerableAt is the chance from which an answer is quoted.
const answerableAt = .05

// The signals of answerability, in the order of answerableModel.
const (
	ansExact   = iota // share of the question's weight near the best sentence
	ansNear           // … counting words of like meaning in part
	ansLeast          // how near that comes to the need it misses most
	ansNamed          // names and numbers near each other, anywhere
	ansWindow         // best nearness of any sentence with its neighbours
	ansDense          // best cosine of question and sentence
	ansAbout          // … under its heading
	ansPassage        // best cosine of question and passage
	ansLexical        // best lexical score
	ansSecond         // mean cosine of question and passages
	answerableSignals
)

// answerable estimates the chance that the kept passages answer the question.
func (d *Reading) answerable(kept []retrieve.Passage, all [][]sentence) float64 {
	f := d.answerableSignals(kept, all)
	return logistic(answerableModel[:], f[:])
}

func (d *Reading) answerableSignals(kept []retrieve.Passage, all [][]sentence) [answerableSignals]float64 {
	var f [answerableSignals]float64
	var best *sentence
	for i := range all {
		for k := range all[i] {
			s := &all[i][k]
			if best == nil || s.score > best.score {
				best = s
			}
			f[ansNamed] = max(f[ansNamed], s.signals[sigNamed])
			f[ansWindow] = max(f[ansWindow], s.signals[sigNearWindow])
			f[ansDense] = max(f[ansDense], s.signals[sigDense])
			f[ansAbout] = max(f[ansAbout], s.signals[sigAbout])
		}
	}
	for _, p := range kept {
		f[ansPassage] = max(f[ansPassage], d.passages[p.ID].dense)
		f[ansLexical] = max(f[ansLexical], d.passages[p.ID].lexical)
		f[ansSecond] += d.passages[p.ID].dense / float64(len(kept))
	}
	if best == nil {
		return f
	}
	f[ansExact] = d.needs.exact(best.window)
	f[ansNear] = d.needs.near(best.window)
	f[ansLeast] = d.needs.least(best.window)
	return f
}
