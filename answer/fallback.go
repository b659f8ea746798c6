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
	s := r.quoting(fallbackReason(why), why)
	r.warn("the model gave no answer, so sentences of the documents are quoted: %s", why)
	r.writes = false
	if err := r.read(ctx, found); err != nil { // a wider look has read others
		return err
	}
	return r.decide(ctx, s, found)
}

// distrust has the question answered as without a model, since the model's answers
// are not believed. It returns the strategy for that.
func (r *asking) distrust() *strategy {
	why := "the model did not pass its self-test (" + r.trust.Distrust + "), so sentences of the documents are quoted: " +
		"select another --model, or believe this one with --no-self-test"
	s := r.quoting("model_untrusted", errors.New(why))
	r.warn("%s", why)
	r.Model, r.GateModel = nil, nil
	return s
}

// quoting has the question answered by quotes, and returns the strategy for that.
func (r *asking) quoting(reason string, why error) *strategy {
	r.emit(Fallback{Reason: reason, Err: why})
	without := *r.Answerer
	without.Gate = GateScore
	r.Answerer = &without
	return &strategy{name: "extract", answer: (*asking).extract}
}
