package answer

import (
	"context"
	"slices"

	"ibid/retrieve"
)

// A wider look is for as many times the passages that were found at first, and
// for so many at most.
const (
	widerTimes = 3
	widerMost  = 36
)

// looksWider reports whether passages that were doubted, or found further down,
// are read when the model finds no answer in the first. The gates that ask a
// judge have its verdict on each passage instead.
func (r *asking) looksWider() bool {
	return r.writes && r.left() > 0 && (r.Gate == "" || r.Gate == GateAuto || r.Gate == GateScore)
}

// lookWider asks for an answer once more, in one call, from what was not read
// when no answer was found: passages of the first search that the gate doubted,
// and passages below them, as many as the context window has room for.
func (r *asking) lookWider(ctx context.Context, found, kept []retrieve.Passage) error {
	wide, err := r.search(ctx, max(len(found), min(widerTimes*len(found), widerMost)))
	if err != nil {
		return err
	}
	unread := slices.DeleteFunc(slices.Clone(wide), func(p retrieve.Passage) bool { return holds(kept, p) })
	if len(unread) == 0 {
		return errNoAnswer
	}
	if !r.emit(Retrieved{Question: r.asked, Passages: unread}) {
		return nil
	}
	if err := r.read(ctx, unread); err != nil {
		return err
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
	return r.refine(ctx, unread, 1)
}

func holds(passages []retrieve.Passage, p retrieve.Passage) bool {
	return slices.ContainsFunc(passages, func(other retrieve.Passage) bool { return other.ID == p.ID })
}
