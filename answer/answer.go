// Package answer answers questions from documents.
//
// Begin with [Answerer.Ask]. It searches, keeps the passages that are on topic,
// and makes an answer of them: with a [Model] by one of several strategies,
// without one by quoting the sentences that answer. The result is a stream of
// [Event] values. Each passage has a label, "[1]" and so on, that is the same
// from the first draft to the last; package cite turns labels into numbered
// sources.
//
// When nothing on topic was found, or nothing that was found holds an answer,
// the stream has [Unanswered]: code decides that, not the model's prose.
package answer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"ibid/answer/extract"
	"ibid/answer/prompt"
	"ibid/answer/replay"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
)

// A Retriever finds passages; *retrieve.Index is one.
type Retriever interface {
	Search(ctx context.Context, q retrieve.Query) ([]retrieve.Passage, error)
}

// A Counter is a [Retriever] that also counts in how many of its chunks a term
// occurs. For others, terms are counted in the passages that they find.
type Counter interface {
	Stats(ctx context.Context, terms []string) (retrieve.Stats, error)
}

// A TurnTaker is a [Retriever] whose searches wait for their turn. To read passages
// takes as much work, and waits for a turn as well.
type TurnTaker interface {
	Turn(ctx context.Context) (end func(), err error)
}

// An Answerer answers questions. Only Retriever must be set. It is safe for
// concurrent use as long as its fields are not changed.
type Answerer struct {
	Retriever Retriever

	// Model drafts and refines. Without one, answers are quoted sentences.
	Model Model
	// GateModel judges passages; nil means Model.
	GateModel Model
	// RefineModel makes the refine calls after the first draft; nil means Model.
	RefineModel Model
	// Translations keeps the questions that Model has translated; nil keeps none.
	Translations *Translations
	// NoFallback makes it an error when the model gives no answer: sentences are
	// quoted otherwise.
	NoFallback bool
	// Trust says how far the models are believed, as a question begins; end is called
	// when it has ended. Nil means that they are.
	Trust func() (t Trust, end func())
	// Gate is how passages are judged; empty means [GateAuto].
	Gate GateKind
	// Unproved says how to treat a statement that nothing bears out, or that is
	// off the question; empty means that statements are shown unproved.
	Unproved Unproved
	// Embedder may be the *embed.Model that compares the words of question and
	// passages, if one is loaded already. For nil and any other embedder one is
	// loaded at the first question: the chances are calibrated on that model,
	// whatever the index is embedded with.
	Embedder retrieve.Embedder
	// Encoder, if it and what it returns are not nil, gives sentences a second score, by
	// which answers without a model are chosen and refused.
	Encoder func() retrieve.Encoder
	// Prompts are the prompt templates; nil means [prompt.Default].
	Prompts *prompt.Templates
	// Style says how all answers should sound and look, before a question's own Style.
	Style string

	// JudgeCalls is how many passages and statements of a question a model
	// may judge, not counting retries; 0 means 12, less than 0 no limit. Within a limit, a
	// model whose calls have all failed, for three passages at least, judges no
	// further one.
	JudgeCalls int
	// JudgeTokens is how many tokens the prompts of these calls may have together; 0
	// means 8,000, less than 0 no limit. Where statements are proved, passages have two
	// thirds of each of these budgets.
	JudgeTokens int
	// JudgeTime is how long the judging of a question may take; 0 means a
	// minute, less than 0 no limit. It is never more than half of the time that
	// the context leaves. Passages beyond these limits are decided by score.
	JudgeTime time.Duration
	// AnswerCalls is how many other calls a question may cost: drafts, refining,
	// partial answers and their combination, and what is repeated with less
	// evidence; 0 means 6, less than 0 no limit.
	AnswerCalls int
	// BudgetTokens is how many tokens all prompts of a question may have together, those
	// of judges too: passages that it has no room for are not read. A call that is
	// made again, since it failed, is not counted beforehand. 0 means no limit; with
	// less than [LeastBudget] hardly a question can be asked.
	BudgetTokens int
	// Parallel is how many judge calls run at a time; 0 means 12, so that
	// judging takes one round trip. Use fewer for a server that handles one call
	// after the other, where a waiting call can reach its time limit.
	Parallel int

	// ContextTokens is the model's context window: prompt and reply together.
	// 0 means 4096. A margin of 15 % is left for foreign tokenizers.
	ContextTokens int
	// StepTokens is how many tokens of evidence go into one call, at least one
	// whole passage: with 1 an answer is refined passage by passage. 0 means as
	// many as the context window has room for.
	StepTokens int
	// MaxDraftTokens ends refining when the draft is longer; 0 means no limit
	// but the context window.
	MaxDraftTokens int
	// Confidence is the least chance, 0 to 1, that a quoted sentence answers the
	// question; below it there is no answer without a model. 0 means
	// [DefaultConfidence], less than 0 no limit.
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

	// LeastBudget is room for the instructions, a question of a few lines and a passage.
	LeastBudget = 500

	// DefaultConfidence is the least chance of an answer without a model.
	DefaultConfidence = extract.DefaultConfidence
)

// Ask answers a question. Nothing happens before the sequence is ranged over,
// and it can be ranged over once. An error ends it; a [*QuestionError] says
// that the question itself is not valid. Once an answer exists there are no
// more errors: later trouble leaves the answer, marked [Incomplete] if need be.
// Breaking out of the range stops every call to a model at once, and nothing is
// left running when the range ends.
func (a *Answerer) Ask(ctx context.Context, q Question) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := a.newAsking(yield, q.Recorder)
		defer r.proving.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		r.question = q
		if a.Trust != nil {
			trust, end := a.Trust()
			defer end()
			r.trust = trust
		}
		if err := r.answer(ctx); err != nil && !r.stopped {
			yield(nil, err)
		}
	}
}

// An asking is one question, or one summary, while it is answered.
type asking struct {
	*Answerer
	*caller
	question Question
	asked    string // the standalone question
	writes   bool   // a model writes the answer
	widens   bool   // it may read further passages when it finds none in the first
	trust    Trust
	reading  *extract.Reading
	deferred []retrieve.Passage // kept, and read only if the first ones hold no answer

	judge   *judge         // nil where no model judges
	proof   *proof         // of the answer that is being written
	revised *revised       // what of it is held, since it may be cut; nil where nothing is
	proving sync.WaitGroup // its calls
}

func (a *Answerer) newAsking(yield func(Event, error) bool, recorder *replay.Recorder) *asking {
	w := &prompt.Writer{
		Templates: a.Prompts, ContextTokens: or(a.ContextTokens, defaultContextTokens), Count: a.Count,
		StepTokens: a.StepTokens,
	}
	if w.Templates == nil {
		w.Templates = prompt.Default()
	}
	if w.Count == nil {
		w.Count = ingest.CountTokens
	}
	w.Nonce = func(name, system, user string) string {
		if recorder == nil {
			return newNonce()
		}
		// The same request must get the same mark again when it is resumed.
		return recorder.Nonce(name, system, user)
	}
	r := &asking{Answerer: a, caller: &caller{
		output: &output{yield: yield, warned: map[string]bool{}, unread: map[string]bool{}}, writer: w, recorder: recorder,
		same:  map[Prompt]int{},
		calls: or(a.AnswerCalls, defaultAnswerCalls), parallel: or(a.Parallel, defaultParallel), started: time.Now(), budget: a.BudgetTokens,
	}}
	if r.budget > 0 {
		w.Budget = r.forPrompt
	}
	return r
}

// least is how many tokens of the budget an answer needs.
func (r *asking) least() int { return LeastBudget + r.writer.Count(r.asked) }

// forPrompt is how many tokens of the budget the next prompt may have: some are left
// for the statements of the answer, and for marks that are longer than the sample.
func (r *asking) forPrompt() int {
	left := r.budget - r.input
	if r.judge != nil && r.proves() {
		return left * 4 / 5
	}
	return left * 19 / 20
}

// answer answers the question.
func (r *asking) answer(ctx context.Context) error {
	strategy, err := r.check()
	if err != nil {
		return err
	}
	if r.trust.Distrust != "" && !r.NoFallback && strategy.writes {
		strategy = r.distrust()
	}
	language, question := smallTalk(r.question.Text)
	if language != "" {
		return r.chat(ctx, language)
	}
	r.question.Text = question
	r.writes = strategy.writes
	if r.Gate != GateOff {
		r.judge = r.newJudge(ctx)
	}
	r.setStyle()
	if err := r.condense(ctx); err != nil {
		return err
	}
	r.writer.Question = r.asked
	found, err := r.firstSearch(ctx)
	if err != nil {
		return err
	}
	if !r.emit(Retrieved{Question: r.asked, Reworded: r.asked != r.question.Text, Passages: found}) {
		return nil
	}
	if len(found) == 0 {
		return r.unanswered(ctx, nothingFound, nil)
	}
	if err := r.read(ctx, found); err != nil {
		return err
	}
	err = r.decide(ctx, strategy, found)
	if errors.Is(err, prompt.ErrBudget) {
		return &QuestionError{"too_long", fmt.Sprintf("the question, with the instructions and a passage, takes more than the %d tokens "+
			"that --budget-tokens allows: ask in fewer words, or raise it", r.budget)}
	}
	if r.stopped || !r.fallsBack(ctx, err) {
		return err
	}
	return r.fallBack(ctx, found, err)
}

// decide judges the passages that were found, and answers from those it keeps.
func (r *asking) decide(ctx context.Context, strategy *strategy, found []retrieve.Passage) error {
	judged, err := r.judgeAll(ctx, found)
	if err != nil || r.stopped {
		return err
	}
	kept := keep(found, judged)
	r.widen(found)
	if len(kept) == 0 && !(r.looksWider() && slices.ContainsFunc(judged, doubted)) {
		return r.unanswered(ctx, nothingRelevant, found)
	}
	first := kept
	if strategy.deepens && r.looksWider() {
		first, r.deferred = r.firstLook(kept)
	}
	if len(first) > 0 {
		if err = r.apply(ctx, strategy, first); !errors.Is(err, errNoAnswer) {
			return err
		}
	}
	if r.looksWider() {
		if err = r.lookWider(ctx, found, first); !errors.Is(err, errNoAnswer) {
			return err
		}
	}
	if len(kept) == 0 {
		kept = found
	}
	return r.unanswered(ctx, noAnswer, kept)
}

// errNoAnswer reports that the passages do not hold the answer.
var errNoAnswer = errors.New("the passages do not hold the answer")

// search finds the k nearest passages, or as many as the index finds by default
// if k is 0. It warns of trouble, other than a language other if that is not nil.
func (r *asking) search(ctx context.Context, k int, other **retrieve.LanguageError) ([]retrieve.Passage, error) {
	found, err := r.Retriever.Search(ctx, retrieve.Query{Text: r.asked, K: k, Filter: r.question.Filter, Warn: func(err error) {
		if other == nil || !errors.As(err, other) {
			r.warn("%s", err)
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("searching: %w", err) // without the question, which no log may hold
	}
	return found, nil
}

// firstSearch finds the nearest passages. Where they are in another language than
// the question, or most are and none is on topic, a model translates it, and the search
// is made again.
func (r *asking) firstSearch(ctx context.Context) ([]retrieve.Passage, error) {
	if !r.writes {
		return r.search(ctx, r.question.TopK, nil)
	}
	var other *retrieve.LanguageError
	found, err := r.search(ctx, r.question.TopK, &other)
	if err != nil {
		return nil, err
	}
	if other == nil && r.Gate != GateOff {
		if err := r.read(ctx, found); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(found, func(p retrieve.Passage) bool { return r.scored(p).Decision == Relevant }) {
			other = r.otherLanguage(found)
		}
	}
	if other == nil {
		return found, nil
	}
	if translated, err := r.translated(ctx, other); err != nil || !translated {
		return found, err
	}
	return r.search(ctx, r.question.TopK, nil)
}

// otherLanguage returns the language of at least half of the passages, where that is not
// the language of the question; nil where it is, or where none is evident.
func (r *asking) otherLanguage(passages []retrieve.Passage) *retrieve.LanguageError {
	asked, _ := retrieve.AskedLanguage(r.asked)
	count, usual := map[string]int{}, ""
	for _, p := range passages {
		language := retrieve.Language(p.Text)
		if count[language]++; count[language] > count[usual] {
			usual = language
		}
	}
	if asked == "" || usual == asked || 2*count[usual] < len(passages) {
		return nil
	}
	return &retrieve.LanguageError{Language: usual}
}

// translated has the question translated, and warns where that fails.
func (r *asking) translated(ctx context.Context, other *retrieve.LanguageError) (bool, error) {
	question, err := r.translate(ctx, other.Name())
	if err != nil {
		return false, err
	}
	if question == "" {
		r.warn("%s", other)
		return false, nil
	}
	r.asked = question
	return true, nil
}

// defaultEmbedder is loaded once, at the first question.
var defaultEmbedder = sync.OnceValues(embed.New)

// read compares the question with the passages.
func (r *asking) read(ctx context.Context, found []retrieve.Passage) error {
	embedder, ok := r.Embedder.(*embed.Model)
	if !ok {
		var err error
		if embedder, err = defaultEmbedder(); err != nil {
			return fmt.Errorf("loading the embedded embedding model: %w", err)
		}
	}
	if t, ok := r.Retriever.(TurnTaker); ok {
		end, err := t.Turn(ctx)
		if err != nil {
			return fmt.Errorf("waiting to read the passages: %w", err)
		}
		defer end()
	}
	var stats retrieve.Stats
	var err error
	if c, ok := r.Retriever.(Counter); ok {
		if stats, err = c.Stats(ctx, retrieve.Terms(r.asked)); err != nil {
			return fmt.Errorf("counting the terms of the question: %w", err)
		}
	} else {
		stats = extract.CountTerms(found)
	}
	r.reading, err = extract.Read(ctx, r.asked, found, stats, embedder, r.encoder())
	return err
}

func (a *Answerer) encoder() retrieve.Encoder {
	if a.Encoder == nil {
		return nil
	}
	return a.Encoder()
}

// Best returns the n sentences of passages that most likely answer a question, and
// the chance that the first of them does. It is for measuring.
func (a *Answerer) Best(ctx context.Context, question string, passages []retrieve.Passage, n int) ([]string, float64, error) {
	r := &asking{Answerer: a, asked: question}
	if err := r.read(ctx, passages); err != nil {
		return nil, 0, err
	}
	return r.reading.Best(ctx, passages, n)
}

// setStyle makes the question's style one that prompts can show.
func (r *asking) setStyle() {
	whole := strings.TrimSpace(prompt.Inert(r.Style + "\n" + r.question.Style))
	if whole == "" || r.Model == nil {
		return
	}
	r.writer.Style = strings.TrimSpace(r.writer.Fit(whole, r.writer.Window()/8))
	if r.writer.Style != whole {
		r.warn("the end of the wishes for the style of the answer was left out: they take %d tokens, and an eighth of "+
			"the model's context window is the most: shorten them, or raise --context-tokens (%d now)",
			r.writer.Count(whole), r.writer.ContextTokens)
	}
}

// check validates the question and finds its strategy.
func (r *asking) check() (*strategy, error) {
	q := &r.question
	q.Text = strings.TrimSpace(strings.ToValidUTF8(q.Text, ""))
	switch {
	case q.Text == "":
		return nil, &QuestionError{"empty", "the question is empty: ask something in a sentence or a few words"}
	case len(q.Text) > MaxQuestionBytes:
		return nil, &QuestionError{"too_long", fmt.Sprintf("the question is %d bytes long, and %d is the most: "+
			"put long text into a document and ask about it", len(q.Text), MaxQuestionBytes)}
	case q.TopK < 0:
		return nil, &QuestionError{"top_k", fmt.Sprintf("top_k is %d: it must be 0 (the default) or more", q.TopK)}
	}
	for i, t := range q.History {
		if t.Role != "user" && t.Role != "assistant" {
			return nil, &QuestionError{"history",
				fmt.Sprintf("turn %d of the history has the role %q: it must be user or assistant", i+1, t.Role)}
		}
	}
	return findStrategy(q.Strategy, r.Model != nil)
}

// unanswered ends the stream without an answer. Where passages were kept, it shows
// what in them is nearest to the question.
func (r *asking) unanswered(ctx context.Context, reason string, nearest []retrieve.Passage) error {
	e := Unanswered{
		Reason: reason, Text: refusal(reason, r.question.Text), Closest: []Closest{},
		Nearest: append([]retrieve.Passage{}, nearest[:min(len(nearest), 3)]...),
	}
	if n := len(r.unread); n > 0 {
		r.warn("%d passages that were found have not been read: --context-tokens (%d) or --budget-tokens (%d) has no room for more",
			n, r.writer.ContextTokens, r.BudgetTokens)
	}
	if reason == noAnswer {
		if err := r.read(ctx, nearest); err != nil {
			return err
		}
		closest, err := r.reading.Closest(ctx, nearest)
		if err != nil {
			return err
		}
		for _, c := range closest {
			e.Closest = append(e.Closest, closestOf(nearest[c.Passage], c))
		}
		if !r.writes && len(e.Closest) > 0 {
			e.Text = refusal(uncertain, r.question.Text)
		}
	}
	if r.emit(e) {
		r.finish()
	}
	return nil
}

func closestOf(p retrieve.Passage, c extract.Closest) Closest {
	p.Heading, p.Anchor = p.PlaceAt(p.Start + c.Span.Start)
	p.Page = p.PageAt(p.Start + c.Span.Start)
	part := Closest{
		Document: p.Document, Title: p.Title, Heading: p.Heading, Page: p.Page, Passage: p,
		Start: p.Start + c.Span.Start, End: p.Start + c.Span.End, Text: p.Text[c.Span.Start:c.Span.End], Marks: []Mark{},
	}
	for _, m := range c.Marks {
		part.Marks = append(part.Marks, Mark{m.Start, m.End})
	}
	return part
}

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
