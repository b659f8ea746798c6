package answer

import (
	"cmp"
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

var errSpent = errors.New("the budget of calls or tokens is spent")

// mapReduce is the strategy map-reduce: it answers from each batch of passages
// alone, collapses the partial answers until they fit one prompt, and combines
// them.
func mapReduce(ctx context.Context, w *writing, kept []retrieve.Passage) error {
	kept, batches, packed, err := w.pack(kept, RoleMap, RoleMap, max(1, w.left()-combineCalls))
	if err != nil {
		return err
	}
	m := &mapping{writing: w, role: RoleMap, passages: w.label(ctx, kept, packed), batches: batches}
	if w.stopped {
		return nil
	}
	parts, err := m.mapAll(ctx)
	if err != nil || w.stopped {
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
			return nil, errSpent
		}
		return m.collapse(ctx, groups)
	})
	switch long := (*ReduceError)(nil); {
	case w.stopped:
		return nil
	case errors.Is(err, errSpent):
		return m.joinParts(parts, err)
	case errors.As(err, &long):
		if m.writer.Budget != nil && m.writer.Budget() <= budget.Limit {
			err = errSpent
		} else if m.failed != nil {
			err = m.failed // it is why nothing became shorter
		}
		return m.joinParts(parts, err)
	case err != nil:
		return err
	}
	if m.left() == 0 {
		return m.joinParts(parts, errSpent)
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
	return Budget{Limit: max(m.writer.Longest(), overhead+256), Overhead: overhead}, nil
}

// collapse makes one part of each group. A group whose call fails keeps its
// length.
func (m *mapping) collapse(ctx context.Context, groups [][]Part) ([]Part, error) {
	prompts, tokens := make([]Prompt, len(groups)), 0
	for i, g := range groups {
		var err error
		if prompts[i], err = m.write(RoleCollapse, partSlots(g)); err != nil {
			return nil, err
		}
		tokens += m.size(prompts[i])
	}
	if !m.affords(tokens) {
		return nil, errSpent
	}
	var out []Part
	for i, k := range m.each(ctx, m.model, prompts) {
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
	p, err := m.write(RoleCombine, partSlots(parts))
	switch {
	case err != nil:
		return err
	case !m.affords(m.size(p)):
		return m.joinParts(parts, errSpent)
	}
	m.steps++
	m.made++
	labels := citedBy(parts)
	s := &refineStep{refiner: &refiner{writing: m.writing, steps: m.steps, settled: map[int]bool{}}, last: true, allowed: labels, had: labels}
	s.done = Stepped{Step: m.steps, Role: RoleCombine, Passages: []string{}, Labels: labels, From: stepsOf(parts)}
	s.reply.expects.noAnswer = m.summary == nil
	s.stream(ctx, m.model, p)
	if m.stopped {
		return nil
	}
	if err := canceled(ctx); err != nil && s.failed != nil {
		return err
	}
	m.warnCutPrompt(s.call)
	s.conclude()
	switch {
	case s.streamed:
		return m.endAnswer(s.broken, s.failed, m.lacking)
	case s.done.Reason == noAnswer:
		m.warnMissing()
		return errNoAnswer
	}
	return m.joinParts(parts, cmp.Or(s.failed, errors.New("the model's last reply was empty")))
}

// joinParts emits the partial answers one after the other, since they could not
// be combined.
func (m *mapping) joinParts(parts []Part, why error) error {
	m.say(joined(parts))
	broken := "the parts could not be combined: " + incompleteReason(why)
	if len(parts) == 1 && parts[0].whole && errors.Is(why, errSpent) {
		broken = "" // there was nothing to combine
	}
	return m.endAnswer(broken, why, m.lacking)
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
