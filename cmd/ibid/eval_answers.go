package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/support"
	"ibid/cmd/ibid/eval"
	"ibid/retrieve"
)

type evalAnswersCmd struct {
	Questions string `arg:"" name:"questions" help:"File with a JSON object per line (id, question; answers and documents if there is an answer; kind), or a folder: a set in BEIR's format, or questions.jsonl next to a folder library."`
	Library   string `help:"Folder of documents to ask, read into a temporary data directory." placeholder:"DIR"`
	Strategy  string `help:"How passages become an answer: ${strategies}." default:"auto" placeholder:"NAME"`
	evalConfig
	askingConfig
	corpusConfig
	modelConfig
	readConfig
}

// answerFigures are the figures in display order.
var answerFigures = [...]string{
	"answered", "gold", "word_recall", "right_first", "right_cited", "found", "refused", "cited", "supported",
}

// answered is the result of one question.
type answered struct {
	ID         string  `json:"id"`
	Kind       string  `json:"kind,omitempty"`
	Answerable bool    `json:"answerable"`
	Answered   bool    `json:"answered"`
	Incomplete bool    `json:"incomplete,omitempty"`
	Reason     string  `json:"reason,omitempty"`
	HasGold    bool    `json:"has_gold"` // the question has answers to compare with
	Gold       bool    `json:"gold"`     // the text contains one of them
	WordRecall float64 `json:"word_recall"`
	HasRight   bool    `json:"has_right"`   // the question has documents to compare with
	RightFirst bool    `json:"right_first"` // the first source is one of them
	RightCited bool    `json:"right_cited"` // a source is
	Found      bool    `json:"found"`       // a passage is from one of them
	// Citations by verdict, and the number of statements that nothing cited supports.
	Citations   map[support.Verdict]int `json:"citations"`
	Unsupported int                     `json:"unsupported"`
	Sources     []string                `json:"sources"`
	Text        string                  `json:"text"`
	Usage       answer.Usage            `json:"usage"`
}

type answersReport struct {
	Questions    int                     `json:"questions"`
	Answerable   int                     `json:"answerable"`
	Documents    int                     `json:"documents"`
	Skipped      int                     `json:"skipped"` // the set does not say whether there is an answer
	Figures      eval.Figures            `json:"figures"`
	Refusals     refusals                `json:"refusals"`
	Citations    map[support.Verdict]int `json:"citations"`
	Unsupported  int                     `json:"unsupported"`
	Kinds        []kindReport            `json:"kinds"`
	Usage        answer.Usage            `json:"usage"`         // of all questions
	TokensAnswer float64                 `json:"tokens_answer"` // mean per question, prompts and replies
}

type refusals struct {
	Right  int `json:"right"`  // refused, and there is no answer
	Wrong  int `json:"wrong"`  // refused, but there is an answer
	Missed int `json:"missed"` // answered, but there is no answer
}

type kindReport struct {
	Kind       string `json:"kind"`
	Questions  int    `json:"questions"`
	Answerable int    `json:"answerable"`
	Answered   int    `json:"answered"`
	Gold       int    `json:"gold"`
	RightFirst int    `json:"right_first"`
}

// Run asks every question and compares the answers with what is known.
func (c *evalAnswersCmd) Run(ctx context.Context, s surroundings) (err error) {
	limits, err := c.evalConfig.check(answerFigures[:])
	if err := cmp.Or(c.askingConfig.check(), err); err != nil {
		return err
	}
	questions, corpus, skipped, err := c.openQuestions(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, corpus.close()) }()
	answerer, err := corpus.answerer(c.modelConfig, c.endpointConfig, s.getenv)
	if err != nil {
		return err
	}
	citing, err := citeConfig{Source: "document"}.citing()
	if err != nil {
		return err
	}
	questions = sample(questions, c.Sample)
	results := make([]answered, len(questions))
	err = askAll(ctx, s, "questions", len(questions), c.parallel(c.Model != ""), func(ctx context.Context, i int) error {
		q := questions[i]
		a, err := cite.Collect(cite.Number(answerer.Ask(ctx, answer.Question{
			Text: q.Text, Strategy: c.Strategy, TopK: c.TopK, Filter: corpus.filter,
		}), citing))
		if err != nil {
			return fmt.Errorf("asking the question %s: %w", q.ID, err)
		}
		results[i] = corpus.compare(q, a)
		return nil
	})
	if err != nil {
		return err
	}
	report := newAnswersReport(results)
	report.Documents, report.Skipped = corpus.documents, skipped
	return c.finish(s, report, anySlice(results), limits, report.Figures)
}

// openQuestions reads the questions and opens the documents to ask.
func (c *evalAnswersCmd) openQuestions(
	ctx context.Context, s surroundings,
) (questions []eval.Question, out *corpus, skipped int, err error) {
	named := c.Data != "" || c.place().remote()
	if c.Library != "" && named {
		return nil, nil, 0, usageError("--library reads a folder into a temporary data directory: give it, or --data or --store")
	}
	info, err := os.Stat(c.Questions)
	if err != nil {
		return nil, nil, 0, usageError("there is no file or folder %s", c.Questions)
	}
	dir, name := filepath.Split(c.Questions)
	library := c.Library
	if info.IsDir() {
		dir, name = c.Questions, "questions.jsonl"
		if eval.IsSet(os.DirFS(dir)) {
			return c.openSet(ctx, s)
		}
		adjacent := filepath.Join(dir, "library")
		if info, err := os.Stat(adjacent); library == "" && !named && err == nil && info.IsDir() {
			library = adjacent
		}
	}
	if questions, _, err = eval.ReadQuestions(os.DirFS(cmp.Or(dir, ".")), name); err != nil {
		return nil, nil, 0, fmt.Errorf("reading the questions: %w", err)
	}
	switch {
	case library != "":
		out, _, err = c.openFolder(ctx, library, syncConfig{}, c.readConfig, s)
	default:
		if !named {
			c.Data = cmp.Or(s.getenv(variableOf("data", nil)), defaultDataDir(s.getenv))
		}
		out, err = c.openStore(ctx, s, func(out *corpus) error { return out.refuseEmpty(ctx, retrieve.Filter{}) })
	}
	if err != nil {
		return nil, nil, 0, err
	}
	if err := out.matchQuestions(ctx, questions, name, s); err != nil {
		return nil, nil, 0, errors.Join(err, out.close())
	}
	return questions, out, 0, nil
}

// openSet reads a set in BEIR's format and opens its corpus.
func (c *evalAnswersCmd) openSet(ctx context.Context, s surroundings) ([]eval.Question, *corpus, int, error) {
	if c.Library != "" {
		return nil, nil, 0, usageError("--library %s: the set %s has documents of its own", c.Library, c.Questions)
	}
	set, err := readSet(c.Questions, c.Split, s)
	if err != nil {
		return nil, nil, 0, err
	}
	questions, skipped := set.Questions()
	corpus, err := c.open(ctx, c.Questions, set, s)
	return questions, corpus, skipped, err
}

// compare compares an answer with what is known of its question.
func (c *corpus) compare(q eval.Question, a cite.Answer) answered {
	right := func(document string) bool {
		return slices.ContainsFunc(q.Documents, func(d string) bool { return c.stored[d] == document })
	}
	text := ""
	if a.Answered {
		text = eval.Unmarked(a.Text)
	}
	out := answered{
		ID: q.ID, Kind: q.Kind, Answerable: q.Answerable(), Answered: a.Answered, Incomplete: a.Incomplete, Reason: a.Reason,
		HasGold: len(q.Answers) > 0, WordRecall: eval.WordRecall(text, q.Answers), HasRight: len(q.Documents) > 0,
		Citations: make(map[support.Verdict]int), Unsupported: len(a.Unsupported), Sources: []string{}, Text: a.Text, Usage: a.Usage,
		Gold:  slices.ContainsFunc(q.Answers, func(gold string) bool { return eval.Holds(text, gold) }),
		Found: slices.ContainsFunc(a.Judged, func(j answer.Judged) bool { return right(j.Document) }),
	}
	for i, source := range a.Sources {
		out.Sources = append(out.Sources, source.Document)
		if right(source.Document) {
			out.RightCited = true
			out.RightFirst = out.RightFirst || i == 0
		}
	}
	for _, x := range a.Citations {
		out.Citations[x.Verdict]++
	}
	return out
}

func newAnswersReport(results []answered) *answersReport {
	r := &answersReport{Questions: len(results), Citations: map[support.Verdict]int{
		support.Quoted: 0, support.Supported: 0, support.Weak: 0,
	}, Kinds: []kindReport{}}
	var withGold, gold, withRight, rightFirst, rightCited, found, answers, cited, citations int
	var recalls []float64
	for _, a := range results {
		k := slices.IndexFunc(r.Kinds, func(k kindReport) bool { return k.Kind == a.Kind })
		if k < 0 {
			k = len(r.Kinds)
			r.Kinds = append(r.Kinds, kindReport{Kind: a.Kind})
		}
		kind := &r.Kinds[k]
		kind.Questions++
		countIf(a.Answered, &answers, &kind.Answered)
		countIf(a.Answerable, &r.Answerable, &kind.Answerable)
		countIf(a.Answerable && !a.Answered, &r.Refusals.Wrong)
		countIf(!a.Answerable && !a.Answered, &r.Refusals.Right)
		countIf(!a.Answerable && a.Answered, &r.Refusals.Missed)
		countIf(a.HasGold, &withGold)
		countIf(a.Gold, &gold, &kind.Gold)
		countIf(a.HasRight, &withRight)
		countIf(a.RightFirst, &rightFirst, &kind.RightFirst)
		countIf(a.RightCited, &rightCited)
		countIf(a.Found, &found)
		countIf(a.Answered && len(a.Sources) > 0, &cited)
		if a.HasGold {
			recalls = append(recalls, a.WordRecall)
		}
		for verdict, n := range a.Citations {
			r.Citations[verdict] += n
			citations += n
		}
		r.Unsupported += a.Unsupported
		addUsage(&r.Usage, a.Usage)
	}
	r.TokensAnswer = eval.Share(r.Usage.PromptTokens+r.Usage.CompletionTokens, r.Questions)
	for i, value := range [len(answerFigures)]float64{
		eval.Share(r.Answerable-r.Refusals.Wrong, r.Answerable),
		eval.Share(gold, withGold),
		eval.Mean(recalls),
		eval.Share(rightFirst, withRight),
		eval.Share(rightCited, withRight),
		eval.Share(found, withRight),
		eval.Share(r.Refusals.Right, r.Questions-r.Answerable),
		eval.Share(cited, answers),
		eval.Share(citations-r.Citations[support.Weak], citations),
	} {
		r.Figures = append(r.Figures, eval.Figure{Name: answerFigures[i], Value: value})
	}
	return r
}

func addUsage(sum *answer.Usage, u answer.Usage) {
	sum.Calls += u.Calls
	sum.JudgeCalls += u.JudgeCalls
	sum.PromptTokens += u.PromptTokens
	sum.CompletionTokens += u.CompletionTokens
	sum.ReasoningTokens += u.ReasoningTokens
	sum.Looked += u.Looked
	sum.Used += u.Used
	sum.Seconds += u.Seconds
}

func (r *answersReport) show(s surroundings) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d questions, %d of them with an answer; %d documents\n", r.Questions, r.Answerable, r.Documents)
	if r.Skipped > 0 {
		fmt.Fprintf(&b, "%d questions left out: the set does not say whether they have an answer\n", r.Skipped)
	}
	listFigures(&b, r.Figures)
	fmt.Fprintf(&b, "refusals: %d right, %d wrong, %d missed\n", r.Refusals.Right, r.Refusals.Wrong, r.Refusals.Missed)
	fmt.Fprintf(&b, "citations: %d quoted, %d supported, %d weak; %d statements that nothing cited supports\n",
		r.Citations[support.Quoted], r.Citations[support.Supported], r.Citations[support.Weak], r.Unsupported)
	fmt.Fprintf(&b, "%-16s %9s %10s %8s %6s %11s\n", "kind", "questions", "answerable", "answered", "gold", "right first")
	for _, k := range r.Kinds {
		fmt.Fprintf(&b, "%-16s %9d %10d %8d %6d %11d\n", cmp.Or(k.Kind, "-"), k.Questions, k.Answerable, k.Answered, k.Gold, k.RightFirst)
	}
	if r.Usage.Calls > 0 {
		fmt.Fprintf(&b, "%d model calls, %d by the judge; %d tokens in prompts, %d in replies; %.0f tokens per question\n",
			r.Usage.Calls, r.Usage.JudgeCalls, r.Usage.PromptTokens, r.Usage.CompletionTokens, r.TokensAnswer)
	}
	_, err := fmt.Fprint(s.stdout, printable(b.String()))
	return err
}
