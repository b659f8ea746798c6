package answer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ibid/ingest"
	"ibid/retrieve"
)

// maxCollapseRounds bounds the rounds in which partial results are collapsed:
// each must shorten them, but a model can take its time.
const maxCollapseRounds = 12

// mapReduce answers from each batch of passages alone, collapses the partial
// answers until they fit one prompt, and combines them.
func (r *run) mapReduce(ctx context.Context, kept []retrieve.Passage) error {
	kept, copies := r.withoutCopies(kept)
	batches, planned, err := r.pack(kept, RoleMap, RoleMap, max(1, r.left()-combining))
	if err != nil {
		return err
	}
	m := &mapping{run: r, batches: batches}
	if m.kept, m.copies = r.label(kept, copies, planned); r.stopped {
		return nil
	}
	parts, err := m.mapped(ctx, RoleMap, combining)
	if err != nil || r.stopped {
		return err
	}
	if len(parts) == 0 {
		return m.nothing()
	}
	budget, err := m.budget()
	if err != nil {
		return err
	}
	parts = m.halved(parts, budget)
	parts, err = budget.Reduce(parts, maxCollapseRounds, func(groups [][]Part) ([]Part, error) {
		if len(groups) > m.left()-combining {
			return nil, errBudget
		}
		return m.collapsed(ctx, groups)
	})
	switch long := (*ReduceError)(nil); {
	case r.stopped:
		return nil
	case errors.Is(err, errBudget):
		return m.apart(parts, err)
	case errors.As(err, &long):
		if m.failed != nil {
			err = m.failed // it is why nothing became shorter
		}
		return m.apart(parts, err)
	case err != nil:
		return err
	}
	if m.left() == 0 {
		return m.apart(parts, errBudget)
	}
	return m.combine(ctx, parts)
}

// combining is how many calls a map-reduce keeps for the last step.
const combining = 1

var errBudget = errors.New("the budget of calls is spent")

// A mapping is the state of the strategies that ask from parts alone.
type mapping struct {
	*run
	kept    []retrieve.Passage
	copies  copies
	batches []batch

	shrunk  bool // the window is taken for half as large
	steps   int
	failed  error // what went wrong last
	asked   int   // batches
	missing int   // batches that could not be read
	cut     int   // replies that were cut
	used    map[string]bool
}

// canceled tells that nobody waits for the answer any more. A time that ran
// out is another matter: what there is by then is the answer.
func canceled(ctx context.Context) error {
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func isUnusable(err error) bool {
	u := unusable(nil)
	return errors.As(err, &u) && u.Unusable()
}

// partFence is what the fence around a part takes in a prompt, in tokens.
const partFence = 30

func (m *mapping) partCost(text string) int { return m.count(text) + partFence }

// budget is that of a prompt which shortens parts or combines them.
func (m *mapping) budget() (Budget, error) {
	overhead := 0
	for _, role := range []Role{RoleCollapse, RoleCombine} {
		n, err := m.overhead(role, Slots{First: len(m.kept)})
		if err != nil {
			return Budget{}, err
		}
		overhead = max(overhead, n)
	}
	limit := m.window() - m.reply()
	return Budget{Limit: max(limit, overhead+256), Overhead: overhead}, nil
}

// halved cuts parts that are too long for a prompt, at the ends of sentences.
func (m *mapping) halved(parts []Part, b Budget) []Part {
	var out []Part
	for _, p := range parts {
		if b.size(p.Tokens) <= b.Limit {
			out = append(out, p)
			continue
		}
		middle, text := 0, p.Text
		for s := range ingest.Sentences(text) {
			if middle = s.End; 2*middle >= len(text) {
				break
			}
		}
		if middle == 0 || middle >= len(text) {
			out = append(out, p)
			continue
		}
		first, second := p, p
		first.Text, second.Text = strings.TrimSpace(text[:middle]), strings.TrimSpace(text[middle:])
		for _, half := range []*Part{&first, &second} {
			half.Text, half.cited, _ = sift(half.Text, p.cited)
			half.Tokens = m.partCost(half.Text)
		}
		out = append(out, m.halved([]Part{first, second}, b)...)
	}
	return out
}

// collapsed makes one part of each group. A group whose call fails is left as
// long as it is.
func (m *mapping) collapsed(ctx context.Context, groups [][]Part) ([]Part, error) {
	prompts := make([]Prompt, len(groups))
	for i, g := range groups {
		var err error
		if prompts[i], err = m.write(RoleCollapse, partSlots(g)); err != nil {
			return nil, err
		}
	}
	drafts := make([]*drafting, len(groups))
	for i, g := range groups {
		drafts[i] = m.draft(citedBy(g))
	}
	var out []Part
	for i, reply := range m.each(ctx, prompts, func(i int, piece string) bool { return m.hear(drafts[i], piece) }) {
		if err := canceled(ctx); err != nil {
			return nil, err
		}
		m.made++
		m.spent(reply.call)
		m.steps++
		shown := citedBy(groups[i])
		p := Part{Labels: labelsOf(groups[i]), steps: []int{m.steps}}
		done := Stepped{Step: m.steps, Role: RoleCollapse, Passages: []string{}, Labels: shown, From: stepsOf(groups[i])}
		text := strings.TrimSpace(string(reply.text))
		switch {
		case reply.err != nil:
			m.failed, done.Reason = reply.err, "model_error"
		case text == "" && reply.finish == "length":
			m.failed, done.Reason = asking(RoleCollapse, errWordless), "empty_reply"
		case text == "":
			done.Reason = "empty_reply"
		}
		m.checkRead(reply.call)
		if done.Reason != "" {
			p.Text, p.cited, p.steps = joined(groups[i]), shown, stepsOf(groups[i])
			_, _, done.Invented = sift(text, shown)
		} else {
			if p.whole = reply.finish != "length"; !p.whole {
				m.tellCut()
			}
			done.Changed = true
			p.Text, p.cited, done.Invented = sift(text, shown)
			done.Lost = without(shown, p.cited)
			m.drafted(drafts[i], p)
		}
		p.Tokens = m.partCost(p.Text)
		if !m.stepped(done) {
			return nil, nil
		}
		out = append(out, p)
	}
	return out, nil
}

// combine makes the answer of the parts. It streams as Text.
func (m *mapping) combine(ctx context.Context, parts []Part) error {
	m.steps++
	m.made++
	shown := citedBy(parts)
	prompt, err := m.write(RoleCombine, partSlots(parts))
	if err != nil {
		return err
	}
	c := m.call(prompt)
	s := newSieve(shown, true)
	reply := listener{said: said{answer: m.summary == nil}}
	first := true
	var failed error
	for piece, err := range c.pieces(ctx, m.Model) {
		if err != nil {
			failed = asking(RoleCombine, err)
			break
		}
		piece, c.enough = reply.hear(piece)
		if c.enough {
			break
		}
		if piece != "" && first {
			first, piece = false, strings.TrimLeft(piece, " \t\r\n")
		}
		if out := s.feed(piece); out != "" && !m.emit(Text{Text: out}) {
			break
		}
	}
	released := reply.released
	m.spent(c)
	if m.stopped {
		return nil
	}
	if err := canceled(ctx); err != nil && failed != nil {
		return err
	}
	m.checkRead(c)
	done := Stepped{Step: m.steps, Role: RoleCombine, Passages: []string{}, Labels: shown, From: stepsOf(parts)}
	if !released {
		_, _, done.Invented = sift(reply.reply.String(), shown)
	}
	switch {
	case failed != nil && !released:
		done.Reason = "model_error"
		m.stepped(done)
		return m.apart(parts, failed)
	case !released && strings.TrimSpace(reply.reply.String()) == "":
		done.Reason = "empty_reply"
		m.stepped(done)
		return m.apart(parts, errors.New("the model's last reply was empty"))
	case reply.end() != "" && !released:
		done.Reason = noAnswer
		m.stepped(done)
		m.tellMissing()
		m.unanswered(noAnswer, m.kept)
		return nil
	case !released:
		m.emit(Text{Text: s.feed(strings.TrimLeft(reply.reply.String(), " \t\r\n"))})
	}
	if out := s.close(); out != "" {
		m.emit(Text{Text: out})
	}
	done.Changed, done.Invented, done.Lost = true, s.invented, without(shown, s.cited)
	if failed != nil {
		done.Changed, done.Reason = false, "model_error"
	}
	m.stepped(done)
	switch {
	case failed != nil:
		m.emit(Incomplete{Reason: incompleteReason(failed)})
	case c.finish == "length":
		m.emit(Incomplete{Reason: reachedLength})
	default:
		m.tellMissing()
	}
	m.finish()
	return nil
}

// apart gives the partial answers one after the other, where they could not
// be combined.
func (m *mapping) apart(parts []Part, why error) error {
	m.emit(Text{Text: joined(parts)})
	if m.summary == nil && m.missing > 0 {
		m.tellMissed(m.failed)
	}
	if len(parts) > 1 || !parts[0].whole || !errors.Is(why, errBudget) { // else there was nothing to combine
		m.emit(Incomplete{Reason: "the parts could not be combined: " + incompleteReason(why)})
	}
	m.finish()
	return nil
}

// nothing ends a run in which no call gave anything to go on with.
func (m *mapping) nothing() error {
	if m.stopped {
		return nil
	}
	if m.failed != nil && (m.missing == m.asked || m.summary != nil) {
		return m.failed
	}
	if m.summary != nil {
		return errors.New("the model gave nothing but empty replies: try again, or another model")
	}
	m.tellMissing()
	m.unanswered(noAnswer, m.kept)
	return nil
}

// tellMissing says what the answer lacks: a summary without a part of the text
// is incomplete, an answer only poorer.
func (m *mapping) tellMissing() {
	if m.summary == nil {
		if m.missing > 0 {
			m.tellMissed(m.failed)
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

// partSlots are the slots of a prompt over parts.
func partSlots(parts []Part) Slots {
	s := Slots{Parts: make([]string, len(parts))}
	for i, p := range parts {
		s.Parts[i] = p.Text
	}
	for _, labels := range [][]int{citedBy(parts), labelsOf(parts)} {
		if len(labels) > 0 && s.First == 0 {
			s.First = labels[0]
		}
	}
	return s
}

// citedBy gives the labels that stand in the parts' texts.
func citedBy(parts []Part) []int {
	texts := make([]Part, len(parts))
	for i, p := range parts {
		texts[i].Labels = p.cited
	}
	return append([]int{}, labelsOf(texts)...)
}

func stepsOf(parts []Part) []int {
	var out []int
	for _, p := range parts {
		out = append(out, without(p.steps, out)...)
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

// idsOf gives the chunk ids of a batch of the kept passages.
func idsOf(kept []retrieve.Passage, b batch) []string {
	out := make([]string, len(b))
	for i, e := range b {
		out[i] = kept[e.label-1].ID
	}
	return out
}
