package answer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ibid/answer/prompt"
	"ibid/retrieve"
)

// A strategy is a way to make an answer from passages.
type strategy struct {
	name string
	// usesModel says that a model writes the answer; defersPassages says that it first
	// reads a few passages, and more only if they do not hold the answer. summarizes says
	// that it can also write a summary.
	usesModel, defersPassages, summarizes bool
	// answer answers from one or more kept passages and ends the stream with Usage.
	// If they do not hold the answer, it returns errNoAnswer and emits no Text.
	answer func(ctx context.Context, w *writing, kept []retrieve.Passage) error
}

// strategies returns all strategies. The help of the command line, the validation of
// requests and the description of the API are derived from this table.
func strategies() []strategy {
	return []strategy{
		// a draft from the first passages, refined with more; one call if all fit
		{name: "refine", usesModel: true, defersPassages: true, summarizes: true, answer: refineAll},
		// one call with as many passages as fit
		{name: "stuff", usesModel: true, summarizes: true, answer: stuff},
		// an answer from each part alone, then one from those answers
		{name: "map-reduce", usesModel: true, summarizes: true, answer: mapReduce},
		// the best answer from one passage, by the model's score
		{name: "map-rerank", usesModel: true, answer: mapRerank},
		extracting,
	}
}

// Strategies returns the values of [Question.Strategy]: "auto" and the names of the
// strategies.
func Strategies() []string { return strategyNames(func(strategy) bool { return true }) }

// SummaryStrategies returns the values of [Summary.Strategy].
func SummaryStrategies() []string {
	return strategyNames(func(s strategy) bool { return s.summarizes })
}

// strategyNames returns "auto" and the names of the strategies for which include returns true.
func strategyNames(include func(strategy) bool) []string {
	names := []string{"auto"}
	for _, s := range strategies() {
		if include(s) {
			names = append(names, s.name)
		}
	}
	return names
}

// findStrategy returns the strategy with a name. "auto" is refine if a model is set,
// else extract.
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
		if s.usesModel && !model {
			return nil, &QuestionError{"strategy", fmt.Sprintf("the strategy %s needs a model, and none is set: "+
				"choose one with --model, or the strategy extract", name)}
		}
		return &s, nil
	}
	return nil, &QuestionError{"strategy", fmt.Sprintf("there is no strategy %q: use %s", prompt.Clip(name, 40), alternatives(Strategies()))}
}

// answerFrom answers by the strategy. If a prompt did not fit the model's context window, it
// tries once more with half of --context-tokens.
func (s *strategy) answerFrom(ctx context.Context, w *writing, kept []retrieve.Passage) error {
	err := s.answer(ctx, w, kept)
	if !errors.Is(err, ErrContextLength) || w.stopped || w.callsLeft() == 0 {
		return err
	}
	w.warn("a prompt did not fit the model's context window, so only half of it is used: lower --context-tokens (%d now)",
		w.writer.ContextTokens)
	w.writer.ContextTokens /= 2
	return s.answer(ctx, w, kept)
}

func alternatives(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
