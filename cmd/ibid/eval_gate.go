package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"ibid/answer"
	"ibid/cmd/ibid/eval"
)

type evalGateCmd struct {
	Dir      string   `arg:"" help:"Folder with a set in the format of BEIR: its questions are on topic."`
	OffTopic []string `help:"Folders with other sets, of which queries.jsonl alone is read: their questions are off topic in this one's corpus." required:"" placeholder:"DIR"`
	evalConfig
	askingConfig
	corpusConfig
	modelConfig
}

// askingConfig says how questions are asked, many at a time.
type askingConfig struct {
	TopK     int `help:"Passages to look at." default:"12" placeholder:"N"`
	Parallel int `help:"Questions asked at a time; 0: one for each processor, and with a model one." default:"0" placeholder:"N"`
}

func (c askingConfig) check() error {
	if c.TopK < 1 || c.Parallel < 0 {
		return usageError("--top-k takes a number of passages, 1 or more, and --parallel one of questions, 0 or more")
	}
	return nil
}

// each calls ask with 0 to n-1, some at a time; the first error ends it.
func (c askingConfig) each(ctx context.Context, n int, model bool, s surroundings, ask func(ctx context.Context, i int) error) error {
	parallel := c.Parallel
	if parallel == 0 {
		parallel = runtime.GOMAXPROCS(0)
		if model {
			parallel = 1
		}
	}
	bar := newMeter(s.stderr, "questions", n)
	defer bar.end()
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(parallel)
	for i := range n {
		asking.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := ask(ctx, i)
			if err == nil {
				bar.add()
			}
			return err
		})
	}
	return asking.Wait()
}

// The kinds of question that a gate is measured on.
const (
	onTopic      = "on_topic"     // of the set, with a relevant document
	offTopic     = "off_topic"    // of another set
	unanswerable = "unanswerable" // of the set, which says that no document answers it
)

// gateFigures are the figures of the gate, in the order in which they are shown.
var gateFigures = [...]string{
	"auroc", "on_topic_kept", "off_topic_skipped", "relevant_kept", "off_topic_passages_skipped",
	"auroc_unanswerable", "unanswerable_kept", "judge_accuracy",
}

// gated is what the gate made of one question.
type gated struct {
	ID     string  `json:"_id"`
	Kind   string  `json:"kind"`
	Chance float64 `json:"chance"` // the highest of a passage
	Looked int     `json:"looked"`
	Kept   int     `json:"kept"`
	// Relevant passages are those of relevant documents.
	Relevant     int `json:"relevant"`
	RelevantKept int `json:"relevant_kept"`
	// Judged by the model are, of the passages of which the truth is known,
	// those that it gave a verdict on; JudgedRight those with the right one.
	Judged      int `json:"judged"`
	JudgedRight int `json:"judged_right"`
	Unparsable  int `json:"unparsable"`
	Errors      int `json:"errors"`
	Calls       int `json:"calls"`
	Tokens      int `json:"tokens"`
}

// A gateReport is what the measurement came to.
type gateReport struct {
	Documents int            `json:"documents"`
	Questions map[string]int `json:"questions"` // by kind
	Figures   eval.Figures   `json:"figures"`
	Judge     *judgeReport   `json:"judge,omitempty"` // with a model
}

// judgeReport counts what the model did as a judge.
type judgeReport struct {
	Judged     int `json:"judged"` // passages of which the truth is known
	Right      int `json:"right"`
	Unparsable int `json:"unparsable"`
	Errors     int `json:"errors"`
	Calls      int `json:"calls"`
	Tokens     int `json:"tokens"`
}

// Run asks the set's own questions and those of others, and looks at what the
// gate says. Nothing is answered.
func (c *evalGateCmd) Run(ctx context.Context, s surroundings) (err error) {
	if err := cmp.Or(c.askingConfig.check(), c.evalConfig.check(gateFigures[:])); err != nil {
		return err
	}
	set, err := readSet(c.Dir, c.Split, s)
	if err != nil {
		return err
	}
	type asked struct {
		eval.Query
		kind string
	}
	var questions []asked
	add := func(kind string, queries []eval.Query) {
		for _, q := range sample(queries, c.Sample) {
			questions = append(questions, asked{q, kind})
		}
	}
	add(onTopic, slices.DeleteFunc(set.Judged(), func(q eval.Query) bool { return q.Unanswerable }))
	add(unanswerable, slices.DeleteFunc(slices.Clone(set.Queries), func(q eval.Query) bool { return !q.Unanswerable }))
	for _, dir := range c.OffTopic {
		if info, err := os.Stat(dir); err != nil {
			return usageError("--off-topic: there is no folder %s", dir)
		} else if !info.IsDir() {
			return usageError("--off-topic: %s is a file: give the folder that holds queries.jsonl", dir)
		}
		queries, err := eval.ReadQueries(os.DirFS(dir))
		if err != nil {
			return fmt.Errorf("reading the set %s: %w", dir, err)
		}
		add(offTopic, queries)
	}
	corpus, err := c.open(ctx, c.Dir, set, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, corpus.close()) }()
	answerer, err := corpus.answerer(c.modelConfig, c.endpointConfig, s.getenv)
	if err != nil {
		return err
	}
	results := make([]gated, len(questions))
	err = c.each(ctx, len(questions), c.Model != "", s, func(ctx context.Context, i int) error {
		q := questions[i]
		g := gated{ID: q.ID, Kind: q.kind}
		grades := corpus.grades(set.Grades[q.ID])
		for e, err := range answerer.Ask(ctx, answer.Question{Text: q.Text, TopK: c.TopK, Filter: corpus.filter}) {
			if err != nil {
				return fmt.Errorf("asking the question %s: %w", q.ID, err)
			}
			judged, ok := e.(answer.Judged)
			if ok {
				g.add(judged, grades[judged.Document] > 0)
				continue
			}
			if _, kept := e.(answer.Kept); kept {
				break // the verdicts are all there
			}
		}
		results[i] = g
		return nil
	})
	if err != nil {
		return err
	}
	report := gateReportOf(results, corpus.documents, c.Model != "")
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

// add counts a verdict on a passage, which is of a relevant document or not. Of
// an on-topic question's other passages nobody knows whether they are relevant.
func (g *gated) add(j answer.Judged, relevant bool) {
	relevant = relevant && g.Kind == onTopic
	kept := j.Decision != answer.Irrelevant
	g.Looked++
	g.Chance = max(g.Chance, j.Chance)
	g.Calls += j.Calls
	g.Tokens += j.Tokens
	if kept {
		g.Kept++
	}
	if relevant {
		g.Relevant++
		if kept {
			g.RelevantKept++
		}
	}
	if j.By != "model" {
		return
	}
	switch j.Decision {
	case answer.Unparsable:
		g.Unparsable++
	case answer.Errored:
		g.Errors++
	}
	if relevant || g.Kind == offTopic {
		g.Judged++
		if (j.Decision == answer.Relevant) == relevant && (relevant || j.Decision == answer.Irrelevant) {
			g.JudgedRight++
		}
	}
}

func gateReportOf(results []gated, documents int, model bool) *gateReport {
	report := &gateReport{Documents: documents, Questions: make(map[string]int)}
	chances := make(map[string][]float64)
	var kept, looked, passagesKept = map[string]int{}, map[string]int{}, map[string]int{}
	var judge judgeReport
	relevant, relevantKept := 0, 0
	for _, g := range results {
		report.Questions[g.Kind]++
		chances[g.Kind] = append(chances[g.Kind], g.Chance)
		if g.Kept > 0 {
			kept[g.Kind]++
		}
		looked[g.Kind] += g.Looked
		passagesKept[g.Kind] += g.Kept
		relevant += g.Relevant
		relevantKept += g.RelevantKept
		judge.Judged += g.Judged
		judge.Right += g.JudgedRight
		judge.Unparsable += g.Unparsable
		judge.Errors += g.Errors
		judge.Calls += g.Calls
		judge.Tokens += g.Tokens
	}
	values := map[string]float64{
		"auroc":                      eval.AUROC(chances[onTopic], chances[offTopic]),
		"on_topic_kept":              eval.Share(kept[onTopic], report.Questions[onTopic]),
		"off_topic_skipped":          1 - eval.Share(kept[offTopic], report.Questions[offTopic]),
		"relevant_kept":              eval.Share(relevantKept, relevant),
		"off_topic_passages_skipped": 1 - eval.Share(passagesKept[offTopic], looked[offTopic]),
	}
	if report.Questions[unanswerable] > 0 {
		values["auroc_unanswerable"] = eval.AUROC(chances[onTopic], chances[unanswerable])
		values["unanswerable_kept"] = eval.Share(kept[unanswerable], report.Questions[unanswerable])
	}
	if model {
		report.Judge = &judge
		values["judge_accuracy"] = eval.Share(judge.Right, judge.Judged)
	}
	for _, name := range gateFigures {
		if v, ok := values[name]; ok {
			report.Figures = append(report.Figures, eval.Figure{Name: name, Value: v})
		}
	}
	return report
}

func (r *gateReport) show(s surroundings) error {
	line := fmt.Sprintf("%d documents; questions: %d on topic, %d off topic", r.Documents, r.Questions[onTopic], r.Questions[offTopic])
	if n := r.Questions[unanswerable]; n > 0 {
		line += fmt.Sprintf(", %d unanswerable", n)
	}
	if _, err := fmt.Fprintln(s.stdout, line); err != nil {
		return err
	}
	if err := listFigures(s.stdout, r.Figures); err != nil {
		return err
	}
	if j := r.Judge; j != nil {
		_, err := fmt.Fprintf(s.stdout, "the judge: %d of %d right; %d replies unreadable, %d failed; %d calls, %d tokens\n", j.Right, j.Judged, j.Unparsable, j.Errors, j.Calls, j.Tokens)
		return err
	}
	return nil
}
