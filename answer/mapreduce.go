package answer

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"ibid/answer/prompt"
	"ibid/retrieve"
)

// maxCollapseRounds limits the rounds of collapsing, since a model may shorten the
// parts only a little in each.
const maxCollapseRounds = 12

// combineCalls is how many calls a map-reduce reserves for the last step.
const combineCalls = 1

var errSpent = errors.New("the budget of calls or tokens is spent")

// mapReduce is the strategy map-reduce: it answers from each batch of passages
// alone, collapses the partial answers until they fit one prompt, and combines
// them.
func mapReduce(ctx context.Context, w *writing, kept []retrieve.Passage) error {
	most := max(1, w.callsLeft()-combineCalls)
	kept, batches, packed, err := w.packPassages(kept, RoleMap, RoleMap, most)
	if err != nil {
		return err
	}
	m := &mapping{writing: w, role: RoleMap, passages: w.labelPassages(ctx, kept, packed, skipReason(batches, most)), batches: batches,
		used: map[string]bool{}}
	parts, err := m.makeParts(ctx)
	if err != nil || w.stopped {
		return err
	}
	budget, err := m.budget()
	if err != nil {
		return err
	}
	parts, err = budget.Reduce(parts, maxCollapseRounds, func(groups [][]Part) ([]Part, error) {
		if len(groups) > m.callsLeft()-combineCalls {
			return nil, errSpent
		}
		return m.collapseGroups(ctx, groups)
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
			err = m.failed // why nothing became shorter
		}
		return m.joinParts(parts, err)
	case err != nil:
		return err
	}
	if m.callsLeft() == 0 {
		return m.joinParts(parts, errSpent)
	}
	return m.combineParts(ctx, parts)
}

// budget returns the budget of the prompts that collapse or combine parts.
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

// collapseGroups makes one part from each group. If a group's call fails, its parts are
// joined unshortened.
func (m *mapping) collapseGroups(ctx context.Context, groups [][]Part) ([]Part, error) {
	prompts, tokens := make([]Prompt, len(groups)), 0
	for i, g := range groups {
		var err error
		if prompts[i], err = m.writePrompt(RoleCollapse, partSlots(g)); err != nil {
			return nil, err
		}
		tokens += m.promptSize(prompts[i])
	}
	if !m.canAfford(tokens) {
		return nil, errSpent
	}
	var out []Part
	for i, k := range m.callAll(ctx, m.Model, prompts) {
		if err := wasCanceled(ctx); err != nil {
			return nil, err
		}
		p, _ := m.readPart(k, Stepped{Passages: []string{}, Labels: citedBy(groups[i]), From: stepsOf(groups[i])})
		if p.Text == "" {
			p.Text, p.cited, p.steps = joinTexts(groups[i]), citedBy(groups[i]), stepsOf(groups[i])
			p.Tokens = m.partCost(p.Text)
		}
		out = append(out, p)
		if m.stopped {
			return nil, nil
		}
	}
	return out, nil
}

// combineParts makes the answer from the parts and emits it as Text.
func (m *mapping) combineParts(ctx context.Context, parts []Part) error {
	p, err := m.writePrompt(RoleCombine, partSlots(parts))
	switch {
	case err != nil:
		return err
	case !m.canAfford(m.promptSize(p)):
		return m.joinParts(parts, errSpent)
	}
	m.steps++
	m.callsMade++
	labels := citedBy(parts)
	s := &refineStep{refiner: &refiner{writing: m.writing, steps: m.steps, settled: map[int]bool{}},
		last: true, allowed: labels, previousLabels: labels}
	s.result = Stepped{Step: m.steps, Role: RoleCombine, Passages: []string{}, Labels: labels, From: stepsOf(parts)}
	s.reply.Expects.NoAnswer = m.summary == nil
	s.streamReply(ctx, m.Model, p)
	if m.stopped {
		return nil
	}
	if err := wasCanceled(ctx); err != nil && s.failed != nil {
		return err
	}
	m.warnCutPrompt(s.call)
	s.concludeStep()
	switch {
	case s.streamed:
		return m.endAnswer(s.cutReason, s.failed, m.missingParts)
	case s.result.Reason == noAnswer:
		m.warnMissing()
		return errNoAnswer
	}
	return m.joinParts(parts, cmp.Or(s.failed, errors.New("the model's last reply was empty")))
}

// joinParts emits the partial answers one after the other, since they could not
// be combined.
func (m *mapping) joinParts(parts []Part, why error) error {
	m.addText(joinTexts(parts))
	broken := "the parts could not be combined: " + incompleteReason(why)
	if len(parts) == 1 && parts[0].whole && errors.Is(why, errSpent) {
		broken = "" // there was nothing to combine
	}
	return m.endAnswer(broken, why, m.missingParts)
}

// partSlots returns the slots of a prompt that shows parts.
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

// citedBy returns the labels in the parts' texts, stepsOf the steps that made the
// parts, and labelsOf the labels that the parts are based on, without duplicates.
func citedBy(parts []Part) []int  { return union(parts, func(p Part) []int { return p.cited }) }
func stepsOf(parts []Part) []int  { return union(parts, func(p Part) []int { return p.steps }) }
func labelsOf(parts []Part) []int { return union(parts, func(p Part) []int { return p.Labels }) }

func union(parts []Part, of func(Part) []int) []int {
	out := []int{}
	for _, p := range parts {
		out = append(out, difference(of(p), out)...)
	}
	return out
}

func joinTexts(parts []Part) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text
	}
	return strings.Join(texts, "\n\n")
}
