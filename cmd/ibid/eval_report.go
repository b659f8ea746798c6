package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ibid/answer"
	"ibid/cmd/ibid/eval"
)

type evalReportCmd struct {
	Folder    string `arg:"" help:"Folder of documents to ask."`
	Questions string `arg:"" name:"questions" help:"File with a question per line, and what is known of its answer."`
	reportConfig
	syncConfig
	readConfig
}

type reportConfig struct {
	HTML     string `help:"File to write the report to as a page, with traces of the failures." name:"html" placeholder:"FILE"`
	JSON     bool   `help:"Print the report as one JSON object." name:"json"`
	Sample   int    `help:"Ask only N of the questions, drawn with a fixed seed; 0: all." default:"0" placeholder:"N"`
	Parallel int    `help:"Questions asked at a time; with more than one they slow each other down." default:"1" placeholder:"N"`
	thresholdConfig

	Strategy string `help:"How passages become an answer: ${strategies}." default:"auto" placeholder:"NAME"`
	TopK     int    `help:"Passages to look at." default:"12" placeholder:"N"`
	corpusConfig
	modelConfig
}

type evalAnswersCmd struct {
	Dir   string `arg:"" help:"${set_help} Queries may have answers, and answerable: false; judgements may be missing."`
	Split string `help:"Judgements: qrels/NAME.tsv or NAME.tsv; unset: qrels.tsv, or test, dev or train." placeholder:"NAME"`
	reportConfig
}

// Run asks the questions of a set about its documents and reports on the answers.
func (c *evalAnswersCmd) Run(ctx context.Context, s surroundings) (err error) {
	limits, err := c.check()
	if err != nil {
		return err
	}
	set, questions, err := eval.ReadAnswerSet(os.DirFS(c.Dir), c.Split)
	if err != nil {
		return usageError("reading the set %s: %w", c.Dir, err)
	}
	corpus, err := c.open(ctx, c.Dir, set, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, corpus.close()) }()
	return c.report(ctx, corpus, sample(questions, c.Sample), &eval.Report{Folder: filepath.Base(c.Dir), File: set.Judgements}, limits, s)
}

// Help is printed before the flags.
func (evalReportCmd) Help() string {
	return `The file of questions has a JSON object per line. Only the question is required; the answer is compared with what else is known:

    ` + eval.ExampleQuestion + `
    {"question": "How long is the mast?", "answers": ["11.4 m", "11.4 metres"], "documents": ["boats/guide.pdf"]}
    {"question": "What does an ounce of gold cost?", "answerable": false}

A right answer contains all words and one of the answers; answerable: false means that it is right to refuse.`
}

// Run asks every question about the folder and reports on the answers.
func (c *evalReportCmd) Run(ctx context.Context, s surroundings) (err error) {
	limits, err := c.reportConfig.check()
	if err := cmp.Or(err, c.syncConfig.check()); err != nil {
		return err
	}
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return fmt.Errorf("finding the folder %s: %w", c.Folder, err)
	}
	report := &eval.Report{Folder: filepath.Base(folder), File: filepath.Base(c.Questions)}
	questions, err := c.questions(report.File, s)
	if err != nil {
		return err
	}
	own, err := ownFiles(folder, c.Questions, c.HTML)
	if err != nil {
		return err
	}
	sync := c.syncConfig
	sync.Exclude = slices.Concat(sync.Exclude, own)
	corpus, unread, err := c.openFolder(ctx, c.Folder, sync, c.readConfig, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, corpus.close()) }()
	report.Unread = unread
	if err := corpus.match(ctx, questions, report.File, s); err != nil {
		return err
	}
	return c.report(ctx, corpus, questions, report, limits, s)
}

func (c *reportConfig) report(
	ctx context.Context, corpus *corpus, questions []eval.Question, report *eval.Report, limits thresholds, s surroundings,
) (err error) {
	report.Made, report.Version, report.Settings = time.Now().UTC().Truncate(time.Second), version(), c.settings(corpus)
	if report.Documents, report.Chunks, err = corpus.State.Count(ctx, corpus.filter); err != nil {
		return fmt.Errorf("counting the documents of the store: %w", err)
	}
	broken := c.ask(ctx, corpus, questions, report, s)
	if len(report.Outcomes) == 0 || errors.Is(broken, errAllFailed) {
		return broken
	}
	report.Measure()
	if !report.Interrupted { // thresholds are for all questions
		report.Missed = limits.missed(report.Figures)
	}
	if err := c.write(report, s); err != nil {
		return err
	}
	if report.Interrupted {
		return &exitError{exitFailed, fmt.Errorf("%w after %d of %d questions; thresholds were not checked",
			broken, len(report.Outcomes), report.Wanted)}
	}
	return missedError(report.Missed)
}

func (c *reportConfig) check() (thresholds, error) {
	if c.TopK < 1 || c.Parallel < 1 || c.Sample < 0 {
		return nil, usageError("--top-k and --parallel must be 1 or more, and --sample 0 or more")
	}
	if c.HTML != "" {
		if info, err := os.Stat(filepath.Dir(c.HTML)); err != nil || !info.IsDir() {
			return nil, usageError("--html %s: there is no folder %s", c.HTML, filepath.Dir(c.HTML))
		}
	}
	return c.parse(eval.KnownFigures())
}

func (c *evalReportCmd) questions(name string, s surroundings) ([]eval.Question, error) {
	if info, err := os.Stat(c.Questions); err != nil || info.IsDir() {
		return nil, usageError("there is no file %s: give one with a question per line, such as %s", c.Questions, eval.ExampleQuestion)
	}
	questions, unknown, err := eval.ReadQuestions(os.DirFS(filepath.Dir(c.Questions)), name)
	if err != nil {
		return nil, usageError("reading the questions: %w", err)
	}
	if len(unknown) > 0 {
		s.say("%s has unknown fields, which are ignored: %s", name, strings.Join(unknown, ", "))
	}
	return sample(questions, c.Sample), nil
}

// ownFiles returns patterns that exclude the files of the measurement from the
// folder: a search would find the questions instead of their answers.
func ownFiles(folder string, files ...string) (patterns []string, err error) {
	escape := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`, "}", `\}`)
	for _, file := range slices.DeleteFunc(files, func(f string) bool { return f == "" }) {
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", file, err)
		}
		if inside, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(inside) {
			patterns = append(patterns, "/"+escape.Replace(filepath.ToSlash(inside)))
		}
	}
	return patterns, nil
}

// settings lists those that affect the answers, in pairs of a name and a value.
func (c *reportConfig) settings(corpus *corpus) (settings []eval.Setting) {
	pairs := []any{"strategy", c.Strategy, "gate", c.Gate, "confidence", c.Confidence, "top-k", c.TopK,
		"embeddings", corpus.embedder.Space(), "rerank-model", c.RerankModel, "model", c.Model}
	if c.Model != "" {
		address := "invalid"
		if u, err := url.Parse(c.BaseURL); err == nil {
			address = u.Redacted()
		}
		pairs = append(pairs, "base-url", address, "gate-model", c.GateModel, "refine-model", c.RefineModel, "gate-calls", c.GateCalls,
			"gate-time", c.GateTime, "context-tokens", c.ContextTokens, "step-tokens", c.StepTokens,
			"budget-tokens", c.BudgetTokens, "prompts", c.Prompts)
	}
	for pair := range slices.Chunk(append(pairs, "parallel", c.Parallel), 2) {
		settings = append(settings, eval.Setting{Name: pair[0].(string), Value: fmt.Sprint(pair[1])})
	}
	return settings
}

// tooMany is the number of questions that may fail with an error, before any is
// answered, until the run ends.
const tooMany = 5

var (
	errAllFailed   = errors.New("every question that asked the model ended in an error")
	errInterrupted = errors.New("interrupted")
)

// ask asks the questions. If it returns an error, the report has the outcomes of
// the questions before it.
func (c *reportConfig) ask(ctx context.Context, corpus *corpus, questions []eval.Question, report *eval.Report, s surroundings) error {
	answerer, err := corpus.answerer(c.modelConfig, c.endpointConfig, s.getenv)
	if err != nil {
		return err
	}
	answerer.NoFallback = true // a report is about the model
	outcomes := make([]*eval.Outcome, len(questions))
	var mu sync.Mutex
	var allFailed error // of the last error
	failed, fine := 0, 0
	err = askAll(ctx, s, "questions", len(questions), c.Parallel, func(ctx context.Context, i int) error {
		q := questions[i]
		o, err := corpus.trace(ctx, answerer, answer.Question{
			Text: q.Text, Strategy: c.Strategy, TopK: c.TopK, Filter: corpus.filter,
		}, q)
		if err != nil {
			return err
		}
		outcomes[i] = o
		mu.Lock()
		defer mu.Unlock()
		if o.Error != "" {
			failed++
			allFailed = fmt.Errorf("asking the question %s: %s; %w", q.ID, o.Error, errAllFailed)
		} else if c.Model == "" || o.Cost.Calls > 0 { // a refusal by score says nothing about the model
			fine++
		}
		if fine == 0 && failed == tooMany {
			return allFailed
		}
		return nil
	})
	if err == nil && fine == 0 {
		err = allFailed
	}
	report.Wanted = len(questions)
	for _, o := range outcomes {
		if o != nil {
			report.Outcomes = append(report.Outcomes, *o)
		}
	}
	if report.Interrupted = len(report.Outcomes) < report.Wanted; report.Interrupted && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

func (c *reportConfig) write(report *eval.Report, s surroundings) error {
	if c.HTML != "" {
		var page bytes.Buffer
		if err := report.WriteHTML(&page); err != nil {
			return fmt.Errorf("making the page: %w", err)
		}
		if err := os.WriteFile(c.HTML, page.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing the page (--html): %w", err)
		}
	}
	if err := s.print(c.JSON, report, report.Text()); err != nil || c.JSON {
		return err
	}
	if trace := cmp.Or(c.HTML, "--html FILE makes a page with it"); c.HTML != "" || report.Failed > 0 {
		fmt.Fprintf(s.stderr, "the trace of every question: %s\n", trace)
	}
	return nil
}
