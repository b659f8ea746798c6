// Package answer answers questions from documents.
//
// Begin with [Answerer.Ask]. It searches, keeps the passages that are on topic,
// and answers from them: with a [Model] by one of several strategies, or, if no
// model is set, by quoting the sentences that answer the question. The result
// is a stream of [Event] values. Each passage has a label, "[1]" and so on,
// that is the same in every draft; package cite turns labels into numbered
// sources.
//
// If no passage is on topic or contains an answer, the stream has an
// [Unanswered] event. Code decides this, not the model's prose.
package answer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"ibid/answer/extract"
	"ibid/answer/prompt"
	"ibid/retrieve"
)

// A Retriever finds passages; *retrieve.Index is one.
type Retriever interface {
	Search(ctx context.Context, q retrieve.Query) ([]retrieve.Passage, error)
}

// A Counter is a [Retriever] that also counts the chunks in which a term occurs.
// If a Retriever is not a Counter, terms are counted in the passages that it
// finds.
type Counter interface {
	Stats(ctx context.Context, terms []string) (retrieve.Stats, error)
}

// A TurnTaker is a [Retriever] whose searches wait for their turn. Scoring passages
// is as much work as a search, so it waits for a turn too.
type TurnTaker interface {
	WaitTurn(ctx context.Context) (end func(), err error)
}

// An Answerer answers questions. Only Retriever must be set. It is safe for
// concurrent use as long as its fields are not changed.
type Answerer struct {
	Retriever Retriever

	// Model drafts and refines. If it is nil, answers are quoted sentences.
	Model Model
	// GateModel judges passages; nil means Model.
	GateModel Model
	// RefineModel makes the refine calls after the first draft; nil means Model.
	RefineModel Model
	// Translations stores the questions that Model has translated; nil stores none.
	Translations *Translations
	// NoFallback makes it an error if the model gives no answer. By default,
	// sentences are quoted instead.
	NoFallback bool
	// Trust, if not nil, is called when a question begins and returns how far the
	// models are trusted. end is called when the question has ended.
	Trust func() (t Trust, end func())
	// Gate says how passages are judged; empty means [GateAuto].
	Gate GateKind
	// Unproved says how to treat a statement that no passage supports or that
	// does not answer the question; empty means that statements are not checked.
	Unproved Unproved
	// Embedder may be an *embed.Model that is already loaded. Otherwise one is
	// loaded at the first question, regardless of the index's embedder,
	// because the chances are calibrated for that model.
	Embedder retrieve.Embedder
	// Encoder returns the encoder that gives sentences a second score, used to
	// choose or refuse answers without a model. It and its result may be nil.
	Encoder func() retrieve.Encoder
	// Prompts are the prompt templates; nil means [prompt.Default].
	Prompts *prompt.Templates
	// Style says how all answers should sound and look. It precedes a question's own Style.
	Style string

	// JudgeCalls is how many passages and statements of a question a model may judge,
	// not counting retries; 0 means 12, less than 0 no limit. If there is a limit, a
	// model whose first three calls fail is not called again.
	JudgeCalls int
	// JudgeTokens limits the total tokens in the prompts of these calls; 0 means
	// 8,000, less than 0 no limit. If statements are proved, passages may use half
	// of each budget.
	JudgeTokens int
	// JudgeTime is how long the judging of a question may take; 0 means a
	// minute, less than 0 no limit. It is never more than half of the time until
	// the context's deadline. Once a limit is reached, scores decide about the
	// remaining passages.
	JudgeTime time.Duration
	// AnswerCalls limits the other calls for a question: drafts, refinements,
	// partial answers and their combination, and retries with less evidence; 0
	// means 6, less than 0 no limit.
	AnswerCalls int
	// BudgetTokens limits the total tokens in all prompts for a question,
	// including prompts for judges. Passages that do not fit are not read.
	// No tokens are reserved for retries. 0 means no limit; less than
	// [LeastBudget] is too little for almost any question.
	BudgetTokens int
	// Parallel is how many judge calls run at a time; 0 means 12, so that
	// judging takes one round trip. Use fewer for a server that handles one
	// call at a time, since a waiting call can reach its time limit.
	Parallel int

	// ContextTokens is the model's context window: prompt and reply together.
	// 0 means 4096. A margin of 15 % is left, since the model's tokenizer is
	// not Ibid's.
	ContextTokens int
	// StepTokens is how many tokens of evidence go into one call, at least one
	// whole passage: 1 refines the answer passage by passage. 0 fills the
	// context window.
	StepTokens int
	// MaxDraftTokens ends refining when the draft is longer; 0 means that only
	// the context window limits it.
	MaxDraftTokens int
	// Confidence is the least chance, 0 to 1, that a quoted sentence answers the
	// question. Below it the question is unanswered. It applies to answers
	// without a model. 0 means [DefaultConfidence], less than 0 no limit.
	Confidence float64
	// Count measures text in tokens; nil means ingest.CountTokens.
	Count func(text string) int
}

const (
	defaultJudgeCalls    = 12
	defaultJudgeTokens   = 8000
	defaultJudgeTime     = time.Minute
	defaultAnswerCalls   = 6
	defaultParallel      = 12
	defaultContextTokens = 4096

	// LeastBudget is enough tokens for the instructions, a question of a few lines and a passage.
	LeastBudget = 500

	// DefaultConfidence is the least chance of an answer without a model.
	DefaultConfidence = extract.DefaultConfidence
)

// Ask answers a question. The sequence is lazy and single-use. An error ends it;
// a [*QuestionError] means that the question is not valid. After the first [Text]
// there are no more errors: if something fails, the stream ends with [Incomplete].
// Breaking out of the range stops every call to a model at once, and no
// goroutine is left when the range ends.
func (a *Answerer) Ask(ctx context.Context, q Question) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := &asking{Answerer: *a, caller: a.newCaller(yield, q.Recorder), question: q}
		defer r.verifying.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if a.Trust != nil {
			trust, end := a.Trust()
			defer end()
			r.trust = trust
		}
		if err := r.answerQuestion(ctx); err != nil && !r.stopped {
			yield(nil, err)
		}
	}
}

// An asking is a question that is being answered. It controls the order of the steps:
// the finder searches, the gate selects passages, and the strategy writes the answer
// from them, using the writing.
type asking struct {
	Answerer // for this question
	*caller
	question Question
	trust    Trust
	strategy *strategy

	finder  *finder
	gate    *gate
	writing *writing
}

func (r *asking) answerQuestion(ctx context.Context) error {
	if err := r.checkQuestion(); err != nil {
		return err
	}
	if r.trust.Distrust != "" && !r.NoFallback && r.strategy.usesModel {
		r.distrustModel()
	}
	language, question := smallTalk(r.question.Text)
	if language != "" {
		return r.replyToTalk(ctx, language)
	}
	r.question.Text = question
	r.makeParts(ctx)
	var err error
	if r.finder.standalone, err = r.finder.condenseQuestion(ctx); err != nil {
		return err
	}
	r.writer.Question = r.finder.standalone
	var found []retrieve.Passage
	if r.strategy.usesModel {
		found, err = r.finder.searchTranslated(ctx, r.question.TopK, r.Gate == GateOff)
	} else {
		found, err = r.finder.searchPassages(ctx, r.question.TopK, nil)
	}
	if err != nil {
		return err
	}
	if !r.finder.emitRetrieved(found) {
		return nil
	}
	if len(found) == 0 {
		return r.refuseAnswer(ctx, nothingFound, nil)
	}
	if r.finder.reading == nil { // searchTranslated may have read them already
		if err := r.finder.readPassages(ctx, found); err != nil {
			return err
		}
	}
	err = r.answerFrom(ctx, found)
	if errors.Is(err, prompt.ErrBudget) {
		return &QuestionError{"too_long", fmt.Sprintf("the question, with the instructions and a passage, takes more than the %d tokens "+
			"that --budget-tokens allows: ask in fewer words, or raise it", r.budget)}
	}
	if r.stopped || r.NoFallback || !allowsFallback(ctx, err) {
		return err
	}
	return r.quoteInstead(ctx, found, err)
}

func (r *asking) makeParts(ctx context.Context) {
	r.finder = &finder{Answerer: &r.Answerer, caller: r.caller, question: r.question, standalone: r.question.Text}
	r.writing = &writing{Answerer: &r.Answerer, caller: r.caller, finder: r.finder}
	var j *judge
	if r.Gate != GateOff {
		j = r.newJudge(ctx, r.caller, r.trust)
	}
	if r.strategy.usesModel && r.Unproved != UnprovedOff {
		r.writing.proves, r.writing.judge = r.Unproved != "", j
	}
	r.gate = newGate(r.Gate, r.finder, j, r.writing.proves)
	if j != nil && r.writing.proves {
		r.reservedShare = sparedForProof
	}
	r.setStyle()
}

// answerFrom judges the passages that were found, and answers from the kept ones.
func (r *asking) answerFrom(ctx context.Context, found []retrieve.Passage) error {
	judged, err := r.gate.judgePassages(ctx, found)
	if err != nil || r.stopped {
		return err
	}
	w, kept := r.writing, keptPassages(found, judged)
	w.mayWiden = r.strategy.usesModel && !r.gate.isFinal(found)
	if len(kept) == 0 && !(w.canWiden() && slices.ContainsFunc(judged, isDoubted)) {
		return r.refuseAnswer(ctx, nothingRelevant, found)
	}
	first := kept
	if r.strategy.defersPassages && w.canWiden() {
		first, w.deferred = r.finder.selectFirst(kept)
	}
	if len(first) > 0 {
		if err = r.strategy.answerFrom(ctx, w, first); !errors.Is(err, errNoAnswer) {
			return err
		}
	}
	if w.canWiden() {
		if err = r.lookWider(ctx, found, first); !errors.Is(err, errNoAnswer) {
			return err
		}
	}
	if len(kept) == 0 {
		kept = found
	}
	return r.refuseAnswer(ctx, noAnswer, kept)
}

var errNoAnswer = errors.New("the passages do not hold the answer")

// allowsFallback reports whether sentences may be quoted after a model's error.
func allowsFallback(ctx context.Context, err error) bool {
	return ctx.Err() == nil && fallbackReason(err) != ""
}

// quoteInstead answers without the model, which gave no answer.
func (r *asking) quoteInstead(ctx context.Context, found []retrieve.Passage, why error) error {
	r.emit(Fallback{Reason: fallbackReason(why), Err: why})
	r.warn("the model gave no answer, so sentences of the documents are quoted: %s", why)
	r.gate.kind, r.strategy = GateScore, &extracting
	if err := r.finder.readPassages(ctx, found); err != nil { // lookWider has read other passages
		return err
	}
	return r.answerFrom(ctx, found)
}

// distrustModel has the question answered without the model, whose answers are
// not trusted.
func (r *asking) distrustModel() {
	why := "the model did not pass its self-test (" + r.trust.Distrust + "), so sentences of the documents are quoted: " +
		"select another --model, or trust this one with --no-self-test"
	r.emit(Fallback{Reason: "model_untrusted", Err: errors.New(why)})
	r.warn("%s", why)
	r.Model, r.GateModel, r.Gate, r.strategy = nil, nil, GateScore, &extracting
}

// setStyle sets the style that prompts show, made inert and shortened to an eighth of
// the context window.
func (r *asking) setStyle() {
	whole := strings.TrimSpace(prompt.Inert(r.Style + "\n" + r.question.Style))
	if whole == "" || r.Model == nil {
		return
	}
	r.writer.Style = strings.TrimSpace(r.writer.Fit(whole, r.writer.Window()/8))
	if r.writer.Style != whole {
		r.warn("the end of the style of the answer was left out: it has %d tokens, and may take up an eighth of "+
			"the model's context window: shorten it, or raise --context-tokens (%d now)",
			r.writer.Count(whole), r.writer.ContextTokens)
	}
}

// checkQuestion validates the question and finds its strategy.
func (r *asking) checkQuestion() (err error) {
	q := &r.question
	q.Text = strings.TrimSpace(strings.ToValidUTF8(q.Text, ""))
	switch {
	case q.Text == "":
		return &QuestionError{"empty", "the question is empty: ask something in a sentence or a few words"}
	case len(q.Text) > MaxQuestionBytes:
		return &QuestionError{"too_long", fmt.Sprintf("the question is %d bytes long, and %d is the most: "+
			"put long text into a document and ask about it", len(q.Text), MaxQuestionBytes)}
	case q.TopK < 0:
		return &QuestionError{"top_k", fmt.Sprintf("top_k is %d: it must be 0 (the default) or more", q.TopK)}
	}
	for i, t := range q.History {
		if t.Role != "user" && t.Role != "assistant" {
			return &QuestionError{"history", fmt.Sprintf("turn %d of the history has the role %q: it must be user or assistant", i+1, t.Role)}
		}
	}
	r.strategy, err = findStrategy(q.Strategy, r.Model != nil)
	return err
}

// refuseAnswer ends the stream without an answer. If passages were kept, it shows
// their parts that are nearest to the question.
func (r *asking) refuseAnswer(ctx context.Context, reason string, nearest []retrieve.Passage) (err error) {
	e := Unanswered{
		Reason: reason, Text: refusal(reason, r.question.Text), Closest: []Closest{},
		Nearest: append([]retrieve.Passage{}, nearest[:min(len(nearest), 3)]...),
	}
	if r.strategy.usesModel {
		r.warnUnread()
	}
	if reason == noAnswer {
		if e.Closest, err = r.finder.closestParts(ctx, nearest); err != nil {
			return err
		}
		if !r.strategy.usesModel && len(e.Closest) > 0 {
			e.Text = refusal(uncertain, r.question.Text)
		}
	}
	if r.emit(e) {
		r.emitUsage()
	}
	return nil
}

// warnUnread warns about passages that were found but not read, and says why.
func (r *asking) warnUnread() {
	const left = "of the passages that were found, %d could not be read: "
	calls := 0
	for _, why := range r.unreadReasons {
		if why == noCalls || why == deferred && r.callsLeft() == 0 {
			calls++
		}
	}
	flags := fmt.Sprintf("--context-tokens (%d)", r.writer.ContextTokens)
	if r.writer.StepTokens > 0 {
		flags = fmt.Sprintf("--step-tokens (%d) or %s", r.writer.StepTokens, flags)
	}
	if calls > 0 {
		r.warn(left+"a question has %d calls to the model at most; --strategy refine reads up to %s in each", calls, r.callLimit, flags)
	}
	if n := len(r.unreadReasons) - calls; n > 0 {
		if r.budget > 0 {
			flags += fmt.Sprintf(" or --budget-tokens (%d)", r.budget)
		}
		r.warn(left+"%s has no room for more", n, flags)
	}
}
