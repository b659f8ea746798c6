package extract

import (
	"context"

	"ibid/retrieve"
)

// A foreign has the scores for a question in another language than the passages, from an encoder
// alone. The usual level of a cosine differs between pairs of languages, so the distance from
// the mean counts too.
type foreign struct {
	second map[string]float64 // second score of each sentence
	best   map[string]float64 // highest second score of each passage, by ID
	mean   float64
}

// foreignSentences is the number of sentences, from the first passages of the search, that are
// compared with a question in another language.
const foreignSentences = 24

// foreignModel gives the chance that a sentence answers a question in another language: a
// constant, the weight of its second score, and the weight of its distance from the mean. It is
// a logistic regression on German questions about the English texts of xquad-a and about
// anthropic-docs. The last weight is set to twice the second; that ratio was chosen on the
// sample library too.
var foreignModel = [3]float64{-12, 22.2, 44.4}

// foreignDoubt is subtracted from the second score of a possible answer. It lowers the share of
// questions in six languages (xquad-a) that are answered: by .04 for 213 questions with an
// answer in the English texts (right answers: by .01), from .44 to .19 for 267 about missing
// articles, and from .32 to .13 for 240 about product documentation.
const foreignDoubt = .024

// foreignWeight converts a second score to log-odds against other sentences.
const foreignWeight = 30

func (d *Reading) readForeign(ctx context.Context, passages []retrieve.Passage) (*foreign, error) {
	var first []*sentence
	for i, p := range passages {
		in := split(d.query, i, p)
		for k := range in {
			if in[k].mayAnswer() && len(first) < foreignSentences {
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

// confidence is the chance that a sentence with the given second score answers.
func (f *foreign) confidence(second float64) float64 {
	return logistic(foreignModel[:], []float64{second, second - f.mean})
}

// score replaces the scores of sentences by their second scores.
func (f *foreign) score(all []*sentence) {
	for _, s := range all {
		s.second = f.second[s.text]
		s.score = foreignWeight * s.second
	}
}
