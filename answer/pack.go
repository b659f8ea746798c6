package answer

import (
	"fmt"
	"math"
	"slices"

	"ibid/retrieve"
)

// A batch is what one step is given.
type batch []Evidence

func (b batch) labels() []int {
	out := make([]int, len(b))
	for i, e := range b {
		out[i] = e.label
	}
	return out
}

// halves cuts a batch in two; a single passage is shortened.
func (r *run) halves(b batch) []batch {
	if len(b) > 1 {
		return []batch{b[:len(b)/2], b[len(b)/2:]}
	}
	return []batch{{r.shortened(b[0], r.count(b[0].text)/2)}}
}

// shortened is a piece of evidence of at most about the given tokens. What it
// loses is noted, and told by [run.tellShortened].
func (r *run) shortened(e Evidence, tokens int) Evidence {
	short := r.fit(e, tokens)
	if len(short.text) < len(e.text) {
		if r.cutShort == nil {
			r.cutShort = map[int]string{}
		}
		r.cutShort[e.label] = e.Title()
	}
	return short
}

// tellShortened warns of the passages that have been shortened since it was
// called last.
func (r *run) tellShortened() {
	var titles []string
	n := 0
	for label, title := range r.cutShort {
		if title == "" {
			continue
		}
		n++
		if !slices.Contains(titles, title) {
			titles = append(titles, title)
		}
		r.cutShort[label] = ""
	}
	if n == 0 {
		return
	}
	slices.Sort(titles)
	from := "“" + clip(titles[0], 80) + "”"
	if more := len(titles) - 1; more > 0 {
		from += fmt.Sprintf(" and %d more", more)
	}
	r.emit(Warning{Message: fmt.Sprintf("the end of a passage was left out, because it is longer than the model's context window (%d in all, of %s): --context-tokens is %d", n, from, or(r.ContextTokens, defaultContextTokens))})
}

// lacksEnds says how many passages were shortened, if any.
func (r *run) lacksEnds() string {
	if len(r.cutShort) == 0 {
		return ""
	}
	return fmt.Sprintf("the ends of passages that are longer than the context window are not in it (%d of them)", len(r.cutShort))
}

// leftOut tells of passages that were kept and go into no step.
func (r *run) leftOut(reason string, passages []retrieve.Passage) {
	if len(passages) == 0 {
		return
	}
	ids := make([]string, len(passages))
	for i, p := range passages {
		ids[i] = p.ID
	}
	r.stepped(Stepped{Passages: ids, Labels: []int{}, Reason: reason})
}

// pack packs the passages into batches, most at most, and tells how many
// passages found a place. The first batch is for a call of the role first, the
// others for calls of the role later. Only a passage that the context window
// has no room for is shortened: one that is longer than a step should be has a
// step to itself.
func (r *run) pack(kept []retrieve.Passage, first, later Role, most int) (batches []batch, planned int, err error) {
	var open batch
	room, used := 0, 0
	step := func() int {
		if r.StepTokens > 0 {
			return min(room, r.StepTokens)
		}
		return room
	}
	for i, p := range kept {
		e := evidence(i+1, p)
		cost, err := r.cost(e)
		if err != nil {
			return nil, 0, err
		}
		full := len(open) > 0 && (used+cost > step() || r.StepPassages > 0 && len(open) == r.StepPassages)
		if len(open) == 0 || full {
			if full {
				batches = append(batches, open)
				open = nil
			}
			if len(batches) >= most {
				break
			}
			role := first
			if len(batches) > 0 {
				role = later
			}
			if room, err = r.room(role); err != nil {
				return nil, 0, err
			}
			used = 0
			if cost > room {
				cost -= r.count(e.text)
				e = r.shortened(e, room-cost)
				cost += r.count(e.text)
			}
		}
		open = append(open, e)
		used += cost
		planned++
	}
	if len(open) > 0 {
		batches = append(batches, open)
	}
	return batches, planned, nil
}

// label fixes the labels and tells of them: the planned passages have the
// first ones, their copies the next. It tells too of the passages that the
// budget left no room for.
func (r *run) label(kept []retrieve.Passage, of map[int][]retrieve.Passage, planned int) ([]retrieve.Passage, copies) {
	labelled := slices.Clone(kept[:planned])
	rest := slices.Clone(kept[planned:])
	c := copies{}
	for i := range kept {
		for _, p := range of[i] {
			if i >= planned {
				rest = append(rest, p)
				continue
			}
			labelled = append(labelled, p)
			c[i+1] = append(c[i+1], evidence(len(labelled), p))
		}
	}
	r.emit(Kept{Passages: labelled})
	r.leftOut("budget", rest)
	return labelled, c
}

// cost is how many tokens a piece of evidence takes in a prompt, with its
// fence and all that stands beside its text.
func (r *run) cost(e Evidence) (int, error) {
	around, err := r.prompts().around(e)
	return r.count(e.text) + r.count(around), err
}

// reply is how many tokens are left free for an answer.
func (r *run) reply() int { return r.window() / 5 }

// room is how many tokens of evidence fit into a call of a role.
func (r *run) room(role Role) (int, error) {
	reserve := r.reply()
	if role == RoleRefine {
		reserve *= 2 // the draft so far, and the new one
	}
	overhead, err := r.overhead(role, Slots{})
	if err != nil {
		return 0, err
	}
	return max(r.window()-reserve-overhead, 64), nil
}

// left is how many draft and refine calls the budget still has.
func (r *run) left() int {
	calls := or(r.AnswerCalls, defaultAnswerCalls)
	if calls < 0 {
		return math.MaxInt
	}
	return max(0, calls-r.made)
}
