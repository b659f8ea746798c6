package answer

import (
	"context"
	"errors"
	"strings"

	"ibid/answer/prompt"
	"ibid/retrieve"
)

// maxCollapseRounds bounds the rounds in which partial answers are collapsed,
// since a model may shorten them only a little each time.
const maxCollapseRounds = 12

// combineCalls is how many calls a map-reduce reserves for the last step.
const combineCalls = 1

var errNoCallsLeft = errors.New("the budget of calls is spent")

// mapReduce is the strategy map-reduce: it answers from each batch of passages
// alone, collapses the partial answers until they fit one prompt, and combines
// them.
func (r *asking) mapReduce(ctx context.Context, kept []retrieve.Passage) error {
	batches, packed, err := r.writer.Pack(kept, prompt.Map, prompt.Map, max(1, r.left()-combineCalls))
	if err != nil {
		return err
	}
	m := &mapping{asking: r, role: RoleMap, passages: r.label(ctx, kept, packed), batches: batches}
	if r.stopped {
		return nil
	}
	parts, err := m.mapAll(ctx)
	if err != nil || r.stopped {
		return err
	}
	if len(parts) == 0 {
		return m.endEmpty()
	}
	budget, err := m.budget()
	if err != nil {
		return err
	}
	parts, err = budget.Reduce(parts, maxCollapseRounds, func(groups [][]Part) ([]Part, error) {
		if len(groups) > m.left()-combineCalls {
			return nil, errNoCallsLeft
		}
		return m.collapse(ctx, groups)
	})
	switch long := (*ReduceError)(nil); {
	case r.stopped:
		return nil
	case errors.Is(err, errNoCallsLeft):
		return m.joinParts(parts, err)
	case errors.As(err, &long):
		if m.failed != nil {
			err = m.failed // it is why nothing became shorter
		}
		return m.joinParts(parts, err)
	case err != nil:
		return err
	}
	if m.left() == 0 {
		return m.joinParts(parts, errNoCallsLeft)
	}
	return m.combine(ctx, parts)
}

// budget is that of a prompt that collapses parts or combines them.
func (m *mapping) budget() (Budget, error) {
	overhead := 0
	for _, name := range []string{prompt.Collapse, prompt.Combine} {
		n, err := m.writer.Overhead(name, len(m.passages))
		if err != nil {
			return Budget{}, err
		}
		overhead = max(overhead, n)
	}
	limit := m.writer.Window() - m.writer.Reply()
	return Budget{Limit: max(limit, overhead+256), Overhead: overhead}, nil
}

// collapse makes one part of each group. A group whose call fails keeps its
// length.
func (m *mapping) collapse(ctx context.Context, groups [][]Part) ([]Part, error) {
	prompts := make([]Prompt, len(groups))
	for i, g := range groups {
		var err error
		if prompts[i], err = m.write(RoleCollapse, partSlots(g)); err != nil {
			return nil, err
		}
	}
	var out []Part
	for i, k := range m.each(ctx, m.Model, prompts) {
		if err := canceled(ctx); err != nil {
			return nil, err
		}
		out = append(out, m.collapsePart(k, groups[i]))
		if m.stopped {
			return nil, nil
		}
	}
	return out, nil
}

// collapsePart makes a part of the reply for a group.
func (m *mapping) collapsePart(k endedCall, group []Part) Part {
	m.made++
	m.addUsage(k.call)
	p := m.readPart(k, Stepped{Passages: []string{}, Labels: citedBy(group), From: stepsOf(group)})
	if p.Text == "" {
		p.Text, p.cited, p.steps = joined(group), citedBy(group), stepsOf(group)
		p.Tokens = m.partCost(p.Text)
	}
	return p
}

// combine makes the answer of the parts, emitted as Text.
func (m *mapping) combine(ctx context.Context, parts []Part) error {
	m.steps++
	m.made++
	p, err := m.write(RoleCombine, partSlots(parts))
	if err != nil {
		return err
	}
	c := m.call(p)
	out := newSieve(citedBy(parts), true)
	reply := heldReply{expects: nonAnswers{noAnswer: m.summary == nil}}
	shown := false
	failed := c.show(ctx, m.Model, &reply, func(text string) bool {
		if !shown {
			text = strings.TrimLeft(text, " \t\r\n")
		}
		shown = shown || text != ""
		text = out.add(text)
		return text == "" || m.say(text)
	})
	m.addUsage(c)
	if m.stopped {
		return nil
	}
	if err := canceled(ctx); err != nil && failed != nil {
		return err
	}
	m.warnCutPrompt(c)
	return m.endCombined(c, parts, &reply, out, failed)
}

// endCombined ends the stream after the last step.
func (m *mapping) endCombined(c *call, parts []Part, reply *heldReply, out *sieve, failed error) error {
	shown := citedBy(parts)
	done := Stepped{Step: m.steps, Role: RoleCombine, Passages: []string{}, Labels: shown, From: stepsOf(parts)}
	text := reply.text.String()
	if !reply.released {
		_, _, done.Invented = sift(text, shown)
		switch {
		case failed != nil:
			done.Reason = modelError
			m.emitStep(done)
			return m.joinParts(parts, failed)
		case strings.TrimSpace(text) == "":
			done.Reason = emptyReply
			m.emitStep(done)
			return m.joinParts(parts, errors.New("the model's last reply was empty"))
		case reply.end() != "":
			done.Reason = noAnswer
			m.emitStep(done)
			m.warnMissing()
			return errNoAnswer
		}
		m.say(out.add(strings.TrimLeft(text, " \t\r\n")))
	}
	if rest := out.end(); rest != "" {
		m.say(rest)
	}
	done.Changed, done.Invented, done.Lost = true, out.invented, without(shown, out.cited)
	if failed != nil {
		done.Changed, done.Reason = false, modelError
	}
	m.emitStep(done)
	if err := m.endProof(failed == nil && c.finish != "length"); err != nil {
		return err
	}
	switch {
	case failed != nil:
		m.emit(Incomplete{Reason: incompleteReason(failed)})
	case c.finish == "length":
		m.emit(Incomplete{Reason: reachedLength})
	default:
		m.reportMissing()
	}
	m.finish()
	return nil
}

// joinParts emits the partial answers one after the other, since they could not
// be combined.
func (m *mapping) joinParts(parts []Part, why error) error {
	m.say(joined(parts))
	if err := m.endProof(false); err != nil {
		return err
	}
	if len(parts) > 1 || !parts[0].whole || !errors.Is(why, errNoCallsLeft) { // else there was nothing to combine
		m.emit(Incomplete{Reason: "the parts could not be combined: " + incompleteReason(why)})
	} else {
		m.reportMissing()
	}
	m.finish()
	return nil
}

// partSlots are the slots of a prompt over parts.
func partSlots(parts []Part) prompt.Slots {
	s := prompt.Slots{Parts: make([]string, len(parts))}
	for i, p := range parts {
		s.Parts[i] = p.Text
	}
	if labels := append(citedBy(parts), labelsOf(parts)...); len(labels) > 0 {
		s.First = labels[0]
	}
	return s
}

// citedBy returns the labels in the texts of the parts, stepsOf the steps that
// made them, and labelsOf the labels that they are based on, each once.
func citedBy(parts []Part) []int  { return union(parts, func(p Part) []int { return p.cited }) }
func stepsOf(parts []Part) []int  { return union(parts, func(p Part) []int { return p.steps }) }
func labelsOf(parts []Part) []int { return union(parts, func(p Part) []int { return p.Labels }) }

func union(parts []Part, of func(Part) []int) []int {
	out := []int{}
	for _, p := range parts {
		out = append(out, without(of(p), out)...)
	}
	return out
}

func joined(parts []Part) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text
	}
	return strings.Join(texts, "\n\n")
}
