package retrieve_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ibid/cmd/ibid/eval"
	"ibid/data/datatest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
	"ibid/retrieve/state"
)

// A dataset is a public retrieval set with judgements.
type dataset struct {
	*eval.Set
	name    string
	queries []eval.Query
	entries map[string]string // by chunk, once it is indexed
}

// readDataset reads a set, or skips the test when the sets are absent.
func readDataset(t testing.TB, name string) *dataset {
	t.Helper()
	dir := datatest.Sets(t, filepath.FromSlash(name))
	set, err := eval.ReadSet(os.DirFS(dir), "")
	must(t, err)
	return &dataset{Set: set, name: name, queries: set.Judged()}
}

// index stores every entry as a chunk, many to a document, with its title for
// a heading: titles and headings are searched alike.
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

// search gives the passages of every query, so many of each.
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

// ndcg is the mean nDCG@10 of the rankings.
func (d *dataset) ndcg(found [][]retrieve.Passage) float64 {
	values := make([]float64, len(d.queries))
	for i, q := range d.queries {
		ranking := make([]string, len(found[i]))
		for rank, p := range found[i] {
			ranking[rank] = d.entries[p.ID]
		}
		values[i] = eval.Metric{Kind: "ndcg", K: 10}.Of(ranking, d.Grades[q.ID])
	}
	return eval.Mean(values)
}

// evaluationSets are those on which the figures of the package are measured,
// and the weight of fusion is learned.
var evaluationSets = []string{"cranfield", "scifact-train", "anthropic-docs", "squad2-a", "clapnq-a"}

// languageFloors are nDCG@10 figures of a plain BM25 on questions and
// paragraphs in other languages, from the description of the sets.
var languageFloors = map[string]float64{
	"en": .9639, "de": .9329, "es": .9578, "ru": .8881, "ar": .8848, "hi": .9542, "th": .9125, "zh": .9667,
}

// embedded is the embedder that Ibid carries.
func embedded(t testing.TB) retrieve.Embedder {
	t.Helper()
	m, err := embed.New()
	must(t, err)
	return m
}

// TestRetrievalQuality measures each mode on each set: fusion must not be worse than
// BM25 alone. TestSpansQuality searches one of the sets by default.
func TestRetrievalQuality(t *testing.T) {
	datatest.CampaignOnly(t)
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

// TestLanguages compares the analyser with a plain one in each language, and in
// a campaign hybrid search too.
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
		t.Skip("it measures quality in one goroutine: nothing for the race detector")
	}
}
