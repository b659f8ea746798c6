package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"ibid/cmd/ibid/eval"
	"ibid/retrieve"
	"ibid/retrieve/embed/encoder"
)

type evalRetrievalCmd struct {
	Dir     string `arg:"" help:"@set"`
	Against string `help:"File that an earlier run wrote with --details; each search is compared with its result there." placeholder:"FILE"`
	JSON    bool   `help:"Print one JSON object." name:"json"`
	Encoder string `help:"Model file from 'ibid setup'; also measure search with it." placeholder:"FILE"`
	Sample  int    `help:"Ask only N of the queries, drawn with a fixed seed; 0: all." default:"0" placeholder:"N"`
	Details string `help:"File to write one JSON object per query to." placeholder:"FILE"`
	Split   string `help:"Judgements: qrels/NAME.tsv or NAME.tsv; unset: qrels.tsv, or test, dev or train." placeholder:"NAME"`
	thresholdConfig
	corpusConfig
}

// A measuredSearch is a search whose results are measured.
type measuredSearch struct {
	name        string
	options     retrieve.Options
	encodeFirst bool        // with all chunks encoded in advance
	values      [][]float64 // [metric][query]; nil before it is measured
}

// searches returns the three built-in searches and, with an encoder, those that use it. The
// caller must call closer.
func (c *evalRetrievalCmd) searches() (_ []measuredSearch, closer func() error, _ error) {
	all := []measuredSearch{
		{name: "bm25", options: retrieve.Options{Mode: retrieve.LexicalOnly}},
		{name: "dense", options: retrieve.Options{Mode: retrieve.DenseOnly}},
		{name: wholeSearch, options: retrieve.Options{Mode: retrieve.Hybrid}},
	}
	closer = func() error { return nil }
	if c.Encoder != "" {
		m, err := encoder.Open(c.Encoder)
		if err != nil {
			return nil, nil, usageError("--encoder: %w", err)
		}
		closer = m.Close
		all = append(all, measuredSearch{name: "encoded", options: retrieve.Options{Encoder: m}},
			measuredSearch{name: "complete", options: retrieve.Options{Encoder: m}, encodeFirst: true})
	}
	return all, closer, nil
}

// wholeSearch is the search that users run. Thresholds without the name of a search apply to
// it.
const wholeSearch = "hybrid"

// A comparedPair compares two searches by the first metric.
type comparedPair struct {
	A      string `json:"a"`
	B      string `json:"b"`
	Metric string `json:"metric"`
	eval.Comparison
}

// Run measures each search on every query that has a relevant document.
func (c *evalRetrievalCmd) Run(ctx context.Context, s surroundings) (err error) {
	searches, closer, err := c.searches()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer()) }()
	if c.Sample < 0 {
		return usageError("--sample %d: give a number of queries, or 0 for all", c.Sample)
	}
	metrics := retrievalMetrics()
	_, known := showSearches(map[string]any{}, searches, metrics)
	limits, err := c.parse(known)
	if err != nil {
		return err
	}
	earlier, err := c.readEarlier(searches, metrics[0])
	if err != nil {
		return err
	}
	set, err := readSet(c.Dir, c.Split)
	if err != nil {
		return err
	}
	corpus, err := c.open(ctx, s, retrieve.Options{}, func(out *corpus) error { return out.fill(ctx, c.Dir, set.Documents) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, corpus.close()) }()

	queries := sample(set.JudgedQueries(), c.Sample)
	if err := corpus.measure(ctx, searches, queries, set); err != nil {
		return err
	}
	_, chunks, err := corpus.State.Count(ctx, corpus.filter)
	if err != nil {
		return err
	}
	compared, err := c.compare(searches, queries, metrics[0], earlier)
	if err != nil {
		return err
	}
	if err := c.writeDetails(queries, searches, metrics); err != nil {
		return err
	}
	report := map[string]any{"queries": len(queries), "documents": len(set.Documents), "chunks": chunks, "compared": compared,
		"skipped": len(set.Queries) - len(set.JudgedQueries()), // without a relevant document
		"space":   corpus.embedder.Space(), "judgements": set.Judgements}
	text := fmt.Sprintf("%s: %d queries of %s; %d without a relevant document left out; %d documents in %d chunks; %s\n",
		filepath.Base(c.Dir), len(queries), set.Judgements, report["skipped"], len(set.Documents), chunks, report["space"])
	rows, figures := showSearches(report, searches, metrics)
	for _, p := range compared {
		rows += fmt.Sprintf("%s - %s: %s %+.4f, p = %.2g (better on %d queries, worse on %d)\n",
			p.A, p.B, p.Metric, p.Difference, p.P, p.Better, p.Worse)
	}
	return errors.Join(s.print(c.JSON, report, text+rows), missedError(limits.describeMissed(figures)))
}

// showSearches adds the means of each search to a report. It returns them as rows and, under
// all names that a threshold may use, as figures.
func showSearches(report map[string]any, searches []measuredSearch, metrics []eval.Metric) (rows string, figures []eval.Figure) {
	rows = strings.Repeat(" ", 8)
	for _, metric := range metrics {
		rows += fmt.Sprintf(" %10s", metric)
	}
	for _, x := range searches {
		means := make(map[string]float64)
		rows += fmt.Sprintf("\n%-8s", x.name)
		for m, metric := range metrics {
			mean := 0.0
			if x.values != nil {
				mean = eval.Mean(x.values[m])
			}
			means[metric.String()] = mean
			rows += fmt.Sprintf(" %10.4f", mean)
			f := eval.Figure{Name: x.name + "." + metric.String(), Unit: eval.ShareUnit, Value: mean}
			figures = append(figures, f)
			if f.Name = metric.String(); x.name == wholeSearch {
				figures = append(figures, f)
			}
		}
		report[x.name] = means
	}
	return rows + "\n", figures
}

// retrievalMetrics returns the measured metrics. Searches are compared by the first.
func retrievalMetrics() []eval.Metric {
	return []eval.Metric{{Kind: "ndcg", K: 10}, {Kind: "recall", K: 10}, {Kind: "recall", K: deepestRank}, {Kind: "mrr", K: 10}}
}

const deepestRank = 100

func (c *corpus) measure(ctx context.Context, searches []measuredSearch, queries []eval.Query, set *eval.Set) error {
	metrics := retrievalMetrics()
	indexes := make([]*retrieve.Index, len(searches))
	for i, x := range searches {
		var err error
		if indexes[i], err = c.indexOf(ctx, x); err != nil {
			return err
		}
		searches[i].values = make([][]float64, len(metrics))
		for m := range metrics {
			searches[i].values[m] = make([]float64, len(queries))
		}
	}
	return askAll(ctx, c.surroundings, "queries", len(queries), runtime.GOMAXPROCS(0), func(ctx context.Context, at int) error {
		q := queries[at]
		grades := c.grades(set.Grades[q.ID])
		for i, x := range indexes {
			ranking, err := c.rank(ctx, x, q.Text, grades)
			if err != nil {
				return fmt.Errorf("asking the query %s: %w", q.ID, err)
			}
			for m, metric := range metrics {
				searches[i].values[m][at] = metric.Measure(ranking, grades)
			}
		}
		return nil
	})
}

func (c *corpus) indexOf(ctx context.Context, x measuredSearch) (*retrieve.Index, error) {
	if !x.encodeFirst {
		return c.NewIndex(ctx, c.embedder, x.options)
	}
	index, err := c.OpenEncoded(ctx, c.embedder, x.options)
	if err != nil {
		return nil, err
	}
	return index, index.Encode(ctx, retrieve.Encoding{Workers: runtime.GOMAXPROCS(0), Progress: newProgress(c.stderr, "chunks encoded")})
}

func (c *evalRetrievalCmd) writeDetails(queries []eval.Query, searches []measuredSearch, metrics []eval.Metric) error {
	if c.Details == "" {
		return nil
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for at, q := range queries {
		line := map[string]any{"_id": q.ID}
		for _, x := range searches {
			figures := make(map[string]float64)
			for m, metric := range metrics {
				figures[metric.String()] = x.values[m][at]
			}
			line[x.name] = figures
		}
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	if err := os.WriteFile(c.Details, lines.Bytes(), 0o666); err != nil {
		return fmt.Errorf("writing the details (--details): %w", err)
	}
	return nil
}

// earlierFigures are the values of one metric in an earlier run, by query and search.
type earlierFigures map[string]map[string]float64

func (c *evalRetrievalCmd) readEarlier(searches []measuredSearch, metric eval.Metric) (earlierFigures, error) {
	if c.Against == "" {
		return nil, nil
	}
	data, err := os.ReadFile(c.Against)
	if err != nil {
		return nil, usageError("--against: %w", err)
	}
	earlier := make(earlierFigures)
	for lines := json.NewDecoder(bytes.NewReader(data)); lines.More(); {
		var line map[string]json.RawMessage
		var id string
		if err := errors.Join(lines.Decode(&line), json.Unmarshal(line["_id"], &id)); err != nil {
			return nil, usageError("--against %s: not a file that --details writes: %w", c.Against, err)
		}
		earlier[id] = make(map[string]float64)
		for _, x := range searches {
			var figures map[string]float64
			err := json.Unmarshal(line[x.name], &figures)
			v, ok := figures[metric.String()]
			if err != nil || !ok {
				return nil, usageError("--against %s: query %s has no %s of %s", c.Against, id, metric, x.name)
			}
			earlier[id][x.name] = v
		}
	}
	return earlier, nil
}

// compare compares the hybrid search with the first two, the later ones with the hybrid search,
// and each with itself in an earlier run.
func (c *evalRetrievalCmd) compare(searches []measuredSearch, queries []eval.Query, metric eval.Metric, earlier earlierFigures) (
	compared []comparedPair, err error) {
	for _, p := range [][2]int{{2, 0}, {2, 1}, {3, 2}, {4, 2}}[:len(searches)-1] {
		a, b := searches[p[0]], searches[p[1]]
		compared = append(compared, comparedPair{a.name, b.name, metric.String(), eval.Compare(a.values[0], b.values[0])})
	}
	if c.Against == "" {
		return compared, nil
	}
	for _, x := range searches {
		then := make([]float64, len(queries))
		for q, query := range queries {
			figures, ok := earlier[query.ID]
			if !ok || len(earlier) != len(queries) {
				return nil, fmt.Errorf("%s (--against) has %d queries, which differ from the %d of this run, such as %s",
					c.Against, len(earlier), len(queries), query.ID)
			}
			then[q] = figures[x.name]
		}
		compared = append(compared, comparedPair{x.name, x.name + " of " + c.Against, metric.String(), eval.Compare(x.values[0], then)})
	}
	return compared, nil
}
