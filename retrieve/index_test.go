package retrieve_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/index"
	"ibid/retrieve/state"
)

var must = datatest.Must

var _ ingest.Sink = (*retrieve.Index)(nil)

// document returns a document of parts, each with its own place and chunk.
func document(root, path, title string, texts ...string) (*ingest.Document, []ingest.Chunk) {
	doc := &ingest.Document{ID: root + "/" + path, Root: root, Path: path, Title: title, Format: "text",
		Digest: fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(texts, "\n")))), Text: strings.Join(texts, "\n")}
	var chunks []ingest.Chunk
	at := 0
	for i, text := range texts {
		chunks = append(chunks, ingest.Chunk{ID: fmt.Sprintf("%s#%d", doc.ID, i+1), Document: doc.ID, Ordinal: i + 1, Start: at,
			End: at + len(text), Anchor: fmt.Sprintf("part-%d", i+1), Text: text})
		at += len(text) + 1
	}
	return doc, chunks
}

func openState(t testing.TB, dir string) *state.Store {
	t.Helper()
	s, err := state.Open(t.Context(), dir, state.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func newIndex(t testing.TB, s *state.Store, m retrieve.Embedder) *retrieve.Index {
	t.Helper()
	return newIndexWith(t, s, m, retrieve.Options{})
}

// newRoot returns the index of a library with the root a.
func newRoot(t testing.TB) *retrieve.Index {
	t.Helper()
	x := newIndex(t, openState(t, t.TempDir()), testSpace)
	_, err := x.AddRoot(t.Context(), "/srv/a", "")
	must(t, err)
	return x
}

// newIndexWith gives each index its own searcher.
func newIndexWith(t testing.TB, s *state.Store, m retrieve.Embedder, opts retrieve.Options) *retrieve.Index {
	t.Helper()
	name, err := s.Library(t.Context())
	must(t, err)
	searcher := index.Open(t.TempDir(), index.Options{Library: name, Space: m.Space()})
	t.Cleanup(func() { must(t, searcher.Close()) })
	x, err := retrieve.NewIndex(t.Context(), s, searcher, m, opts)
	must(t, err)
	return x
}

func store(t testing.TB, x *retrieve.Index, root, path, title string, texts ...string) {
	t.Helper()
	doc, chunks := document(root, path, title, texts...)
	must(t, x.Replace(t.Context(), doc, chunks))
}

func found(t testing.TB, x *retrieve.Index, q retrieve.Query) []string {
	t.Helper()
	passages, err := x.Search(t.Context(), q)
	must(t, err)
	var ids []string
	for _, p := range passages {
		ids = append(ids, p.ID)
	}
	return ids
}

var testSpace = hashing{Dims: 64, Name: "hash"}

func harbour(t testing.TB) *retrieve.Index {
	t.Helper()
	return harbourIn(t, openState(t, t.TempDir()))
}

func harbourIn(t testing.TB, e *state.Store) *retrieve.Index {
	t.Helper()
	x := newIndex(t, e, testSpace)
	root, err := x.AddRoot(t.Context(), "/srv/handbook", "")
	must(t, err)
	if root.Name != "handbook" {
		t.Fatalf("name of the root = %q, want handbook", root.Name)
	}
	store(t, x, "handbook", "hours.md", "Opening hours",
		"The harbour office opens at eight in the morning and closes at six.",
		"On Sundays the harbour office is closed all day long.")
	store(t, x, "handbook", "fees.md", "Fees",
		"A berth costs twelve crowns a night for boats below eight metres.",
		"Electricity and water are paid for at the machine on the jetty.")
	store(t, x, "handbook", "safety.md", "Safety",
		"Every child wears a life jacket on the jetties.")
	return x
}

func TestSearch(t *testing.T) {
	x := harbour(t)
	if got := found(t, x, retrieve.Query{Text: "When does the harbour office open?"}); len(got) == 0 || got[0] != "handbook/hours.md#1" {
		t.Errorf("found = %q", got)
	}
	if got := found(t, x, retrieve.Query{Text: "harbour office", K: 1}); len(got) != 1 {
		t.Errorf("found = %q, want one passage", got)
	}
	if got := found(t, x, retrieve.Query{Text: "harbour office", Filter: retrieve.Filter{Document: "handbook/safety.md"}}); !slices.Equal(got,
		[]string{"handbook/safety.md#1"}) {
		t.Errorf("found = %q", got)
	}
	if _, err := x.Search(t.Context(), retrieve.Query{Text: " \n"}); !errors.Is(err, retrieve.ErrEmptyQuestion) {
		t.Errorf("empty question: err = %v, want ErrEmptyQuestion", err)
	}
	// Neither unknown words nor a question without words are an error.
	for _, text := range []string{"zyzzyva", "???", "the", strings.Repeat("word salad ", 10000)} {
		if _, err := x.Search(t.Context(), retrieve.Query{Text: text}); err != nil {
			t.Errorf("search %.20q: %v", text, err)
		}
	}
}

func TestScores(t *testing.T) {
	x := harbour(t)
	passages, err := x.Search(t.Context(), retrieve.Query{Text: "harbour office zyzzyva"})
	must(t, err)
	if len(passages) != 5 {
		t.Fatalf("%d passages, want 5", len(passages))
	}
	for i, p := range passages {
		s := p.Scores
		if p.Score < 0 || p.Score > 1 || i > 0 && p.Score > passages[i-1].Score {
			t.Errorf("%s: score = %v", p.ID, p.Score)
		}
		if s.Dense < -1 || s.Dense > 1 || s.Lexical < 0 || s.Lexical >= 1 || s.Coverage < 0 || s.Coverage > 1 {
			t.Errorf("%s: scores = %+v", p.ID, s)
		}
		if has := strings.Contains(p.Text, "harbour"); has != (s.BM25 > 0) || has != (s.Lexical > 0) || has != (s.Coverage > 0) {
			t.Errorf("%s: scores = %+v", p.ID, s)
		}
	}
	// Two of five chunks have both of two words, and none has the third.
	idf, none := retrieve.IDF(5, 2), retrieve.IDF(5, 0)
	if got, want := passages[0].Scores.Coverage, 2*idf/(2*idf+none); math.Abs(got-want) > 1e-12 {
		t.Errorf("coverage = %v, want %v", got, want)
	}
}

func TestSpaceError(t *testing.T) {
	dir := t.TempDir()
	e := openState(t, dir)
	x := newIndex(t, e, testSpace)
	_, err := x.AddRoot(t.Context(), "/srv/a", "")
	must(t, err)
	store(t, x, "a", "1", "One", "words")
	var space *retrieve.SpaceError
	if err := retrieve.CheckSpace(t.Context(), e, hashing{Dims: 32, Name: "other"}); !errors.As(err, &space) ||
		space.Stored != "hash/64" || space.Wanted != "other/32" {
		t.Errorf("another embedder: err = %v, want a SpaceError", err)
	}
	must(t, x.Delete(t.Context(), "a/1"))
	other := newIndex(t, e, hashing{Dims: 32, Name: "other"})
	if got := found(t, other, retrieve.Query{Text: "words"}); len(got) > 0 {
		t.Errorf("found %q in an empty library", got)
	}
	store(t, other, "a", "1", "One", "words")
	doc, chunks := document("a", "2", "Two", "words")
	if err := x.Replace(t.Context(), doc, chunks); !errors.As(err, &space) {
		t.Errorf("storing in another space: err = %v, want a SpaceError", err)
	}
	if _, err := x.Search(t.Context(), retrieve.Query{Text: "words"}); !errors.As(err, &space) {
		t.Errorf("searching another space: err = %v, want a SpaceError", err)
	}
}

// TestFeedback checks that the passages that answer best lead to a third, which shares
// their words but no word of the question. Without feedback it is among the last.
func TestFeedback(t *testing.T) {
	e, m := openState(t, t.TempDir()), hashing{Dims: 1024, Name: "wide"}
	x := newIndex(t, e, m)
	_, err := x.AddRoot(t.Context(), "/srv/a", "")
	must(t, err)
	store(t, x, "a", "birds.md", "",
		"The kestrel hunts voles: it hovers above meadows with beating wings.",
		"Voles fear the kestrel that hovers above meadows, wings beating.",
		"Falcons hover above meadows, beating their wings.")
	store(t, x, "a", "harbour.md", "",
		"The office opens at eight in the morning.",
		"A berth costs twelve crowns a night.",
		"Electricity is paid at the machine on the jetty.",
		"Every child wears a life jacket.",
		"Ferries leave for the islands on Sundays.",
		"The lighthouse was built of granite.")
	const falcons = "a/birds.md#3"
	question := retrieve.Query{Text: "kestrel and voles"}
	if got := found(t, x, question); len(got) != 9 || got[2] != falcons {
		t.Errorf("with feedback %s is not third: %v", falcons, got)
	}
	dense := newIndexWith(t, e, m, retrieve.Options{Mode: retrieve.DenseOnly})
	if got := found(t, dense, question); slices.Index(got, falcons) == 2 {
		t.Errorf("without feedback %s is third too, so the test shows nothing: %v", falcons, got)
	}
}

// An altered searcher returns other data than was applied.
type altered struct {
	retrieve.Searcher
	alter func([]retrieve.Evidence) []retrieve.Evidence
	extra int
}

func (a *altered) Evidence(ctx context.Context, hits []retrieve.Hit, terms []string) ([]retrieve.Evidence, error) {
	all, err := a.Searcher.Evidence(ctx, hits, terms)
	if err != nil || a.alter == nil || hits[0].Ordinal != 2 {
		return all, err
	}
	return a.alter(all), nil
}

func (a *altered) Stats(ctx context.Context, terms []string) (retrieve.Stats, error) {
	stats, err := a.Searcher.Stats(ctx, terms)
	stats.Chunks += a.extra
	return stats, err
}

func TestCheckSearcher(t *testing.T) {
	s := openState(t, t.TempDir())
	x := newIndex(t, s, testSpace)
	_, err := x.AddRoot(t.Context(), "/srv/a", "")
	must(t, err)
	store(t, x, "a", "1", "One", "words", "more words", "and the last ones")
	name, err := s.Library(t.Context())
	must(t, err)
	searcher := index.Open(t.TempDir(), index.Options{Library: name, Space: testSpace.Space()})
	defer searcher.Close()
	for want, a := range map[string]*altered{
		"":                  {},
		"lacks its chunk 2": {alter: func([]retrieve.Evidence) []retrieve.Evidence { return nil }},
		"the vector of its chunk 2": {alter: func(all []retrieve.Evidence) []retrieve.Evidence {
			all[0].Vector = append([]float32{1}, all[0].Vector[1:]...)
			return all
		}},
		"the terms of its chunk 2": {alter: func(all []retrieve.Evidence) []retrieve.Evidence {
			all[0].Counts[0]++
			return all
		}},
		"extra": {extra: 2},
	} {
		a.Searcher = searcher
		r, err := retrieve.CheckSearcher(t.Context(), s, a, nil)
		must(t, err)
		got := ""
		for _, d := range r.Differing {
			got += d.Document + ": " + d.Reason
		}
		if r.Extra > 0 {
			got += "extra"
		}
		if r.Documents != 1 || r.Chunks != 3 || (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("report = %+v, want %q", r, want)
		}
	}
}

// rerankFunc is a reranker made of its method.
type rerankFunc func(question string, texts []string) ([]float64, error)

func (f rerankFunc) Rerank(_ context.Context, question string, texts []string) ([]float64, error) {
	return f(question, texts)
}

func TestReranker(t *testing.T) {
	byLength := func(question string, texts []string) ([]float64, error) {
		if question != "When is the harbour office open?" {
			t.Errorf("question = %q", question)
		}
		scores := make([]float64, len(texts))
		for i, text := range texts {
			if !strings.Contains(text, "\n") {
				t.Errorf("text without a title: %q", text)
			}
			scores[i] = -float64(len(text))
		}
		return scores, nil
	}
	broken := errors.New("the reranker is unreachable")
	for _, c := range []struct {
		name     string
		reranker rerankFunc
		warned   string
	}{
		{"orders again", byLength, ""},
		{"fails", func(string, []string) ([]float64, error) { return nil, broken }, "order of the search: the reranker is unreachable"},
		{"miscounts", func(string, []string) ([]float64, error) { return []float64{1}, nil }, "returned 1 scores for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := openState(t, t.TempDir())
			plain := harbourIn(t, e)
			q := retrieve.Query{Text: "When is the harbour office open?"}
			want, err := plain.Search(t.Context(), q)
			must(t, err)
			x := newIndexWith(t, e, testSpace, retrieve.Options{Reranker: c.reranker})
			var warned []string
			q.Warn = func(err error) { warned = append(warned, err.Error()) }
			got, err := x.Search(t.Context(), q)
			must(t, err)
			if c.warned != "" {
				if len(warned) != 1 || !strings.Contains(warned[0], c.warned) {
					t.Errorf("warnings = %q, want %q", warned, c.warned)
				}
				if len(got) != len(want) || got[0].ID != want[0].ID || got[0].Scores.Rerank != nil {
					t.Errorf("search result is lost: %+v", got)
				}
				return
			}
			if len(warned) > 0 || len(got) != len(want) {
				t.Fatalf("%d passages, want %d; warnings = %q", len(got), len(want), warned)
			}
			if !slices.IsSortedFunc(got, func(a, b retrieve.Passage) int { return len(a.Title+a.Text) - len(b.Title+b.Text) }) {
				t.Error("passages are not in the reranker's order")
			}
			if got[0].Score != 1 || got[0].Scores.Rerank == nil || got[len(got)-1].Score != 0 {
				t.Errorf("scores = %+v … %+v", got[0], got[len(got)-1])
			}
		})
	}
}

// A hashing embedder embeds a text as the signed hashes of its terms, so that texts that share
// words are near each other.
type hashing struct {
	Dims int
	Name string
}

// Space names the embedder and its dimensions.
func (h hashing) Space() string { return fmt.Sprintf("%s/%d", h.Name, h.Dims) }

func (h hashing) Embed(_ context.Context, texts []string) ([][]float32, error) {
	rows := make([][]float32, len(texts))
	for i, text := range texts {
		row := make([]float32, h.Dims)
		row[0] = 1e-3 // a text without words needs a row too
		for _, term := range retrieve.Terms(text) {
			f := fnv.New64a()
			_, _ = f.Write([]byte(h.Name + term)) // it never fails
			n := f.Sum64()
			row[n%uint64(h.Dims)] += 1 - 2*float32(n>>63)
		}
		var err error
		if rows[i], err = retrieve.Unit(row, h.Dims); err != nil {
			return nil, err
		}
	}
	return rows, nil
}
