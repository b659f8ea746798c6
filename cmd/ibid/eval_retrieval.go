package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ibid/cmd/ibid/eval"
	"ibid/retrieve"
)

type evalRetrievalCmd struct {
	Dir     string   `arg:"" help:"Folder with corpus.jsonl (_id, title, text), queries.jsonl (_id, text), and qrels.tsv or qrels/SPLIT.tsv (query-id, corpus-id, score)."`
	Metrics []string `help:"What to measure: ndcg, recall, hit, mrr or p, each with a rank; unset: ndcg@10, recall@10, recall@100, mrr@10, and p@10 in the table." placeholder:"NAME@K"`
	Compare []string `help:"Pairs of searches to test for a difference in the first metric, by a paired randomisation test." default:"hybrid:bm25,hybrid:dense" placeholder:"A:B"`
	Against string   `help:"File that an earlier run wrote with --details: each search is tested against itself there." placeholder:"FILE"`
	evalConfig
	corpusConfig
}

// A measuredSearch is one of those that are measured side by side.
type measuredSearch struct {
	name    string
	options retrieve.Options
}

// searches are those three that there always are, and with a reranker hybrid
// search with it.
func (c *evalRetrievalCmd) searches(getenv func(string) string) ([]measuredSearch, error) {
	all := []measuredSearch{
		{"bm25", retrieve.Options{Mode: retrieve.LexicalOnly}},
		{"dense", retrieve.Options{Mode: retrieve.DenseOnly}},
		{"hybrid", retrieve.Options{Mode: retrieve.Hybrid}},
	}
	if c.RerankModel == "" {
		return all, nil
	}
	options, err := c.index(c.endpointConfig, getenv)
	return append(all, measuredSearch{"reranked", options}), err
}

// printedMetrics are those of the JSON object when none are named: other
// programs count on them, and on no others. The table has one more.
var printedMetrics = [...]string{"ndcg@10", "recall@10", "recall@100", "mrr@10"}

const tableMetric = "p@10"

// wholeSearch is the search that people use: figures without the name of a
// search are its.
const wholeSearch = "hybrid"

// A retrievalReport is what the measurement came to.
type retrievalReport struct {
	Queries   int            `json:"queries"`
	Documents int            `json:"documents"`
	BM25      eval.Figures   `json:"bm25"`
	Dense     eval.Figures   `json:"dense"`
	Hybrid    eval.Figures   `json:"hybrid"`
	Reranked  eval.Figures   `json:"reranked,omitempty"` // with a reranker
	Compared  []comparedPair `json:"compared"`
	Skipped   int            `json:"skipped"` // queries without a relevant document
	Chunks    int            `json:"chunks"`
	Space     string         `json:"space"`
	Judged    string         `json:"judgements"`
}

type comparedPair struct {
	A      string `json:"a"`
	B      string `json:"b"`
	Metric string `json:"metric"`
	eval.Comparison
}

// Run measures each search on every query that has a relevant document.
func (c *evalRetrievalCmd) Run(ctx context.Context, s surroundings) (err error) {
	searches, err := c.searches(s.getenv)
	if err != nil {
		return err
	}
	metrics, pairs, err := c.parse(searches)
	if err != nil {
		return err
	}
	earlier, err := c.earlier(searches, metrics[0])
	if err != nil {
		return err
	}
	set, err := readSet(c.Dir, c.Split, s)
	if err != nil {
		return err
	}
	corpus, err := c.open(ctx, c.Dir, set, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, corpus.close()) }()

	queries := sample(set.Judged(), c.Sample)
	values, err := corpus.measure(ctx, searches, queries, set, metrics, s)
	if err != nil {
		return err
	}
	stats, err := corpus.Stats(ctx, nil)
	if err != nil {
		return err
	}
	report := retrievalReport{
		Queries: len(queries), Documents: corpus.documents, Skipped: len(set.Queries) - len(set.Judged()),
		Chunks: stats.Chunks, Space: corpus.embedder.Space(), Judged: set.Judgements, Compared: []comparedPair{},
	}
	var whole, all eval.Figures
	for i, x := range searches {
		figures := make(eval.Figures, len(metrics))
		for m, metric := range metrics {
			figures[m] = eval.Figure{Name: metric.String(), Value: eval.Mean(values[i][m])}
			all = append(all, eval.Figure{Name: x.name + "." + figures[m].Name, Value: figures[m].Value})
		}
		if x.name == wholeSearch {
			whole = figures
		}
		*report.of(x.name) = figures
	}
	for _, p := range pairs {
		report.Compared = append(report.Compared, comparedPair{searches[p[0]].name, searches[p[1]].name, metrics[0].String(),
			eval.Compare(values[p[0]][0], values[p[1]][0])})
	}
	if earlier != nil {
		added, err := c.compareEarlier(searches, earlier, queries, values, metrics[0])
		if err != nil {
			return err
		}
		report.Compared = append(report.Compared, added...)
	}
	if err := c.writeDetails(len(queries), func(q int) any { return details(queries[q].ID, searches, metrics, values, q) }); err != nil {
		return err
	}
	if c.JSON {
		if len(c.Metrics) == 0 {
			for _, x := range searches {
				figures := report.of(x.name)
				*figures = (*figures)[:len(printedMetrics)]
			}
		}
		err = json.NewEncoder(s.stdout).Encode(report)
	} else {
		err = report.show(filepath.Base(c.Dir), searches, s)
	}
	return errors.Join(err, c.missed(slices.Concat(whole, all)))
}

// of gives the place for the figures of a search.
func (r *retrievalReport) of(name string) *eval.Figures {
	switch name {
	case "bm25":
		return &r.BM25
	case "dense":
		return &r.Dense
	case "hybrid":
		return &r.Hybrid
	}
	return &r.Reranked
}

// parse reads the flags that have a grammar of their own.
func (c *evalRetrievalCmd) parse(searches []measuredSearch) (metrics []eval.Metric, pairs [][2]int, err error) {
	var names []string
	wanted := c.Metrics
	if len(wanted) == 0 {
		wanted = append(slices.Clone(printedMetrics[:]), tableMetric)
	}
	for _, name := range wanted {
		m, err := eval.ParseMetric(name)
		if err != nil {
			return nil, nil, usageError("--metrics: %w", err)
		}
		metrics = append(metrics, m)
		names = append(names, m.String())
	}
	place := make(map[string]int)
	for i, x := range searches {
		place[x.name] = i
		for _, m := range metrics {
			names = append(names, x.name+"."+m.String())
		}
	}
	compare := c.Compare
	if len(searches) > 3 {
		compare = append(slices.Clone(compare), "reranked:hybrid")
	}
	for _, pair := range compare {
		a, b, _ := strings.Cut(pair, ":")
		i, known := place[a]
		j, alsoKnown := place[b]
		if !known || !alsoKnown {
			return nil, nil, usageError("--compare %s: give two of bm25, dense and hybrid, as in hybrid:bm25", pair)
		}
		pairs = append(pairs, [2]int{i, j})
	}
	return metrics, pairs, c.check(names)
}

// measure gives the value of each metric for each query, by search: [search][metric][query].
func (c *corpus) measure(ctx context.Context, searches []measuredSearch, queries []eval.Query, set *eval.Set, metrics []eval.Metric, s surroundings) ([][][]float64, error) {
	depth := 0
	for _, m := range metrics {
		depth = max(depth, m.K)
	}
	own := ownEntries(set)
	bar := newMeter(s.stderr, "queries", len(queries))
	defer bar.end()
	values := make([][][]float64, len(searches))
	indexes := make([]*retrieve.Index, len(searches))
	for i, x := range searches {
		var err error
		if indexes[i], err = retrieve.NewIndex(ctx, c.store, c.embedder, x.options); err != nil {
			return nil, err
		}
		values[i] = make([][]float64, len(metrics))
		for m := range metrics {
			values[i][m] = make([]float64, len(queries))
		}
	}
	// A reranker is asked once a query: behind what it ordered is the order of
	// the search without it.
	deeper := func(i int) *retrieve.Index {
		if searches[i].options.Reranker != nil {
			i = slices.IndexFunc(searches, func(x measuredSearch) bool { return x.name == wholeSearch })
		}
		return indexes[i]
	}
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(runtime.GOMAXPROCS(0))
	for at, q := range queries {
		asking.Go(func() error {
			defer bar.add()
			wanted := depth
			if own[q.ID] {
				wanted++
			}
			grades := c.grades(set.Grades[q.ID])
			for i, x := range indexes {
				ranking, err := c.rank(ctx, x, deeper(i), q.Text, grades, wanted)
				if err != nil {
					return fmt.Errorf("asking the query %s: %w", q.ID, err)
				}
				if own[q.ID] {
					ranking = slices.DeleteFunc(ranking, func(id string) bool { return id == c.stored[q.ID] })
				}
				for m, metric := range metrics {
					values[i][m][at] = metric.Of(ranking, grades)
				}
			}
			return nil
		})
	}
	return values, asking.Wait()
}

// ownEntries gives the queries that are a document of the corpus themselves,
// the same words under the same id: as in BEIR, such a document is no result.
func ownEntries(set *eval.Set) map[string]bool {
	texts := make(map[string]string, len(set.Queries))
	for _, q := range set.Queries {
		texts[q.ID] = strings.Join(strings.Fields(q.Text), " ")
	}
	own := make(map[string]bool)
	for _, d := range set.Documents {
		if text, ok := texts[d.ID]; ok && text == strings.Join(strings.Fields(d.Text), " ") {
			own[d.ID] = true
		}
	}
	return own
}

func details(id string, searches []measuredSearch, metrics []eval.Metric, values [][][]float64, query int) any {
	figures := make([]eval.Figures, 4)
	for i := range searches {
		for m, metric := range metrics {
			figures[i] = append(figures[i], eval.Figure{Name: metric.String(), Value: values[i][m][query]})
		}
	}
	return struct {
		ID       string       `json:"_id"`
		BM25     eval.Figures `json:"bm25"`
		Dense    eval.Figures `json:"dense"`
		Hybrid   eval.Figures `json:"hybrid"`
		Reranked eval.Figures `json:"reranked,omitempty"`
	}{id, figures[0], figures[1], figures[2], figures[3]}
}

// earlier reads what an earlier run wrote: for each query the value of the
// metric, by search.
func (c *evalRetrievalCmd) earlier(searches []measuredSearch, metric eval.Metric) (_ map[string]map[string]float64, err error) {
	if c.Against == "" {
		return nil, nil
	}
	f, err := os.Open(c.Against)
	if err != nil {
		return nil, usageError("--against: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	earlier := make(map[string]map[string]float64)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		var line map[string]json.RawMessage
		var id string
		if err := errors.Join(json.Unmarshal(lines.Bytes(), &line), json.Unmarshal(line["_id"], &id)); err != nil {
			return nil, usageError("--against %s:%d: it is no line that --details writes: %w", c.Against, n, err)
		}
		earlier[id] = make(map[string]float64)
		for _, x := range searches {
			var figures map[string]float64
			err := json.Unmarshal(line[x.name], &figures)
			v, ok := figures[metric.String()]
			if err != nil || !ok {
				return nil, usageError("--against %s:%d: it does not hold %s of %s: give the same --metrics", c.Against, n, metric, x.name)
			}
			earlier[id][x.name] = v
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s (--against): %w", c.Against, err)
	}
	return earlier, nil
}

func (c *evalRetrievalCmd) compareEarlier(searches []measuredSearch, earlier map[string]map[string]float64, queries []eval.Query, values [][][]float64, metric eval.Metric) ([]comparedPair, error) {
	var out []comparedPair
	for i, x := range searches {
		then := make([]float64, len(queries))
		for q, query := range queries {
			figures, ok := earlier[query.ID]
			if !ok || len(earlier) != len(queries) {
				return nil, fmt.Errorf("%s (--against) has %d queries, and this run %d; they must be the same: the query %s is one of this run", c.Against, len(earlier), len(queries), query.ID)
			}
			then[q] = figures[x.name]
		}
		out = append(out, comparedPair{x.name, x.name + " of " + c.Against, metric.String(), eval.Compare(values[i][0], then)})
	}
	return out, nil
}

func (r *retrievalReport) show(name string, searches []measuredSearch, s surroundings) error {
	skipped := ""
	if r.Skipped > 0 {
		skipped = fmt.Sprintf("; %d without a relevant document left out", r.Skipped)
	}
	if _, err := fmt.Fprint(s.stdout, printable(fmt.Sprintf("%s: %d queries of %s%s; %d documents in %d chunks; %s\n",
		name, r.Queries, r.Judged, skipped, r.Documents, r.Chunks, r.Space))); err != nil {
		return err
	}
	var names []string
	var figures []eval.Figures
	for _, x := range searches {
		names, figures = append(names, x.name), append(figures, *r.of(x.name))
	}
	if err := showFigures(s.stdout, names, figures); err != nil {
		return err
	}
	for _, p := range r.Compared {
		if _, err := fmt.Fprint(s.stdout, printable(fmt.Sprintf("%s - %s: %s %+.4f, %s (better on %d queries, worse on %d)\n",
			p.A, p.B, p.Metric, p.Difference, chance(p.P), p.Better, p.Worse))); err != nil {
			return err
		}
	}
	return nil
}

// chance shows a p-value.
func chance(p float64) string {
	if p < .0001 {
		return "p < 0.0001"
	}
	return fmt.Sprintf("p = %.4f", p)
}
