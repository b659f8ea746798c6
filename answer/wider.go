package answer

import (
	"context"
	"errors"
	"slices"

	"ibid/answer/prompt"
	"ibid/retrieve"
)

// How many passages are read at first, and how many a wider search finds.
const (
	firstPart  = 3  // 1/firstPart of the passages are read at first by rank, and as many by chance
	firstLeast = 4  // the least number of passages by rank, and by chance
	likely     = .7 // passages with this chance or more are read at first too
	widerTimes = 3  // a wider search finds widerTimes as many passages as the first search
	widerMost  = 36 // the most passages that a wider search finds
)

func hasScores(p retrieve.Passage) bool { return p.Scores != (retrieve.Scores{}) }

// selectFirst divides the kept passages into the ones that most likely answer, by the rank or
// by the chance, and the ones to read only if the model finds no answer in the first.
func (f *finder) selectFirst(kept []retrieve.Passage) (first, deferred []retrieve.Passage) {
	n := max(firstLeast, f.usage.Looked/firstPart)
	best := f.rankByChance(kept)
	best = best[:min(n, len(best))]
	for i, p := range kept {
		if chance, _ := f.reading.Chance(p); i < n || chance >= likely || hasPassage(best, p) {
			first = append(first, p)
		} else {
			deferred = append(deferred, p)
		}
	}
	return first, deferred
}

// lookWider asks for an answer once more, in one call, from passages that were not read:
// first from the unread ones in found, then from a wider search, as many as fit the
// context window. Each group is ordered by rank and by chance in turn. If most passages
// are in another language, the question is translated before the search.
func (r *asking) lookWider(ctx context.Context, found, first []retrieve.Passage) error {
	f := r.finder
	if other := f.otherLanguage(found); other != nil {
		if _, err := f.translateTo(ctx, other); err != nil {
			return err
		}
	}
	wide, err := f.searchPassages(ctx, max(len(found), min(widerTimes*len(found), widerMost)), nil)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(found), func(p retrieve.Passage) bool { return r.unreadReasons[p.ID] == "" })
	wide = slices.DeleteFunc(slices.Clone(wide), func(p retrieve.Passage) bool { return hasPassage(first, p) || hasPassage(left, p) })
	unread := slices.Concat(left, wide)
	if len(unread) == 0 {
		return errNoAnswer
	}
	if err := f.readPassages(ctx, unread); err != nil {
		return err
	}
	unread = append(mergeOrders(f.rankByChance(left), left), mergeOrders(f.rankByChance(wide), wide)...)
	r.writer.StepTokens = 0
	trial := *r.writer // a copy, so that no passage counts as shortened
	_, packed, err := trial.Pack(unread, r.promptOf(RoleAnswer), r.promptOf(RoleRefine), 1)
	switch {
	case errors.Is(err, prompt.ErrBudget):
		return errNoAnswer
	case err != nil:
		return err
	}
	rest := unread[packed:]
	unread = unread[:packed]
	if !f.emitRetrieved(unread) {
		return nil
	}
	for _, p := range unread {
		j := f.scorePassage(p)
		j.Decision, j.Wider = Relevant, true
		if !r.emit(j) {
			return nil
		}
		if !hasPassage(found, p) {
			r.usage.Looked++
		}
	}
	r.skipPassages(noRoom, rest)
	return refine(ctx, r.writing, unread, 1)
}

// mergeOrders merges two orders of the same passages, taking from each in turn.
func mergeOrders(a, b []retrieve.Passage) (merged []retrieve.Passage) {
	for i := range a {
		for _, p := range []retrieve.Passage{a[i], b[i]} {
			if !hasPassage(merged, p) {
				merged = append(merged, p)
			}
		}
	}
	return merged
}

func hasPassage(passages []retrieve.Passage, p retrieve.Passage) bool {
	return slices.ContainsFunc(passages, func(other retrieve.Passage) bool { return other.ID == p.ID })
}
