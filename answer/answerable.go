package answer

import (
	"ibid/retrieve"
)

// answerableAt is the chance from which an answer is quoted.
const answerableAt = .5

// The signals of answerability, in the order of answerableModel.
const (
	ansBest     = iota // score of the best sentence
	ansWindow          // best share of the question's weight near each other
	ansNamed           // best share of its names and numbers near each other
	ansHeaviest        // whether the heaviest term stands near the best sentence
	ansDense           // best cosine of question and sentence under its heading
	ansPassage         // best cosine of question and passage
	ansLexical         // best lexical score
	ansCoverage        // best coverage of a passage
	ansKind            // whether the best sentence is of the kind asked for
	answerableSignals
)

// answerable estimates the chance that the kept passages answer the question.
func (r *run) answerable(kept []retrieve.Passage, all [][]sentence) float64 {
	f := r.answerableSignals(kept, all)
	return logistic(answerableModel[:], f[:])
}

func (r *run) answerableSignals(kept []retrieve.Passage, all [][]sentence) [answerableSignals]float64 {
	var f [answerableSignals]float64
	var best *sentence
	for i := range all {
		for k := range all[i] {
			s := &all[i][k]
			if best == nil || s.score > best.score {
				best = s
			}
			f[ansWindow] = max(f[ansWindow], s.fits[sigWindow])
			f[ansNamed] = max(f[ansNamed], s.fits[sigNamed])
			f[ansDense] = max(f[ansDense], s.fits[sigAbout])
		}
	}
	for _, p := range kept {
		f[ansPassage] = max(f[ansPassage], p.Scores.Dense)
		f[ansLexical] = max(f[ansLexical], p.Scores.Lexical)
		f[ansCoverage] = max(f[ansCoverage], p.Scores.Coverage)
	}
	if best == nil {
		return f
	}
	f[ansBest] = best.score
	f[ansKind] = best.fits[sigKind]
	var heaviest need
	for _, t := range r.needs.terms {
		if t.weight > heaviest.weight {
			heaviest = t
		}
	}
	p := kept[best.passage]
	near := union(termSet(p.Title, p.Heading), best.terms)
	for _, k := range []int{best.index - 1, best.index + 1} {
		if k >= 0 && k < len(all[best.passage]) {
			near = union(near, all[best.passage][k].terms)
		}
	}
	if near[heaviest.stem] {
		f[ansHeaviest] = 1
	}
	return f
}
