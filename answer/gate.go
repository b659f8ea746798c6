package answer

import (
	"cmp"
	"context"
	"fmt"

	"ibid/answer/prompt"
	"ibid/retrieve"
)

// A GateKind says how passages are judged.
type GateKind string

// The kinds of gate.
const (
	// GateAuto decides by the calibrated chance before an answer is written, and
	// reads further passages when the model finds none in these.
	GateAuto  GateKind = "auto"
	GateScore GateKind = "score" // as GateAuto, and no model ever judges anything
	GateModel GateKind = "model" // every passage by a model
	// GateBoth decides the clear cases by the chance, the others by a model. No
	// passage in another language than the question's is clearly off topic.
	GateBoth GateKind = "both"
	GateOff  GateKind = "off" // every passage is kept
)

// readable is the chance from which a passage is kept when no model judges it:
// whether it holds an answer is for the model that reads it, or the confidence of
// a quote from it.
const readable = surelyOff

// Between these chances of being on topic, the gate "both" calls the model.
const (
	surelyOff = .03
	surelyOn  = .995
)

// The values of Judged.By and Verified.By.
const (
	byScore  = "score"
	byModel  = "model"
	byCode   = "code" // of Verified
	unjudged = "unjudged"
)

// judge decides on every passage and emits Judged events in the order of the
// passages. It returns when every call has ended.
func (r *asking) judge(ctx context.Context, found []retrieve.Passage) ([]Judged, error) {
	g := &gate{asking: r, judge: r.newJudge(), judged: make([]Judged, len(found))}
	kind := cmp.Or(r.Gate, GateAuto)
	if kind == GateAuto || g.judge == nil && kind != GateOff {
		kind = GateScore
	}
	r.usage.Looked = len(found)
	var open []int // for the model to judge
	for i, p := range found {
		g.judged[i] = r.scored(p)
		j := &g.judged[i]
		if kind == GateOff {
			j.Decision = Relevant
		}
		sure := j.Chance > surelyOn || j.Chance < surelyOff && retrieve.Language(p.Text) == retrieve.Language(r.asked)
		switch {
		case kind == GateScore || kind == GateOff || kind == GateBoth && sure:
		case r.mayJudge():
			r.judged++
			open = append(open, i)
		default:
			j.By = unjudged
		}
	}
	if kind == GateOff {
		return g.judged, nil
	}
	if err := g.prepare(found, open); err != nil {
		return nil, err
	}
	return g.judged, g.run(ctx)
}

// scored decides on a passage by its chance of being on topic.
func (r *asking) scored(p retrieve.Passage) Judged {
	j := Judged{
		Passage: p.ID, Document: p.Document, Title: p.Title, Heading: p.Heading, Page: p.Page,
		By: byScore, Scores: p.Scores, Decision: Irrelevant,
	}
	j.Chance, j.Reason = r.reading.Chance(p)
	if j.Chance >= readable {
		j.Decision = Relevant
	}
	return j
}

// A gate judges the passages of one question by a model.
type gate struct {
	*asking
	judge  *judge
	judged []Judged

	open     []openPassage
	deadline string // the reason for which judging ends early

	warnedLate, warnedUnusable bool
}

// An openPassage is one that the model must judge.
type openPassage struct {
	index int // in judged
	// alone says that the verdict decides alone: the passage has no scores, or is in
	// another language than the question, and they say little.
	alone bool
	call  call
}

// prepare writes the calls for the open passages.
func (g *gate) prepare(found []retrieve.Passage, open []int) error {
	same := map[Prompt]int{} // passages of the same words
	for _, i := range open {
		e := g.writer.Truncate(prompt.NewEvidence(1, found[i]), g.writer.Window()/2)
		p, err := g.write(RoleJudge, prompt.Slots{Evidence: []prompt.Evidence{e}})
		if err != nil {
			return err
		}
		p.MaxTokens, p.Verdict = wordTokens, true
		c := g.call(p)
		c.again = 2 * same[p]
		same[p]++
		alone := found[i].Scores == (retrieve.Scores{}) || retrieve.Language(found[i].Text) != retrieve.Language(g.asked)
		g.open = append(g.open, openPassage{i, alone, *c})
	}
	return nil
}

// limit bounds the time for judging passages.
func (g *gate) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := g.judgeTime(ctx)
	g.deadline = fmt.Sprintf("judging the passages took longer than %s (--gate-time)", limit)
	if limit != cmp.Or(g.JudgeTime, defaultJudgeTime) {
		g.deadline = "judging the passages took half of the available time"
	}
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}

// run makes the calls, some at a time, and emits all verdicts in order.
func (g *gate) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	judging, stop := g.limit(ctx)
	defer stop()
	verdicts, wait := inParallel(len(g.open), g.parallel, func(i int) verdict {
		v := g.judge.ask(judging, g.open[i].call)
		if isUnusable(v.err) && g.GateModel == nil { // the same model would have to answer
			cancel(callError(RoleJudge, v.err))
		}
		return v
	})
	defer wait()
	defer cancel(nil)
	open := 0
	for i := range g.judged {
		if open < len(g.open) && g.open[open].index == i {
			v := <-verdicts[open]
			g.apply(&g.judged[i], v, g.open[open].alone)
			open++
			if ctx.Err() != nil {
				return fmt.Errorf("judging passages: %w", context.Cause(ctx))
			}
			g.warnAbout(v)
		}
		if !g.emit(g.judged[i]) {
			return nil
		}
	}
	return nil
}

// apply records a verdict, and what it cost, with the passage.
func (g *gate) apply(j *Judged, v verdict, alone bool) {
	j.By = unjudged
	if v.called() && !v.late {
		j.Decision, j.By = v.decision, byModel
		switch {
		case v.decision != Irrelevant:
		case !alone && g.trust.afterNo(j.Chance) > .5:
			j.Decision, v.reason = Relevant, "the model says no, but "+j.Reason
		default:
			v.reason = "the model says no"
		}
		j.Reason = cmp.Or(v.reason, j.Reason)
	}
	j.Calls, j.Tokens = g.addUsage(v.calls...)
}

func (g *gate) warnAbout(v verdict) {
	switch {
	case v.late && !g.warnedLate:
		g.warnedLate = true
		g.warn("%s, so the other passages were ranked by search score", g.deadline)
	case !v.late && !v.called() && !g.warnedUnusable:
		g.warnedUnusable = true
		if _, err := g.judge.broken(); err != nil {
			g.warn("the judge cannot be used (%s): the other passages were ranked by search score", err)
			return
		}
		g.warn("the model could not check relevance, since every call failed: passages were ranked by search score")
	}
}

// keep returns the passages that were not judged irrelevant: the first relevant
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
