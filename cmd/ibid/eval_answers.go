package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ibid/answer"
	"ibid/cite"
	"ibid/cmd/ibid/eval"
	"ibid/retrieve"
)

type evalAnswersCmd struct {
	Questions string `arg:"" name:"questions" help:"File with a JSON object a line (id, question; answers and documents where there is an answer; kind), or a folder: a set in the format of BEIR, or questions.jsonl with the folder library beside it."`
	Library   string `help:"Folder of documents to ask, read into a temporary data directory." placeholder:"DIR"`
	Strategy  string `help:"How evidence becomes an answer: auto, refine, stuff, map-reduce, map-rerank or extract." default:"auto" placeholder:"NAME"`
	evalConfig
	askingConfig
	corpusConfig
	modelConfig
	readConfig
}

// answerFigures are the figures of answers, in the order in which they are shown.
var answerFigures = [...]string{
	"answered", "gold", "word_recall", "right_first", "right_cited", "found", "refused", "cited", "supported",
}

// An asked question and what became of it.
type answered struct {
	ID         string  `json:"id"`
	Kind       string  `json:"kind,omitempty"`
	Answerable bool    `json:"answerable"`
	Answered   bool    `json:"answered"`
	Incomplete bool    `json:"incomplete,omitempty"`
	Reason     string  `json:"reason,omitempty"`
	HasGold    bool    `json:"has_gold"` // the question has answers to compare with
	Gold       bool    `json:"gold"`     // one of them stands in the text
	WordRecall float64 `json:"word_recall"`
	HasRight   bool    `json:"has_right"`   // the question has documents to compare with
	RightFirst bool    `json:"right_first"` // the first source is one of them
	RightCited bool    `json:"right_cited"` // a source is
	Found      bool    `json:"found"`       // one is among the passages looked at
	// Citations by verdict, and statements that nothing cited bears out.
	Citations   map[cite.Verdict]int `json:"citations"`
	Unsupported int                  `json:"unsupported"`
	Sources     []string             `json:"sources"`
	Text        string               `json:"text"`
	Usage       answer.Usage         `json:"usage"`
}

// An answersReport is what the measurement came to.
type answersReport struct {
	Questions    int                  `json:"questions"`
	Answerable   int                  `json:"answerable"`
	Documents    int                  `json:"documents"`
	Skipped      int                  `json:"skipped"` // of a set that does not say whether there is an answer
	Figures      eval.Figures         `json:"figures"`
	Refusals     refusals             `json:"refusals"`
	Citations    map[cite.Verdict]int `json:"citations"`
	Unsupported  int                  `json:"unsupported"`
	Kinds        []kindReport         `json:"kinds"`
	Usage        answer.Usage         `json:"usage"`         // of all questions
	TokensAnswer float64              `json:"tokens_answer"` // mean of a question, prompt and reply
}

// refusals says what was refused and should have been.
type refusals struct {
	Right  int `json:"right"`  // no answer, and refused
	Wrong  int `json:"wrong"`  // an answer there is, and refused
	Missed int `json:"missed"` // no answer, and not refused
}

// kindReport counts one kind of question.
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
	if err := cmp.Or(c.askingConfig.check(), c.evalConfig.check(answerFigures[:])); err != nil {
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
	err = c.each(ctx, len(questions), c.Model != "", s, func(ctx context.Context, i int) error {
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
	report := answersReportOf(results)
	report.Documents, report.Skipped = corpus.documents, skipped
	if err := c.writeDetails(len(results), func(i int) any { return results[i] }); err != nil {
		return err
	}
	if c.JSON {
		err = json.NewEncoder(s.stdout).Encode(report)
	} else {
		err = report.show(s)
	}
	return errors.Join(err, c.missed(report.Figures))
}

// openQuestions reads the questions and opens what they are asked of.
func (c *evalAnswersCmd) openQuestions(ctx context.Context, s surroundings) (questions []eval.Question, _ *corpus, skipped int, err error) {
	named := c.Data != "" || c.place().remote() // the library to ask
	if c.Library != "" && named {
		return nil, nil, 0, usageError("--library reads a folder into a temporary data directory: give it, or --data or --store")
	}
	info, err := os.Stat(c.Questions)
	if err != nil {
		return nil, nil, 0, usageError("there is no file or folder %s", c.Questions)
	}
	dir, name := filepath.Split(c.Questions)
	if info.IsDir() {
		dir, name = c.Questions, "questions.jsonl"
		if eval.IsSet(os.DirFS(dir)) {
			if c.Library != "" {
				return nil, nil, 0, usageError("--library %s: the set %s has documents of its own, which are asked", c.Library, dir)
			}
			return c.openSet(ctx, s)
		}
	}
	if questions, _, err = eval.ReadQuestions(os.DirFS(cmp.Or(dir, ".")), name); err != nil {
		return nil, nil, 0, fmt.Errorf("reading the questions: %w", err)
	}
	library := c.Library
	if beside := filepath.Join(dir, "library"); library == "" && !named && info.IsDir() {
		if info, err := os.Stat(beside); err == nil && info.IsDir() {
			library = beside
		}
	}
	if library != "" {
		corpus, _, err := c.openFolder(ctx, library, syncConfig{}, c.readConfig, s)
		if err == nil {
			err = corpus.matchQuestions(ctx, questions, name, s)
		}
		return questions, corpus, 0, err
	}
	if !named {
		c.Data = cmp.Or(s.getenv(environmentName("data")), defaultDataDir(s.getenv))
	}
	corpus, err := c.openStore(ctx, s)
	if err != nil {
		return nil, nil, 0, err
	}
	err = corpus.refuseEmpty(ctx, c.place(), retrieve.Filter{})
	if err == nil {
		err = corpus.matchQuestions(ctx, questions, name, s)
	}
	return questions, corpus, 0, err
}

// matchQuestions finds the documents that questions name among those of the
// store; where it cannot, the corpus is closed.
func (c *corpus) matchQuestions(ctx context.Context, questions []eval.Question, file string, s surroundings) error {
	var named []string
	for _, q := range questions {
		named = append(named, q.Documents...)
	}
	missing, err := c.find(ctx, named, file)
	if err != nil {
		return errors.Join(err, c.close())
	}
	if len(missing) > 0 {
		fmt.Fprintf(s.stderr, "ibid: %s names %s not in the store, as %s: what is not there counts as missed\n", file, counted(len(missing), "document"), printable(missing[0]))
	}
	return nil
}

// openSet reads a set in the format of BEIR.
func (c *evalAnswersCmd) openSet(ctx context.Context, s surroundings) ([]eval.Question, *corpus, int, error) {
	set, err := readSet(c.Questions, c.Split, s)
	if err != nil {
		return nil, nil, 0, err
	}
	questions, skipped := set.Questions()
	corpus, err := c.open(ctx, c.Questions, set, s)
	return questions, corpus, skipped, err
}

// compare says how an answer does against what is known of its question.
func (c *corpus) compare(q eval.Question, a cite.Answer) answered {
	text := ""
	if a.Answered {
		text = eval.Unmarked(a.Text)
	}
	out := answered{
		ID: q.ID, Kind: q.Kind, Answerable: q.Answerable(), Answered: a.Answered, Incomplete: a.Incomplete, Reason: a.Reason,
		HasGold: len(q.Answers) > 0, WordRecall: eval.WordRecall(text, q.Answers), HasRight: len(q.Documents) > 0,
		Citations: make(map[cite.Verdict]int), Unsupported: len(a.Unsupported), Sources: []string{}, Text: a.Text, Usage: a.Usage,
	}
	out.Gold = slices.ContainsFunc(q.Answers, func(gold string) bool { return eval.Holds(text, gold) })
	for i, source := range a.Sources {
		out.Sources = append(out.Sources, source.Document)
		if c.right(q, source.Document) {
			out.RightCited = true
			out.RightFirst = out.RightFirst || i == 0
		}
	}
	for _, j := range a.Judged {
		out.Found = out.Found || c.right(q, j.Document)
	}
	for _, x := range a.Citations {
		out.Citations[x.Verdict]++
	}
	return out
}

// right says whether a document of the store is one that answers the question.
func (c *corpus) right(q eval.Question, document string) bool {
	return slices.ContainsFunc(q.Documents, func(d string) bool { return c.stored[d] == document })
}

func answersReportOf(results []answered) *answersReport {
	r := &answersReport{Questions: len(results), Citations: map[cite.Verdict]int{
		cite.VerdictQuoted: 0, cite.VerdictSupported: 0, cite.VerdictWeak: 0,
	}, Kinds: []kindReport{}}
	var withGold, gold, withRight, rightFirst, rightCited, found, answers, cited int
	var recalls []float64
	for _, a := range results {
		k := slices.IndexFunc(r.Kinds, func(k kindReport) bool { return k.Kind == a.Kind })
		if k < 0 {
			k = len(r.Kinds)
			r.Kinds = append(r.Kinds, kindReport{Kind: a.Kind})
		}
		kind := &r.Kinds[k]
		count := func(is bool, of ...*int) {
			for _, n := range of {
				if is {
					*n++
				}
			}
		}
		count(true, &kind.Questions)
		count(a.Answered, &kind.Answered)
		count(a.Answerable, &r.Answerable, &kind.Answerable)
		count(a.Answerable && !a.Answered, &r.Refusals.Wrong)
		count(!a.Answerable && !a.Answered, &r.Refusals.Right)
		count(!a.Answerable && a.Answered, &r.Refusals.Missed)
		count(a.HasGold, &withGold)
		count(a.Gold, &gold, &kind.Gold)
		count(a.HasRight, &withRight)
		count(a.RightFirst, &rightFirst, &kind.RightFirst)
		count(a.RightCited, &rightCited)
		count(a.Found, &found)
		count(a.Answered, &answers)
		count(a.Answered && len(a.Sources) > 0, &cited)
		if a.HasGold {
			recalls = append(recalls, a.WordRecall)
		}
		for verdict, n := range a.Citations {
			r.Citations[verdict] += n
		}
		r.Unsupported += a.Unsupported
		r.Usage.Calls += a.Usage.Calls
		r.Usage.JudgeCalls += a.Usage.JudgeCalls
		r.Usage.PromptTokens += a.Usage.PromptTokens
		r.Usage.CompletionTokens += a.Usage.CompletionTokens
		r.Usage.ReasoningTokens += a.Usage.ReasoningTokens
		r.Usage.Looked += a.Usage.Looked
		r.Usage.Used += a.Usage.Used
		r.Usage.Seconds += a.Usage.Seconds
	}
	if r.Questions > 0 {
		r.TokensAnswer = float64(r.Usage.PromptTokens+r.Usage.CompletionTokens) / float64(r.Questions)
	}
	citations := 0
	for _, n := range r.Citations {
		citations += n
	}
	values := [len(answerFigures)]float64{
		eval.Share(r.Answerable-r.Refusals.Wrong, r.Answerable),
		eval.Share(gold, withGold),
		eval.Mean(recalls),
		eval.Share(rightFirst, withRight),
		eval.Share(rightCited, withRight),
		eval.Share(found, withRight),
		eval.Share(r.Refusals.Right, r.Questions-r.Answerable),
		eval.Share(cited, answers),
		eval.Share(citations-r.Citations[cite.VerdictWeak], citations),
	}
	for i, name := range answerFigures {
		r.Figures = append(r.Figures, eval.Figure{Name: name, Value: values[i]})
	}
	return r
}

func (r *answersReport) show(s surroundings) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d questions, %d of them with an answer; %d documents\n", r.Questions, r.Answerable, r.Documents)
	if r.Skipped > 0 {
		fmt.Fprintf(&b, "%d questions left out: the set does not say whether they have an answer\n", r.Skipped)
	}
	if _, err := fmt.Fprint(s.stdout, b.String()); err != nil {
		return err
	}
	if err := listFigures(s.stdout, r.Figures); err != nil {
		return err
	}
	b.Reset()
	fmt.Fprintf(&b, "refusals: %d right, %d wrong, %d missed\n", r.Refusals.Right, r.Refusals.Wrong, r.Refusals.Missed)
	fmt.Fprintf(&b, "citations: %d quoted, %d supported, %d weak; %d statements that nothing cited bears out\n",
		r.Citations[cite.VerdictQuoted], r.Citations[cite.VerdictSupported], r.Citations[cite.VerdictWeak], r.Unsupported)
	fmt.Fprintf(&b, "%-16s %9s %10s %8s %6s %11s\n", "kind", "questions", "answerable", "answered", "gold", "right first")
	for _, k := range r.Kinds {
		fmt.Fprintf(&b, "%-16s %9d %10d %8d %6d %11d\n", cmp.Or(k.Kind, "-"), k.Questions, k.Answerable, k.Answered, k.Gold, k.RightFirst)
	}
	if r.Usage.Calls > 0 {
		fmt.Fprintf(&b, "%d model calls, %d of them of the judge; %d tokens in prompts, %d in replies; %.0f tokens a question\n",
			r.Usage.Calls, r.Usage.JudgeCalls, r.Usage.PromptTokens, r.Usage.CompletionTokens, r.TokensAnswer)
	}
	_, err := fmt.Fprint(s.stdout, printable(b.String()))
	return err
}
