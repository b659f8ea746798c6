package answer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ibid/answer/prompt"
	"ibid/retrieve"
)

// A GateKind says how passages are judged.
type GateKind string

// The kinds of gate.
const (
	// GateAuto decides by the calibrated chance. Further passages are read if the
	// model finds no answer in the kept ones.
	GateAuto  GateKind = "auto"
	GateScore GateKind = "score" // like GateAuto, but no model judges statements either
	GateModel GateKind = "model" // a model judges every passage
	// GateBoth decides clear cases by the chance; a model judges the remaining ones.
	// A passage in another language than the question is never clearly off topic.
	GateBoth GateKind = "both"
	GateOff  GateKind = "off" // every passage is kept
)

// Between these chances of being on topic, the gate "both" calls the model. If no
// model judges, a passage below surelyOff is skipped.
const (
	surelyOff = .03
	surelyOn  = .995
)

// The values of Judged.By and Verified.By.
const (
	byScore  = "score"
	byModel  = "model"
	byCode   = "code" // only in Verified
	unjudged = "unjudged"
)

// A gate decides which passages are read.
type gate struct {
	*finder
	kind  GateKind
	judge *judge  // nil if no model judges
	share float64 // the part of the judge's budgets that passages may use
}

// newGate returns the gate of a question. proves reports whether statements are judged too.
func newGate(kind GateKind, f *finder, j *judge, proves bool) *gate {
	g := &gate{finder: f, kind: cmp.Or(kind, GateAuto), judge: j, share: 1}
	if g.kind == GateAuto || j == nil && g.kind != GateOff {
		g.kind = GateScore
	}
	if proves {
		g.share = passageShare
	}
	return g
}

// isFinal reports whether the decisions on passages are final, so that skipped passages are
// not read later: every passage is kept, or a model judges passages that have no scores.
func (g *gate) isFinal(found []retrieve.Passage) bool {
	return g.kind == GateOff || g.kind != GateScore && !slices.ContainsFunc(found, hasScores)
}

// judgePassages decides on every passage and emits Judged events in the order of the
// passages. It returns when every call has ended.
func (g *gate) judgePassages(ctx context.Context, found []retrieve.Passage) ([]Judged, error) {
	g.usage.Looked = len(found)
	judged := make([]Judged, len(found))
	open := make([]*call, len(found)) // the calls to the judge; nil if the score decides
	alone := map[int]bool{}           // for each call, whether the verdict decides alone, since the score says little
	for i, p := range found {
		judged[i] = g.scorePassage(p)
		j := &judged[i]
		switch {
		case g.kind == GateOff:
			j.Decision = Relevant
		case g.kind == GateScore, g.kind == GateBoth && (j.Chance > surelyOn || j.Chance < surelyOff && !g.isForeign(p)):
		default:
			e := g.writer.Truncate(prompt.NewEvidence(1, p), g.writer.Window()/2)
			c, err := g.newVerdictCall(RoleJudge, prompt.Slots{Evidence: []prompt.Evidence{e}})
			if err != nil {
				return nil, err
			}
			j.By = unjudged
			if tokens := g.promptSize(c.prompt); g.canAfford(tokens+g.leastTokens(g.standalone)) && g.judge.reserveCall(tokens, g.share) {
				open[i], alone[i] = c, g.isForeign(p) || !hasScores(p)
			}
		}
	}
	if g.kind == GateOff {
		return judged, nil
	}
	return judged, g.judgeOpen(ctx, judged, open, alone)
}

// judgeOpen makes the open calls in parallel, and emits all verdicts in order.
func (g *gate) judgeOpen(ctx context.Context, judged []Judged, open []*call, alone map[int]bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	judging := ctx
	if len(alone) > 0 {
		var stop func()
		judging, stop = g.judge.limitTime(ctx, g.share)
		defer stop()
	}
	verdicts, wait := inParallel(len(open), g.parallel, func(i int) (v verdict) {
		if open[i] != nil {
			v = g.judge.makeCall(judging, *open[i])
		}
		if isUnusable(v.err) && g.judge.isWriter { // the model could not write the answer either
			cancel(callError(RoleJudge, v.err))
		}
		return v
	})
	defer wait()
	defer cancel(nil)
	for i := range judged {
		if v := <-verdicts[i]; open[i] != nil {
			g.recordVerdict(&judged[i], v, alone[i])
			if ctx.Err() != nil {
				return fmt.Errorf("judging passages: %w", context.Cause(ctx))
			}
			if v.late {
				g.warnOnce("late", "judging the passages took too long (--gate-time, or the time for the answer), "+
					"so the remaining ones were ranked by search score")
			} else if len(v.calls) == 0 {
				g.warnOnce("judge", "the judge cannot be used, so the remaining passages were ranked by search score: %s", v.err)
			}
		}
		if lacks, ok := strings.CutPrefix(judged[i].Reason, "does not mention '"); ok && judged[i].Decision != Irrelevant {
			judged[i].Reason = "close to the question, without '" + lacks
		}
		if !g.emit(judged[i]) {
			return nil
		}
	}
	return nil
}

// recordVerdict records a verdict and its cost in j. A no is weighed against the chance. A yes
// keeps the passage: an extra passage costs a few tokens, a missing one may cost the answer.
func (g *gate) recordVerdict(j *Judged, v verdict, alone bool) {
	j.By = unjudged
	if len(v.calls) > 0 && !v.late {
		j.Decision, j.By = v.decision, byModel
		switch {
		case v.decision != Irrelevant:
		case !alone && g.judge.trust.chanceAfterNo(j.Chance) > .5:
			j.Decision, v.reason = Relevant, fmt.Sprintf("%s, but its chance of %.0f %% keeps it", saysNo, 100*j.Chance)
		default:
			v.reason = saysNo
		}
		j.Reason = cmp.Or(v.reason, j.Reason)
	}
	j.Calls, j.Tokens = g.addUsage(v.calls...)
}

const saysNo = "the model says no"

// IsRejected reports whether a model said no about the passage, even if it was kept.
func (j Judged) IsRejected() bool { return j.By == byModel && strings.HasPrefix(j.Reason, saysNo) }

// isDoubted reports whether a passage was skipped although its chance alone would keep it.
func isDoubted(j Judged) bool { return j.Decision == Irrelevant && j.Chance >= surelyOff }

// keptPassages returns the passages that were not judged irrelevant, in order, except that
// the first relevant one is moved to the front.
func keptPassages(passages []retrieve.Passage, judged []Judged) []retrieve.Passage {
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
