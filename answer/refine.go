package answer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ibid/cite/marker"
	"ibid/retrieve"
)

// A batch is what one step of the refine loop is given.
type batch []Evidence

func (b batch) labels() []int {
	out := make([]int, len(b))
	for i, e := range b {
		out[i] = e.label
	}
	return out
}

// refine makes an answer of the kept passages step by step: a first draft
// from the first batch, improved with each further one. Drafts stream as
// Draft, the last step as Text.
func (r *run) refine(ctx context.Context, kept []retrieve.Passage) error {
	var duplicates []retrieve.Passage
	if !r.KeepDuplicates {
		kept, duplicates = withoutDuplicates(kept)
	}
	batches, planned, err := r.pack(kept, RoleAnswer, RoleRefine)
	if err != nil {
		return err
	}
	if !r.emit(Kept{Passages: kept[:planned]}) {
		return nil
	}
	r.leftOut("near_duplicate", duplicates)
	r.leftOut("budget", kept[planned:])
	l := &loop{run: r, kept: kept}
	for i := 0; i < len(batches); i++ {
		b := batches[i]
		if l.draft != "" && !r.fits(l.draft, b) {
			var unused batch
			for _, rest := range batches[i:] {
				unused = append(unused, rest...)
			}
			r.stepped(Stepped{Passages: l.ids(unused), Labels: unused.labels(), Reason: "answer_too_long"})
			break
		}
		if err := l.step(ctx, b, i == len(batches)-1); err != nil || r.stopped {
			return err
		}
		if l.streamed {
			break
		}
		if r.summary != nil && isUnusable(l.failed) {
			break // a long text has many steps left, and all would fail
		}
		if !l.shrunk && errors.Is(l.failed, ErrContextLength) {
			// The window is smaller than the setting says. Half a step fits
			// where a whole one did not, or it is a matter for the person.
			l.shrunk = true
			r.emit(Warning{Message: fmt.Sprintf("the prompt did not fit the model's context window, so the evidence was halved: lower --context-tokens (%d now)", or(r.ContextTokens, defaultContextTokens))})
			batches = slices.Insert(batches, i+1, r.halves(b)...)
		}
	}
	return l.end()
}

// halves cuts a batch in two; a single passage is shortened.
func (r *run) halves(b batch) []batch {
	if len(b) > 1 {
		return []batch{b[:len(b)/2], b[len(b)/2:]}
	}
	return []batch{{r.fit(b[0], r.count(b[0].text)/2)}}
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

// pack packs the passages into batches, as many as the budget of calls
// allows, and tells how many passages found a place. The first batch is for a
// call of the role first, the others for calls of the role later.
func (r *run) pack(kept []retrieve.Passage, first, later Role) (batches []batch, planned int, err error) {
	calls := or(r.AnswerCalls, defaultAnswerCalls)
	var open batch
	room, used := 0, 0
	for i, p := range kept {
		e := evidence(i+1, p)
		cost, err := r.cost(e)
		if err != nil {
			return nil, 0, err
		}
		full := len(open) > 0 && (used+cost > room || r.StepPassages > 0 && len(open) == r.StepPassages)
		if len(open) == 0 || full {
			if full {
				batches = append(batches, open)
				open = nil
			}
			if calls >= 0 && len(batches) == calls {
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
				e = r.fit(e, room-cost)
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
	room := r.window() - reserve - overhead
	if r.StepTokens > 0 {
		room = min(room, r.StepTokens)
	}
	return max(room, 64), nil
}

// fits tells whether a draft can be refined with a batch.
func (r *run) fits(draft string, b batch) bool {
	tokens := r.count(draft)
	if r.MaxDraftTokens > 0 && tokens > r.MaxDraftTokens {
		return false
	}
	p, err := r.write(RoleRefine, Slots{Evidence: b, Draft: draft})
	return err != nil || r.count(p.System)+r.count(p.User)+tokens <= r.window()
}

// A loop is the state of the refine loop between its steps.
type loop struct {
	*run
	kept []retrieve.Passage

	steps  int
	from   []int  // the step that made the draft
	draft  string // the answer so far; empty while there is none
	cut    bool   // the draft's end is missing
	read   int    // steps whose reply came whole
	failed error  // what went wrong last
	cited  []int  // labels that stood in a draft
	used   int    // passages in the batches that changed the answer

	shrunk   bool // the evidence was halved for a window that was too small
	streamed bool // the last step's reply went out as Text
}

// step asks for a draft, or for a better one, from one batch.
func (l *loop) step(ctx context.Context, b batch, last bool) error {
	l.steps++
	role, model := RoleAnswer, l.Model
	if l.draft != "" {
		role = RoleRefine
		if l.RefineModel != nil {
			model = l.RefineModel
		}
	}
	prompt, err := l.write(role, Slots{Evidence: b, Draft: l.draft})
	if err != nil {
		return err
	}
	allowed := append(b.labels(), l.cited...)
	s := newSieve(allowed, true)
	s.verbatim = true
	show := func(piece string) bool { return piece == "" || l.show(piece, last) }

	c := l.call(prompt)
	reply := listener{said: said{answer: true, changed: role == RoleRefine}}
	l.failed = nil
	for piece, err := range c.pieces(ctx, model) {
		if err != nil {
			l.failed = asking(role, err)
			break
		}
		out, enough := reply.hear(piece)
		if enough {
			c.enough = true
			break
		}
		if out != "" && !show(s.feed(out)) {
			break
		}
	}
	released := reply.released
	if released && !l.stopped {
		show(s.close())
	}
	l.spent(c)
	if l.stopped {
		return nil
	}
	l.checkRead(c)

	text := reply.reply.String()
	labels, invented := marker.Labels(text, highestLabel(allowed)), []int(nil)
	if len(without(labels, allowed)) > 0 {
		text, labels, invented = sift(text, allowed)
	}
	lost := without(marker.Labels(l.draft, highestLabel(allowed)), labels)
	whole := l.failed == nil && c.finish != "length"
	reason := ""
	switch {
	case l.failed != nil && released && last:
		l.streamed = true
		l.used += len(b)
		l.stepped(Stepped{Step: l.steps, Role: role, Passages: l.ids(b), Labels: b.labels(), From: l.from, Reason: "model_error", Invented: invented, Lost: lost})
		l.emit(Incomplete{Reason: incompleteReason(l.failed)})
		return nil
	case l.failed != nil:
		reason = "model_error"
	case strings.TrimSpace(text) == "":
		reason = "empty_reply"
	case !(released && last) && reply.end() != "":
		reason = reply.end()
	case text == l.draft:
		reason = "same"
	case !whole && l.draft != "" && !(released && last):
		reason = "cut"
	}
	if l.failed == nil {
		l.read++
	}
	done := Stepped{Step: l.steps, Role: role, Passages: l.ids(b), Labels: b.labels(), From: l.from, Changed: reason == "", Reason: reason, Invented: invented}
	if done.Changed {
		l.from = []int{l.steps}
		if !released && !show(text) {
			return nil
		}
		done.Lost = lost
		l.cited = append(l.cited, labels...)
		if !last {
			l.emit(Draft{Step: l.steps, Labels: labels, Final: true})
		}
		l.draft, l.cut = text, !whole
		l.used += len(b)
	}
	// A reply of nothing but invented labels has shown nothing.
	l.streamed = last && (released && reason != "empty_reply" || done.Changed)
	l.stepped(done)
	if l.streamed && !whole {
		l.emit(Incomplete{Reason: reachedLength})
	}
	return l.giveUp()
}

func (l *loop) ids(b batch) []string { return idsOf(l.kept, b) }

// show sends the next piece of a reply out.
func (l *loop) show(piece string, last bool) bool {
	if last {
		return l.emit(Text{Text: piece})
	}
	return l.emit(Draft{Step: l.steps, Text: piece})
}

// giveUp gives the error that makes further steps useless, unless there is an
// answer already.
func (l *loop) giveUp() error {
	if u := unusable(nil); l.draft == "" && errors.As(l.failed, &u) && u.Unusable() {
		return l.failed
	}
	return nil
}

// end sends the answer out if the last step has not done it.
func (l *loop) end() error {
	l.usage.Used = l.used
	switch {
	case l.stopped:
		return nil
	case l.streamed:
	case l.draft != "":
		l.emit(Text{Text: l.draft})
		if l.cut {
			l.emit(Incomplete{Reason: reachedLength})
		}
	case l.failed != nil && l.read == 0:
		return l.failed
	default:
		if l.failed != nil {
			l.emit(Warning{Message: "not everything that was found could be read: " + l.failed.Error()})
		}
		l.unanswered(noAnswer, l.kept)
		return nil
	}
	l.finish()
	return nil
}

const reachedLength = "the model's reply reached its longest length"

func incompleteReason(err error) string {
	if l := limited(nil); errors.As(err, &l) && l.Limit() != "" {
		return l.Limit()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the time for the answer ran out"
	}
	return err.Error()
}

// without gives the numbers of a that are not in b.
func without(a, b []int) []int {
	var out []int
	for _, n := range a {
		found := false
		for _, m := range b {
			found = found || n == m
		}
		if !found {
			out = append(out, n)
		}
	}
	return out
}
