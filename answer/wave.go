package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An outcome is what came of one batch.
type outcome struct {
	part Part  // without a text when nothing came of it
	long error // the prompt was longer than the context window
	read bool  // the model has said something
}

// wave asks from each batch alone, and gives what came of each.
func (m *mapping) wave(ctx context.Context, role Role, batches []batch) ([]outcome, error) {
	prompts := make([]Prompt, len(batches))
	for i, b := range batches {
		var err error
		if prompts[i], err = m.write(role, Slots{Evidence: b}); err != nil {
			return nil, err
		}
		if role == RoleRerank {
			prompts[i].MaxTokens = m.reply()
		}
	}
	m.tellShortened()
	drafts := make([]*drafting, len(batches))
	var hear func(int, string) bool
	if role == RoleMap { // a rating is no part of a draft
		for i, b := range batches {
			drafts[i] = m.draft(b.labels())
		}
		hear = func(i int, piece string) bool { return m.hear(drafts[i], piece) }
	}
	var out []outcome
	for i, reply := range m.each(ctx, prompts, hear) {
		b := batches[i]
		m.made++
		m.spent(reply.call)
		if errors.Is(reply.err, ErrContextLength) && !m.shrunk && role == RoleMap {
			m.steps++
			m.stepped(Stepped{Step: m.steps, Role: role, Passages: idsOf(m.kept, b), Labels: b.labels(), Reason: "model_error"})
			out = append(out, outcome{long: reply.err})
			continue
		}
		o := outcome{part: Part{Text: string(reply.text), whole: reply.finish != "length"}}
		reason := ""
		if role == RoleRerank {
			o.part.rate(reply)
		}
		if reply.err == nil && m.summary == nil {
			reason, _ = said{answer: true}.hears(o.part.Text)
			if reason == "" {
				reason, _ = said{answer: true}.hears(string(reply.text))
			}
		}
		var err error
		if o.read, err = m.took(reply, b, role, &o.part, reason, drafts[i]); cmp.Or(canceled(ctx), err) != nil || m.stopped {
			return nil, cmp.Or(canceled(ctx), err)
		}
		out = append(out, o)
	}
	return out, nil
}

// mapped asks from each batch alone, and gives the parts of the answer in the
// order of the passages. Where a batch was too long its halves are asked
// about, where nothing came of it copies of its passages, as far as the budget
// goes, of which some calls are reserved.
func (m *mapping) mapped(ctx context.Context, role Role, reserved int) ([]Part, error) {
	first, err := m.wave(ctx, role, m.batches)
	if err != nil || m.stopped {
		return nil, err
	}
	calls := m.left() - reserved
	if !slices.ContainsFunc(first, func(o outcome) bool { return o.part.Text != "" }) {
		calls = max(calls, min(1, m.left())) // a single part is an answer
	}
	var more []batch
	from := map[int][]int{} // places in more of what is asked again, by place in first
	for i, o := range first {
		b, again := m.batches[i], []batch(nil)
		switch {
		case o.long != nil:
			m.shrink()
			if again = []batch{b}; len(more) < calls {
				again = m.halves(b)
			}
		case !o.read:
			if c := m.copies.of(b); len(c) > 0 {
				again = []batch{c}
			}
		}
		for _, a := range again {
			if len(more) < calls {
				from[i] = append(from[i], len(more))
				more = append(more, a)
			} else if o.long != nil {
				m.stepped(Stepped{Passages: idsOf(m.kept, a), Labels: a.labels(), Reason: "budget"})
				m.failed = m.budgetSpent(len(a), o.long)
				m.asked++
				m.missing++
			}
		}
	}
	second, err := m.wave(ctx, role, more)
	if err != nil || m.stopped {
		return nil, err
	}
	var parts []Part
	for i, o := range first {
		if o.part.Text != "" {
			parts = append(parts, o.part)
		}
		for _, k := range from[i] {
			if second[k].part.Text != "" {
				parts = append(parts, second[k].part)
			}
			// Its copies have taken the place of the whole batch.
			if o.long == nil && second[k].read && len(more[k]) == len(m.batches[i]) {
				m.missing = max(0, m.missing-1)
			}
		}
	}
	m.tellCopies(m.kept, m.copies)
	return parts, nil
}

// shrink takes the context window for half as large, once: the server has said
// that it is smaller than the setting.
func (m *mapping) shrink() {
	if m.shrunk {
		return
	}
	m.shrunk = true
	set := or(m.ContextTokens, defaultContextTokens)
	m.emit(Warning{Message: fmt.Sprintf("the prompt did not fit the model's context window, so the parts were halved: lower --context-tokens (%d now)", set)})
	a := *m.Answerer
	a.ContextTokens = set / 2
	m.Answerer = &a
}

// took makes a part of a reply to a batch, and tells of it. The part has no
// text when nothing came of it, for the reason given or another; read tells
// whether the model has said something all the same.
func (m *mapping) took(reply replied, b batch, role Role, p *Part, reason string, d *drafting) (read bool, err error) {
	m.steps++
	m.asked++
	m.checkRead(reply.call)
	p.Labels = b.labels()
	done := Stepped{Step: m.steps, Role: role, Passages: idsOf(m.kept, b), Labels: p.Labels}
	blank := strings.TrimSpace(p.Text) == ""
	switch {
	case reply.err != nil:
		reason = "model_error"
		m.failed = reply.err
		m.missing++
	case blank:
		reason = "empty_reply"
		if reply.finish == "length" {
			m.failed = asking(role, errWordless)
			m.missing++
		}
	}
	done.Reason, done.Changed = reason, reason == ""
	if reason != "" {
		_, _, done.Invented = sift(string(reply.text), p.Labels)
		*p = Part{}
		m.stepped(done)
		if isUnusable(reply.err) {
			return false, reply.err
		}
		return reason == noAnswer, nil
	}
	if !p.whole {
		m.tellCut()
	}
	p.Text, p.cited, done.Invented = sift(strings.TrimSpace(p.Text), p.Labels)
	p.Tokens = m.partCost(p.Text)
	p.steps = []int{m.steps}
	for _, id := range done.Passages {
		m.use(id)
	}
	m.drafted(d, *p)
	m.stepped(done)
	return true, nil
}

// tellCut warns of a reply, of the present step, that lacks its end.
func (m *mapping) tellCut() {
	m.cut++
	m.emit(Warning{Message: fmt.Sprintf("the reply to step %d was cut at its longest length", m.steps)})
}

func (m *mapping) use(id string) {
	if m.used == nil {
		m.used = map[string]bool{}
	}
	m.used[id] = true
	m.usage.Used = len(m.used)
}
