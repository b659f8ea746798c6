package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"ibid/answer"
	"ibid/cmd/ibid/eval"
)

type evalGateCmd struct {
	Dir      string   `arg:"" help:"Folder with a set in BEIR's format; its questions are on topic."`
	OffTopic []string `help:"Folders with other sets, of which only queries.jsonl is read; their questions are off topic here." required:"" placeholder:"DIR"`
	evalConfig
	askingConfig
	corpusConfig
	modelConfig
}

// askingConfig says how questions are asked.
type askingConfig struct {
	TopK     int `help:"Passages to look at." default:"12" placeholder:"N"`
	Parallel int `help:"Questions asked at a time; 0: one per processor, or one with a model." default:"0" placeholder:"N"`
}

func (c askingConfig) check() error {
	if c.TopK < 1 || c.Parallel < 0 {
		return usageError("--top-k must be 1 or more, and --parallel 0 or more")
	}
	return nil
}

func (c askingConfig) parallel(model bool) int {
	if c.Parallel == 0 && !model {
		return runtime.GOMAXPROCS(0)
	}
	return max(1, c.Parallel)
}

// The kinds of question that a gate is measured on.
const (
	onTopic      = "on_topic"     // of the set, with a relevant document
	offTopic     = "off_topic"    // of another set
	unanswerable = "unanswerable" // of the set, which says that no document answers it
)

// gateFigures are the figures in display order.
var gateFigures = [...]string{
	"auroc", "on_topic_kept", "off_topic_skipped", "relevant_kept", "off_topic_passages_skipped",
	"auroc_unanswerable", "unanswerable_kept", "judge_accuracy",
}

// gated is the gate's result for one question.
type gated struct {
	ID     string  `json:"_id"`
	Kind   string  `json:"kind"`
	Chance float64 `json:"chance"` // the highest of a passage
	Looked int     `json:"looked"`
	Kept   int     `json:"kept"`
	// Relevant counts the passages of relevant documents.
	Relevant     int `json:"relevant"`
	RelevantKept int `json:"relevant_kept"`
	// Judged counts the passages that the model judged and whose relevance is
	// known, JudgedRight those that it judged correctly.
	Judged      int `json:"judged"`
	JudgedRight int `json:"judged_right"`
	Unparsable  int `json:"unparsable"`
	Errors      int `json:"errors"`
	Calls       int `json:"calls"`
	Tokens      int `json:"tokens"`
}

type gateReport struct {
	Documents int            `json:"documents"`
	Questions map[string]int `json:"questions"` // by kind
	Figures   eval.Figures   `json:"figures"`
	Judge     *judgeReport   `json:"judge,omitempty"` // with a model
}

type judgeReport struct {
	Judged     int `json:"judged"` // passages whose relevance is known
	Right      int `json:"right"`
	Unparsable int `json:"unparsable"`
	Errors     int `json:"errors"`
	Calls      int `json:"calls"`
	Tokens     int `json:"tokens"`
}

// gateQuestion is a question with its kind.
type gateQuestion struct {
	eval.Query
	kind string
}

// Run asks the set's own questions and those of the others, and measures the
// gate's decisions. It writes no answers.
func (c *evalGateCmd) Run(ctx context.Context, s surroundings) (err error) {
	limits, err := c.evalConfig.check(gateFigures[:])
	if err := cmp.Or(c.askingConfig.check(), err); err != nil {
		return err
	}
	set, err := readSet(c.Dir, c.Split, s)
	if err != nil {
		return err
	}
	questions, err := c.questions(set)
	if err != nil {
		return err
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
	err = askAll(ctx, s, "questions", len(questions), c.parallel(c.Model != ""), func(ctx context.Context, i int) error {
		q, g := questions[i], &results[i]
		g.ID, g.Kind = q.ID, q.kind
		grades := corpus.grades(set.Grades[q.ID])
		for e, err := range answerer.Ask(ctx, answer.Question{Text: q.Text, TopK: c.TopK, Filter: corpus.filter}) {
			if err != nil {
				return fmt.Errorf("asking the question %s: %w", q.ID, err)
			}
			if judged, ok := e.(answer.Judged); ok {
				g.addVerdict(judged, grades[judged.Document] > 0)
			} else if _, kept := e.(answer.Kept); kept {
				break // no more verdicts follow
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	report := newGateReport(results, corpus.documents, c.Model != "")
	return c.finish(s, report, anySlice(results), limits, report.Figures)
}

func (c *evalGateCmd) questions(set *eval.Set) (questions []gateQuestion, err error) {
	add := func(kind string, queries []eval.Query) {
		for _, q := range sample(queries, c.Sample) {
			questions = append(questions, gateQuestion{q, kind})
		}
	}
	add(onTopic, slices.DeleteFunc(set.Judged(), func(q eval.Query) bool { return q.Unanswerable }))
	add(unanswerable, slices.DeleteFunc(slices.Clone(set.Queries), func(q eval.Query) bool { return !q.Unanswerable }))
	for _, dir := range c.OffTopic {
		if info, err := os.Stat(dir); err != nil {
			return nil, usageError("--off-topic: there is no folder %s", dir)
		} else if !info.IsDir() {
			return nil, usageError("--off-topic: %s is a file: give the folder that holds queries.jsonl", dir)
		}
		queries, err := eval.ReadQueries(os.DirFS(dir))
		if err != nil {
			return nil, fmt.Errorf("reading the set %s: %w", dir, err)
		}
		add(offTopic, queries)
	}
	return questions, nil
}

// addVerdict counts a verdict on a passage. Whether a passage of an on-topic
// question is irrelevant is not known: the judgements are incomplete.
func (g *gated) addVerdict(j answer.Judged, relevant bool) {
	relevant = relevant && g.Kind == onTopic
	kept := j.Decision != answer.Irrelevant
	g.Looked++
	g.Chance = max(g.Chance, j.Chance)
	g.Calls += j.Calls
	g.Tokens += j.Tokens
	countIf(kept, &g.Kept)
	countIf(relevant, &g.Relevant)
	countIf(relevant && kept, &g.RelevantKept)
	if j.By != "model" {
		return
	}
	countIf(j.Decision == answer.Unparsable, &g.Unparsable)
	countIf(j.Decision == answer.Errored, &g.Errors)
	countIf(relevant || g.Kind == offTopic, &g.Judged)
	countIf(relevant && j.Decision == answer.Relevant || g.Kind == offTopic && j.Decision == answer.Irrelevant, &g.JudgedRight)
}

// countIf increments the counters if a condition is true.
func countIf(is bool, counters ...*int) {
	for _, n := range counters {
		if is {
			*n++
		}
	}
}

func newGateReport(results []gated, documents int, model bool) *gateReport {
	report := &gateReport{Documents: documents, Questions: make(map[string]int)}
	chances := make(map[string][]float64)
	asked := make(map[string]int) // questions with a kept passage, by kind
	var all, off gated
	for _, g := range results {
		report.Questions[g.Kind]++
		chances[g.Kind] = append(chances[g.Kind], g.Chance)
		if g.Kept > 0 {
			asked[g.Kind]++
		}
		if g.Kind == offTopic {
			off.Looked += g.Looked
			off.Kept += g.Kept
		}
		all.Relevant += g.Relevant
		all.RelevantKept += g.RelevantKept
		all.Judged += g.Judged
		all.JudgedRight += g.JudgedRight
		all.Unparsable += g.Unparsable
		all.Errors += g.Errors
		all.Calls += g.Calls
		all.Tokens += g.Tokens
	}
	keptShare := func(kind string) float64 { return eval.Share(asked[kind], report.Questions[kind]) }
	for i, f := range []struct {
		measured bool
		value    float64
	}{
		{true, eval.AUROC(chances[onTopic], chances[offTopic])},
		{true, keptShare(onTopic)},
		{true, 1 - keptShare(offTopic)},
		{true, eval.Share(all.RelevantKept, all.Relevant)},
		{true, 1 - eval.Share(off.Kept, off.Looked)},
		{report.Questions[unanswerable] > 0, eval.AUROC(chances[onTopic], chances[unanswerable])},
		{report.Questions[unanswerable] > 0, keptShare(unanswerable)},
		{model, eval.Share(all.JudgedRight, all.Judged)},
	} {
		if f.measured {
			report.Figures = append(report.Figures, eval.Figure{Name: gateFigures[i], Value: f.value})
		}
	}
	if model {
		report.Judge = &judgeReport{all.Judged, all.JudgedRight, all.Unparsable, all.Errors, all.Calls, all.Tokens}
	}
	return report
}

func (r *gateReport) show(s surroundings) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d documents; questions: %d on topic, %d off topic", r.Documents, r.Questions[onTopic], r.Questions[offTopic])
	if n := r.Questions[unanswerable]; n > 0 {
		fmt.Fprintf(&b, ", %d unanswerable", n)
	}
	b.WriteByte('\n')
	listFigures(&b, r.Figures)
	if j := r.Judge; j != nil {
		fmt.Fprintf(&b, "judge: %d of %d right; %d replies unreadable, %d failed; %d calls, %d tokens\n",
			j.Right, j.Judged, j.Unparsable, j.Errors, j.Calls, j.Tokens)
	}
	_, err := fmt.Fprint(s.stdout, b.String())
	return err
}
