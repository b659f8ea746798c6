package answer

import (
	"context"
	"errors"

	"ibid/retrieve"
)

// allowsFallback reports whether an error of a model is one after which sentences may be
// quoted.
func allowsFallback(ctx context.Context, err error) bool {
	return ctx.Err() == nil && fallbackReason(err) != ""
}

// quoteInstead answers as without a model, since the model gave no answer.
func (r *asking) quoteInstead(ctx context.Context, found []retrieve.Passage, why error) error {
	r.emit(Fallback{Reason: fallbackReason(why), Err: why})
	r.warn("the model gave no answer, so sentences of the documents are quoted: %s", why)
	r.gate.kind, r.strategy = GateScore, &extracting
	if err := r.finder.readPassages(ctx, found); err != nil { // a wider look has read others
		return err
	}
	return r.answerFrom(ctx, found)
}

// distrustModel has the question answered as without a model, since the model's answers
// are not believed.
func (r *asking) distrustModel() {
	why := "the model did not pass its self-test (" + r.trust.Distrust + "), so sentences of the documents are quoted: " +
		"select another --model, or believe this one with --no-self-test"
	r.emit(Fallback{Reason: "model_untrusted", Err: errors.New(why)})
	r.warn("%s", why)
	r.Model, r.GateModel, r.Gate, r.strategy = nil, nil, GateScore, &extracting
}
