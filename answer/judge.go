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

// Trust says how far the models of an [Answerer] are trusted, according to their
// self-test. The zero Trust trusts them.
type Trust struct {
	// NoJudge says that verdicts are hardly better than chance, so that no model judges.
	NoJudge bool
	// Ratio is the likelihood ratio of a no: how much likelier the judge says no about
	// a wrong statement than about a right one. 0 means unknown, for which [verdictRatio]
	// is used; it is also the maximum.
	Ratio float64
	// OnePassage says that verdicts depend on the order of passages, so that the judge
	// is shown only one.
	OnePassage bool
	// Distrust says why answers are not trusted, or is empty if they are. If it is set,
	// sentences are quoted, unless NoFallback is set.
	Distrust string
}

// verdictRatio is the ratio of a judge that is wrong in one verdict of ten. With it, a
// single no does not overrule a chance above .9.
const verdictRatio = 9

// chanceAfterNo returns the chance of being on topic after a judge's no: the odds are
// divided by the ratio.
func (t Trust) chanceAfterNo(chance float64) float64 {
	ratio := min(cmp.Or(t.Ratio, verdictRatio), verdictRatio)
	return chance / (chance + ratio*(1-chance))
}

// wordTokens is the length of a verdict's reply: one word, and a few that a model puts
// before it.
const wordTokens = 16

// passageShare is the part of a judge's budgets that passages may use. The remaining
// part is for the statements of the answer.
const passageShare = 1. / 2

// A judge asks a model for verdicts on passages and statements, within its budgets.
// It is safe for concurrent use, except for reserveCall.
type judge struct {
	*caller
	model           Model
	isWriter        bool // the same model writes the answer
	trust           Trust
	maxCalls        int           // 0 for no limit
	maxTokens       int           // in prompts; 0 for no limit
	called, written int           // calls and prompt tokens reserved so far
	maxTime         time.Duration // for all calls; 0 or less for no limit
	spent           atomic.Int64  // the part of maxTime that is used up

	mu            sync.Mutex
	asked, failed int
	fatal         error // why no further call can succeed
}

// newJudge returns the judge of a question, or nil if no model judges. It may use at most
// half of the time until the context's deadline, to leave time for the answer.
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

// reserveCall reserves a call with the given number of prompt tokens in a share of the judge's
// budget and in the question's budget. It reports whether both have room.
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

// limitTime limits the time of calls to a share of the judge's remaining time. stop must be
// called when they have ended.
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

// Verify asks the judge whether passages support a statement as an answer to a question, with
// the prompt that proves answers. yes is the chance of a yes; 0, .5 or 1 if the model's server
// does not report chances. If again is set, it asks in other words.
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

// makeCall makes a call, unless time has run out or the model has failed too often.
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

// brokenAfter is the number of failed calls, with no successful one, after which no more
// calls are made.
const brokenAfter = 3

var errAllFailed = errors.New("every call failed")

// brokenError returns the reason to make no further call, or nil.
func (j *judge) brokenError() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fatal == nil && j.maxCalls > 0 && j.failed >= brokenAfter && j.failed == j.asked {
		return errAllFailed
	}
	return j.fatal
}

// A verdict is the decision of a judge on one passage or statement.
type verdict struct {
	decision Decision
	reason   string
	calls    []*call // empty if no judge was asked
	err      error   // the last call's
	late     bool    // the time for judging ran out first
}

// requestVerdict makes a call, and repeats it once if it fails or its reply cannot be read.
func (j *judge) requestVerdict(ctx context.Context, first call) verdict {
	var v verdict
	for len(v.calls) < 2 {
		c := first
		c.repetition += len(v.calls)
		v.calls = append(v.calls, &c)
		v.err = nil
		for _, v.err = range c.pieces(ctx, j.model) {
			if c.enough = v.err == nil && (hasVerdict(string(c.text)) || c.yes > 0); c.enough {
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
		switch v.decision = readVerdict(string(c.text)); {
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

// worthRetrying waits for as long as the error of a failed call says, and reports
// whether to repeat the call. The client has limited the wait to the time limit of a
// call.
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
