package answer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ibid/answer/prompt"
	"ibid/answer/replies"
	"ibid/retrieve"
)

// A mapping is the state of map-reduce and map-rerank, the strategies that make a
// separate partial answer from each batch of passages.
type mapping struct {
	*writing
	role     Role // the role of the calls that make parts
	passages []retrieve.Passage
	batches  []prompt.Batch
	reply    int         // the most tokens of a reply; 0 for any
	readMore func(*Part) // reads the score from the reply in a part; nil if replies are not scored

	steps   int
	failed  error // the last error
	asked   int   // batches whose calls have ended
	missing int   // batches whose calls failed
	cut     int   // replies that were cut
	used    map[string]bool
}

// wasCanceled returns the error of a context that was canceled, since nobody waits for
// the answer any more. After a deadline it returns nil, since the text so far is then the
// answer.
func wasCanceled(ctx context.Context) error {
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// makeParts makes a part from each batch, in the order of the passages. It returns an error if
// there is no part or a prompt was too long.
func (m *mapping) makeParts(ctx context.Context) (parts []Part, err error) {
	if m.stopped {
		return nil, nil
	}
	var prompts []Prompt
	tokens, combine, err := 0, 0, error(nil)
	if m.role == RoleMap {
		if combine, err = m.writer.Overhead(prompt.Combine, len(m.passages)); err != nil {
			return nil, err
		}
	}
	for i, b := range m.batches {
		p, err := m.writePrompt(m.role, prompt.Slots{Evidence: b})
		if err != nil {
			return nil, err
		}
		tokens += m.promptSize(p)
		if i == 0 && !m.canAfford(tokens) {
			return nil, prompt.ErrBudget
		}
		if combine > 0 { // the prompt that combines the parts will have this part too
			combine += m.writer.Reply()/4 + partFence
		}
		if i > 0 && !m.canAfford(tokens+combine) {
			unread := slices.Concat(m.batches[i:]...)
			m.emitStep(Stepped{Passages: idsOf(m.passages, unread), Labels: unread.Labels(), Reason: noRoom})
			break
		}
		p.MaxTokens = m.reply
		prompts = append(prompts, p)
	}
	m.warnShortened()
	var long error // a prompt was too long
	for i, k := range m.callAll(ctx, m.Model, prompts) {
		if errors.Is(k.err, ErrContextLength) {
			long = k.err
		}
		m.asked++
		b := m.batches[i]
		part, failed := m.readPart(k, Stepped{Passages: idsOf(m.passages, b), Labels: b.Labels()})
		if failed {
			m.missing++
		}
		if err := wasCanceled(ctx); err != nil || m.stopped {
			return nil, err
		}
		if part.Text != "" {
			part.Labels = b.Labels()
			parts = append(parts, part)
		} else if isUnusable(k.err) {
			return nil, k.err
		}
	}
	if long == nil && len(parts) == 0 {
		return nil, m.emptyError()
	}
	return parts, long
}

// readPart reads the part in a reply and emits the step. done has the step's passages and
// labels. The part has no text if the call failed or its reply has no answer.
func (m *mapping) readPart(k *call, done Stepped) (p Part, failed bool) {
	m.steps++
	if k.made {
		m.callsMade++
	}
	m.addUsage(k)
	m.warnCutPrompt(k)
	reply := string(k.text)
	p = Part{Text: reply, whole: k.finish != "length", steps: []int{m.steps}}
	done.Step, done.Role = m.steps, k.prompt.Role
	if m.readMore != nil {
		m.readMore(&p)
	}
	switch {
	case k.err != nil:
		done.Reason, m.failed, failed = modelError, k.err, true
	case strings.TrimSpace(p.Text) == "":
		done.Reason = emptyReply
		if err := k.wordlessError(p.Text); err != nil {
			m.failed, failed = err, true
		}
	case m.summary == nil && done.Role != RoleCollapse:
		expects := replies.NonAnswers{NoAnswer: true}
		if done.Reason, _ = expects.Reason(p.Text); done.Reason == "" {
			done.Reason, _ = expects.Reason(reply)
		}
	}
	if done.Changed = done.Reason == ""; !done.Changed {
		_, _, done.Invented = replies.Sift(reply, done.Labels)
		m.emitStep(done)
		return Part{}, failed
	}
	if !p.whole {
		m.cut++
		m.warn("the reply to step %d was cut off at the maximum length", m.steps)
	}
	p.Text, p.cited, done.Invented = replies.Sift(strings.TrimSpace(p.Text), done.Labels)
	p.Tokens = m.partCost(p.Text)
	if done.From != nil {
		done.Lost = difference(done.Labels, p.cited)
	}
	for _, id := range done.Passages {
		m.used[id] = true
	}
	m.usage.Used = len(m.used)
	m.emit(Draft{Step: m.steps, Text: p.Text, Labels: p.cited, Final: true})
	m.emitStep(done)
	return p, false
}

// partFence is the number of tokens in the fence around a part.
const partFence = 30

func (m *mapping) partCost(text string) int { return m.writer.Count(text) + partFence }

// emptyError returns the error if no part could be made.
func (m *mapping) emptyError() error {
	switch {
	case m.failed != nil && (m.missing == m.asked || m.summary != nil):
		return m.failed
	case m.summary != nil:
		return errEmpty
	}
	m.warnMissing()
	return errNoAnswer
}

// warnMissing warns if calls for parts failed.
func (m *mapping) warnMissing() {
	if m.missing > 0 {
		m.warnMissed(m.failed)
	}
}

// missingParts says what the combined text lacks: parts, the ends of parts, and in a summary
// the ends of passages.
func (m *mapping) missingParts() string {
	var lacks []string
	if m.missing > 0 {
		lacks = append(lacks, fmt.Sprintf("%d of %d parts could not be read: %s", m.missing, m.asked, incompleteReason(m.failed)))
	}
	if m.cut > 0 {
		lacks = append(lacks, fmt.Sprintf("%d of the replies that it is made of were cut off at the maximum length", m.cut))
	}
	if ends := m.describeShortened(); ends != "" && m.summary != nil {
		lacks = append(lacks, ends)
	}
	return strings.Join(lacks, "; ")
}
