package answer

import (
	"context"
	"slices"

	"ibid/retrieve"
)

// extracting answers without a model.
var extracting = strategy{name: "extract", answer: quoteSentences}

// quoteSentences answers with verbatim sentences of the passages, each with its label.
func quoteSentences(ctx context.Context, w *writing, kept []retrieve.Passage) error {
	quotes, rest, err := w.finder.quotes(ctx, kept, w.finder.nextPassage)
	if err != nil {
		return err
	}
	if len(quotes) == 0 {
		return errNoAnswer
	}
	if !w.emit(Kept{Passages: append(slices.Clip(kept), rest...)}) {
		return nil
	}
	cited := map[int]bool{}
	for _, q := range quotes {
		cited[q.Passage] = true
		if !w.emit(Text{Text: q.Text, Plain: true}) {
			return nil
		}
	}
	w.usage.Used = len(cited)
	w.emitUsage()
	return nil
}
