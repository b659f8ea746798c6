package answer

import (
	"context"
	"errors"

	"ibid/retrieve"
)

// fallsBack reports whether an error of a model is one after which sentences are
// quoted.
func (r *asking) fallsBack(ctx context.Context, err error) bool {
	return !r.NoFallback && ctx.Err() == nil && fallbackReason(err) != ""
}

// fallBack answers as without a model, since the model gave no answer.
func (r *asking) fallBack(ctx context.Context, found []retrieve.Passage, why error) error {
	r.emit(Fallback{Reason: fallbackReason(why), Err: why})
	r.warn("the model gave no answer, so sentences of the documents are quoted: %s", why)
	r.writes = false
	judged := make([]Judged, len(found))
	for i, p := range found {
		judged[i] = r.scored(p)
		if !r.emit(judged[i]) {
			return nil
		}
	}
	kept := keep(found, judged)
	if len(kept) == 0 {
		return r.unanswered(ctx, nothingRelevant, found)
	}
	err := r.extract(ctx, kept)
	if errors.Is(err, errNoAnswer) {
		return r.unanswered(ctx, noAnswer, kept)
	}
	return err
}

// distrust has the question answered as without a model, since the model's answers
// are not believed. It returns the strategy for that.
func (r *asking) distrust() (*strategy, error) {
	why := "the model did not pass its self-test (" + r.trust.Distrust + "), so sentences of the documents are quoted: " +
		"select another --model, or believe this one with --no-self-test"
	r.emit(Fallback{Reason: "model_untrusted", Err: errors.New(why)})
	r.warn("%s", why)
	quoting := *r.Answerer
	quoting.Model, quoting.GateModel = nil, nil
	r.Answerer = &quoting
	return findStrategy("extract", false)
}
