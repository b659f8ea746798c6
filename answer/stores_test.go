package answer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// TestStores checks that the same questions find the same best passages over any store as
// over SQLite and the embedded index, and that the gate decides the same.
func TestStores(t *testing.T) {
	const top = 5
	for name, test := range map[string]struct {
		env, starts string
		place       func(server string) library.Place
		least       float64 // least overlap
	}{
		"PostgreSQL": {statetest.Env, ".ci/postgres", func(string) library.Place {
			return library.Place{URL: statetest.Schema(t)}
		}, 1},
		"Weaviate": {"IBID_TEST_WEAVIATE", ".ci/weaviate", func(server string) library.Place {
			at, err := weaviate.ParseAddress(server)
			must(t, err)
			return library.Place{Cluster: &at}
		}, .99},
	} {
		t.Run(name, func(t *testing.T) {
			server := os.Getenv(test.env)
			if server == "" {
				t.Skipf("%s skipped: %s starts the server that %s names", name, test.starts, test.env)
			}
			index, questions := fillStore(t, library.Place{Data: t.TempDir()})
			place := test.place(server)
			place.Data = t.TempDir()
			other, _ := fillStore(t, place)
			must(t, other.Follow(t.Context()))
			overlap, verdicts, same := 0.0, 0, 0
			for _, q := range questions {
				want, wantJudged := look(t, index, q, top)
				got, judged := look(t, other, q, top)
				shared := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return !slices.Contains(got, id) })
				overlap += float64(len(shared)) / float64(max(1, len(want)*len(questions)))
				if diff := gocmp.Diff(wantJudged, judged, gocmp.AllowUnexported(textVerdict{})); diff == "" {
					same++
				} else if test.least == 1 {
					t.Errorf("%q: passages or scores differ (-SQLite +%s):\n%s", q, name, diff)
				}
				for _, a := range wantJudged {
					for _, b := range judged {
						if a.Passage != b.Passage || a.text != b.text {
							continue
						}
						verdicts++
						if a.Decision != b.Decision || a.Scores != b.Scores {
							t.Errorf("%q: verdict on the same passage differs (-SQLite +%s):\n%s", q, name, gocmp.Diff(a.Judged, b.Judged))
						}
					}
				}
			}
			t.Logf("figure: overlap of the best %d passages %.4f; %d verdicts compared on the same passages; all passages equal for "+
				"%d of %d questions",
				top, overlap, verdicts, same, len(questions))
			if overlap < test.least {
				t.Errorf("%s shares %.4f of the best %d passages with the embedded index, want at least %g", name, overlap, top, test.least)
			}
		})
	}
}

// A textVerdict is a verdict on a passage with this text; a passage joined with its
// neighbours may have another.
type textVerdict struct {
	Judged
	text string
}

// fillStore indexes some documents of public sets and returns questions about them.
func fillStore(t *testing.T, place library.Place) (lib *library.Library, questions []string) {
	t.Helper()
	ctx := t.Context()
	m, err := embed.New()
	must(t, err)
	lib, err = library.Open(ctx, place, m, library.Options{})
	must(t, err)
	t.Cleanup(func() { lib.Close() })
	_, err = lib.AddRoot(ctx, "/srv/sets", "")
	must(t, err)
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
			must(t, lib.Replace(ctx, doc, ingest.Split(doc)))
		}
	}
	return lib, questions
}

// look returns the best passages for a question and the gate's verdicts.
func look(t *testing.T, lib *library.Library, question string, top int) (ids []string, judged []textVerdict) {
	t.Helper()
	best, err := lib.Search(t.Context(), retrieve.Query{Text: question, K: top})
	must(t, err)
	for _, p := range best {
		ids = append(ids, p.ID)
	}
	texts := make(map[string]string)
	a := &Answerer{Retriever: lib, Gate: GateScore}
	for event, err := range a.Ask(t.Context(), Question{Text: question}) {
		must(t, err)
		switch e := event.(type) {
		case Retrieved:
			for _, p := range e.Passages {
				texts[p.ID] = p.Text
			}
		case Judged:
			judged = append(judged, textVerdict{e, texts[e.Passage]})
		}
	}
	return ids, judged
}
