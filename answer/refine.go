package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"ibid/cite/marker"
	"ibid/retrieve"
)

// refine makes an answer of the kept passages step by step: a first draft
// from the first batch, improved with each further one. Drafts stream as
// Draft, the last step as Text. It plans for most steps at most.
func (r *run) refine(ctx context.Context, kept []retrieve.Passage, most int) error {
	kept, copies := r.withoutCopies(kept)
	batches, planned, err := r.pack(kept, RoleAnswer, RoleRefine, most)
	if err != nil {
		return err
	}
	l := &loop{run: r, batches: batches}
	if l.kept, l.copies = r.label(kept, copies, planned); r.stopped {
		return nil
	}
	for len(l.batches) > 0 && !r.stopped {
		b := l.batches[0]
		if l.draft != "" && !r.fits(l.draft, b) {
			l.leave("answer_too_long", l.batches)
			break
		}
		r.tellShortened()
		l.batches = l.batches[1:]
		if err := l.step(ctx, b, len(l.batches) == 0); err != nil || r.stopped {
			return err
		}
		if l.streamed {
			break
		}
		if r.summary != nil && isUnusable(l.failed) {
			l.missed = l.failed
			break // a long text has many steps left, and all would fail
		}
		before := l.missed
		switch {
		case l.failed == nil:
		case !l.shrunk && errors.Is(l.failed, ErrContextLength):
			// The window is smaller than the setting says. Half a step fits
			// where a whole one did not, or it is a matter for the person.
			l.shrunk = true
			r.emit(Warning{Message: fmt.Sprintf("the prompt did not fit the model's context window, so the evidence was halved: lower --context-tokens (%d now)", or(r.ContextTokens, defaultContextTokens))})
			l.again(r.halves(b)...)
			continue
		default:
			l.missed = cmp.Or(l.missed, l.failed)
		}
		if l.gave {
			continue
		}
		if copies := l.copies.of(b); len(copies) > 0 {
			if len(copies) == len(b) {
				l.missed = before
			}
			l.again(copies)
		}
	}
	return l.end()
}

// again puts batches in front of those to come. What the budget of calls has
// no room for any more is left out.
func (l *loop) again(batches ...batch) {
	l.batches = append(batches, l.batches...)
	if over := len(l.batches) - l.left(); over > 0 {
		unread := l.leave("budget", l.batches[len(l.batches)-over:])
		l.batches = l.batches[:len(l.batches)-over]
		l.missed = cmp.Or(l.missed, l.budgetSpent(unread, l.failed))
	}
}

// leave tells of batches that go into no step, and gives how many passages
// they are.
func (l *loop) leave(reason string, batches []batch) int {
	var unread batch
	for _, b := range batches {
		unread = append(unread, b...)
	}
	l.stepped(Stepped{Passages: l.ids(unread), Labels: unread.labels(), Reason: reason})
	return len(unread)
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
	kept    []retrieve.Passage
	copies  copies
	batches []batch // still to come

	steps  int
	from   []int  // the step that made the draft
	draft  string // the answer so far; empty while there is none
	cut    bool   // the draft's end is missing
	read   int    // steps whose reply came whole
	failed error  // what went wrong in the last step
	gave   bool   // the last step's reply says something
	missed error  // why a step's evidence was not read
	cited  []int  // labels that stood in a draft
	used   int    // passages in the batches that changed the answer

	shrunk   bool   // the evidence was halved for a window that was too small
	streamed bool   // the last step's reply went out as Text
	broken   string // why the end of that is missing
}

// step asks for a draft, or for a better one, from one batch.
func (l *loop) step(ctx context.Context, b batch, last bool) error {
	l.steps++
	l.made++
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
	blank := strings.TrimSpace(text) == ""
	if l.failed == nil && blank && c.finish == "length" {
		l.failed = asking(role, errWordless)
	}
	l.gave = l.failed == nil && !blank
	whole := l.failed == nil && c.finish != "length"
	reason := ""
	switch {
	case l.failed != nil && released && last:
		l.streamed = true
		l.used += len(b)
		l.stepped(Stepped{Step: l.steps, Role: role, Passages: l.ids(b), Labels: b.labels(), From: l.from, Reason: "model_error", Invented: invented, Lost: lost})
		l.broken = incompleteReason(l.failed)
		return nil
	case blank && (l.failed == nil || errors.Is(l.failed, errWordless)):
		reason = "empty_reply"
	case l.failed != nil:
		reason = "model_error"
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
		l.broken = reachedLength
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
	l.tellCopies(l.kept, l.copies)
	switch {
	case l.stopped:
		return nil
	case l.streamed:
	case l.draft != "":
		l.emit(Text{Text: l.draft})
		if l.cut {
			l.broken = reachedLength
		}
	case l.missed != nil && l.read == 0:
		return l.missed
	default:
		l.tellMissed(l.missed)
		l.unanswered(noAnswer, l.kept)
		return nil
	}
	if l.summary == nil { // of a summary it is more than a warning
		l.tellMissed(l.missed)
	}
	if l.broken != "" {
		l.emit(Incomplete{Reason: l.broken})
	}
	l.finish()
	return nil
}

// budgetSpent is why passages were not read after calls had to be made again.
func (r *run) budgetSpent(unread int, why error) error {
	return fmt.Errorf("%d passages were left when the budget of %d calls was spent: %w", unread, or(r.AnswerCalls, defaultAnswerCalls), why)
}

// tellMissed warns that evidence was not read.
func (r *run) tellMissed(why error) {
	if why != nil {
		r.emit(Warning{Message: "not everything that was found could be read: " + why.Error()})
	}
}

// errWordless is the fate of a model that thinks for as long as it may.
var errWordless = errors.New("the reply reached its longest length before a word of it was said: have the model think less, or raise the length that its server allows")

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
