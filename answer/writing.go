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

// A writing is the answer of a question, or a summary, while a strategy writes it. The
// strategy packs passages into prompts, labels them and says the answer piece by piece;
// where statements are proved, they are shown when they are.
type writing struct {
	*caller
	finder             *finder // nil for a summary
	model, refineModel Model
	maxDraft           int                // tokens of a draft after which it is not refined; 0 for no limit
	mayWiden           bool               // further passages may be read when it finds no answer in the first
	deferred           []retrieve.Passage // kept, and read only if the first ones hold no answer

	unproved Unproved // empty where nothing is proved
	ungated  bool     // every passage was kept: an answer needs no source
	judge    *judge   // of statements; nil where no model judges
	proof    *proof   // of the answer that is being written
}

func (a *Answerer) newWriting(c *caller, f *finder) *writing {
	w := &writing{caller: c, finder: f, model: a.Model, refineModel: a.RefineModel, maxDraft: a.MaxDraftTokens, ungated: a.Gate == GateOff}
	if w.refineModel == nil {
		w.refineModel = w.model
	}
	return w
}

// canWiden reports whether passages that were doubted, or found further down,
// are read when the model finds no answer in the first.
func (w *writing) canWiden() bool { return w.mayWiden && w.callsLeft() > 0 && w.canAfford(1) }

// firstCalls is how many calls may be made without the one of a wider look; one at least.
func (w *writing) firstCalls() int {
	if w.canWiden() {
		return max(1, w.callsLeft()-1)
	}
	return w.callsLeft()
}

// packPassages packs passages into batches: the likeliest first where not all find a place.
func (w *writing) packPassages(kept []retrieve.Passage, first, later Role, most int) ([]retrieve.Passage, []prompt.Batch, int, error) {
	before := *w.writer
	batches, packed, err := w.writer.Pack(kept, w.promptOf(first), w.promptOf(later), most)
	if err == nil && packed < len(kept) && w.summary == nil {
		*w.writer = before // what was shortened in these does not count
		kept = mergeOrders(w.finder.rankByChance(kept), kept)
		batches, packed, err = w.writer.Pack(kept, w.promptOf(first), w.promptOf(later), most)
	}
	return kept, batches, packed, err
}

// skipReason says why passages found no place in the batches, of which there are so many at most.
func skipReason(batches []prompt.Batch, most int) string {
	if most > 1 && len(batches) == most {
		return noCalls
	}
	return noRoom
}

// labelPassages fixes the labels of the packed passages by emitting Kept, reports why the
// others go into no call, and returns those that do.
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
	if w.unproved == "" {
		return
	}
	p := &proof{
		comparer: &comparer{finder: w.finder, ctx: ctx, passages: passages, prover: Prover()}, judge: w.judge, unproved: w.unproved,
		units: statement.NewSplitter(len(passages)), places: make(chan struct{}, w.parallel), hasSource: w.ungated,
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

// restartProof forgets the answer so far, since its reply broke off and is asked for once
// more. It reports whether that could be done: nobody has seen any of it.
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

// acceptRevision makes the revision the answer if it is whole, or forgets it: then the
// draft before it is the answer, or it is written again.
func (w *writing) acceptRevision(whole bool) bool {
	if w.endRevision(whole); !whole {
		w.restartProof()
	}
	return whole
}

// endAnswer shows what is left of the answer, and ends the stream. broken says why its
// end is missing, lacks what else is; both are empty for a whole answer. failed is how the
// model failed, if it did. If the proof leaves nothing, as when no statement has a source,
// it returns errNoAnswer; but errWordless, or failed, where the answer may be in the
// missing end.
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
