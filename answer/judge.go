package answer

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"ibid/answer/prompt"
	"ibid/retrieve"
)

// Trust says how far the models of an [Answerer] are believed, from what they were
// found to do. The zero Trust believes them.
type Trust struct {
	// NoJudge says that a verdict is worth little more than a coin's: none is asked for.
	NoJudge bool
	// Ratio is how many times as likely a no is about what is wrong as about what is
	// right, where that was measured; 0 means [verdictRatio], which is also the most.
	Ratio float64
	// OnePassage says that a verdict depends on the order of the passages: one is shown.
	OnePassage bool
	// Distrust says why the answers are not believed: sentences are quoted, unless
	// NoFallback is set. Empty where they are believed.
	Distrust string
}

// verdictRatio is the ratio of a judge that is wrong in one verdict of ten. No single
// no overrules a chance above .9, then.
const verdictRatio = 9

// chanceAfterNo is the chance of being on topic after a judge's no: its odds and the
// verdict's multiply.
func (t Trust) chanceAfterNo(chance float64) float64 {
	ratio := min(cmp.Or(t.Ratio, verdictRatio), verdictRatio)
	return chance / (chance + ratio*(1-chance))
}

// wordTokens is room for a verdict, with what a model puts before it.
const wordTokens = 16

// passageShare is the part of a judge's budgets that passages may have, so that
// as much is left for the statements of the answer.
const passageShare = 1. / 2

// A judge decides by a model on the passages and statements of a question, as long
// as that is worth a call. It is safe for concurrent use, except for its budget of
// prompts.
type judge struct {
	*caller
	model           Model
	isWriter        bool // the same model writes the answer
	trust           Trust
	maxCalls        int           // 0 for no limit, as of the others
	maxTokens       int           // of prompts
	called, written int           // of these
	maxTime         time.Duration // of all calls; 0 or less for no limit
	spent           atomic.Int64  // of it

	mu            sync.Mutex
	asked, failed int
	fatal         error // why no further call can succeed
}

// newJudge returns the judge of a question; nil without a model. It may not take more
// than half of the time that the context leaves, since verdicts are of no use without
// time to answer.
func (a *Answerer) newJudge(ctx context.Context, c *caller, trust Trust) *judge {
	j := &judge{
		caller: c, model: a.GateModel, isWriter: a.GateModel == nil, trust: trust,
		maxCalls: max(0, cmp.Or(a.JudgeCalls, defaultJudgeCalls)), maxTokens: max(0, cmp.Or(a.JudgeTokens, defaultJudgeTokens)),
		maxTime: cmp.Or(a.JudgeTime, defaultJudgeTime),
	}
	if j.isWriter {
		j.model = a.Model
	}
	if j.model == nil || trust.NoJudge || a.Gate == GateScore {
		return nil
	}
	if end, ok := ctx.Deadline(); ok {
		if half := max(time.Until(end)/2, 1); j.maxTime <= 0 || half < j.maxTime {
			j.maxTime = half
		}
	}
	return j
}

// reserveCall takes one call, with so many tokens in its prompts, from a share of the judge's
// budget and from the question's. It reports false where these have no room for it.
func (j *judge) reserveCall(tokens int, share float64) bool {
	within := func(n, most int) bool { return most == 0 || n <= max(1, int(share*float64(most))) }
	if !within(j.called+1, j.maxCalls) || !within(j.written+tokens, j.maxTokens) || !j.canAfford(tokens) {
		return false
	}
	j.input += tokens
	j.called++
	j.written += tokens
	return true
}

// limitTime bounds the time of calls to a share of what is left for all. stop ends it.
func (j *judge) limitTime(ctx context.Context, share float64) (bounded context.Context, stop func()) {
	began, cancel := time.Now(), context.CancelFunc(func() {})
	if j.maxTime > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(share*float64(j.maxTime-time.Duration(j.spent.Load()))))
	}
	return ctx, func() {
		cancel()
		j.spent.Add(int64(time.Since(began)))
	}
}

// Verify has the judge decide whether a statement answers a question, by passages, as
// the proof of an answer does: yes is the chance that it does, 0 or 1 where the model's
// server does not tell chances. again asks in other words.
func (a *Answerer) Verify(ctx context.Context, question, statement string, passages []retrieve.Passage, again bool,
) (yes float64, err error) {
	k := a.newCaller(func(Event, error) bool { return true }, nil)
	k.writer.Question = question
	s := prompt.Slots{Statement: statement, Again: again}
	for i, p := range passages {
		s.Evidence = append(s.Evidence, prompt.NewEvidence(i+1, p))
	}
	c, err := k.newVerdictCall(RoleVerify, s)
	if err != nil {
		return 0, err
	}
	v := a.newJudge(ctx, k, Trust{}).requestVerdict(ctx, *c)
	yes = map[Decision]float64{Relevant: 1, Unparsable: .5}[v.decision]
	if known := v.calls[len(v.calls)-1].yes; known > 0 {
		yes = known
	}
	if v.decision == Errored {
		err = v.err
	}
	return yes, err
}

// makeCall makes a call, or none where time has run out or the model has failed too
// often.
func (j *judge) makeCall(ctx context.Context, c call) verdict {
	if ctx.Err() != nil {
		return verdict{err: ctx.Err(), late: true}
	}
	if err := j.brokenError(); err != nil {
		return verdict{err: err, reason: err.Error()}
	}
	v := j.requestVerdict(ctx, c)
	if v.late = v.decision == Errored && ctx.Err() != nil; v.late {
		return v
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked++
	if v.decision == Errored {
		j.failed++
	}
	if isUnusable(v.err) {
		j.fatal = v.err
	}
	return v
}

// brokenAfter is the number of failed calls, without any success, after which a
// server counts as broken.
const brokenAfter = 3

var errAllFailed = errors.New("every call failed")

// brokenError says why no further call is made.
func (j *judge) brokenError() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fatal == nil && j.maxCalls > 0 && j.failed >= brokenAfter && j.failed == j.asked {
		return errAllFailed
	}
	return j.fatal
}

// A verdict is the decision of a judge on one passage.
type verdict struct {
	decision Decision
	reason   string
	calls    []*call // none where no judge was asked
	err      error   // of the last call
	late     bool    // the time for judging ran out first
}

// requestVerdict makes a call, a second time if the first call fails or its reply cannot be read.
func (j *judge) requestVerdict(ctx context.Context, first call) verdict {
	var v verdict
	for len(v.calls) < 2 {
		c := first
		c.repetition += len(v.calls)
		v.calls = append(v.calls, &c)
		var reply judgement
		v.err = nil
		for piece, err := range c.pieces(ctx, j.model) {
			if err != nil {
				v.err = err
				break
			}
			if c.enough = reply.addPiece(piece) || c.yes > 0; c.enough {
				break
			}
		}
		if v.err != nil {
			v.decision, v.reason = Errored, "the judge could not be asked: "+prompt.Clip(v.err.Error(), 200)
			if !worthRetrying(ctx, v.err) {
				return v
			}
			continue
		}
		switch v.decision = reply.verdict(); {
		case c.yes >= .5:
			v.decision = Relevant
		case c.yes > 0:
			v.decision = Irrelevant
		}
		if v.decision != Unparsable {
			return v
		}
		v.reason = "the judge's reply could not be read"
	}
	return v
}

// worthRetrying reports whether to repeat a failed call, after waiting for as
// long as its error says. The model's client never repeats a judge's request,
// so this is the only place that honors the wait; the client has checked it
// against the time limit of a call.
func worthRetrying(ctx context.Context, err error) bool {
	wait := failureValue(err, failure.RetryIn)
	if wait < 0 || wait == 0 && isUnusable(err) {
		return false
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
