package answer

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"ibid/answer/prompt"
	"ibid/answer/replay"
	"ibid/retrieve"
)

// A Summary is a text to summarize, and the options.
type Summary struct {
	// Passages are the whole text in reading order, cut into pieces:
	// Passages[i] is cited by the label [i+1].
	Passages []retrieve.Passage
	// Strategy is "refine" (part after part), "map-reduce" (parts in parallel,
	// then combined), "stuff" (one call) or "auto" (or empty): one call if
	// everything fits, else map-reduce.
	Strategy string
	// Words is the approximate length of the summary; 0 leaves it to the model.
	Words int
	// Recorder, if not nil, makes the summary resumable after a crash.
	Recorder *replay.Recorder
}

// MaxSummaryWords is the largest value of [Summary.Words].
const MaxSummaryWords = 10_000

// Summarize summarizes a text, and cites the passages that each statement is
// based on. It emits Kept, then Draft and Stepped for each call, Text for the
// last one, and Usage at the end. If the summary lacks a part of the text, because
// a call failed or the context window was too small, it emits Incomplete.
//
// The sequence is lazy and single-use, with the errors and the cancellation of
// [Answerer.Ask]. It needs a Model.
func (a *Answerer) Summarize(ctx context.Context, s Summary) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		c := a.newCaller(yield, s.Recorder)
		c.callLimit, c.budget, c.writer.Budget = -1, 0, nil
		c.summary, c.writer.Words = &s, s.Words
		if err := (&writing{Answerer: a, caller: c}).summarize(ctx); err != nil && !c.stopped {
			yield(nil, err)
		}
	}
}

func (w *writing) summarize(ctx context.Context) error {
	s := w.summary
	if err := s.checkSummary(w.Model != nil); err != nil {
		return err
	}
	w.usage.Looked = len(s.Passages)
	name := s.Strategy
	if name != "refine" && name != "map-reduce" {
		trial := *w.writer // a copy, so that no passage counts as shortened
		batches, _, err := trial.Pack(s.Passages, prompt.Summarize, prompt.Summarize, w.callsLeft())
		switch {
		case err != nil:
			return err
		case len(batches) == 1:
			name = "stuff"
		case name == "stuff":
			return &QuestionError{"strategy", fmt.Sprintf("the text does not fit one call (it takes about %d): "+
				"use the strategy map-reduce or refine, or raise --context-tokens (%d now)", len(batches), w.writer.ContextTokens)}
		default:
			name = "map-reduce"
		}
	}
	strategy, err := findStrategy(name, true)
	if err != nil {
		return err
	}
	return strategy.answerFrom(ctx, w, s.Passages)
}

func (s *Summary) checkSummary(model bool) error {
	switch {
	case !model:
		return &QuestionError{"model", "a summary needs a model, and none is set: choose one with --model"}
	case s.Words < 0 || s.Words > MaxSummaryWords:
		return &QuestionError{"max_words", fmt.Sprintf("a summary cannot have %d words: give a number up to %d, "+
			"or 0 to leave it to the model", s.Words, MaxSummaryWords)}
	case len(s.Passages) == 0:
		return &QuestionError{"empty", "there is no text to summarize"}
	}
	if s.Strategy != "" && !slices.Contains(SummaryStrategies(), s.Strategy) {
		return &QuestionError{"strategy", fmt.Sprintf("there is no strategy %q for summaries: use %s",
			prompt.Clip(s.Strategy, 40), alternatives(SummaryStrategies()))}
	}
	return nil
}
