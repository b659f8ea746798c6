package answer

import (
	"cmp"
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

// looksWider reports whether passages that were doubted, or found further down,
// are read when the model finds no answer in the first.
func (r *asking) looksWider() bool { return r.widens && r.left() > 0 && r.affords(1) }

// widen decides whether there is a wider look at the passages that were not kept. Where
// scores say nothing, the verdicts of a judge are final.
func (r *asking) widen(found []retrieve.Passage) {
	judged := r.judge != nil && (r.Gate == GateModel || r.Gate == GateBoth)
	r.widens = r.writes && r.Gate != GateOff && (!judged || slices.ContainsFunc(found, hasScores))
}

func hasScores(p retrieve.Passage) bool { return p.Scores != (retrieve.Scores{}) }

// firstLook returns the kept passages that most likely answer, by the order of the
// search or by the chance. Most answers are in them; the others are read when the
// model finds none.
func (r *asking) firstLook(kept []retrieve.Passage) (first, deferred []retrieve.Passage) {
	n := max(firstLeast, r.usage.Looked/firstPart)
	best := r.byChance(kept)
	best = best[:min(n, len(best))]
	for i, p := range kept {
		if chance, _ := r.reading.Chance(p); i < n || chance >= likely || holds(best, p) {
			first = append(first, p)
		} else {
			deferred = append(deferred, p)
		}
	}
	return first, deferred
}

// byChance returns passages by their chance of being on topic, the likeliest first.
func (r *asking) byChance(passages []retrieve.Passage) []retrieve.Passage {
	chance := map[string]float64{}
	for _, p := range passages {
		chance[p.ID], _ = r.reading.Chance(p)
	}
	return slices.SortedStableFunc(slices.Values(passages), func(a, b retrieve.Passage) int {
		return cmp.Compare(chance[b.ID], chance[a.ID])
	})
}

// lookWider asks for an answer once more, in one call, from what was not read
// when no answer was found: passages of the first search that the gate doubted or
// that were not among the first, and passages below them, which a question in another
// language than most of them is translated to find, as many as the context
// window has room for: in turn the likeliest and the first of the search.
func (r *asking) lookWider(ctx context.Context, found, first []retrieve.Passage) error {
	if other := r.otherLanguage(found); other != nil {
		if _, err := r.translated(ctx, other); err != nil {
			return err
		}
	}
	wide, err := r.search(ctx, max(len(found), min(widerTimes*len(found), widerMost)), nil)
	if err != nil {
		return err
	}
	unread := slices.DeleteFunc(slices.Clone(wide), func(p retrieve.Passage) bool { return holds(first, p) })
	if len(unread) == 0 {
		return errNoAnswer
	}
	if err := r.read(ctx, unread); err != nil {
		return err
	}
	unread = alternate(r.byChance(unread), unread)
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
	if !r.emit(Retrieved{Question: r.asked, Reworded: r.asked != r.question.Text, Passages: unread}) {
		return nil
	}
	for _, p := range unread {
		j := r.scored(p)
		j.Decision, j.Wider = Relevant, true
		if !r.emit(j) {
			return nil
		}
		if !holds(found, p) {
			r.usage.Looked++
		}
	}
	r.skipPassages("budget", rest)
	return r.refine(ctx, unread, 1)
}

// alternate merges two orders of the same passages.
func alternate(a, b []retrieve.Passage) (merged []retrieve.Passage) {
	for i := range a {
		for _, p := range []retrieve.Passage{a[i], b[i]} {
			if !holds(merged, p) {
				merged = append(merged, p)
			}
		}
	}
	return merged
}

func holds(passages []retrieve.Passage, p retrieve.Passage) bool {
	return slices.ContainsFunc(passages, func(other retrieve.Passage) bool { return other.ID == p.ID })
}
