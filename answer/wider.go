package answer

import (
	"context"
	"errors"
	"slices"

	"ibid/answer/prompt"
	"ibid/retrieve"
)

// A first look is at a part of the passages that were found, or at least so many, by
// their rank and by their chance, and at all that are likely. A wider look is for as
// many times the passages that were found, and for so many at most.
const (
	firstPart  = 3
	firstLeast = 4
	likely     = .7
	widerTimes = 3
	widerMost  = 36
)

func hasScores(p retrieve.Passage) bool { return p.Scores != (retrieve.Scores{}) }

// selectFirst returns the kept passages that most likely answer, by the order of the
// search or by the chance. Most answers are in them; the others are read when the
// model finds none.
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

// lookWider asks for an answer once more, in one call, from what was not read
// when no answer was found, as much as the context window has room for: the passages
// that were kept, and then those that the gate doubted and those below them, which a
// question in another language than most of them is translated to find. Of each, in
// turn the likeliest and the first of the search.
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
	trial := *r.writer // so that nothing counts as shortened
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

// mergeOrders merges two orders of the same passages.
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
