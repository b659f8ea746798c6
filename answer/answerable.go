package answer

import "ibid/retrieve"

// answerableAt is the chance from which an answer is quoted.
const answerableAt = .05

// The signals of answerability, in the order of answerableModel.
const (
	ansExact   = iota // share of the question's weight near the best sentence
	ansNear           // … in words of like meaning too
	ansLeast          // how near it comes to what is missed most there
	ansNamed          // names and numbers near each other, anywhere
	ansWindow         // best nearness of any sentence with its neighbours
	ansDense          // best cosine of question and sentence
	ansAbout          // … under its heading
	ansPassage        // best cosine of question and passage
	ansLexical        // best lexical score
	ansKind           // whether the best sentence is of the kind asked for
	ansSecond         // mean cosine of question and passages
	answerableSignals
)

// answerable estimates the chance that the kept passages answer the question.
func (r *run) answerable(kept []retrieve.Passage, all [][]sentence) float64 {
	f := r.answerableSignals(kept, all)
	return logistic(answerableModel[:], f[:])
}

func (r *run) answerableSignals(kept []retrieve.Passage, all [][]sentence) [answerableSignals]float64 {
	d := r.reading
	var f [answerableSignals]float64
	var best *sentence
	for i := range all {
		for k := range all[i] {
			s := &all[i][k]
			if best == nil || s.score > best.score {
				best = s
			}
			f[ansNamed] = max(f[ansNamed], s.fits[sigNamed])
			f[ansWindow] = max(f[ansWindow], s.fits[sigNearWindow])
			f[ansDense] = max(f[ansDense], s.fits[sigDense])
			f[ansAbout] = max(f[ansAbout], s.fits[sigAbout])
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
	f[ansKind] = best.fits[sigKind]
	return f
}
