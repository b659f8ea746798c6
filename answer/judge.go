package answer

import (
	"cmp"
	"context"
	"errors"
	"sync"
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
	// Distrust says why the answers are not believed: sentences are quoted, unless
	// NoFallback is set. Empty where they are believed.
	Distrust string
}

// verdictRatio is the ratio of a judge that is wrong in one verdict of ten. No single
// no overrules a chance above .9, then.
const verdictRatio = 9

// afterNo is the chance of being on topic after a judge's no: its odds and the
// verdict's multiply.
func (t Trust) afterNo(chance float64) float64 {
	ratio := min(cmp.Or(t.Ratio, verdictRatio), verdictRatio)
	return chance / (chance + ratio*(1-chance))
}

// wordTokens is room for a verdict, with what a model puts before it.
const wordTokens = 16

// mayJudge reports whether the budget has room for one more call of a judge.
func (r *asking) mayJudge() bool {
	most := or(r.JudgeCalls, defaultJudgeCalls)
	return most < 0 || r.judged < most
}

// judgeTime is how long a judge may take: JudgeTime, or half of the time that the
// context leaves if that is less, since verdicts are of no use without time to
// answer. It is 0 or less where there is no limit.
func (r *asking) judgeTime(ctx context.Context) time.Duration {
	limit := cmp.Or(r.JudgeTime, defaultJudgeTime)
	if end, ok := ctx.Deadline(); ok {
		if half := max(time.Until(end)/2, 1); limit <= 0 || half < limit {
			return half
		}
	}
	return limit
}

// A judge decides by a model on passages and statements, as long as that is worth a
// call. It is safe for concurrent use.
type judge struct {
	model    Model
	budgeted bool // calls are limited, and none is spent on a broken server

	mu            sync.Mutex
	asked, failed int
	fatal         error // why no further call can succeed
}

// newJudge returns the judge of the passages, or of the statements, of a question;
// nil without a model.
func (r *asking) newJudge() *judge {
	j := &judge{model: r.GateModel, budgeted: r.JudgeCalls >= 0}
	if j.model == nil {
		j.model = r.Model
	}
	if j.model == nil || r.trust.NoJudge {
		return nil
	}
	return j
}

// Verify has the judge decide whether a statement answers a question, by a passage, as
// the proof of an answer does: yes is the chance that it does, 0 or 1 where the model's
// server does not tell chances. again asks in other words.
func (a *Answerer) Verify(ctx context.Context, question, statement string, p retrieve.Passage, again bool,
) (yes float64, tokens int, err error) {
	r := a.newAsking(func(Event, error) bool { return true }, nil)
	r.writer.Question = question
	c, err := r.asks(RoleVerify, prompt.Slots{Statement: statement, Again: again, Evidence: []prompt.Evidence{prompt.NewEvidence(1, p)}})
	if err != nil {
		return 0, 0, err
	}
	v := r.newJudge().call(ctx, *c)
	_, tokens = r.addUsage(v.calls...)
	yes = map[Decision]float64{Relevant: 1, Unparsable: .5}[v.decision]
	if known := v.calls[len(v.calls)-1].yes; known > 0 {
		yes = known
	}
	if v.decision == Errored {
		err = v.err
	}
	return yes, tokens, err
}

// asks returns the call that asks for a verdict.
func (r *asking) asks(role Role, s prompt.Slots) (*call, error) {
	p, err := r.write(role, s)
	if err != nil {
		return nil, err
	}
	p.MaxTokens, p.Verdict = wordTokens, true
	c := r.call(p)
	c.again = 2 * r.same[p]
	r.same[p]++
	return c, nil
}

// ask makes a call, or none where time has run out or the model has failed too
// often.
func (j *judge) ask(ctx context.Context, c call) verdict {
	if ctx.Err() != nil {
		return verdict{err: ctx.Err(), late: true}
	}
	if broken, _ := j.broken(); broken {
		return verdict{}
	}
	v := j.call(ctx, c)
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

// broken reports whether no further call is made, and why none can succeed, if
// that is known.
func (j *judge) broken() (broken bool, fatal error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fatal != nil || j.budgeted && j.failed >= brokenAfter && j.failed == j.asked, j.fatal
}

// A verdict is the decision of a judge on one passage.
type verdict struct {
	decision Decision
	reason   string
	calls    []*call // none where no judge was asked
	err      error   // of the last call
	late     bool    // the time for judging ran out first
}

// call makes a call, a second time if the first call fails
// or its reply cannot be read.
func (j *judge) call(ctx context.Context, first call) verdict {
	var v verdict
	for len(v.calls) < 2 {
		c := first
		c.again += len(v.calls)
		v.calls = append(v.calls, &c)
		var reply judgement
		v.err = nil
		for piece, err := range c.pieces(ctx, j.model) {
			if err != nil {
				v.err = err
				break
			}
			if c.enough = reply.add(piece) || c.yes > 0; c.enough {
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
	if d := failure(nil); errors.As(err, &d) && d.RetryIn() != 0 {
		if d.RetryIn() < 0 {
			return false
		}
		timer := time.NewTimer(d.RetryIn())
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		return ctx.Err() == nil
	}
	return ctx.Err() == nil && !isUnusable(err)
}
