package answer

import (
	"cmp"
	"context"
	"fmt"
	"strings"

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

// Between these chances of being on topic, the gate "both" calls the model. Where no
// model judges, a passage below surelyOff is skipped.
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

// judgeAll decides on every passage and emits Judged events in the order of the
// passages. It returns when every call has ended.
func (r *asking) judgeAll(ctx context.Context, found []retrieve.Passage) ([]Judged, error) {
	kind, share := cmp.Or(r.Gate, GateAuto), 1.
	if kind == GateAuto || r.judge == nil && kind != GateOff {
		kind = GateScore
	}
	if r.proves() {
		share = passageShare
	}
	r.usage.Looked = len(found)
	judged := make([]Judged, len(found))
	open := make([]*call, len(found)) // for the model to judge
	alone := map[int]bool{}           // for each of these, whether the verdict decides alone, since scores say little
	for i, p := range found {
		judged[i] = r.scored(p)
		j := &judged[i]
		switch {
		case kind == GateOff:
			j.Decision = Relevant
		case kind == GateScore, kind == GateBoth && (j.Chance > surelyOn || j.Chance < surelyOff && !r.foreign(p)):
		default:
			e := r.writer.Truncate(prompt.NewEvidence(1, p), r.writer.Window()/2)
			c, err := r.verdictCall(RoleJudge, prompt.Slots{Evidence: []prompt.Evidence{e}})
			if err != nil {
				return nil, err
			}
			if j.By = unjudged; r.affords(r.size(c.prompt)+r.least()) && r.judge.take(r.caller, r.size(c.prompt), share) {
				open[i], alone[i] = c, r.foreign(p) || !hasScores(p)
			}
		}
	}
	if kind == GateOff {
		return judged, nil
	}
	return judged, r.judgeOpen(ctx, judged, open, alone, share)
}

// foreign reports whether a passage is in another language than the question, so that
// its chance says little and a verdict on it decides alone.
func (r *asking) foreign(p retrieve.Passage) bool {
	return retrieve.Language(p.Text) != retrieve.Language(r.asked)
}

// scored decides on a passage by its chance of being on topic.
func (r *asking) scored(p retrieve.Passage) Judged {
	j := Judged{
		Passage: p.ID, Document: p.Document, Title: p.Title, Heading: p.Heading, Page: p.Page,
		By: byScore, Scores: p.Scores, Decision: Irrelevant,
	}
	j.Chance, j.Reason = r.reading.Chance(p)
	if j.Chance >= surelyOff {
		j.Decision = Relevant
	}
	return j
}

// judgeOpen has the open passages judged, some at a time, and emits all verdicts in order.
func (r *asking) judgeOpen(ctx context.Context, judged []Judged, open []*call, alone map[int]bool, share float64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	judging := ctx
	if len(alone) > 0 {
		var stop func()
		judging, stop = r.judge.within(ctx, share)
		defer stop()
	}
	verdicts, wait := inParallel(len(open), r.parallel, func(i int) (v verdict) {
		if open[i] != nil {
			v = r.judge.ask(judging, *open[i])
		}
		if isUnusable(v.err) && r.GateModel == nil { // the same model would have to answer
			cancel(callError(RoleJudge, v.err))
		}
		return v
	})
	defer wait()
	defer cancel(nil)
	for i := range judged {
		if v := <-verdicts[i]; open[i] != nil {
			r.record(&judged[i], v, alone[i])
			if ctx.Err() != nil {
				return fmt.Errorf("judging passages: %w", context.Cause(ctx))
			}
			if v.late {
				r.warnOnce("late", "judging the passages took too long (--gate-time, or the time for the answer), "+
					"so the others were ranked by search score")
			} else if len(v.calls) == 0 {
				r.warnOnce("judge", "the judge cannot be used, so the other passages were ranked by search score: %s", v.err)
			}
		}
		if lacks, ok := strings.CutPrefix(judged[i].Reason, "does not mention '"); ok && judged[i].Decision != Irrelevant {
			judged[i].Reason = "close to the question, without '" + lacks
		}
		if !r.emit(judged[i]) {
			return nil
		}
	}
	return nil
}

// record records a verdict, and what it cost, with the passage. A no is weighed against
// the chance; a yes keeps, since a passage too many costs a few tokens and one too few
// the answer.
func (r *asking) record(j *Judged, v verdict, alone bool) {
	j.By = unjudged
	if len(v.calls) > 0 && !v.late {
		j.Decision, j.By = v.decision, byModel
		switch {
		case v.decision != Irrelevant:
		case !alone && r.trust.afterNo(j.Chance) > .5:
			j.Decision, v.reason = Relevant, fmt.Sprintf("%s, but its chance of %.0f %% keeps it", saysNo, 100*j.Chance)
		default:
			v.reason = saysNo
		}
		j.Reason = cmp.Or(v.reason, j.Reason)
	}
	j.Calls, j.Tokens = r.addUsage(v.calls...)
}

const saysNo = "the model says no"

// SaidNo reports whether a model said no about the passage, whatever was decided.
func (j Judged) SaidNo() bool { return j.By == byModel && strings.HasPrefix(j.Reason, saysNo) }

// doubted reports whether a passage was skipped that the chance alone would keep.
func doubted(j Judged) bool { return j.Decision == Irrelevant && j.Chance >= surelyOff }

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
