package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ibid/answer/extract"
	"ibid/answer/prompt"
	"ibid/retrieve"
)

// A strategy is how passages become an answer.
type strategy struct {
	name string
	// writes says that a model writes the answer, deepens that it reads a few
	// passages, and more only if these do not hold the answer.
	writes, deepens bool
	// answer answers from the kept passages, of which there is at least one, and
	// ends the stream with Usage; or it returns errNoAnswer, having emitted
	// neither Draft nor Text.
	answer func(r *asking, ctx context.Context, kept []retrieve.Passage) error
}

// strategies are all strategies. The help of the command line, the validation of
// requests and the description of the API are derived from this table.
func strategies() []strategy {
	return []strategy{
		{"refine", true, true, (*asking).refineAll},
		{"stuff", true, false, (*asking).stuff},
		{"map-reduce", true, false, (*asking).mapReduce},
		{"map-rerank", true, false, (*asking).mapRerank},
		{"extract", false, false, (*asking).extract},
	}
}

// Strategies lists what [Question.Strategy] may be: "auto", then each strategy
// by its name.
func Strategies() []string {
	names := []string{"auto"}
	for _, s := range strategies() {
		names = append(names, s.name)
	}
	return names
}

// SummaryStrategies lists what [Summary.Strategy] may be.
func SummaryStrategies() []string { return []string{"auto", "refine", "stuff", "map-reduce"} }

// findStrategy finds a strategy by its name. "auto" is refine with a model and
// extract without one.
func findStrategy(name string, model bool) (*strategy, error) {
	if name == "" || name == "auto" {
		name = "extract"
		if model {
			name = "refine"
		}
	}
	for _, s := range strategies() {
		if s.name != name {
			continue
		}
		if s.writes && !model {
			return nil, &QuestionError{"strategy", fmt.Sprintf("the strategy %s needs a model, and none is set: "+
				"choose one with --model, or the strategy extract", name)}
		}
		return &s, nil
	}
	return nil, &QuestionError{"strategy", fmt.Sprintf("there is no strategy %q: use %s", prompt.Clip(name, 40), alternatives(Strategies()))}
}

// apply answers by a strategy, once more in half of the context window if a prompt
// did not fit the model's.
func (r *asking) apply(ctx context.Context, s *strategy, kept []retrieve.Passage) error {
	err := s.answer(r, ctx, kept)
	if !errors.Is(err, ErrContextLength) || r.stopped || r.left() == 0 {
		return err
	}
	r.warn("a prompt did not fit the model's context window, so only half of it is used: lower --context-tokens (%d now)",
		r.writer.ContextTokens)
	r.writer.ContextTokens /= 2
	return s.answer(r, ctx, kept)
}

// alternatives lists names: "a, b or c".
func alternatives(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// extract answers without a model: with sentences of the passages, word for
// word and each with its label.
func (r *asking) extract(ctx context.Context, kept []retrieve.Passage) error {
	quotes, rest, err := r.quotes(ctx, kept, r.nextPassage)
	if err != nil {
		return err
	}
	if len(quotes) == 0 {
		return errNoAnswer
	}
	if !r.emit(Kept{Passages: append(slices.Clip(kept), rest...)}) {
		return nil
	}
	cited := map[int]bool{}
	for _, q := range quotes {
		cited[q.Passage] = true
		if !r.emit(Text{Text: q.Text, Plain: true}) {
			return nil
		}
	}
	r.usage.Used = len(cited)
	r.finish()
	return nil
}

// quotes returns the sentences that answer, if the chance that they do is high enough,
// and the passages that they go on in.
func (r *asking) quotes(ctx context.Context, kept []retrieve.Passage, next extract.Next) ([]extract.Quote, []retrieve.Passage, error) {
	return r.reading.Quote(ctx, kept, cmp.Or(r.Confidence, DefaultConfidence), next)
}

// gap is how many bytes are between passages that follow each other, at most.
const gap = 8

// nextPassage finds the passage that follows another among those of its document that
// are nearest to its text.
func (r *asking) nextPassage(ctx context.Context, p retrieve.Passage) (next retrieve.Passage, ok bool, err error) {
	q := retrieve.Query{Text: p.Heading + "\n" + p.Text[len(p.Text)/2:], K: 24, Filter: r.question.Filter}
	q.Filter.Document = p.Document
	near, err := r.Retriever.Search(ctx, q)
	if err != nil {
		return next, false, fmt.Errorf("searching for the rest of a list: %w", err)
	}
	i := slices.IndexFunc(near, func(n retrieve.Passage) bool {
		return n.Document == p.Document && n.Digest == p.Digest && n.Start <= p.End+gap && p.End < n.End
	})
	if i < 0 {
		return next, false, nil
	}
	return near[i], true, nil
}
