package retrieve

import (
	"maps"
	"slices"
)

// A scored candidate on its way to become a passage.
type scored struct {
	Passage
	body *profile // made by text when it is needed
}

// denseWeight is the share of the dense score in the mixture, learned on
// public retrieval sets by TestFusionWeight.
const denseWeight = 0.3

// fuse sets the Score of each: the mixture of its dense and lexical scores,
// each scaled to 0 … 1 over the candidates of this one question. Rank fusion
// without weights was measured too: with a dense list that is the weaker of
// the two it is worse than BM25 alone.
func fuse(all []scored, mode Mode) {
	if len(all) == 0 {
		return
	}
	weight := denseWeight
	switch mode {
	case LexicalOnly:
		weight = 0
	case DenseOnly:
		weight = 1
	}
	dense := scale(all, func(s Scores) float64 { return s.Dense })
	lexical := scale(all, func(s Scores) float64 { return s.BM25 })
	for i := range all {
		all[i].Score = weight*dense(all[i].Scores) + (1-weight)*lexical(all[i].Scores)
	}
}

// scale gives a function that maps a score linearly to 0 … 1 over all.
func scale(all []scored, of func(Scores) float64) func(Scores) float64 {
	low, high := of(all[0].Scores), of(all[0].Scores)
	for _, s := range all[1:] {
		low, high = min(low, of(s.Scores)), max(high, of(s.Scores))
	}
	if high == low {
		return func(Scores) float64 { return 0 }
	}
	return func(s Scores) float64 { return (of(s) - low) / (high - low) }
}

// best sorts by score, ties by id, and gives the first k that do not repeat an
// earlier one.
func best(all []scored, k int) []Passage {
	slices.SortFunc(all, byScore)
	var kept []*scored
	for i := range all {
		s := &all[i]
		if len(kept) == k {
			break
		}
		if !slices.ContainsFunc(kept, func(k *scored) bool { return repeats(s, k) }) {
			kept = append(kept, s)
		}
	}
	passages := make([]Passage, len(kept))
	for i, s := range kept {
		passages[i] = s.Passage
	}
	return passages
}

// minShingles is the share of common runs of words from which two passages of
// the same words say the same.
const minShingles = 0.9

// repeats says whether two passages have the same words, numbers and stop words
// included, in all but the same order. One word that differs makes them two:
// it may be the very fact that changed between two versions of a document.
func repeats(a, b *scored) bool {
	if long := max(len(a.Text), len(b.Text)); 10*min(len(a.Text), len(b.Text)) < 9*long {
		return false
	}
	p, q := a.text(), b.text()
	return p.length == q.length && maps.Equal(p.counts, q.counts) &&
		overlap(IndexTerms(a.Text), IndexTerms(b.Text)) >= minShingles
}

// text is the profile of the chunk's words without title and heading: copies
// of one text may stand under several.
func (s *scored) text() *profile {
	if s.body == nil {
		s.body = newProfile(s.Text)
	}
	return s.body
}

// overlap is the Jaccard index of the runs of three words of two texts.
func overlap(a, b []string) float64 {
	if len(a) < 3 || len(b) < 3 {
		if slices.Equal(a, b) {
			return 1
		}
		return 0
	}
	shingles := make(map[[3]string]bool)
	for i := range len(a) - 2 {
		shingles[[3]string(a[i:i+3])] = true
	}
	seen, common := make(map[[3]string]bool), 0
	for i := range len(b) - 2 {
		s := [3]string(b[i : i+3])
		if seen[s] {
			continue
		}
		seen[s] = true
		if shingles[s] {
			common++
		}
	}
	return float64(common) / float64(len(shingles)+len(seen)-common)
}
