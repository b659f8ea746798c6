package retrieve_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ibid/cmd/ibid/eval"
	"ibid/data/datatest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
	"ibid/retrieve/embed/encoder"
	"ibid/retrieve/index"
	"ibid/retrieve/state"
)

// A dataset is a public retrieval set with judgements.
type dataset struct {
	*eval.Set
	name    string
	queries []eval.Query
	entries map[string]string // by chunk, after indexing
}

// readDataset reads a set, or skips the test if the sets are missing.
func readDataset(t testing.TB, name string) *dataset {
	t.Helper()
	dir := datatest.Sets(t, filepath.FromSlash(name))
	set, err := eval.ReadSet(os.DirFS(dir), "")
	must(t, err)
	return &dataset{Set: set, name: name, queries: set.JudgedQueries()}
}

// index stores every entry as a chunk, with many entries per document and each title as a heading,
// because titles and headings are searched alike.
func (d *dataset) index(t testing.TB, m retrieve.Embedder) *state.Store {
	t.Helper()
	e := openState(t, t.TempDir())
	x := newIndex(t, e, m)
	_, err := x.AddRoot(t.Context(), "/srv/set", "")
	must(t, err)
	d.entries = make(map[string]string)
	part := 0
	for entries := range slices.Chunk(slices.DeleteFunc(slices.Clone(d.Documents), func(e eval.Entry) bool { return e.Text == "" }), 200) {
		var texts []string
		for _, e := range entries {
			texts = append(texts, e.Text)
		}
		part++
		doc, chunks := document("set", fmt.Sprint(part), "", texts...)
		for i, e := range entries {
			chunks[i].Heading = e.Title
			d.entries[chunks[i].ID] = e.ID
		}
		must(t, x.Replace(t.Context(), doc, chunks))
	}
	return e
}

// search returns k passages for each query.
func (d *dataset) search(t testing.TB, x *retrieve.Index, k int) [][]retrieve.Passage {
	t.Helper()
	out := make([][]retrieve.Passage, len(d.queries))
	for i, q := range d.queries {
		var err error
		out[i], err = x.Search(t.Context(), retrieve.Query{Text: q.Text, K: k})
		must(t, err)
	}
	return out
}

// ndcg returns the mean nDCG@10 of the rankings.
func (d *dataset) ndcg(found [][]retrieve.Passage) float64 {
	values := make([]float64, len(d.queries))
	for i, q := range d.queries {
		ranking := make([]string, len(found[i]))
		for rank, p := range found[i] {
			ranking[rank] = d.entries[p.ID]
		}
		values[i] = eval.Metric{Kind: "ndcg", K: 10}.Measure(ranking, d.Grades[q.ID])
	}
	return eval.Mean(values)
}

// evaluationSets are the sets on which the figures of the package are measured and the weight of
// fusion is learned.
var evaluationSets = []string{"cranfield", "scifact-train", "anthropic-docs", "squad2-a", "clapnq-a"}

// languageFloors are nDCG@10 figures of a plain BM25 on questions and paragraphs in other
// languages, from the description of the sets.
var languageFloors = map[string]float64{
	"en": .9639, "de": .9329, "es": .9578, "ru": .8881, "ar": .8848, "hi": .9542, "th": .9125, "zh": .9667,
}

// embedded is the built-in embedder.
func embedded(t testing.TB) retrieve.Embedder {
	t.Helper()
	m, err := embed.New()
	must(t, err)
	return m
}

// TestRetrievalQuality measures each mode on each set: fusion must not be worse than BM25 alone.
func TestRetrievalQuality(t *testing.T) {
	datatest.CampaignOnly(t, "indexing the smallest set needs seconds")
	m := embedded(t)
	for _, name := range evaluationSets {
		t.Run(name, func(t *testing.T) {
			d := readDataset(t, name)
			e := d.index(t, m)
			ndcg := make(map[retrieve.Mode]float64)
			for _, mode := range []retrieve.Mode{retrieve.LexicalOnly, retrieve.DenseOnly, retrieve.Hybrid} {
				x := newIndexWith(t, e, m, retrieve.Options{Mode: mode})
				ndcg[mode] = d.ndcg(d.search(t, x, 10))
			}
			t.Logf("%-16s nDCG@10: BM25 %.4f, dense %.4f, hybrid %.4f", name, ndcg[retrieve.LexicalOnly], ndcg[retrieve.DenseOnly],
				ndcg[retrieve.Hybrid])
			if ndcg[retrieve.Hybrid] < ndcg[retrieve.LexicalOnly]-0.005 {
				t.Errorf("hybrid search is worse than BM25 alone")
			}
		})
	}
}

// A keepingNothing does not store the vectors that searches make, so that they do not affect later
// measurements.
type keepingNothing struct{ retrieve.State }

func (keepingNothing) AddVectors(context.Context, string, []retrieve.Digest, [][]float32) error {
	return retrieve.ErrReadOnly
}

// An encoderInQueue never has time for candidates, as if many questions were waiting.
type encoderInQueue struct{ retrieve.Encoder }

func (encoderInQueue) Candidates() int { return 0 }

// TestImproving searches a library of 5,000 chunks while the encoder of IBID_ENCODER encodes it,
// and plots the quality over time, with and without encoding candidates of a question.
func TestImproving(t *testing.T) {
	datatest.CampaignOnly(t, "the encoder needs minutes for its library")
	path := os.Getenv("IBID_ENCODER")
	if path == "" {
		t.Skip("needs an encoder: run 'ibid setup english' and set IBID_ENCODER to the installed file")
	}
	d, table := readDataset(t, "msmarco-dl-5k"), embedded(t)
	s := d.index(t, table)
	m, err := encoder.Open(path)
	must(t, err)
	x := encodedIndexOf(t, s, s, table, m)
	hurried := encodedIndexOf(t, s, keepingNothing{s}, table, encoderInQueue{m})
	asked := encodedIndexOf(t, s, keepingNothing{s}, table, m)
	plain := d.ndcg(d.search(t, newIndexWith(t, s, table, retrieve.Options{}), 10))
	t.Logf("%d questions about %d chunks; nDCG@10 of the table alone %.3f", len(d.queries), len(d.Documents), plain)
	var last float64
	var spent time.Duration
	for _, percent := range []int{0, 10, 25, 50, 75, 90, 100} {
		begin := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		err := x.Encode(ctx, retrieve.Encoding{Workers: 1, Progress: func(done, total int) {
			if 100*done >= percent*total && percent < 100 {
				stop()
			}
		}})
		if stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if spent += time.Since(begin); percent == 0 { // one batch, after which the searcher is notified
			spent = 0
		}
		waiting := d.ndcg(d.search(t, hurried, 10))
		last = d.ndcg(d.search(t, asked, 10))
		t.Logf("%4.0f s  %3d %%  %.3f %-20s  in a queue %.3f %s", spent.Seconds(), percent,
			last, strings.Repeat("▇", int(200*max(0, last-.7))), waiting, strings.Repeat("▇", int(200*max(0, waiting-.7))))
	}
	if last <= plain {
		t.Error("the encoder does not help")
	}
	must(t, m.Close())
}

// encodedIndexOf returns an index with its own searcher for the encoder's vectors.
func encodedIndexOf(t *testing.T, s *state.Store, as retrieve.State, table retrieve.Embedder, m retrieve.Encoder) *retrieve.Index {
	x, err := retrieve.NewIndex(t.Context(), as, newSearcher(t, s, table.Space()), table,
		retrieve.Options{Encoder: m, Encoded: newSearcher(t, s, retrieve.EncodedSpace(m))})
	must(t, err)
	return x
}

func newSearcher(t *testing.T, s *state.Store, space string) retrieve.Searcher {
	name, err := s.Library(t.Context())
	must(t, err)
	searcher := index.Open(t.TempDir(), index.Options{Library: name, Space: space})
	t.Cleanup(func() { must(t, searcher.Close()) })
	return searcher
}

// TestLanguages compares the analyser with a plain one in each language and, in a campaign, also
// hybrid search.
func TestLanguages(t *testing.T) {
	notRaced(t)
	m := embedded(t)
	modes := map[string]retrieve.Mode{"BM25": retrieve.LexicalOnly}
	if datatest.Campaign() {
		modes["hybrid"] = retrieve.Hybrid
	}
	for _, language := range datatest.Pick(t, slices.Sorted(maps.Keys(languageFloors))) {
		t.Run(language, func(t *testing.T) {
			floor := languageFloors[language]
			d := readDataset(t, "xquad-a/"+language)
			e := d.index(t, m)
			for name, mode := range modes {
				x := newIndexWith(t, e, m, retrieve.Options{Mode: mode})
				got := d.ndcg(d.search(t, x, 10))
				t.Logf("%s nDCG@10: %s %.4f, a plain BM25 %.4f", language, name, got, floor)
				if got < floor {
					t.Errorf("%s search is worse than a plain BM25", name)
				}
			}
		})
	}
}

// notRaced skips measurements in one goroutine under the race detector.
func notRaced(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("skipped under the race detector: the test measures quality in one goroutine")
	}
}
