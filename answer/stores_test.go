package answer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"ibid/cmd/ibid/eval"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
	"ibid/retrieve/library"
	"ibid/retrieve/state/statetest"
	"ibid/retrieve/weaviate"
)

// Over SQLite and over PostgreSQL the same questions find the same best passages,
// and the gate decides the same.
func TestStores(t *testing.T) {
	const top = 5
	server := os.Getenv(statetest.Env)
	if server == "" {
		t.Skipf("no PostgreSQL: .ci/postgres starts the server that %s names", statetest.Env)
	}
	index, questions := fillStore(t, library.Place{Data: t.TempDir()})
	other, _ := fillStore(t, library.Place{Data: t.TempDir(), URL: statetest.Schema(t, server)})
	overlap := 0.0
	for _, q := range questions {
		want, wantJudged := look(t, index, q, top)
		got, judged := look(t, other, q, top)
		shared := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return !slices.Contains(got, id) })
		overlap += float64(len(shared)) / float64(max(1, len(want)*len(questions)))
		if diff := gocmp.Diff(wantJudged, judged); diff != "" {
			t.Errorf("%q: other verdicts (-SQLite +PostgreSQL):\n%s", q, diff)
		}
	}
	if t.Logf("figure: overlap of the best %d passages %.4f", top, overlap); overlap < 1 {
		t.Errorf("PostgreSQL shares %.4f of the best %d passages with SQLite, want all", overlap, top)
	}
}

// TestCluster compares the answers over an index in Weaviate with those over the
// embedded one.
func TestCluster(t *testing.T) {
	const top = 5
	server := os.Getenv("IBID_TEST_WEAVIATE")
	if server == "" {
		t.Skip("no Weaviate: .ci/weaviate starts the server that IBID_TEST_WEAVIATE names")
	}
	at, err := weaviate.ParseAddress(server)
	must(t, err)
	index, questions := fillStore(t, library.Place{Data: t.TempDir()})
	start := time.Now()
	other, _ := fillStore(t, library.Place{Data: t.TempDir(), Cluster: &at})
	must(t, other.Follow(t.Context()))
	stats, err := other.Stats(t.Context(), nil)
	must(t, err)
	t.Logf("figure: %d chunks stored and indexed in %v", stats.Chunks, time.Since(start))
	overlap, verdicts := 0.0, 0
	var took []time.Duration
	for _, q := range questions {
		want, wantJudged := look(t, index, q, top)
		start := time.Now()
		if _, err := other.Search(t.Context(), retrieve.Query{Text: q, K: top}); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(start))
		got, judged := look(t, other, q, top)
		shared := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return !slices.Contains(got, id) })
		overlap += float64(len(shared)) / float64(max(1, len(want)*len(questions)))
		if gocmp.Diff(wantJudged, judged) == "" {
			verdicts++
		}
	}
	slices.Sort(took)
	t.Logf("figure: %d questions, search p50 %v, p99 %v; verdicts equal for %d", len(questions), took[len(took)/2], took[len(took)*99/100], verdicts)
	if t.Logf("figure: overlap of the best %d passages %.4f", top, overlap); overlap < .99 {
		t.Errorf("Weaviate shares %.4f of the best %d passages with the embedded index, want .99", overlap, top)
	}
}

// fillStore indexes some documents of public sets, and returns questions about
// them.
func fillStore(t *testing.T, place library.Place) (index *retrieve.Index, questions []string) {
	t.Helper()
	ctx := t.Context()
	m, err := embed.New()
	must(t, err)
	lib, err := library.Open(ctx, place, m, library.Options{})
	must(t, err)
	t.Cleanup(func() { lib.Close() })
	index = lib.Index
	if _, err := index.AddRoot(ctx, "/srv/sets", ""); err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"squad2-a", "anthropic-docs", "cranfield", "clapnq-a", "scifact-train"} {
		dir := os.DirFS(datatest.Sets(t, set))
		queries, err := eval.ReadQueries(dir)
		must(t, err)
		for _, q := range queries[:min(len(queries), datatest.Cases(t, 100))] {
			questions = append(questions, q.Text)
		}
		entries, err := eval.ReadCorpus(dir)
		must(t, err)
		for i, e := range entries[:min(len(entries), datatest.Cases(t, 2000))] {
			path := filepath.ToSlash(filepath.Join(set, fmt.Sprint(i)))
			doc := &ingest.Document{
				ID: "sets/" + path, Root: "sets", Path: path, Format: "text", Digest: strings.Repeat("0", 64), Title: e.Title, Text: e.Text,
			}
			must(t, index.Replace(ctx, doc, ingest.Split(doc)))
		}
	}
	return index, questions
}

// look returns the best passages of a question, and the gate's verdicts.
func look(t *testing.T, index *retrieve.Index, question string, top int) (ids []string, judged []Judged) {
	t.Helper()
	best, err := index.Search(t.Context(), retrieve.Query{Text: question, K: top})
	must(t, err)
	for _, p := range best {
		ids = append(ids, p.ID)
	}
	a := &Answerer{Retriever: index, Gate: GateScore}
	for event, err := range a.Ask(t.Context(), Question{Text: question}) {
		must(t, err)
		if j, ok := event.(Judged); ok {
			judged = append(judged, j)
		}
	}
	return ids, judged
}
