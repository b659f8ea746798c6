package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"ibid/answer"
	"ibid/cmd/ibid/eval"
	"ibid/ingest"
	"ibid/retrieve"
)

type evalReportCmd struct {
	Folder    string   `arg:"" help:"Folder of documents to ask, or without QUESTIONS a set in BEIR's format."`
	Questions string   `arg:"" optional:"" name:"questions" help:"File with a question per line, and what is known of its answer."`
	OffTopic  []string `help:"Folders with a queries.jsonl whose questions have no answer here." placeholder:"DIR"`
	HTML      string   `help:"File to write the report to as a page, with traces of the failures." name:"html" placeholder:"FILE"`
	JSON      bool     `help:"Print the report as one JSON object, which --compare reads." name:"json"`
	Compare   string   `help:"JSON report of an earlier run; compare the results question by question." placeholder:"FILE"`
	Metrics   []string `help:"Search figures: hit, recall, mrr, ndcg or p with a rank." default:"${report_metrics}" placeholder:"NAME@K"`
	Sample    int      `help:"Ask only N of the questions, drawn with a fixed seed; 0: all." default:"0" placeholder:"N"`
	PriceIn   float64  `help:"Price of a million tokens in prompts." placeholder:"X"`
	PriceOut  float64  `help:"Price of a million tokens in replies." placeholder:"X"`
	Parallel  int      `help:"Questions asked at a time; with more than one they slow each other down." default:"1" placeholder:"N"`
	thresholdConfig

	Strategy  string  `help:"How passages become an answer: ${strategies}." default:"auto" placeholder:"NAME"`
	TopK      int     `help:"Passages to look at." default:"12" placeholder:"N"`
	Diversity float64 `help:"Weight of unlikeness to earlier passages, from 0 to below 1." default:"0" placeholder:"X"`
	syncConfig
	corpusConfig
	modelConfig
	readConfig
}

// Help is printed before the flags.
func (evalReportCmd) Help() string {
	return `The file of questions has a JSON object per line. Only the question is required; the answer is compared with what else is known:

    ` + eval.ExampleQuestion + `
    {"question": "How long is the mast?", "answers": ["11.4 m", "11.4 metres"], "pages": [3], "documents": ["boats/guide.pdf"]}
    {"question": "What does an ounce of gold cost?", "answerable": false}

A right answer contains all words and one of the answers; answerable: false means that there is none and that refusing is right.

Without a file of questions the folder is a set in BEIR's format (corpus.jsonl, queries.jsonl, qrels), which is asked its own queries.`
}

// Run asks every question about the folder and reports on the answers.
func (c *evalReportCmd) Run(ctx context.Context, s surroundings) (err error) {
	report := &eval.Report{Made: time.Now().UTC().Truncate(time.Second), Version: version()}
	if c.PriceIn+c.PriceOut > 0 {
		report.Price = &eval.Price{In: c.PriceIn, Out: c.PriceOut}
	}
	metrics, limits, err := c.check(report.Price)
	if err != nil {
		return err
	}
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return fmt.Errorf("finding the folder %s: %w", c.Folder, err)
	}
	report.Folder = filepath.Base(folder)
	questions, set, err := c.questions(report, s)
	if err != nil {
		return err
	}
	earlier, err := c.earlier(questions)
	if err != nil {
		return err
	}
	corpus, err := c.open(ctx, folder, set, questions, report, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, corpus.close()) }()
	broken := c.ask(ctx, corpus, questions, report, s)
	if len(report.Outcomes) == 0 || errors.Is(broken, errAllFailed) {
		return broken
	}
	report.Measure(metrics)
	if earlier != nil {
		if err := report.Compare(earlier, filepath.Base(c.Compare)); err != nil { // interrupted before a shared question
			fmt.Fprintf(s.stderr, "ibid: cannot compare with %s (--compare): %s\n", c.Compare, printable(err.Error()))
		}
	}
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

// check rejects invalid flags before a long run.
func (c *evalReportCmd) check(price *eval.Price) (metrics []eval.Metric, limits thresholds, err error) {
	switch {
	case c.TopK < 1 || c.Parallel < 1 || c.Sample < 0:
		return nil, nil, usageError("--top-k and --parallel must be 1 or more, and --sample 0 or more")
	case !(c.Diversity >= 0 && c.Diversity < 1):
		return nil, nil, usageError("--diversity %g: give a number from 0 to below 1", c.Diversity)
	case !(c.PriceIn >= 0 && c.PriceOut >= 0):
		return nil, nil, usageError("--price-in and --price-out must be 0 or more")
	}
	if c.HTML != "" {
		if info, err := os.Stat(filepath.Dir(c.HTML)); err != nil || !info.IsDir() {
			return nil, nil, usageError("--html %s: there is no folder %s", c.HTML, filepath.Dir(c.HTML))
		}
	}
	if err := c.syncConfig.check(); err != nil {
		return nil, nil, err
	}
	if limits, err = c.parse(); err != nil {
		return nil, nil, err
	}
	wanted := slices.Clone(c.Metrics)
	for _, t := range limits { // a metric with a threshold is measured too
		if strings.Contains(t.figure, "@") {
			wanted = append(wanted, t.figure)
		}
		if t.figure == eval.CostFigure && price == nil {
			return nil, nil, usageError("%s cost: the cost is unknown without a price: give --price-in or --price-out, "+
				"the price of a million tokens in prompts and in replies", t.flag)
		}
	}
	for _, name := range wanted {
		m, err := eval.ParseMetric(name)
		if err != nil {
			return nil, nil, usageError("--metrics, --min, --max: %w", err)
		}
		if !slices.Contains(metrics, m) {
			metrics = append(metrics, m)
		}
	}
	return metrics, limits, limits.check(eval.Measures(metrics, price))
}

func (c *evalReportCmd) questions(report *eval.Report, s surroundings) (questions []eval.Question, set *eval.Set, err error) {
	if c.Questions == "" {
		questions, set, err = c.readSet(report, s)
	} else {
		questions, err = c.readQuestions(report, s)
	}
	if err != nil {
		return nil, nil, err
	}
	questions = sample(questions, c.Sample)
	for _, dir := range c.OffTopic {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, nil, usageError("--off-topic %s: there is no such folder: give one that holds queries.jsonl", dir)
		}
		queries, err := eval.ReadQueries(os.DirFS(dir))
		if err != nil {
			return nil, nil, fmt.Errorf("reading the set %s: %w", dir, err)
		}
		for _, q := range sample(queries, c.Sample) {
			questions = append(questions, eval.Question{ID: filepath.Base(dir) + " " + q.ID, Text: q.Text, Kind: "off-topic", Unanswerable: true})
		}
	}
	return questions, set, nil
}

func (c *evalReportCmd) readSet(report *eval.Report, s surroundings) ([]eval.Question, *eval.Set, error) {
	if info, err := os.Stat(c.Folder); err == nil && info.IsDir() && !eval.IsSet(os.DirFS(c.Folder)) {
		return nil, nil, usageError("%s is no set in BEIR's format: give a file with a question per line too, such as %s",
			c.Folder, eval.ExampleQuestion)
	}
	set, err := readSet(c.Folder, c.Split, s)
	if err != nil {
		return nil, nil, err
	}
	report.File = set.Judgements
	questions, left := set.Questions()
	if left > 0 {
		fmt.Fprintf(s.stderr, "ibid: %s left out: the set does not say whether they have an answer\n", counted(left, "question"))
	}
	return questions, set, nil
}

func (c *evalReportCmd) readQuestions(report *eval.Report, s surroundings) ([]eval.Question, error) {
	dir, name := filepath.Split(c.Questions)
	report.File = name
	if info, err := os.Stat(c.Questions); err != nil || info.IsDir() {
		return nil, usageError("there is no file %s: give one with a question per line, such as %s", c.Questions, eval.ExampleQuestion)
	}
	questions, unknown, err := eval.ReadQuestions(os.DirFS(cmp.Or(dir, ".")), name)
	if err != nil {
		return nil, usageError("reading the questions: %w", err)
	}
	if len(unknown) > 0 {
		fmt.Fprintf(s.stderr, "ibid: %s has unknown fields, which are ignored: %s\n", name, printable(strings.Join(unknown, ", ")))
	}
	return questions, nil
}

// earlier reads the report of --compare, if set. It must share a question.
func (c *evalReportCmd) earlier(questions []eval.Question) (*eval.Report, error) {
	if c.Compare == "" {
		return nil, nil
	}
	b, err := os.ReadFile(c.Compare)
	if err != nil {
		return nil, usageError("--compare: %w", err)
	}
	r, err := eval.ReadReport(bytes.NewReader(b))
	if err != nil {
		return nil, usageError("--compare %s: %w; give the output of 'ibid eval report --json'", c.Compare, err)
	}
	if err := r.Shares(questions); err != nil {
		return nil, usageError("--compare %s: %w", c.Compare, err)
	}
	return r, nil
}

// open reads the folder, or the corpus of the set, finds the questions' documents,
// and describes both in the report.
func (c *evalReportCmd) open(
	ctx context.Context, folder string, set *eval.Set, questions []eval.Question, report *eval.Report, s surroundings,
) (out *corpus, err error) {
	if set != nil {
		out, err = c.corpusConfig.open(ctx, c.Folder, set, s)
	} else {
		sync := c.syncConfig
		own, oerr := ownFiles(folder, c.Questions, c.HTML, c.Compare)
		if oerr != nil {
			return nil, oerr
		}
		sync.Exclude = append(slices.Clone(sync.Exclude), own...)
		out, report.Unread, err = c.openFolder(ctx, c.Folder, sync, c.readConfig, s)
		if err == nil {
			err = out.match(ctx, questions, report.File, s)
		}
	}
	if err == nil {
		err = out.describe(ctx, report)
	}
	if err != nil {
		if out != nil {
			err = errors.Join(err, out.close())
		}
		return nil, err
	}
	report.Settings = c.settings(out)
	return out, nil
}

// describe fills in the conditions by which reports are known to be comparable.
func (c *corpus) describe(ctx context.Context, report *eval.Report) error {
	documents, err := c.Documents(ctx, c.filter)
	if err != nil {
		return err
	}
	slices.SortFunc(documents, func(a, b retrieve.DocumentInfo) int { return strings.Compare(a.Path, b.Path) })
	sum := sha256.New()
	for _, d := range documents {
		report.Chunks += d.Chunks
		fmt.Fprintf(sum, "%q %s %q %d\n", d.Path, d.Digest, d.Meta[ingest.ReaderKey], d.Chunks)
	}
	all, _, err := c.State.Count(ctx, retrieve.Filter{})
	if err != nil {
		return fmt.Errorf("counting the documents of the store: %w", err)
	}
	report.Documents, report.OtherDocuments = len(documents), all-len(documents)
	report.Library, report.Store = hex.EncodeToString(sum.Sum(nil)[:8]), c.place
	report.Machine = fmt.Sprintf("%s/%s, %s", runtime.GOOS, runtime.GOARCH, counted(runtime.NumCPU(), "processor"))
	return nil
}

// ownFiles returns patterns that exclude the files of the measurement from the
// folder: a search would find the questions instead of their answers.
func ownFiles(folder string, files ...string) (patterns []string, err error) {
	escape := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`, "}", `\}`)
	for _, file := range files {
		if file == "" {
			continue
		}
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

func (c *evalReportCmd) settings(corpus *corpus) (settings []eval.Setting) {
	add := func(pairs ...any) {
		for i := 0; i < len(pairs); i += 2 {
			settings = append(settings, eval.Setting{Name: pairs[i].(string), Value: fmt.Sprint(pairs[i+1])})
		}
	}
	add("strategy", c.Strategy, "gate", c.Gate, "confidence", c.Confidence, "top-k", c.TopK, "diversity", c.Diversity,
		"embeddings", corpus.embedder.Space(), "rerank-model", c.RerankModel, "model", c.Model)
	if c.Model != "" {
		address := "invalid"
		if u, err := url.Parse(c.BaseURL); err == nil {
			address = u.Redacted()
		}
		add("base-url", address, "gate-model", c.GateModel, "refine-model", c.RefineModel, "gate-calls", c.GateCalls,
			"gate-time", c.GateTime, "context-tokens", c.ContextTokens, "step-tokens", c.StepTokens,
			"budget-tokens", c.BudgetTokens, "prompts", c.Prompts)
	}
	add("parallel", c.Parallel)
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
func (c *evalReportCmd) ask(ctx context.Context, corpus *corpus, questions []eval.Question, report *eval.Report, s surroundings) error {
	answerer, err := corpus.answerer(c.modelConfig, c.endpointConfig, s.getenv)
	if err != nil {
		return err
	}
	answerer.NoFallback = true // a report is about the model
	citing, err := citeConfig{Source: "document"}.citing()
	if err != nil {
		return err
	}
	outcomes := make([]*eval.Outcome, len(questions))
	var mu sync.Mutex
	var allFailed error // of the last error
	failed, fine := 0, 0
	err = askAll(ctx, s, "questions", len(questions), c.Parallel, func(ctx context.Context, i int) error {
		q := questions[i]
		o, err := corpus.trace(ctx, answerer, answer.Question{
			Text: q.Text, Strategy: c.Strategy, TopK: c.TopK, Diversity: c.Diversity, Filter: corpus.filter,
		}, q, citing)
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

func (c *evalReportCmd) write(report *eval.Report, s surroundings) error {
	if c.HTML != "" {
		var page bytes.Buffer
		if err := report.WriteHTML(&page); err != nil {
			return fmt.Errorf("making the page: %w", err)
		}
		if err := os.WriteFile(c.HTML, page.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing the page (--html): %w", err)
		}
	}
	if c.JSON {
		if report.Compared != nil {
			for _, d := range report.Compared.Doubts {
				fmt.Fprintf(s.stderr, "ibid: not comparable: %s\n", printable(d))
			}
		}
		return json.NewEncoder(s.stdout).Encode(report)
	}
	if err := report.WriteText(printing{s.stdout}); err != nil {
		return err
	}
	switch {
	case c.HTML != "":
		fmt.Fprintf(s.stderr, "the trace of every question: %s\n", c.HTML)
	case report.Failed > 0:
		fmt.Fprintln(s.stderr, "--html FILE makes a page with the trace of every question")
	}
	return nil
}
