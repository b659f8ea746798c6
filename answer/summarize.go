package answer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"ibid/retrieve"
)

// A Summary is what a person wants summarized.
type Summary struct {
	// Passages are the whole text in reading order, cut into pieces:
	// Passages[i] is cited by the label [i+1].
	Passages []retrieve.Passage
	// Strategy is "refine" (part after part), "map-reduce" (parts side by
	// side, then together), "stuff" (one call) or "auto" (or empty): one call
	// if everything fits it, else map-reduce.
	Strategy string
	// Words is about how long the summary should be; 0 leaves it to the model.
	Words int
	// Run makes the summary one that can be taken up again after a crash;
	// nil for one that cannot.
	Run *Run
}

// MaxSummaryWords is the largest number of words that may be asked for.
const MaxSummaryWords = 10_000

// Summarize summarizes a text, with the labels of the passages that each
// statement rests on. Its events are those of [Answerer.Ask], without a search
// and a gate: Kept first, then Draft and Stepped for each call, Text for the
// last, Usage at the end. A summary that lacks a part of the text, because a
// call failed or the budget of the context window ended, says so by Incomplete.
//
// The sequence is lazy and single-use; what [Answerer.Ask] says of breaking
// out of it and of errors holds here too. There is no summary without a Model.
func (a *Answerer) Summarize(ctx context.Context, s Summary) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		limited := *a
		limited.KeepDuplicates = true // a text may say a thing twice
		limited.AnswerCalls = -1
		r := &run{Answerer: &limited, summary: &s, kept: s.Run, started: time.Now(), yield: yield}
		if err := r.summarize(ctx); err != nil && !r.stopped {
			yield(nil, err)
		}
	}
}

func (r *run) summarize(ctx context.Context) error {
	s := r.summary
	switch {
	case r.Model == nil:
		return &QuestionError{"model", "a summary needs a model, and none is set: choose one with --model"}
	case s.Words < 0 || s.Words > MaxSummaryWords:
		return &QuestionError{"max_words", fmt.Sprintf("a summary of %d words cannot be asked for: give a number up to %d, or 0 to leave it to the model", s.Words, MaxSummaryWords)}
	case len(s.Passages) == 0:
		return &QuestionError{"empty", "there is no text to summarize"}
	}
	switch s.Strategy {
	case "", "auto", "stuff", "refine", "map-reduce":
	default:
		return &QuestionError{"strategy", fmt.Sprintf("there is no strategy %q for summaries: use auto, refine, map-reduce or stuff", clip(s.Strategy, 40))}
	}
	if err := r.checkSlots(s.Passages, promptSummarize, promptExtend, string(RoleMap)); err != nil {
		return err
	}
	r.usage.Looked = len(s.Passages)
	strategy := s.Strategy
	if strategy != "refine" && strategy != "map-reduce" {
		batches, _, err := r.pack(s.Passages, RoleAnswer, RoleAnswer, r.left())
		if err != nil {
			return err
		}
		fits := len(batches) == 1
		r.cutShort = nil // it was a trial
		if strategy == "stuff" && !fits {
			return &QuestionError{"strategy", fmt.Sprintf("the text does not fit one call (it takes about %d): use the strategy map-reduce or refine, or raise --context-tokens (%d now)", len(batches), or(r.ContextTokens, defaultContextTokens))}
		}
		strategy = "map-reduce"
		if fits {
			strategy = "refine" // of one batch: one call
		}
	}
	if strategy == "map-reduce" {
		return r.mapReduce(ctx, s.Passages)
	}
	w := &whole{run: r, ctx: ctx, yield: r.yield, of: len(s.Passages), unread: map[int]bool{}}
	r.yield = w.event
	for label := 1; label <= w.of; label++ {
		w.unread[label] = true
		w.shown = append(w.shown, label)
	}
	return r.refine(ctx, s.Passages, r.left())
}

// A whole stands behind the refine loop and sees to it that a summary which
// lacks a part of the text says so, and cites nothing that was made up.
type whole struct {
	run    *run
	ctx    context.Context
	yield  func(Event, error) bool
	of     int
	unread map[int]bool // labels
	shown  []int
	sieve  *sieve
	marked bool   // Incomplete was said
	reason string // of the last step that gave nothing
}

func (w *whole) event(e Event, err error) bool {
	if err != nil {
		return w.yield(e, err)
	}
	if err := canceled(w.ctx); err != nil {
		w.yield(nil, err)
		return false
	}
	switch e := e.(type) {
	case Text:
		if w.sieve == nil {
			w.sieve = newSieve(w.shown, true)
		}
		out := w.sieve.feed(e.Text)
		return out == "" || w.yield(Text{Text: out}, nil)
	case Stepped:
		w.stepped(e)
	case Unanswered:
		w.yield(nil, errors.New("the model gave nothing but empty replies: try again, or another model"))
		return false
	case Incomplete:
		w.marked = true
		if !w.flush() {
			return false
		}
	case Usage:
		if !w.flush() {
			return false
		}
		if lacks := w.lacks(); lacks != "" && !w.marked {
			if !w.yield(Incomplete{Reason: lacks}, nil) {
				return false
			}
		}
	}
	return w.yield(e, nil)
}

func (w *whole) stepped(e Stepped) {
	if e.Changed || e.Reason == "same" || e.Reason == metaRemark {
		for _, label := range e.Labels {
			delete(w.unread, label)
		}
		return
	}
	w.reason = e.Reason
	if e.Step == 0 { // in no prompt
		w.shown = without(w.shown, e.Labels)
	}
}

// lacks says what of the text is not in the summary.
func (w *whole) lacks() string {
	if n := len(w.unread); n > 0 {
		return fmt.Sprintf("%d of %d passages are not in it: %s", n, w.of, w.why())
	}
	return w.run.lacksEnds()
}

func (w *whole) why() string {
	if w.reason == "answer_too_long" {
		return "the summary has grown too long for the context window: ask for fewer words, raise --context-tokens, or use the strategy map-reduce"
	}
	return "calls to the model failed or gave nothing (" + w.reason + ")"
}

// flush gives what the sieve holds back.
func (w *whole) flush() bool {
	if w.sieve == nil {
		return true
	}
	out := w.sieve.close()
	w.sieve = nil
	return out == "" || w.yield(Text{Text: out}, nil)
}

// template gives the name of the template for a role: the first call and the
// refining ones of a summary are told other things than those of an answer.
func (r *run) template(role Role) string {
	if r.summary != nil {
		switch role {
		case RoleAnswer:
			return promptSummarize
		case RoleRefine:
			return promptExtend
		}
	}
	return string(role)
}

// Templates that are not named after their role.
const (
	promptSummarize = "summarize"
	promptExtend    = "extend"
)
