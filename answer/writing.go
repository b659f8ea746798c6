package answer

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"ibid/answer/prompt"
	"ibid/answer/statement"
	"ibid/retrieve"
)

// A writing is an answer or a summary while a strategy writes it. The strategy packs
// passages into prompts, labels them and adds the answer piece by piece. If statements
// are proved, each is shown when its proof ends.
type writing struct {
	*Answerer
	*caller
	finder   *finder            // nil for a summary
	mayWiden bool               // further passages may be read if the first hold no answer
	deferred []retrieve.Passage // kept, but read only if the first hold no answer

	proves bool   // statements are proved
	judge  *judge // judges statements; nil if no model judges
	proof  *proof // the proof of the answer; nil if it is not proved
}

// canWiden reports whether further passages can be read if the model finds no answer
// in the first ones.
func (w *writing) canWiden() bool { return w.mayWiden && w.callsLeft() > 0 && w.canAfford(1) }

// firstCalls returns how many calls may be made, with one reserved for lookWider if possible.
func (w *writing) firstCalls() int {
	if w.canWiden() {
		return max(1, w.callsLeft()-1)
	}
	return w.callsLeft()
}

// packPassages packs passages into batches. If not all fit, it packs the likeliest ones first.
func (w *writing) packPassages(kept []retrieve.Passage, first, later Role, most int) ([]retrieve.Passage, []prompt.Batch, int, error) {
	before := *w.writer
	batches, packed, err := w.writer.Pack(kept, w.promptOf(first), w.promptOf(later), most)
	if err == nil && packed < len(kept) && w.summary == nil {
		*w.writer = before // forget the passages that were shortened
		kept = mergeOrders(w.finder.rankByChance(kept), kept)
		batches, packed, err = w.writer.Pack(kept, w.promptOf(first), w.promptOf(later), most)
	}
	return kept, batches, packed, err
}

// skipReason returns the reason why passages did not fit the batches, which are limited to most.
func skipReason(batches []prompt.Batch, most int) string {
	if most > 1 && len(batches) == most {
		return noCalls
	}
	return noRoom
}

// labelPassages fixes the labels of the packed passages by emitting Kept, and returns them. It
// reports the unpacked passages as skipped for the given reason.
func (w *writing) labelPassages(ctx context.Context, kept []retrieve.Passage, packed int, why string) []retrieve.Passage {
	labelled := slices.Clone(kept[:packed])
	w.emit(Kept{Passages: labelled})
	w.beginProof(ctx, labelled)
	w.skipPassages(why, kept[packed:])
	w.skipPassages(deferred, w.deferred)
	w.deferred = nil
	return labelled
}

// beginProof begins the proof of an answer from labelled passages.
func (w *writing) beginProof(ctx context.Context, passages []retrieve.Passage) {
	w.proof = nil
	if !w.proves {
		return
	}
	p := &proof{
		comparer: &comparer{finder: w.finder, ctx: ctx, passages: passages, prover: Prover()}, judge: w.judge,
		units: statement.NewSplitter(len(passages)), places: make(chan struct{}, w.parallel), hasSource: w.Gate == GateOff,
		verdicts: map[string]chan verdict{},
	}
	if w.judge != nil {
		quotes, _, err := w.finder.quotes(ctx, passages, nil)
		if err != nil {
			w.warn("the answer could not be compared with quotes: %s", err)
		} else if len(quotes) > 0 {
			p.best = quotes[0].Passage + 1
		}
	}
	w.proof = p
}

// addText emits the next piece of the answer, or has it proved.
func (w *writing) addText(text string) bool {
	p := w.proof
	if p == nil {
		return w.emitAnswer(Text{Text: text})
	}
	return p.addUnits(p.units.Add(text), false) && p.showProved(false)
}

// restartProof discards the answer so far, so that it can be requested again after its reply
// broke off. It reports false if part of the answer has been shown.
func (w *writing) restartProof() bool {
	p := w.proof
	if p == nil || p.shown {
		return false
	}
	for _, o := range p.open {
		v := <-o.verdict
		w.addUsage(v.calls...)
	}
	w.beginProof(p.ctx, p.passages)
	return true
}

// acceptRevision makes the revision the answer if it is whole. Otherwise it discards the
// revision. It returns whole.
func (w *writing) acceptRevision(whole bool) bool {
	if w.endRevision(whole); !whole {
		w.restartProof()
	}
	return whole
}

// endAnswer shows the end of the answer, and ends the stream. broken says why the answer's
// end is missing, lacks what else is missing; both are empty for a whole answer. failed is
// the model's error, if any. If the proof drops everything, it returns errNoAnswer, or, if
// the missing end may hold the answer, errWordless or failed.
func (w *writing) endAnswer(broken string, failed error, lacks func() string) error {
	if p := w.proof; p != nil {
		w.proof = nil
		err := p.endUnits(broken, failed)
		if p.step != nil && !p.stopped {
			if errors.Is(err, errNoAnswer) || errors.Is(err, errWordless) {
				p.step.Changed, p.step.Reason, p.step.Lost = false, unproved, nil
			}
			w.emitStep(*p.step)
		}
		if err != nil {
			w.usage.Used = 0
			return err
		}
	}
	if reason := cmp.Or(broken, lacks()); reason != "" {
		w.emit(Incomplete{Reason: reason})
	}
	w.emitUsage()
	return nil
}
