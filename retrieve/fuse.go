package retrieve

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// A scored candidate on its way to become a passage.
type scored struct {
	Passage
	words []string // made by plain when they are needed
}

// denseWeight is the share of the dense score in the mixture, for a question
// whose words the embedder knows. It was learned with TestFusionWeight on
// public retrieval sets: their mean nDCG@10 hardly changes from 0.3 to 0.5.
// Scaling by range instead of deviation is no better. Rank fusion without
// weights falls below BM25, since the dense list is the weaker of the two.
const denseWeight = 0.4

// fuse sets the Score of each: the mixture of its dense and lexical scores,
// the dense one with the given weight, each in standard deviations from the
// mean over the candidates of this one question, so that embedders with wide
// and with narrow cosines weigh the same. The mixture is then stretched to 0 … 1.
func fuse(all []scored, weight float64) {
	if len(all) == 0 {
		return
	}
	dense := standard(all, func(s Scores) float64 { return s.Dense })
	lexical := standard(all, func(s Scores) float64 { return s.BM25 })
	low, high := math.Inf(1), math.Inf(-1)
	for i := range all {
		s := &all[i]
		s.Score = weight*dense(s.Scores) + (1-weight)*lexical(s.Scores)
		low, high = min(low, s.Score), max(high, s.Score)
	}
	for i := range all {
		if high > low {
			all[i].Score = (all[i].Score - low) / (high - low)
		} else {
			all[i].Score = 1
		}
	}
}

// standard gives a function that says how many standard deviations a score is
// above the mean of all.
func standard(all []scored, of func(Scores) float64) func(Scores) float64 {
	var sum, square float64
	for _, s := range all {
		sum += of(s.Scores)
	}
	mean := sum / float64(len(all))
	for _, s := range all {
		square += (of(s.Scores) - mean) * (of(s.Scores) - mean)
	}
	deviation := math.Sqrt(square / float64(len(all)))
	if deviation < 1e-9 {
		return func(Scores) float64 { return 0 }
	}
	return func(s Scores) float64 { return (of(s) - mean) / deviation }
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
// Titles and headings do not count: copies of one text may stand under several.
func repeats(a, b *scored) bool {
	if long := max(len(a.Text), len(b.Text)); 10*min(len(a.Text), len(b.Text)) < 9*long {
		return false
	}
	v, w := a.plain(), b.plain()
	return len(v) == len(w) && (slices.Equal(v, w) ||
		slices.Equal(slices.Sorted(slices.Values(v)), slices.Sorted(slices.Values(w))) && overlap(v, w) >= minShingles)
}

// plain gives the words of the chunk as they stand, without case and
// punctuation.
func (s *scored) plain() []string {
	if s.words == nil {
		s.words = strings.FieldsFunc(strings.ToLower(s.Text), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
		})
	}
	return s.words
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
