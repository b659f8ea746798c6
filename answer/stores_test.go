package answer

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sync/errgroup"

	"ibid/cmd/ibid/eval"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
	"ibid/retrieve/local"
	"ibid/retrieve/postgres"
	"ibid/retrieve/postgres/postgrestest"
	"ibid/retrieve/weaviate"
	"ibid/retrieve/weaviate/weaviatetest"
)

// What TestStores compares the stores by.
const (
	comparedChunks    = 10_000
	comparedEntries   = 8  // of a set in each document
	comparedQuestions = 40 // of each set
	comparedWriters   = 4  // documents that are stored at once, as ingest does
	comparedTop       = 5
	leastOverlap      = 0.95
)

var comparedSets = []string{"squad2-a", "anthropic-docs", "cranfield", "clapnq-a", "scifact-train"}

// A compared document is ready to be stored.
type compared struct {
	doc     *ingest.Document
	chunks  []ingest.Chunk
	vectors [][]float32
}

// comparedDocuments cuts and embeds the documents of the sets until there are
// enough chunks, and gives questions about them.
func comparedDocuments(t *testing.T, m *embed.Model) (documents []compared, questions []string) {
	t.Helper()
	dir, r := datasets(t), rand.New(rand.NewPCG(1, 2))
	chunks := 0
	for _, set := range comparedSets {
		entries, err := eval.ReadCorpus(os.DirFS(filepath.Join(dir, set)))
		if err != nil {
			t.Fatal(err)
		}
		asked := readLines[question](t, filepath.Join(dir, set, "queries.jsonl"))
		for _, q := range pick(r, asked, comparedQuestions) {
			questions = append(questions, q.Text)
		}
		entries = slices.DeleteFunc(entries, func(e eval.Entry) bool { return strings.TrimSpace(e.Text) == "" })
		for part := range slices.Chunk(entries, comparedEntries) {
			if chunks == comparedChunks {
				break
			}
			doc := documentOf(set, len(documents), part)
			c := compared{doc: doc, chunks: ingest.Split(doc, ingest.SplitOptions{})}
			c.chunks = c.chunks[:min(len(c.chunks), comparedChunks-chunks)]
			texts := make([]string, len(c.chunks))
			for i := range c.chunks {
				c.chunks[i].Ordinal, c.chunks[i].Document = i+1, doc.ID
				c.chunks[i].ID = fmt.Sprintf("%s#%d", doc.ID, i+1)
				texts[i] = ingest.EmbeddingText(doc.Title, c.chunks[i])
			}
			if c.vectors, err = m.Embed(t.Context(), texts); err != nil {
				t.Fatal(err)
			}
			chunks += len(c.chunks)
			documents = append(documents, c)
		}
	}
	if chunks < comparedChunks {
		t.Fatalf("the sets have %d chunks", chunks)
	}
	return documents, questions
}

// A measured store has answered all questions.
type measured struct {
	name              string
	writing           time.Duration
	times             []float64  // of searches, in milliseconds, sorted
	passages          [][]string // ids, best first
	judged            [][]Judged // of all passages
	overlap, sameTop  float64    // of the best, with the first store
	same, differently int        // questions with the same passages; of these with another verdict
}

// TestStores puts the same chunks into every store that there is, and asks them
// all the same questions. It tells how alike the best passages are, and how fast
// each was; where the passages are the same the gate's verdicts must be.
func TestStores(t *testing.T) {
	if testing.Short() {
		t.Skip("stores ten thousand chunks: not in short runs")
	}
	stores := comparedStores(t)
	m, err := embed.New()
	if err != nil {
		t.Fatal(err)
	}
	documents, questions := comparedDocuments(t, m)
	var all []measured
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) { all = append(all, measureStore(t, s.name, s.open(t), m, documents, questions)) })
	}
	if t.Failed() {
		return
	}
	for i := range all[1:] {
		compareStores(t, &all[0], &all[i+1], questions)
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "store\tdocuments/s\tchunks/s\tsearch p50\tp99\ttop %d alike\tthe same %d\tsame passages\tother verdicts\t\n", comparedTop, comparedTop)
	for _, s := range all {
		seconds := s.writing.Seconds()
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.1f ms\t%.1f ms\t%.4f\t%.4f\t%d\t%d\t\n", s.name, float64(len(documents))/seconds, comparedChunks/seconds,
			eval.Quantile(s.times, .5), eval.Quantile(s.times, .99), s.overlap, s.sameTop, s.same, s.differently)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("figure: the same %d chunks of %d documents in every store, %d writers, %d questions", comparedChunks, len(documents), comparedWriters, len(questions))
	for line := range strings.Lines(table.String()) {
		t.Log("figure: " + strings.TrimRight(line, "\n"))
	}
}

// documentOf makes a document of some entries of a set, each a section.
func documentOf(set string, number int, entries []eval.Entry) *ingest.Document {
	path := fmt.Sprintf("%s/%d", set, number)
	doc := &ingest.Document{ID: "sets/" + path, Root: "sets", Path: path, Format: "text", Digest: strings.Repeat("0", 64)}
	for i, e := range entries {
		start := len(doc.Text)
		doc.Text += e.Title + "\n\n" + e.Text + "\n\n"
		doc.Sections = append(doc.Sections, ingest.Section{Heading: e.Title, Level: 1, Anchor: fmt.Sprintf("entry-%d", i+1), Start: start, End: len(doc.Text)})
	}
	return doc
}

// A storeOf opens an empty store.
type storeOf struct {
	name string
	open func(t *testing.T) retrieve.Engine
}

// comparedStores gives those for which there is a server, after the embedded one.
func comparedStores(t *testing.T) []storeOf {
	t.Helper()
	stores := []storeOf{{"embedded", func(t *testing.T) retrieve.Engine {
		e, err := local.Open(t.Context(), t.TempDir(), local.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}}}
	if server := os.Getenv(postgrestest.Env); server != "" {
		stores = append(stores, storeOf{"PostgreSQL", func(t *testing.T) retrieve.Engine {
			e, err := postgres.Open(t.Context(), postgrestest.Schema(t, server), postgres.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}})
	}
	if os.Getenv(weaviatetest.Env) != "" {
		stores = append(stores, storeOf{"Weaviate", func(t *testing.T) retrieve.Engine {
			e, err := weaviate.Open(t.Context(), weaviatetest.Start(t, 1).URL(nil), weaviate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}})
	}
	if len(stores) == 1 {
		t.Skip("there is no other store to compare the embedded one with: " + postgrestest.Env + " names a server that .ci/postgres starts, and " + weaviatetest.Env + " one that .ci/weaviate builds")
	}
	return stores
}

func measureStore(t *testing.T, name string, e retrieve.Engine, m *embed.Model, documents []compared, questions []string) measured {
	t.Helper()
	ctx := t.Context()
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := e.AddRoot(ctx, "/srv/sets", ""); err != nil {
		t.Fatal(err)
	}
	if err := e.SetSpace(ctx, m.Space()); err != nil {
		t.Fatal(err)
	}
	out := measured{name: name, overlap: 1, sameTop: 1, same: len(questions)}
	begun := time.Now()
	writers, within := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range comparedWriters {
		writers.Go(func() error {
			for i := next.Add(1) - 1; i < int64(len(documents)); i = next.Add(1) - 1 {
				d := documents[i]
				if err := e.Replace(within, d.doc, d.chunks, d.vectors); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := writers.Wait(); err != nil {
		t.Fatal(err)
	}
	out.writing = time.Since(begun)

	index, err := retrieve.NewIndex(ctx, e, m, retrieve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stats, err := e.Stats(ctx, nil)
	if err != nil || stats.Chunks != comparedChunks {
		t.Fatalf("%d chunks are counted: %v", stats.Chunks, err)
	}
	// The verdicts first, which warms every cache.
	a := &Answerer{Retriever: index, Gate: GateScore, Embedder: m}
	for _, q := range questions {
		out.judged = append(out.judged, verdicts(ctx, t, a, q))
	}
	for _, q := range questions {
		begun := time.Now()
		best, err := index.Search(ctx, retrieve.Query{Text: q, K: comparedTop})
		if err != nil {
			t.Fatal(err)
		}
		out.times = append(out.times, float64(time.Since(begun).Microseconds())/1000)
		ids := make([]string, len(best))
		for i, p := range best {
			ids[i] = p.ID
		}
		out.passages = append(out.passages, ids)
	}
	slices.Sort(out.times)
	return out
}

// verdicts gives what the gate decides on the passages of a question.
func verdicts(ctx context.Context, t *testing.T, a *Answerer, text string) (all []Judged) {
	t.Helper()
	for event, err := range a.Ask(ctx, Question{Text: text}) {
		if err != nil {
			t.Fatal(err)
		}
		if j, ok := event.(Judged); ok {
			all = append(all, j)
		}
	}
	return all
}

// compareStores notes how a store's answers differ from those of the first.
func compareStores(t *testing.T, first, other *measured, questions []string) {
	t.Helper()
	other.overlap, other.sameTop, other.same = 0, 0, 0
	passages := func(judged []Judged) (ids []string) {
		for _, j := range judged {
			ids = append(ids, j.Passage)
		}
		return ids
	}
	for i, q := range questions {
		want, got := first.passages[i], other.passages[i]
		alike := 0
		for _, id := range want {
			if slices.Contains(got, id) {
				alike++
			}
		}
		other.overlap += float64(alike) / float64(max(1, len(want)))
		if slices.Equal(want, got) {
			other.sameTop++
		} else {
			t.Logf("%s, %q: the best are %q, of the embedded store %q", other.name, q, got, want)
		}
		if !slices.Equal(passages(first.judged[i]), passages(other.judged[i])) {
			continue
		}
		other.same++
		if diff := gocmp.Diff(first.judged[i], other.judged[i], cmpopts.EquateApprox(0, 1e-6)); diff != "" {
			other.differently++
			t.Errorf("%s, %q: other verdicts on the same passages (-embedded +%s):\n%s", other.name, q, other.name, diff)
		}
	}
	other.overlap /= float64(cmp.Or(len(questions), 1))
	other.sameTop /= float64(cmp.Or(len(questions), 1))
	if other.overlap < leastOverlap {
		t.Errorf("%s shares %.4f of the best %d passages with the embedded store, and %.2f is the least", other.name, other.overlap, comparedTop, leastOverlap)
	}
}
