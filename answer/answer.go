// Package answer turns a question into an answer that rests on documents.
//
// [Answerer.Ask] is the one way in. It searches, keeps the passages that are
// on topic, and makes an answer of them: with a [Model] by drafting from the
// first kept passages and refining with the rest, without one by quoting the
// sentences that answer. What happens is told as a stream of [Event] values.
// Each passage has a label, "[1]" and so on, that stays the same from the
// first draft to the last; package cite turns labels into numbered sources.
//
// When nothing on topic was found, or what was found holds no answer, the
// stream says [Unanswered]: that is decided by code, never left to prose.
package answer

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
)

// A Retriever finds passages; *retrieve.Index is one.
type Retriever interface {
	Search(ctx context.Context, q retrieve.Query) ([]retrieve.Passage, error)
}

// A Counter is a [Retriever] that also knows in how many of its chunks a term
// stands. One that is not is taken at the passages it finds.
type Counter interface {
	Stats(ctx context.Context, terms []string) (retrieve.Stats, error)
}

// An Answerer answers questions. Only Retriever must be set. It is safe for
// concurrent use as long as its fields are not changed.
type Answerer struct {
	Retriever Retriever

	// Model drafts and refines. Without one, answers are quoted sentences.
	Model Model
	// GateModel judges passages; nil means Model.
	GateModel Model
	// RefineModel does the refine steps after the first draft; nil means Model.
	RefineModel Model
	// Gate is how passages are judged; empty means [GateBoth] with a model
	// and [GateScore] without one.
	Gate GateKind
	// Embedder is the *embed.Model that compares the words of question and
	// passages, where one is loaded already. With nil or any other embedder
	// one is loaded at the first question: the chances are calibrated on it,
	// whatever the index is embedded with, and it is asked for every word.
	Embedder retrieve.Embedder
	// Prompts are the prompt templates; nil means [DefaultPrompts].
	Prompts *Prompts

	// JudgeCalls is how many passages of a question a model may judge, not
	// counting retries; 0 means 12, less than 0 no limit. Within a limit, a
	// model whose calls have all failed, for three passages at least, is asked
	// about no further one.
	JudgeCalls int
	// JudgeTokens is how many tokens the judging of a question may cost,
	// prompts and replies, not counting retries; 0 means no limit.
	JudgeTokens int
	// JudgeTime is how long the judging of a question may take; 0 means a
	// minute, less than 0 no limit. It is never more than half of the time that
	// the context leaves. What none of the budgets reaches is decided
	// by its score.
	JudgeTime time.Duration
	// AnswerCalls is how many calls a question may cost besides those of
	// judges: drafts, refining, parts and what is made of them, and what is
	// asked again from less evidence; 0 means 6, less than 0 no limit.
	AnswerCalls int
	// Parallel is how many judge calls run at a time; 0 means 12, so that
	// judging takes one round trip. A server that works on one call after the
	// other is better off with fewer: a call that waits there for its turn
	// runs into its time limit.
	Parallel int

	// ContextTokens is the model's context window: prompt and reply together.
	// 0 means 4096. A margin of 15 % is left for foreign tokenisers.
	ContextTokens int
	// StepTokens is how many tokens of evidence go into one step, one whole
	// passage at the least: with 1 an answer is refined passage by passage. 0
	// means as many as the context window has room for.
	StepTokens int
	// StepPassages is the largest number of passages in one step; 0 means no
	// limit, 1 refines passage by passage.
	StepPassages int
	// MaxDraftTokens ends refining when the draft is longer; 0 means no limit
	// but the context window.
	MaxDraftTokens int
	// KeepDuplicates has every passage read. Without it, one that repeats
	// another word for word is read only where nothing came of the other.
	KeepDuplicates bool
	// Count measures text in tokens; nil means ingest.CountTokens.
	Count func(text string) int
}

const (
	defaultJudgeCalls    = 12
	defaultJudgeTime     = time.Minute
	defaultAnswerCalls   = 6
	defaultParallel      = 12
	defaultContextTokens = 4096
	contextMargin        = .85
)

// Ask answers a question. Nothing happens before the sequence is ranged over,
// and it can be ranged over once. An error ends it; a [*QuestionError] says
// that the question itself cannot be asked. Once an answer exists there is no
// error any more: what goes wrong later leaves the answer, if need be marked
// [Incomplete]. Breaking out of the range stops every call to a model at once,
// and nothing is left running when the range ends.
func (a *Answerer) Ask(ctx context.Context, q Question) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		r := &run{Answerer: a, question: q, kept: q.Run, started: time.Now(), yield: yield}
		if err := r.all(ctx); err != nil && !r.stopped {
			yield(nil, err)
		}
	}
}

// A run is the life of one question.
type run struct {
	*Answerer
	question Question
	asked    string // the standalone question
	style    string // the question's, as prompts show it
	reading  *reading
	started  time.Time
	usage    Usage
	made     int            // draft, refine, map, collapse, combine and rerank calls
	cutShort map[int]string // passages without their ends: titles by label, empty once told
	warned   bool           // of a prompt that the server cut
	unkept   bool           // the journal failed, and that was told
	summary  *Summary       // nil when a question is answered
	kept     *Run           // nil when it cannot be taken up again

	yield   func(Event, error) bool
	stopped bool // the range was left; nothing may be yielded any more
}

// emit yields an event and tells whether to go on.
func (r *run) emit(e Event) bool {
	if !r.stopped {
		r.stopped = !r.yield(e, nil)
	}
	return !r.stopped
}

// stepped emits how a step ended. Every step tells of its labels: that there
// are none is told by an empty list.
func (r *run) stepped(s Stepped) bool {
	for _, labels := range []*[]int{&s.Labels, &s.Invented, &s.Lost} {
		if *labels == nil {
			*labels = []int{}
		}
	}
	return r.emit(s)
}

// finish yields what the answer cost.
func (r *run) finish() {
	r.usage.Seconds = time.Since(r.started).Seconds()
	r.emit(r.usage)
}

func (r *run) all(ctx context.Context) error {
	strategy, err := r.check()
	if err != nil {
		return err
	}
	r.takeStyle()
	if err := r.condense(ctx); err != nil {
		return err
	}
	passages, err := r.Retriever.Search(ctx, retrieve.Query{
		Text: r.asked, K: r.question.TopK, Diversity: r.question.Diversity, Filter: r.question.Filter,
		Warn: func(err error) { r.emit(Warning{Message: err.Error()}) },
	})
	if err != nil {
		return fmt.Errorf("searching: %w", err) // without the question, which is in no log
	}
	if !r.emit(Retrieved{Question: r.asked, Passages: passages}) {
		return nil
	}
	if len(passages) == 0 {
		r.unanswered(nothingFound, nil)
		return nil
	}
	if err := r.checkSlots(passages, string(RoleJudge), string(RoleAnswer), string(RoleRefine), string(RoleMap), string(RoleRerank)); err != nil {
		return err
	}
	if r.reading, err = r.read(ctx, passages); err != nil {
		return err
	}
	judged, err := r.judge(ctx, passages)
	if err != nil || r.stopped {
		return err
	}
	kept := keep(passages, judged)
	if len(kept) == 0 {
		r.unanswered(nothingRelevant, passages)
		return nil
	}
	switch strategy {
	case "extract":
		return r.extract(ctx, kept, passages)
	case "stuff":
		return r.refine(ctx, kept, 1)
	case "map-reduce":
		return r.mapReduce(ctx, kept)
	case "map-rerank":
		return r.mapRerank(ctx, kept)
	}
	return r.refine(ctx, kept, r.left())
}

// takeStyle makes the question's style one that prompts can show.
func (r *run) takeStyle() {
	whole := strings.TrimSpace(inert(r.question.Style))
	if whole == "" || r.Model == nil {
		return
	}
	r.style = strings.TrimSpace(r.fit(Evidence{text: whole}, r.window()/8).text)
	if r.style != whole {
		r.emit(Warning{Message: fmt.Sprintf("the end of the wishes for the style of the answer was left out: they take %d tokens, and an eighth of the model's context window is the most: shorten them, or raise --context-tokens (%d now)", r.count(whole), or(r.ContextTokens, defaultContextTokens))})
	}
}

// check refuses what cannot be asked and settles the strategy.
func (r *run) check() (strategy string, err error) {
	q := &r.question
	q.Text = strings.TrimSpace(strings.ToValidUTF8(q.Text, ""))
	switch {
	case q.Text == "":
		return "", &QuestionError{"empty", "the question is empty: ask something in a sentence or a few words"}
	case len(q.Text) > MaxQuestionBytes:
		return "", &QuestionError{"too_long", fmt.Sprintf("the question is %d bytes long, and %d is the most: put long text into a document and ask about it", len(q.Text), MaxQuestionBytes)}
	case !(q.Diversity >= 0 && q.Diversity < 1):
		return "", &QuestionError{"diversity", fmt.Sprintf("the diversity is %g: it must be 0 (none) or more, and below 1", q.Diversity)}
	case q.TopK < 0:
		return "", &QuestionError{"top_k", fmt.Sprintf("top_k is %d: it must be 0 (the default) or more", q.TopK)}
	}
	for i, t := range q.History {
		if t.Role != "user" && t.Role != "assistant" {
			return "", &QuestionError{"history", fmt.Sprintf("turn %d of the history has the role %q: it must be user or assistant", i+1, t.Role)}
		}
	}
	switch q.Strategy {
	case "", "auto":
		if r.Model == nil {
			return "extract", nil
		}
		return "refine", nil
	case "extract":
		return "extract", nil
	case "refine", "stuff", "map-reduce", "map-rerank":
		if r.Model == nil {
			return "", &QuestionError{"strategy", fmt.Sprintf("the strategy %s needs a model, and none is set: choose one with --model, or the strategy extract", q.Strategy)}
		}
		return q.Strategy, nil
	}
	return "", &QuestionError{"strategy", fmt.Sprintf("there is no strategy %q: use auto, refine, stuff, map-reduce, map-rerank or extract", clip(q.Strategy, 40))}
}

func (r *run) unanswered(reason string, nearest []retrieve.Passage) {
	if len(nearest) > 3 {
		nearest = nearest[:3]
	}
	if nearest == nil {
		nearest = []retrieve.Passage{}
	}
	if r.emit(Unanswered{Reason: reason, Text: refusal(reason, r.question.Text), Nearest: nearest}) {
		r.finish()
	}
}

func (r *run) count(text string) int {
	if r.Count != nil {
		return r.Count(text)
	}
	return ingest.CountTokens(text)
}

func (r *run) prompts() *Prompts {
	if r.Prompts != nil {
		return r.Prompts
	}
	return DefaultPrompts()
}

// window is how many tokens prompt and reply may have together.
func (r *run) window() int {
	return int(contextMargin * float64(or(r.ContextTokens, defaultContextTokens)))
}

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// clip shortens s to at most n bytes, at a character's edge.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
