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
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ibid/answer"
	"ibid/cmd/ibid/eval"
	"ibid/ingest"
	"ibid/retrieve"
)

type evalReportCmd struct {
	Folder    string   `arg:"" help:"Folder of documents to ask."`
	Questions string   `arg:"" name:"questions" help:"File with a question a line, as JSON: question, and where they are known answers or words, documents, pages and quotes, or answerable: false."`
	HTML      string   `help:"File to write the report into as a page: charts, and every failed question with its trace." name:"html" placeholder:"FILE"`
	JSON      bool     `help:"Print the report as one JSON object, which --compare takes." name:"json"`
	Compare   string   `help:"Report in JSON of an earlier run: say what is better and worse now, question by question." placeholder:"FILE"`
	Metrics   []string `help:"What to measure of the search: hit, recall, mrr, ndcg or p with a rank; of pages and quotes as page.recall@5 and quote.recall@5." default:"hit@1,hit@5,recall@5,recall@10,mrr@10,ndcg@10,page.hit@5,page.recall@10,page.mrr@10,quote.hit@5,quote.recall@10,quote.mrr@10" placeholder:"NAME@K"`
	Sample    int      `help:"Ask only so many of the questions, drawn with a fixed seed; 0: all." default:"0" placeholder:"N"`
	Seed      uint64   `help:"Seed of the intervals." default:"1" placeholder:"N"`
	PriceIn   float64  `help:"What a million tokens of prompts cost." placeholder:"X"`
	PriceOut  float64  `help:"What a million tokens of replies cost." placeholder:"X"`
	Parallel  int      `help:"Questions asked at a time; with more than one the times tell of their contest too." default:"1" placeholder:"N"`
	limitConfig

	Strategy  string  `help:"How evidence becomes an answer: auto, refine, stuff, map-reduce, map-rerank or extract." default:"auto" placeholder:"NAME"`
	TopK      int     `help:"Passages to look at." default:"12" placeholder:"N"`
	Diversity float64 `help:"How much unlikeness to the passages before counts against nearness to the question, 0 to below 1." default:"0" placeholder:"X"`
	Data      string  `help:"Data directory to read the folder into, and to keep for the next run; unset: a temporary one." placeholder:"DIR" noenv:"" group:"Store"`
	syncConfig
	embedConfig
	rerankConfig
	modelConfig
	readConfig
}

// Help is what 'ibid eval report --help' says beside the flags.
func (evalReportCmd) Help() string {
	return `The file of questions is text, an object a line. Only the question must be there; what else is known of the answer is held against what comes:

    ` + eval.ExampleQuestion + `
    {"question": "How long is the mast?", "answers": ["11.4 m", "11.4 metres"], "pages": [3], "documents": ["boats/guide.pdf"]}
    {"question": "What does an ounce of gold cost?", "answerable": false}

Words must all stand in the answer, and of answers one; answerable: false says that there is no answer, and that refusing is right.`
}

// hints say what is missing, in a few words.
func (evalReportCmd) hints() map[string]string {
	return map[string]string{"<questions>": "a file with a question a line, such as " + eval.ExampleQuestion}
}

// Run asks the folder every question and reports on the answers.
func (c *evalReportCmd) Run(ctx context.Context, s surroundings) (err error) {
	metrics, limits, err := c.check()
	if err != nil {
		return err
	}
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return fmt.Errorf("finding the folder %s: %w", c.Folder, err)
	}
	report := &eval.Report{Made: time.Now().UTC().Truncate(time.Second), Version: version(), Folder: filepath.Base(folder), File: filepath.Base(c.Questions), Seed: c.Seed}
	if c.PriceIn+c.PriceOut > 0 {
		report.Price = &eval.Price{In: c.PriceIn, Out: c.PriceOut}
	}
	if err := limits.check(eval.Measures(metrics, report.Price)); err != nil {
		return err
	}
	questions, err := c.questions(s)
	if err != nil {
		return err
	}
	earlier, err := c.earlier(questions)
	if err != nil {
		return err
	}
	corpus, err := c.open(ctx, questions, report, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, corpus.close()) }()
	broken := c.ask(ctx, corpus, questions, report, s)
	if len(report.Outcomes) == 0 || errors.Is(broken, errHopeless) {
		return broken
	}
	report.Measure(metrics)
	if earlier != nil {
		if err := report.Compare(earlier, filepath.Base(c.Compare)); err != nil {
			fmt.Fprintf(s.stderr, "ibid: %s cannot be compared with (--compare): %s\n", c.Compare, printable(err.Error()))
		} else if c.JSON { // the text says it itself
			for _, d := range report.Compared.Doubts {
				fmt.Fprintf(s.stderr, "ibid: not like with like: %s\n", printable(d))
			}
		}
	}
	if !report.Interrupted { // a part of the questions proves nothing
		report.Missed = limits.missed(report)
	}
	if err := c.write(report, s); err != nil {
		return err
	}
	switch {
	case report.Interrupted:
		return &exitError{exitFailed, fmt.Errorf("%w: the report is on %d of %d questions, and no threshold was looked at", broken, len(report.Outcomes), report.Wanted)}
	case len(report.Missed) > 0:
		return &exitError{exitDamage, errors.New(strings.Join(report.Missed, "; "))}
	}
	return nil
}

// check refuses what cannot be measured, before a long run.
func (c *evalReportCmd) check() (metrics []eval.PlaceMetric, limits limits, err error) {
	switch {
	case c.TopK < 1 || c.Parallel < 1 || c.Sample < 0:
		return nil, limits, usageError("--top-k takes a number of passages and --parallel one of questions, 1 or more; --sample one of questions, or 0 for all")
	case !(c.Diversity >= 0 && c.Diversity < 1):
		return nil, limits, usageError("--diversity %g: give a number from 0 to below 1", c.Diversity)
	case !(c.PriceIn >= 0 && c.PriceOut >= 0):
		return nil, limits, usageError("--price-in and --price-out are prices: give 0 or more")
	}
	if err := c.syncConfig.check(); err != nil {
		return nil, limits, err
	}
	if limits, err = c.parse(); err != nil {
		return nil, limits, err
	}
	add := func(name string) error {
		m, err := eval.ParsePlaceMetric(name)
		if err == nil && !slices.Contains(metrics, m) {
			metrics = append(metrics, m)
		}
		return err
	}
	for _, name := range c.Metrics {
		if err := add(name); err != nil {
			return nil, limits, usageError("--metrics: %w", err)
		}
	}
	for _, name := range limits.names() {
		if strings.Contains(name, "@") {
			if err := add(name); err != nil {
				return nil, limits, usageError("--min, --max: %w", err)
			}
		}
	}
	if c.HTML != "" {
		if info, err := os.Stat(filepath.Dir(c.HTML)); err != nil || !info.IsDir() {
			return nil, limits, usageError("--html %s: there is no folder %s", c.HTML, filepath.Dir(c.HTML))
		}
	}
	return metrics, limits, nil
}

// questions reads the questions that are asked.
func (c *evalReportCmd) questions(s surroundings) ([]eval.Question, error) {
	dir, name := filepath.Split(c.Questions)
	if info, err := os.Stat(c.Questions); err != nil {
		return nil, usageError("there is no file %s: give one with a question a line, such as %s", c.Questions, eval.ExampleQuestion)
	} else if info.IsDir() {
		return nil, usageError("%s is a folder: give the file with the questions, one a line, such as %s", c.Questions, eval.ExampleQuestion)
	}
	questions, unknown, err := eval.ReadQuestions(os.DirFS(cmp.Or(dir, ".")), name)
	if err != nil {
		return nil, usageError("reading the questions: %w", err)
	}
	if len(unknown) > 0 {
		fmt.Fprintf(s.stderr, "ibid: %s has fields that say nothing here: %s\n", name, printable(strings.Join(unknown, ", ")))
	}
	return sample(questions, c.Sample), nil
}

// earlier reads the report to compare with, if there is one. It must have asked
// one of the questions.
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
		return nil, usageError("--compare %s: %w; give what 'ibid eval report --json' printed", c.Compare, err)
	}
	if err := r.Shares(questions); err != nil {
		return nil, usageError("--compare %s: %w", c.Compare, err)
	}
	return r, nil
}

// open reads the folder, and finds the documents that the questions name.
func (c *evalReportCmd) open(ctx context.Context, questions []eval.Question, report *eval.Report, s surroundings) (*corpus, error) {
	sync := c.syncConfig
	own, err := c.ownFiles()
	if err != nil {
		return nil, err
	}
	sync.Exclude = append(slices.Clone(sync.Exclude), own...)
	corpus, unread, err := corpusConfig{Data: c.Data, embedConfig: c.embedConfig, rerankConfig: c.rerankConfig}.openFolder(ctx, c.Folder, sync, c.readConfig, s)
	if err != nil {
		return nil, err
	}
	report.Unread = unread
	if err := corpus.matchQuestions(ctx, questions, filepath.Base(c.Questions), s); err != nil {
		return nil, err
	}
	if err := corpus.describe(ctx, report); err != nil {
		return nil, errors.Join(err, corpus.close())
	}
	report.Settings = c.settings(corpus)
	return corpus, nil
}

// describe tells what of the questions is asked: by this two reports are known
// to be on the same documents.
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
	all, _, err := retrieve.Count(ctx, c.store, retrieve.Filter{})
	if err != nil {
		return fmt.Errorf("counting what else is in the store: %w", err)
	}
	report.Documents, report.Beside = len(documents), all-len(documents)
	report.Library, report.Store = hex.EncodeToString(sum.Sum(nil)[:8]), c.place
	report.Machine = fmt.Sprintf("%s/%s, %s", runtime.GOOS, runtime.GOARCH, counted(runtime.NumCPU(), "processor"))
	return nil
}

// ownFiles are patterns for the files of the measurement that stand in the
// folder: the questions would be found as their own answers.
func (c *evalReportCmd) ownFiles() (patterns []string, err error) {
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return nil, fmt.Errorf("finding the folder %s: %w", c.Folder, err)
	}
	escape := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`, "}", `\}`)
	for _, file := range []string{c.Questions, c.HTML, c.Compare} {
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

// settings are those that decide on the answers.
func (c *evalReportCmd) settings(corpus *corpus) []eval.Setting {
	settings := []eval.Setting{
		{Name: "strategy", Value: c.Strategy}, {Name: "gate", Value: c.Gate}, {Name: "top-k", Value: strconv.Itoa(c.TopK)},
		{Name: "diversity", Value: fmt.Sprint(c.Diversity)}, {Name: "embeddings", Value: corpus.embedder.Space()}, {Name: "rerank-model", Value: c.RerankModel},
		{Name: "model", Value: c.Model},
	}
	if c.Model != "" {
		address := "none that can be read"
		if u, err := url.Parse(c.BaseURL); err == nil {
			address = u.Redacted()
		}
		settings = append(settings, eval.Setting{Name: "base-url", Value: address},
			eval.Setting{Name: "gate-model", Value: c.GateModel}, eval.Setting{Name: "refine-model", Value: c.RefineModel},
			eval.Setting{Name: "gate-calls", Value: strconv.Itoa(c.GateCalls)}, eval.Setting{Name: "gate-tokens", Value: strconv.Itoa(c.GateTokens)}, eval.Setting{Name: "gate-time", Value: c.GateTime.String()},
			eval.Setting{Name: "context-tokens", Value: strconv.Itoa(c.ContextTokens)}, eval.Setting{Name: "step-tokens", Value: strconv.Itoa(c.StepTokens)}, eval.Setting{Name: "prompts", Value: c.Prompts})
	}
	return append(settings, eval.Setting{Name: "pdf", Value: c.PDF}, eval.Setting{Name: "parallel", Value: strconv.Itoa(c.Parallel)})
}

// ask asks the questions. Where an error ends it, the report has the outcomes
// of those that were answered.
func (c *evalReportCmd) ask(ctx context.Context, corpus *corpus, questions []eval.Question, report *eval.Report, s surroundings) error {
	answerer, err := corpus.answerer(c.modelConfig, c.endpointConfig, s.getenv)
	if err != nil {
		return err
	}
	citing, err := citeConfig{Source: "document"}.citing()
	if err != nil {
		return err
	}
	outcomes := make([]*eval.Outcome, len(questions))
	bar := newMeter(s.stderr, "questions", len(questions))
	defer bar.end()
	var mu sync.Mutex
	failed, fine := 0, 0
	asking, within := errgroup.WithContext(ctx)
	asking.SetLimit(c.Parallel)
	for i, q := range questions {
		if within.Err() != nil {
			break
		}
		asking.Go(func() error {
			if err := within.Err(); err != nil {
				return err
			}
			o, err := corpus.trace(within, answerer, answer.Question{
				Text: q.Text, Strategy: c.Strategy, TopK: c.TopK, Diversity: c.Diversity, Filter: corpus.filter,
			}, q, citing)
			if err != nil {
				return err
			}
			outcomes[i] = o
			bar.add()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case o.Error != "":
				if failed++; fine == 0 && failed == hopeless {
					return without(q, o)
				}
			case c.Model == "" || o.Cost.Calls > 0: // a refusal by scores tells nothing of the model
				fine++
			}
			return nil
		})
	}
	err = asking.Wait()
	if err == nil && fine == 0 && failed > 0 {
		first := slices.IndexFunc(outcomes, func(o *eval.Outcome) bool { return o.Error != "" })
		err = without(questions[first], outcomes[first])
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

// hopeless is how many questions may end in an error, before one was answered,
// for the rest to be asked all the same.
const hopeless = 5

// without tells of a question that ended in an error as all did.
func without(q eval.Question, o *eval.Outcome) error {
	return fmt.Errorf("asking the question %s: %w, as this one: %s", q.ID, errHopeless, o.Error)
}

var (
	errHopeless    = errors.New("every question so far that was not refused without the model ended in an error")
	errInterrupted = errors.New("interrupted")
)

// write writes the report in the forms that were asked for.
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
		return json.NewEncoder(s.stdout).Encode(report)
	}
	var text bytes.Buffer
	if err := report.WriteText(&text); err != nil {
		return err
	}
	if _, err := fmt.Fprint(s.stdout, printable(text.String())); err != nil {
		return err
	}
	switch {
	case c.HTML != "":
		fmt.Fprintf(s.stderr, "every question with its trace: %s\n", c.HTML)
	case report.Failed > 0:
		fmt.Fprintln(s.stderr, "--html FILE makes a page with the trace of every question")
	}
	return nil
}
