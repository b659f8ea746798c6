package answer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ibid/cmd/ibid/eval"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
	"ibid/retrieve/local"
	"ibid/retrieve/postgres"
	"ibid/retrieve/postgres/postgrestest"
)

// Every store finds nearly the same best passages for the same questions, and
// on the same passages the gate decides the same.
func TestStores(t *testing.T) {
	const top, leastOverlap = 5, .95
	others := map[string]func(t *testing.T) (retrieve.Engine, error){}
	if server := os.Getenv(postgrestest.Env); server != "" {
		others["PostgreSQL"] = func(t *testing.T) (retrieve.Engine, error) {
			return postgres.Open(t.Context(), postgrestest.Schema(t, server), postgres.Options{})
		}
	}
	if len(others) == 0 {
		t.Skipf("no other store: .ci/postgres starts the server that %s names", postgrestest.Env)
	}
	engine, err := local.Open(t.Context(), t.TempDir(), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	index, questions := fillStore(t, engine)
	for name, open := range others {
		t.Run(name, func(t *testing.T) {
			engine, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			other, _ := fillStore(t, engine)
			overlap := 0.0
			for _, q := range questions {
				want, wantJudged := look(t, index, q, top)
				got, judged := look(t, other, q, top)
				shared := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return !slices.Contains(got, id) })
				overlap += float64(len(shared)) / float64(max(1, len(want)*len(questions)))
				passage := func(j Judged) string { return j.Passage }
				if !slices.EqualFunc(wantJudged, judged, func(a, b Judged) bool { return passage(a) == passage(b) }) {
					continue
				}
				if diff := gocmp.Diff(wantJudged, judged, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
					t.Errorf("%q: other verdicts on the same passages (-embedded +%s):\n%s", q, name, diff)
				}
			}
			if t.Logf("figure: %s: overlap of the best %d passages %.4f", name, top, overlap); overlap < leastOverlap {
				t.Errorf("%s shares %.4f of the best %d passages with the embedded store, want %.2f", name, overlap, top, leastOverlap)
			}
		})
	}
}

// fillStore indexes some documents of public sets, and returns questions about
// them.
func fillStore(t *testing.T, engine retrieve.Engine) (index *retrieve.Index, questions []string) {
	t.Helper()
	ctx := t.Context()
	t.Cleanup(func() { engine.Close() })
	m, err := embed.New()
	if err != nil {
		t.Fatal(err)
	}
	if index, err = retrieve.NewIndex(ctx, engine, m, retrieve.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := index.AddRoot(ctx, "/srv/sets", ""); err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"squad2-a", "anthropic-docs", "cranfield", "clapnq-a", "scifact-train"} {
		dir := os.DirFS(datatest.Sets(t, set))
		queries, err := eval.ReadQueries(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range queries[:min(len(queries), datatest.Cases(t, 100))] {
			questions = append(questions, q.Text)
		}
		entries, err := eval.ReadCorpus(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range entries[:min(len(entries), datatest.Cases(t, 2000))] {
			path := filepath.ToSlash(filepath.Join(set, fmt.Sprint(i)))
			doc := &ingest.Document{
				ID: "sets/" + path, Root: "sets", Path: path, Format: "text", Digest: strings.Repeat("0", 64), Title: e.Title, Text: e.Text,
			}
			if err := index.Replace(ctx, doc, ingest.Split(doc, ingest.SplitOptions{})); err != nil {
				t.Fatal(err)
			}
		}
	}
	return index, questions
}

// look returns the best passages of a question, and the gate's verdicts.
func look(t *testing.T, index *retrieve.Index, question string, top int) (ids []string, judged []Judged) {
	t.Helper()
	best, err := index.Search(t.Context(), retrieve.Query{Text: question, K: top})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range best {
		ids = append(ids, p.ID)
	}
	a := &Answerer{Retriever: index, Gate: GateScore}
	for event, err := range a.Ask(t.Context(), Question{Text: question}) {
		if err != nil {
			t.Fatal(err)
		}
		if j, ok := event.(Judged); ok {
			judged = append(judged, j)
		}
	}
	return ids, judged
}
