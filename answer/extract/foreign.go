package extract

import (
	"context"

	"ibid/retrieve"
)

// A foreign compares a question with passages in another language, by an encoder
// alone. The cosines between two languages are all lower or higher than between two
// others, so it counts too by how much a sentence exceeds the rest.
type foreign struct {
	second map[string]float64 // second scores, by the sentence
	best   map[string]float64 // the highest of a passage, by its id
	mean   float64
}

// foreignSentences is how many sentences are compared with a question in another
// language, those of the passages that the search put first.
const foreignSentences = 24

// foreignModel gives the chance that a sentence answers a question in another
// language: the constant, the weight of its second score, and that of its distance
// from the mean of all. The last has twice the weight of the other, which was chosen
// on the sample library too; the rest is a logistic regression on German questions
// about the English texts of xquad-a, and about anthropic-docs.
var foreignModel = [3]float64{-12, 22.2, 44.4}

// foreignDoubt is taken off the second score of a sentence that is to be an answer. Of 213
// questions in six languages (xquad-a) that English texts answer, .04 fewer are answered,
// but .01 fewer rightly; of 267 about articles that are missing .19 instead of .44 are, and
// of 240 asked of product documentation .13 instead of .32.
const foreignDoubt = .024

// foreignWeight makes log-odds against other sentences of a second score.
const foreignWeight = 30

func (d *Reading) readForeign(ctx context.Context, passages []retrieve.Passage) (*foreign, error) {
	var first []*sentence
	for i, p := range passages {
		in := split(d.query, i, p)
		for k := range in {
			if in[k].answers() && len(first) < foreignSentences {
				first = append(first, &in[k])
			}
		}
	}
	if err := d.secondScores(ctx, first, passages); err != nil {
		return nil, err
	}
	f := &foreign{second: map[string]float64{}, best: map[string]float64{}}
	for _, s := range first {
		id := passages[s.passage].ID
		f.second[s.text] = s.second
		f.best[id] = max(f.best[id], s.second)
		f.mean += s.second / float64(len(first))
	}
	return f, nil
}

// confidence is the chance that a sentence of a second score answers.
func (f *foreign) confidence(second float64) float64 {
	return logistic(foreignModel[:], []float64{second, second - f.mean})
}

// score replaces the scores of the sentences.
func (f *foreign) score(all []*sentence) {
	for _, s := range all {
		s.second = f.second[s.text]
		s.score = foreignWeight * s.second
	}
}
