package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ibid/answer/prompt"
	"ibid/ingest"
	"ibid/retrieve"
)

// A mapping is the state of the strategies that make a partial answer from each
// batch of passages alone: map-reduce and map-rerank.
type mapping struct {
	*asking
	passages []retrieve.Passage
	batches  []prompt.Batch

	shrunk  bool // the context window is halved
	steps   int
	failed  error // what went wrong last
	asked   int   // batches
	missing int   // batches that could not be read
	cut     int   // replies that were cut
	used    map[string]bool
}

// An outcome is the result of one batch.
type outcome struct {
	part Part  // without a text when the batch gave nothing
	long error // the prompt was longer than the context window
}

// canceled returns the error of a context that was canceled, since nobody waits
// for the answer then. After a deadline, what exists is the answer.
func canceled(ctx context.Context) error {
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// mapAll makes a part of each batch, and returns the parts in the order of the
// passages. Where a batch was too long, its halves are tried, as far as the
// budget allows; reserved calls of it are left.
func (m *mapping) mapAll(ctx context.Context, role Role, reserved int) ([]Part, error) {
	first, err := m.mapBatches(ctx, role, m.batches)
	if err != nil || m.stopped {
		return nil, err
	}
	calls := m.left() - reserved
	if !slices.ContainsFunc(first, func(o outcome) bool { return o.part.Text != "" }) {
		calls = max(calls, min(1, m.left())) // a single part is an answer
	}
	var more []prompt.Batch
	halvesOf := map[int][]int{} // indices in more, by index in first
	for i, o := range first {
		if o.long == nil {
			continue
		}
		m.shrink()
		halves := []prompt.Batch{m.batches[i]}
		if len(more) < calls {
			halves = m.writer.Halves(m.batches[i])
		}
		for _, half := range halves {
			if len(more) < calls {
				halvesOf[i] = append(halvesOf[i], len(more))
				more = append(more, half)
				continue
			}
			m.emitStep(Stepped{Passages: idsOf(m.passages, half), Labels: half.Labels(), Reason: "budget"})
			m.failed = m.errBudget(len(half), o.long)
			m.asked++
			m.missing++
		}
	}
	second, err := m.mapBatches(ctx, role, more)
	if err != nil || m.stopped {
		return nil, err
	}
	var parts []Part
	for i, o := range first {
		all := []outcome{o}
		for _, k := range halvesOf[i] {
			all = append(all, second[k])
		}
		for _, o := range all {
			if o.part.Text != "" {
				parts = append(parts, o.part)
			}
		}
	}
	return parts, nil
}

// mapBatches makes the calls of some batches, and returns the outcome of each.
func (m *mapping) mapBatches(ctx context.Context, role Role, batches []prompt.Batch) ([]outcome, error) {
	prompts := make([]Prompt, len(batches))
	for i, b := range batches {
		var err error
		if prompts[i], err = m.write(role, prompt.Slots{Evidence: b}); err != nil {
			return nil, err
		}
		if role == RoleRerank {
			prompts[i].MaxTokens = m.writer.Reply()
		}
	}
	m.warnShortened()
	var out []outcome
	for i, k := range m.each(ctx, m.Model, prompts) {
		b := batches[i]
		m.made++
		m.addUsage(k.call)
		if errors.Is(k.err, ErrContextLength) && !m.shrunk && role == RoleMap {
			m.steps++
			m.emitStep(Stepped{Step: m.steps, Role: role, Passages: idsOf(m.passages, b), Labels: b.Labels(), Reason: modelError})
			out = append(out, outcome{long: k.err})
			continue
		}
		part, err := m.makePart(k, b)
		if err := cmp.Or(canceled(ctx), err); err != nil || m.stopped {
			return nil, err
		}
		out = append(out, outcome{part: part})
	}
	return out, nil
}

// makePart makes a part of the reply to a batch, and reports the step. The part
// has no text where the reply is of no use.
func (m *mapping) makePart(k endedCall, b prompt.Batch) (Part, error) {
	m.steps++
	m.asked++
	m.warnCutPrompt(k.call)
	role, reply := k.prompt.Role, string(k.text)
	p := Part{Text: reply, whole: k.finish != "length", Labels: b.Labels()}
	if role == RoleRerank {
		p.rate(reply)
	}
	done := Stepped{Step: m.steps, Role: role, Passages: idsOf(m.passages, b), Labels: p.Labels}
	switch {
	case k.err != nil:
		done.Reason = modelError
		m.failed = k.err
		m.missing++
	case strings.TrimSpace(p.Text) == "":
		done.Reason = emptyReply
		if k.finish == "length" {
			m.failed = callError(role, errWordless)
			m.missing++
		}
	case m.summary == nil:
		expects := nonAnswers{noAnswer: true}
		if done.Reason, _ = expects.reason(p.Text); done.Reason == "" {
			done.Reason, _ = expects.reason(reply)
		}
	}
	if done.Reason != "" {
		_, _, done.Invented = sift(reply, p.Labels)
		m.emitStep(done)
		if isUnusable(k.err) {
			return Part{}, k.err
		}
		return Part{}, nil
	}
	if !p.whole {
		m.warnCutReply()
	}
	p.Text, p.cited, done.Invented = sift(strings.TrimSpace(p.Text), p.Labels)
	p.Tokens = m.partCost(p.Text)
	p.steps = []int{m.steps}
	m.use(done.Passages)
	m.emit(Draft{Step: m.steps, Text: p.Text, Labels: p.cited, Final: true})
	done.Changed = true
	m.emitStep(done)
	return p, nil
}

// shrink halves the context window, once: the server has said that it is smaller
// than the setting.
func (m *mapping) shrink() {
	if m.shrunk {
		return
	}
	m.shrunk = true
	m.warn("the prompt did not fit the model's context window, so the parts were halved: lower --context-tokens (%d now)",
		m.writer.ContextTokens)
	m.writer.ContextTokens /= 2
}

// warnCutReply warns that the reply of the current step lacks its end.
func (m *mapping) warnCutReply() {
	m.cut++
	m.warn("the reply to step %d was cut at its longest length", m.steps)
}

// use counts the passages that went into the answer.
func (m *mapping) use(passages []string) {
	if m.used == nil {
		m.used = map[string]bool{}
	}
	for _, id := range passages {
		m.used[id] = true
	}
	m.usage.Used = len(m.used)
}

// partFence is the size of the fence around a part in a prompt, in tokens.
const partFence = 30

func (m *mapping) partCost(text string) int { return m.writer.Count(text) + partFence }

// halve cuts parts that are too long for a prompt, at the ends of sentences.
func (m *mapping) halve(parts []Part, b Budget) []Part {
	var out []Part
	for _, p := range parts {
		if b.size(p.Tokens) <= b.Limit {
			out = append(out, p)
			continue
		}
		middle := 0
		for s := range ingest.Sentences(p.Text) {
			if middle = s.End; 2*middle >= len(p.Text) {
				break
			}
		}
		if middle == 0 || middle >= len(p.Text) {
			out = append(out, p)
			continue
		}
		halves := []Part{p, p}
		for i, text := range []string{p.Text[:middle], p.Text[middle:]} {
			half := &halves[i]
			half.Text, half.cited, _ = sift(strings.TrimSpace(text), p.cited)
			half.Tokens = m.partCost(half.Text)
		}
		out = append(out, m.halve(halves, b)...)
	}
	return out
}

// endEmpty ends the stream when no call gave a part.
func (m *mapping) endEmpty() error {
	switch {
	case m.stopped:
		return nil
	case m.failed != nil && (m.missing == m.asked || m.summary != nil):
		return m.failed
	case m.summary != nil:
		return errNothingButEmpty
	}
	m.reportMissing()
	m.unanswered(noAnswer, m.passages)
	return nil
}

var errNothingButEmpty = errors.New("the model gave nothing but empty replies: try again, or another model")

// reportMissing says what the answer lacks: a summary without a part of the text
// is incomplete, an answer gets a warning.
func (m *mapping) reportMissing() {
	if m.summary == nil {
		if m.missing > 0 {
			m.warnMissed(m.failed)
		}
		return
	}
	var lacks []string
	if m.missing > 0 {
		lacks = append(lacks, fmt.Sprintf("%d of %d parts could not be read: %s", m.missing, m.asked, incompleteReason(m.failed)))
	}
	if m.cut > 0 {
		lacks = append(lacks, fmt.Sprintf("%d of the replies that it is made of were cut at their longest length", m.cut))
	}
	if ends := m.lacksEnds(); ends != "" {
		lacks = append(lacks, ends)
	}
	if len(lacks) > 0 {
		m.emit(Incomplete{Reason: strings.Join(lacks, "; ")})
	}
}
