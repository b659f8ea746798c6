package answer

import (
	"errors"
	"fmt"
)

// A Budget limits the size of one prompt, in tokens: n parts take
// Overhead + the sum of their sizes + Separator·(n−1).
type Budget struct {
	Limit     int // the largest prompt
	Overhead  int
	Separator int
}

func (b Budget) size(tokens ...int) int {
	n := b.Overhead + b.Separator*max(0, len(tokens)-1)
	for _, t := range tokens {
		n += t
	}
	return n
}

// The kinds of a [ReduceError].
const (
	// TooLong: one part alone does not fit the budget.
	TooLong = "document_too_long"
	// TooManyRounds: the parts did not fit after the allowed number of rounds.
	TooManyRounds = "too_many_rounds"
	// NoProgress: a round did not make the parts shorter.
	NoProgress = "no_progress"
)

// A ReduceError says why parts cannot be brought into one prompt.
type ReduceError struct {
	Kind  string
	Index int // of the part that is too long
	// Round is the 1-based round in which a part was too long, 0 outside of
	// [Budget.Reduce]; for the other kinds it is the number of rounds done.
	Round int
}

func (e *ReduceError) Error() string {
	const remedy = "raise --context-tokens, or use the strategy refine"
	switch e.Kind {
	case TooLong:
		return fmt.Sprintf("part %d is too long for one prompt: %s", e.Index+1, remedy)
	case TooManyRounds:
		return fmt.Sprintf("the parts do not fit one prompt after %d rounds of shortening: %s", e.Round, remedy)
	}
	return fmt.Sprintf("the model did not make the parts shorter in round %d: %s", e.Round, remedy)
}

// Group packs parts of the given sizes greedily, in order, into groups that fit
// the budget, and returns the groups as indices. If a part does not fit even
// alone, wherever it is, the error is a [*ReduceError].
func (b Budget) Group(tokens []int) ([][]int, error) {
	for i, t := range tokens {
		if b.size(t) > b.Limit {
			return nil, &ReduceError{Kind: TooLong, Index: i}
		}
	}
	var groups [][]int
	size := 0
	for i, t := range tokens {
		if last := len(groups) - 1; last >= 0 && size+b.Separator+t <= b.Limit {
			groups[last] = append(groups[last], i)
			size += b.Separator + t
			continue
		}
		groups = append(groups, []int{i})
		size = b.size(t)
	}
	return groups, nil
}

// A Part is a partial answer or summary.
type Part struct {
	Text   string
	Tokens int
	// Labels are the labels of the passages that it is based on, cited or not.
	Labels []int

	cited []int // labels in the text
	steps []int // the steps that made it
	whole bool  // its end is not missing
	rated Rated // only in map-rerank
}

// Reduce collapses groups of parts until all parts fit the budget together, and
// returns them. collapse returns one part for each group, in order; Reduce sets
// its labels. If maxRounds is 0, Reduce goes on as long as each round makes the
// parts shorter. With a [*ReduceError] it returns the parts before the failed
// round. Errors of collapse are returned unchanged.
func (b Budget) Reduce(parts []Part, maxRounds int, collapse func(groups [][]Part) ([]Part, error)) ([]Part, error) {
	for round := 0; len(parts) > 0 && b.size(tokensOf(parts)...) > b.Limit; {
		if maxRounds > 0 && round == maxRounds {
			return parts, &ReduceError{Kind: TooManyRounds, Round: round}
		}
		indices, err := b.Group(tokensOf(parts))
		if long := (*ReduceError)(nil); errors.As(err, &long) {
			long.Round = round + 1
			return parts, long
		}
		groups := make([][]Part, len(indices))
		for g, group := range indices {
			for _, i := range group {
				groups[g] = append(groups[g], parts[i])
			}
		}
		next, err := collapse(groups)
		if err != nil {
			return parts, err
		}
		if len(next) != len(groups) {
			return parts, fmt.Errorf("collapsing %d groups gave %d parts", len(groups), len(next))
		}
		for g := range next {
			next[g].Labels = labelsOf(groups[g])
		}
		round++
		if b.size(tokensOf(next)...) >= b.size(tokensOf(parts)...) {
			return parts, &ReduceError{Kind: NoProgress, Round: round}
		}
		parts = next
	}
	return parts, nil
}

func tokensOf(parts []Part) []int {
	out := make([]int, len(parts))
	for i, p := range parts {
		out[i] = p.Tokens
	}
	return out
}
