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
	Questions string `arg:"" name:"questions" help:"File with one question per line and the known facts about its answer."`
	reportConfig
	syncConfig
	readConfig
}

type reportConfig struct {
	HTML     string `help:"File to write the report to as a page, with traces of the failures." name:"html" placeholder:"FILE"`
	JSON     bool   `help:"Print the report as one JSON object." name:"json"`
	Sample   int    `help:"Ask only N of the questions, drawn with a fixed seed; 0: all." default:"0" placeholder:"N"`
	Parallel int    `help:"Concurrent questions; more than one slow each other down." default:"1" placeholder:"N"`
	thresholdConfig

	Strategy string `help:"How passages become an answer: ${strategies}." default:"auto" placeholder:"NAME"`
	TopK     int    `help:"Passages to read." default:"12" placeholder:"N"`
	corpusConfig
	rerankConfig
	modelConfig
}

type evalAnswersCmd struct {
	Dir   string `arg:"" help:"@answer_set"`
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
	corpus, err := c.openCorpus(ctx, s, func(out *corpus) error { return out.fill(ctx, c.Dir, set.Documents) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, corpus.close()) }()
	return c.report(ctx, corpus, questions, &evalReport{Folder: filepath.Base(c.Dir), File: set.Judgements}, limits)
}

// Help is printed before the flags.
func (evalReportCmd) Help() string {
	return `The file of questions has a JSON object per line. Only the question is required; the answer is checked against the other fields:

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
	report := &evalReport{Folder: filepath.Base(folder), File: filepath.Base(c.Questions)}
	questions, err := eval.ReadQuestions(os.DirFS(filepath.Dir(c.Questions)), report.File)
	if err != nil {
		return usageError("reading the questions: %w", err)
	}
	sync := c.syncConfig
	if sync.Exclude, err = ownFiles(folder, c.Questions, c.HTML); err != nil {
		return err
	}
	sync.Exclude = append(sync.Exclude, c.Exclude...)
	corpus, err := c.openCorpus(ctx, s, func(out *corpus) (err error) {
		if report.Unread, err = out.readFolder(ctx, c.Folder, sync, c.readConfig); err != nil {
			return err
		}
		return out.match(ctx, questions, report.File)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, corpus.close()) }()
	return c.report(ctx, corpus, questions, report, limits)
}

// openCorpus opens a corpus that is searched with the reranker, if configured.
func (c *reportConfig) openCorpus(ctx context.Context, s surroundings, fill func(*corpus) error) (*corpus, error) {
	options, err := c.index(c.endpointConfig, s.getenv)
	if err != nil {
		return nil, err
	}
	return c.open(ctx, s, options, fill)
}

func (c *reportConfig) report(ctx context.Context, corpus *corpus, questions []eval.Question, report *evalReport, limits thresholds) (
	err error) {
	report.Made, report.Version, report.Settings = time.Now().UTC().Truncate(time.Second), version(), c.settings(corpus)
	if report.Documents, report.Chunks, err = corpus.State.Count(ctx, corpus.filter); err != nil {
		return fmt.Errorf("counting the documents of the store: %w", err)
	}
	if report.Outcomes, err = c.ask(ctx, corpus, sample(questions, c.Sample)); err != nil {
		return err
	}
	report.measure()
	report.Missed = limits.describeMissed(report.Figures)
	if c.HTML != "" {
		var page bytes.Buffer
		if err := report.writeHTML(&page); err != nil {
			return fmt.Errorf("making the page: %w", err)
		}
		if err := os.WriteFile(c.HTML, page.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing the page (--html): %w", err)
		}
	}
	return errors.Join(corpus.print(c.JSON, report, report.text()), missedError(report.Missed))
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
	return c.parse(knownFigures())
}

// ownFiles returns patterns that exclude the measurement's files from the folder: otherwise a
// search would find the questions.
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

// settings returns the settings that affect the answers.
func (c *reportConfig) settings(corpus *corpus) (settings []setting) {
	add := func(name string, value any) {
		settings = append(settings, setting{Name: name, Value: fmt.Sprint(value)})
	}
	add("strategy", c.Strategy)
	add("gate", c.Gate)
	add("confidence", c.Confidence)
	add("top-k", c.TopK)
	add("embeddings", corpus.embedder.Space())
	add("rerank-model", c.RerankModel)
	add("model", c.Model)
	if u, err := url.Parse(c.BaseURL); err == nil && c.Model != "" {
		add("base-url", u.Redacted())
		add("gate-model", c.GateModel)
		add("refine-model", c.RefineModel)
		add("gate-calls", c.GateCalls)
		add("gate-tokens", c.GateTokens)
		add("gate-time", c.GateTime)
		add("context-tokens", c.ContextTokens)
		add("step-tokens", c.StepTokens)
		add("budget-tokens", c.BudgetTokens)
		add("prompts", c.Prompts)
	}
	add("parallel", c.Parallel)
	return settings
}

// tooMany is the number of failed questions that end the run if no question has been answered.
const tooMany = 5

var errAllFailed = errors.New("every question that asked the model ended in an error")

func (c *reportConfig) ask(ctx context.Context, corpus *corpus, questions []eval.Question) ([]outcome, error) {
	answerer, err := corpus.answerer(ctx, c.modelConfig, c.endpointConfig)
	if err != nil {
		return nil, err
	}
	answerer.NoFallback = true // the report is about the model
	outcomes := make([]outcome, len(questions))
	var mu sync.Mutex
	var allFailed error // the last question's error
	failed, fine := 0, 0
	err = askAll(ctx, corpus.surroundings, "questions", len(questions), c.Parallel, func(ctx context.Context, i int) error {
		q := questions[i]
		o, err := corpus.trace(ctx, answerer, answer.Question{
			Text: q.Text, Strategy: c.Strategy, TopK: c.TopK, Filter: corpus.filter,
		}, q)
		if err != nil {
			return err
		}
		outcomes[i] = *o
		mu.Lock()
		defer mu.Unlock()
		if o.Error != "" {
			failed++
			allFailed = fmt.Errorf("asking the question %s: %s; %w", q.ID, o.Error, errAllFailed)
		} else if c.Model == "" || o.Usage.Calls > 0 { // a refusal by score does not involve the model
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
	return outcomes, err
}
