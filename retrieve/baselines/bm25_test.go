package baselines

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/registry"
	"github.com/blevesearch/bleve/v2/search/query"
	index "github.com/blevesearch/bleve_index_api"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/local"
)

// found is how many chunks each search is asked for.
const found = 10

// BenchmarkBM25 sends Ibid's lexical search and bleve's (scorch, scored by BM25)
// the same questions of the same chunks over the same terms, in turn. It prints
// the median time of a question of each, their ratio, and the share of the
// first ten chunks that both find: bleve keeps a chunk's length in a byte. It is
// asked right after indexing in batches, and again when all is merged into
// one segment, where it is fastest. Ibid's
// time contains what each of its searches does: to look whether another process
// has changed the data directory.
func BenchmarkBM25(b *testing.B) {
	stored, held := pieces(b)
	for _, n := range []int{10_000, 100_000} {
		if testing.Short() {
			n /= 10
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			texts := chunks(stored, n)
			ours, theirs := openIbid(b, texts), openBleve(b, texts)
			// The memory is filled by the first search.
			_, err := ours.Lexical(b.Context(), nil, found, retrieve.Filter{})
			must(b, err)
			runtime.GC()
			for _, state := range []string{"segments", "merged"} {
				if state == "merged" {
					inner, err := theirs.Advanced()
					must(b, err)
					must(b, inner.(*scorch.Scorch).ForceMerge(b.Context(), nil))
				}
				for _, terms := range []int{3, 12} {
					b.Run(fmt.Sprintf("%s/%dwords", state, terms), func(b *testing.B) {
						compare(b, ours, theirs, questions(held, 200, terms))
					})
				}
			}
		})
	}
}

func compare(b *testing.B, ours *local.Engine, theirs bleve.Index, questions [][]string) {
	var first, second []float64
	common, all := 0, 0
	for i := 0; b.Loop(); i++ {
		terms := questions[i%len(questions)]
		start := time.Now()
		a, err := ours.Lexical(b.Context(), terms, found, retrieve.Filter{})
		first = append(first, float64(time.Since(start)))
		if err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		z, err := ask(theirs, terms)
		second = append(second, float64(time.Since(start)))
		if err != nil {
			b.Fatal(err)
		}
		if len(a) == 0 != (len(z) == 0) {
			b.Fatalf("%q finds %d chunks with Ibid, %d with bleve", terms, len(a), len(z))
		}
		for _, id := range a {
			if slices.Contains(z, id) {
				common++
			}
		}
		all += len(a)
	}
	b.ReportMetric(median(leasts(first, len(questions)))/1e3, "ibid-least-µs")
	b.ReportMetric(median(leasts(second, len(questions)))/1e3, "bleve-least-µs")
	b.ReportMetric(median(slices.Clone(first))/1e3, "ibid-µs")
	b.ReportMetric(median(slices.Clone(second))/1e3, "bleve-µs")
	b.ReportMetric(median(slices.Clone(second))/median(slices.Clone(first)), "ratio")
	b.ReportMetric(median(leasts(second, len(questions)))/median(leasts(first, len(questions))), "ratio-of-least")
	b.ReportMetric(float64(common)/float64(max(all, 1)), "overlap@10")
}

// leasts gives the least of the times of each question, which were asked in
// turn: what they take when nothing else runs.
func leasts(took []float64, questions int) []float64 {
	least := slices.Clone(took[:min(questions, len(took))])
	for i, t := range took {
		least[i%questions] = min(least[i%questions], t)
	}
	return least
}

func median(v []float64) float64 {
	slices.Sort(v)
	if len(v) == 0 {
		return math.NaN()
	}
	return v[len(v)/2]
}

const perDocument = 200

func chunkName(i int) string { return fmt.Sprintf("a/%d#%d", i/perDocument, i%perDocument+1) }

func openIbid(b *testing.B, texts []string) *local.Engine {
	b.Helper()
	ctx, dir := b.Context(), b.TempDir()
	e, err := local.Open(ctx, dir, local.Options{})
	must(b, err)
	must(b, e.SetSpace(ctx, "none/1"))
	_, err = e.AddRoot(ctx, "/srv/a", "")
	must(b, err)
	for n := 0; n < len(texts); n += perDocument {
		part := texts[n:min(n+perDocument, len(texts))]
		doc := &ingest.Document{Root: "a", Path: fmt.Sprint(n / perDocument), Format: "text", Text: strings.Join(part, "\n")}
		doc.ID = doc.Root + "/" + doc.Path
		var list []ingest.Chunk
		var vectors [][]float32
		at := 0
		for i, text := range part {
			list = append(list, ingest.Chunk{ID: chunkName(n + i), Document: doc.ID, Ordinal: i + 1, Start: at, End: at + len(text), Text: text})
			vectors = append(vectors, []float32{1})
			at += len(text) + 1
		}
		must(b, e.Replace(ctx, doc, list, vectors))
	}
	b.Cleanup(func() { must(b, e.Close()) })
	return e
}

func openBleve(b *testing.B, texts []string) bleve.Index {
	b.Helper()
	m := bleve.NewIndexMapping()
	m.ScoringModel = index.BM25Scoring
	must(b, m.AddCustomAnalyzer("ibid", map[string]any{"type": custom.Name, "tokenizer": tokenizer}))
	m.DefaultAnalyzer = "ibid"
	field := bleve.NewTextFieldMapping()
	field.Store, field.IncludeTermVectors, field.IncludeInAll, field.DocValues = false, false, false, false
	m.DefaultMapping.AddFieldMappingsAt("text", field)
	x, err := bleve.NewUsing(b.TempDir(), m, scorch.Name, scorch.Name, nil)
	must(b, err)
	b.Cleanup(func() { must(b, x.Close()) })
	for n := 0; n < len(texts); n += 1000 {
		batch := x.NewBatch()
		for i, text := range texts[n:min(n+1000, len(texts))] {
			must(b, batch.Index(chunkName(n+i), map[string]any{"text": text}))
		}
		must(b, x.Batch(batch))
	}
	return x
}

func ask(x bleve.Index, terms []string) ([]string, error) {
	var any []query.Query
	for _, t := range terms {
		q := bleve.NewTermQuery(t)
		q.SetField("text")
		any = append(any, q)
	}
	result, err := x.Search(bleve.NewSearchRequestOptions(bleve.NewDisjunctionQuery(any...), found, 0, false))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, h := range result.Hits {
		ids = append(ids, h.ID)
	}
	return ids, nil
}

// tokenizer is the name under which bleve is given Ibid's analysis.
const tokenizer = "ibid"

type tokenize struct{}

func (tokenize) Tokenize(text []byte) analysis.TokenStream {
	var out analysis.TokenStream
	for i, term := range retrieve.IndexTerms(string(text)) {
		out = append(out, &analysis.Token{Term: []byte(term), Position: i + 1, Type: analysis.AlphaNumeric})
	}
	return out
}

func init() {
	err := registry.RegisterTokenizer(tokenizer, func(map[string]any, *registry.Cache) (analysis.Tokenizer, error) {
		return tokenize{}, nil
	})
	if err != nil {
		panic(err)
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
