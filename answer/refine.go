package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ibid/answer/prompt"
	"ibid/answer/replies"
	"ibid/cite/marker"
	"ibid/retrieve"
)

// refineAll is the strategy refine: as many steps as the budget allows, except the
// call that is reserved for lookWider.
func refineAll(ctx context.Context, w *writing, kept []retrieve.Passage) error {
	return refine(ctx, w, kept, w.firstCalls())
}

// stuff is the strategy stuff, which is refine with one step.
func stuff(ctx context.Context, w *writing, kept []retrieve.Passage) error {
	return refine(ctx, w, kept, 1)
}

// refine makes an answer from the kept passages in at most the given number of steps:
// a first draft from the first batch, improved with each further batch. Drafts are
// emitted as Draft, the last step as Text.
func refine(ctx context.Context, w *writing, kept []retrieve.Passage, most int) error {
	kept, batches, packed, err := w.packPassages(kept, RoleAnswer, RoleRefine, most)
	if err != nil {
		return err
	}
	l := &refiner{writing: w, passages: w.labelPassages(ctx, kept, packed, skipReason(batches, most)), batches: batches,
		settled: map[int]bool{}}
	for len(l.batches) > 0 && !w.stopped {
		b := l.batches[0]
		why, err := l.obstacle(b)
		if err != nil {
			return err
		}
		if why != "" {
			l.skipBatches(why, l.batches)
			break
		}
		w.warnShortened()
		l.batches = l.batches[1:]
		if err := l.makeStep(ctx, b); err != nil || w.stopped {
			return err
		}
		if err := wasCanceled(ctx); err != nil {
			return err
		}
		if l.streamed {
			break
		}
		if w.summary != nil && isUnusable(l.failed) {
			l.unreadErr = l.failed
			break // all further steps would fail
		}
		if l.brokenOff && !l.repeated && len(l.batches) < l.callsLeft() && worthRetrying(ctx, l.failed) {
			l.repeated = true
			l.batches = slices.Insert(l.batches, 0, b)
			continue
		}
		l.unreadErr = cmp.Or(l.unreadErr, l.failed)
	}
	return l.endRefining()
}

// obstacle returns the reason not to make a step with a batch, or "" if the step can
// be made. If the first step cannot be made, it returns an error.
func (l *refiner) obstacle(b prompt.Batch) (string, error) {
	if l.steps == 0 && !l.repeated {
		return "", nil // it was packed to fit the budget
	}
	role, draft := RoleRefine, l.writer.Count(l.draft.text)
	if l.draft.text == "" {
		role = RoleAnswer
	}
	p, err := l.writePrompt(role, prompt.Slots{Evidence: b, Draft: l.draft.text})
	switch size := l.promptSize(p); {
	case err != nil:
		return "", err
	case l.steps == 0 && !l.canAfford(size):
		return "", prompt.ErrBudget
	case l.steps == 0:
	case draft > 0 && (l.MaxDraftTokens > 0 && draft > l.MaxDraftTokens || size+draft > l.writer.Window()):
		return "answer_too_long", nil
	case !l.canAfford(size):
		return noRoom, nil
	}
	return "", nil
}

// A refiner is the state of the refine loop between its steps.
type refiner struct {
	*writing
	passages []retrieve.Passage
	batches  []prompt.Batch // still to come

	steps      int
	draftSteps []int   // the step that made the draft
	draft      draft   // the answer so far
	earlier    []draft // replaced drafts
	read       int     // steps whose whole reply was read
	failed     error   // the last step's error
	unreadErr  error   // why a step's evidence was not read
	cited      []int   // labels in any draft

	settled         map[int]bool // labels of passages that are in the answer or not needed in it
	unsettledReason string       // the Reason of the last step that settled no passages

	brokenOff bool   // the last step's reply broke off, and none of its text was shown as Text
	repeated  bool   // a broken-off step was repeated
	streamed  bool   // the last step's reply was emitted as Text
	cutReason string // why the end of the answer is missing
}

// A draft is a version of the answer.
type draft struct {
	text     string // empty before the first draft
	cut      bool   // its end is missing
	passages int    // passages in the batches that it was made from
}

func (l *refiner) skipBatches(reason string, batches []prompt.Batch) {
	unread := slices.Concat(batches...)
	l.endStep(Stepped{Passages: idsOf(l.passages, unread), Labels: unread.Labels(), Reason: reason})
}

// endStep emits the end of a step and notes whether its passages are settled.
func (l *refiner) endStep(s Stepped) {
	if s.Changed || s.Reason == sameText || s.Reason == metaRemark {
		for _, label := range s.Labels {
			l.settled[label] = true
		}
	} else {
		l.unsettledReason = s.Reason
	}
	l.emitStep(s)
}

// makeStep asks for a draft, or for a better one, from one batch.
func (l *refiner) makeStep(ctx context.Context, b prompt.Batch) error {
	l.steps++
	l.callsMade++
	s := &refineStep{refiner: l, last: len(l.batches) == 0}
	s.result = Stepped{Step: l.steps, Role: RoleAnswer, Passages: idsOf(l.passages, b), Labels: b.Labels(), From: l.draftSteps}
	if s.asRevision = s.last && l.draft.text != "" && !l.draft.cut; s.asRevision {
		l.revised = &revised{step: l.steps}
	}
	model := l.Model
	if l.draft.text != "" {
		s.result.Role, model = RoleRefine, cmp.Or(l.RefineModel, l.Model)
	}
	s.reply.Expects = replies.NonAnswers{NoAnswer: true, NoChange: l.draft.text != ""}
	s.allowed = append(b.Labels(), l.cited...)
	s.previousLabels = marker.Labels(l.draft.text, replies.HighestLabel(s.allowed))
	p, err := l.writePrompt(s.result.Role, prompt.Slots{Evidence: b, Draft: l.draft.text})
	if err != nil {
		return err
	}
	s.streamReply(ctx, model, p)
	if l.stopped {
		return nil
	}
	l.warnCutPrompt(s.call)
	s.concludeStep()
	l.brokenOff = !l.streamed && s.call.isBrokenOff(l.failed)
	if l.draft.text == "" && !l.streamed && (isUnusable(l.failed) || errors.Is(l.failed, ErrContextLength)) {
		return l.failed // further steps are useless
	}
	return nil
}

// A refineStep is one step of the refine loop.
type refineStep struct {
	*refiner
	result         Stepped // how it ended
	last           bool    // no batch follows, so the reply is the answer
	asRevision     bool    // a whole draft exists, so the last reply is a revision until it is whole
	allowed        []int   // labels that the reply may cite
	previousLabels []int   // labels of the previous draft
	call           *call
	reply          replies.Held
}

// streamReply makes the call and shows the reply while it streams.
func (s *refineStep) streamReply(ctx context.Context, m Model, p Prompt) {
	out := replies.NewSieve(s.allowed, true)
	out.Verbatim = true
	s.call = s.refiner.newCall(p)
	s.failed = s.call.showReply(ctx, m, &s.reply, func(text string) bool { return s.showPiece(out.Add(text)) })
	if s.reply.Released && !s.stopped {
		s.showPiece(out.End())
	}
	s.addUsage(s.call)
}

// showPiece emits the next piece of the reply, as Draft unless the step is the last.
func (s *refineStep) showPiece(piece string) bool {
	switch {
	case piece == "":
		return true
	case s.last:
		return s.addText(piece)
	}
	return s.emit(Draft{Step: s.steps, Text: piece})
}

// readReply returns the reply without invented labels, and its labels. A reply without a
// word counts as failed.
func (s *refineStep) readReply() (text string, labels []int) {
	text = s.reply.Text.String()
	labels = marker.Labels(text, replies.HighestLabel(s.allowed))
	if len(difference(labels, s.allowed)) > 0 {
		text, labels, s.result.Invented = replies.Sift(text, s.allowed)
	}
	if s.failed == nil {
		s.failed = s.call.wordlessError(text)
	}
	return text, labels
}

// concludeStep makes the reply the new draft, or keeps the old one.
func (s *refineStep) concludeStep() {
	text, labels := s.readReply()
	lost := difference(s.previousLabels, labels)
	if s.failed == nil {
		s.read++
	}
	shown := s.reply.Released && s.last && !s.asRevision // as Text, which is final
	if shown && s.call.isBrokenOff(s.failed) && !s.repeated && s.callsLeft() > 0 && s.restartProof() {
		shown = false
	}
	if shown && s.failed != nil {
		s.streamed, s.cutReason = true, incompleteReason(s.failed)
		s.draft.passages += len(s.result.Passages)
		s.result.Reason, s.result.Lost = modelError, lost
		s.endStep(s.result)
		return
	}
	whole := s.failed == nil && s.call.finish != "length"
	s.result.Reason = s.unchangedReason(text, whole, shown)
	if s.result.Changed = s.result.Reason == ""; s.result.Changed {
		if s.draft.text != "" {
			s.earlier = append(s.earlier, s.draft)
		}
		s.result.Lost, s.draft.cut = lost, !whole
		if !s.useReply(text, labels) {
			return
		}
	}
	// A reply of only invented labels has shown nothing.
	s.streamed = s.last && (shown && s.result.Reason != emptyReply || s.result.Changed)
	if s.asRevision {
		s.streamed = s.acceptRevision(s.streamed || s.reply.Released && s.result.Reason == sameText)
	}
	if s.streamed && !whole {
		s.cutReason = reachedLength
	}
	if s.streamed && s.proof != nil {
		s.proof.step = &s.result // emitted when its last statement is proved
		return
	}
	s.endStep(s.result)
}

// useReply makes text the draft, and reports whether to continue.
func (s *refineStep) useReply(text string, labels []int) bool {
	if !s.reply.Released && !s.showPiece(text) {
		return false
	}
	s.draftSteps = []int{s.steps}
	s.cited = append(s.cited, labels...)
	if !s.last {
		s.emit(Draft{Step: s.steps, Labels: labels, Final: true})
	}
	s.draft.text = text
	s.draft.passages += len(s.result.Passages)
	return true
}

// unchangedReason returns the reason to keep the old draft, or "" if the reply is the
// new one.
func (s *refineStep) unchangedReason(text string, whole, shown bool) string {
	switch {
	case strings.TrimSpace(text) == "" && (s.failed == nil || isWordless(s.failed)):
		return emptyReply
	case s.failed != nil:
		return modelError
	case !shown && s.reply.End() != "":
		return s.reply.End()
	case text == s.draft.text:
		return sameText
	case !whole && s.draft.text != "" && !shown:
		return "cut"
	}
	return ""
}

func (l *refiner) emitDraft() {
	l.usage.Used = l.draft.passages
	l.addText(l.draft.text)
	if l.draft.cut {
		l.cutReason = reachedLength
	}
}

// endRefining emits the answer, unless the last step has done so. If the proof drops all of it, the
// previous draft is proved and emitted.
func (l *refiner) endRefining() error {
	l.usage.Used = l.draft.passages
	switch {
	case l.stopped:
		return nil
	case l.streamed:
	case l.draft.text != "":
		l.emitDraft()
	case l.unreadErr != nil && l.read == 0:
		return l.unreadErr
	case l.summary != nil:
		return errEmpty
	default:
		l.warnMissed(l.unreadErr)
		return errNoAnswer
	}
	for p := l.proof; ; {
		err := l.endAnswer(l.cutReason, l.failed, func() string {
			if l.summary != nil {
				return l.missingParts()
			}
			l.warnMissed(l.unreadErr)
			return ""
		})
		n := len(l.earlier) - 1
		if err == nil || p == nil || n < 0 || wasCanceled(p.ctx) != nil {
			return err
		}
		l.draft, l.earlier, l.cutReason, l.failed = l.earlier[n], l.earlier[:n], "", nil
		l.beginProof(p.ctx, l.passages)
		l.emitDraft()
	}
}

// missingParts says which parts of the text the summary lacks.
func (l *refiner) missingParts() string {
	n := len(l.passages) - len(l.settled)
	if n == 0 {
		return l.describeShortened()
	}
	why := "calls to the model failed or gave nothing (" + l.unsettledReason + ")"
	if l.unsettledReason == "answer_too_long" {
		why = "the summary has grown too long for the context window: ask for fewer words, raise --context-tokens, " +
			"or use the strategy map-reduce"
	}
	return fmt.Sprintf("%d of %d passages are not in it: %s", n, len(l.passages), why)
}

// idsOf returns the chunk ids of a batch of labelled passages.
func idsOf(labelled []retrieve.Passage, b prompt.Batch) []string {
	out := make([]string, len(b))
	for i, e := range b {
		out[i] = labelled[e.Label()-1].ID
	}
	return out
}

// errWordless is the error for a reply that reached its length limit with only
// thoughts, or before a statement with a source.
var errWordless = errors.New("the reply reached the maximum length before anything in it could be shown: " +
	"have the model think less, or raise the length that its server allows")

var errEmpty = errors.New("the model's reply is empty: use another model")

func isWordless(err error) bool { return errors.Is(err, errWordless) || errors.Is(err, errEmpty) }

const reachedLength = "the model's reply reached the maximum length"

func incompleteReason(err error) string {
	if limit := passedLimit(err); limit != "" {
		return limit
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the time for the answer ran out"
	}
	return err.Error()
}

func difference(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(n int) bool { return slices.Contains(b, n) })
}
