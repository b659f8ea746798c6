package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
)

// A GateKind says how passages are judged.
type GateKind string

// The kinds of gate.
const (
	GateScore GateKind = "score" // by the calibrated chance, without a model
	GateModel GateKind = "model" // every passage by a model
	// GateBoth has the clear cases decided by the chance, the others by a model.
	// No case is clearly off topic in another language than the question's.
	GateBoth GateKind = "both"
	GateOff  GateKind = "off" // every passage is kept
)

// Between these chances of being on topic, the gate "both" asks the model.
const (
	surelyOff = .03
	surelyOn  = .995
)

// judgeTokens is room for a verdict and a reason of [maxReasonWords] words in
// any tokeniser. The model's client sees to those that think first.
const judgeTokens = 64

// judge decides on every passage and yields Judged events in the order of the
// passages, whatever the order in which the judges answer. It returns when
// every call has ended.
func (r *run) judge(ctx context.Context, passages []retrieve.Passage) ([]Judged, error) {
	kind := r.Gate
	model := r.GateModel
	if model == nil {
		model = r.Model
	}
	if kind == "" {
		kind = GateBoth
	}
	if model == nil && kind != GateOff {
		kind = GateScore
	}

	r.usage.Looked = len(passages)
	chances := r.chances(passages)
	judged := make([]Judged, len(passages))
	var open []int // for the model to judge
	budget := or(r.JudgeCalls, defaultJudgeCalls)
	for i, p := range passages {
		j := Judged{
			Passage: p.ID, Document: p.Document, Title: p.Title, Heading: p.Heading, Page: p.Page,
			By: "score", Chance: chances[i].p, Reason: chances[i].reason, Scores: p.Scores,
			Decision: Irrelevant,
		}
		if j.Chance >= onTopic || kind == GateOff {
			j.Decision = Relevant
		}
		clear := kind == GateScore || kind == GateOff ||
			kind == GateBoth && (j.Chance < surelyOff && !r.foreign(p) || j.Chance > surelyOn)
		switch {
		case clear:
		case budget != 0:
			budget--
			open = append(open, i)
		default:
			j.By = "unjudged"
		}
		judged[i] = j
	}
	if kind == GateOff {
		return judged, nil
	}
	return judged, r.judgeOpen(ctx, model, passages, open, judged)
}

// foreign tells that a passage is not in the language of the question: its
// words say nothing of what it is about then, and only a model can judge it.
func (r *run) foreign(p retrieve.Passage) bool {
	return retrieve.Language(p.Text) != retrieve.Language(r.asked)
}

// judgeOpen has the model judge the open passages, some at a time, and emits
// all of judged in order.
func (r *run) judgeOpen(ctx context.Context, model Model, passages []retrieve.Passage, open []int, judged []Judged) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel(nil)

	calls := make(map[int]call, len(open))
	alike := map[Prompt]int{} // passages of the same words
	verdicts := make(map[int]chan verdict, len(open))
	next := make(chan int, len(open))
	tokens := 0
	for n, i := range open {
		p, err := r.write(RoleJudge, Slots{Evidence: []Evidence{r.fit(evidence(1, passages[i]), r.window()/2)}})
		if err != nil {
			return err
		}
		p.MaxTokens = judgeTokens
		if tokens += r.count(p.System) + r.count(p.User) + judgeTokens; r.JudgeTokens > 0 && tokens > r.JudgeTokens {
			for _, i := range open[n:] {
				judged[i].By = "unjudged"
			}
			break
		}
		c := r.call(p)
		c.again = 2 * alike[p]
		calls[i] = *c
		alike[p]++
		verdicts[i] = make(chan verdict, 1)
		next <- i
	}
	close(next)
	judging, limit := ctx, cmp.Or(r.JudgeTime, defaultJudgeTime)
	slow := fmt.Sprintf("judging the passages took longer than %s (--gate-time)", limit)
	if end, ok := ctx.Deadline(); ok {
		// What is decided is of no use without time left to answer.
		if half := max(time.Until(end)/2, 1); limit <= 0 || half < limit {
			limit, slow = half, "judging the passages took half of the time that there was"
		}
	}
	if limit > 0 {
		var stop context.CancelFunc
		judging, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	judges := &bench{limited: r.JudgeCalls >= 0}
	for range min(len(calls), or(r.Parallel, defaultParallel)) {
		workers.Go(func() {
			for i := range next {
				c := calls[i]
				if v, ok := c.knownVerdict(ctx); ok {
					verdicts[i] <- v
					continue
				}
				if judging.Err() != nil {
					verdicts[i] <- verdict{err: judging.Err(), late: true}
					continue
				}
				if judges.broken() {
					verdicts[i] <- verdict{}
					continue
				}
				v := ask(judging, model, c)
				if v.late = v.decision == Errored && judging.Err() != nil; !v.late {
					judges.heard(v)
				}
				switch {
				case !isUnusable(v.err):
				case r.GateModel == nil: // it is the model that is to answer, too
					cancel(asking(RoleJudge, v.err))
				default:
					judges.dismiss(v.err)
				}
				verdicts[i] <- v
			}
		})
	}

	told, late := false, false
	for i := range judged {
		j := &judged[i]
		if done, ok := verdicts[i]; ok {
			v := <-done
			j.By = "unjudged"
			if len(v.calls) > 0 && !v.late {
				j.Decision, j.By = v.decision, "model"
				if v.reason != "" {
					j.Reason = v.reason
				}
			}
			before := r.usage
			for _, c := range v.calls {
				r.spent(c)
				j.Calls += c.requests()
			}
			j.Tokens = r.usage.PromptTokens + r.usage.CompletionTokens - before.PromptTokens - before.CompletionTokens
			if ctx.Err() != nil {
				return fmt.Errorf("judging passages: %w", context.Cause(ctx))
			}
			if v.late || v.decision == Errored || len(v.calls) == 0 {
				c := calls[i]
				c.keepVerdict(ctx, v)
				r.tellUnkept(&c)
			}
			if v.late && !late {
				late = true
				r.emit(Warning{Message: slow + ", so those not judged by then are decided by their scores"})
			}
			if len(v.calls) == 0 && !v.late && !told {
				told = true
				why := "every call to the judge failed, so it is not asked any more"
				if err := judges.unusable(); err != nil {
					why = "the judge cannot be used (" + err.Error() + ")"
				}
				r.emit(Warning{Message: why + ": the other passages are decided by their scores"})
			}
		}
		if !r.emit(*j) {
			return nil
		}
	}
	return nil
}

// A bench knows how the judges of a question fare. It is safe for concurrent use.
type bench struct {
	limited bool // there is a budget, and none of it is spent on a broken server

	mu            sync.Mutex
	asked, failed int
	useless       error // why no further call can succeed
}

func (b *bench) dismiss(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.useless = err
}

func (b *bench) unusable() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.useless
}

// brokenAfter passages that no judge could be asked about, and none that one
// could, a server is taken for broken.
const brokenAfter = 3

func (b *bench) heard(v verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	if v.decision == Errored {
		b.failed++
	}
}

func (b *bench) broken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.useless != nil || b.limited && b.failed >= brokenAfter && b.failed == b.asked
}

// A verdict is what one judge said; without calls, none was asked.
type verdict struct {
	decision Decision
	reason   string
	calls    []*call
	err      error // of the last call
	late     bool  // the time for judging ran out before it
}

// ask has a model judge one passage, twice if the first reply cannot be read
// or does not come.
func ask(ctx context.Context, m Model, first call) verdict {
	var v verdict
	for len(v.calls) < 2 {
		c := first
		c.again += len(v.calls)
		v.calls = append(v.calls, &c)
		var j judgement
		v.err = nil
		for piece, err := range c.pieces(ctx, m) {
			if err != nil {
				v.err = err
				break
			}
			done := j.add(piece)
			c.enough = j.verdict != ""
			if done {
				break
			}
		}
		if v.err != nil && j.verdict == "" {
			v.decision, v.reason = Errored, "the judge could not be asked: "+shortReason(v.err.Error())
			if !worthAnother(ctx, v.err) {
				return v
			}
			continue
		}
		if v.decision, v.reason = j.end(c.finish == "length"); v.decision != Unparsable {
			return v
		}
		v.reason = "the judge's reply could not be read"
	}
	return v
}

// worthAnother says whether a call that failed is worth making again, once the
// time has passed that its error names: a server that limits its requests is
// not asked before the time it gave. There is one such wait for a passage. The
// model's client makes no request of a judge twice, so this is the only place
// that heeds it; the client has held the wait against the time a call has.
func worthAnother(ctx context.Context, err error) bool {
	if d := delayed(nil); errors.As(err, &d) && d.RetryIn() != 0 {
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
	u := unusable(nil)
	return ctx.Err() == nil && !(errors.As(err, &u) && u.Unusable())
}

func asking(role Role, err error) error {
	return fmt.Errorf("asking the model (%s): %w", role, err)
}

// keep gives the passages that were not judged irrelevant: the first relevant
// one leads, the others keep their order.
func keep(passages []retrieve.Passage, judged []Judged) []retrieve.Passage {
	kept := make([]retrieve.Passage, 0, len(passages))
	lead := -1
	for i, j := range judged {
		if j.Decision == Irrelevant {
			continue
		}
		kept = append(kept, passages[i])
		if lead < 0 && j.Decision == Relevant {
			lead = len(kept) - 1
		}
	}
	if lead > 0 {
		first := kept[lead]
		copy(kept[1:lead+1], kept[:lead])
		kept[0] = first
	}
	return kept
}

// fit shortens a piece of evidence to at most about the given tokens, at the
// end of a sentence where there is one.
func (r *run) fit(e Evidence, tokens int) Evidence {
	for total := r.count(e.text); total > tokens && e.text != ""; total = r.count(e.text) {
		limit := len(e.text) * max(tokens, 0) / total * 19 / 20
		end := 0
		for s := range ingest.Sentences(e.text) {
			if s.End > limit {
				break
			}
			end = s.End
		}
		if end == 0 {
			e.text = clip(e.text, limit)
			if limit == 0 {
				e.text = ""
			}
			return e
		}
		e.text = e.text[:end]
	}
	return e
}
