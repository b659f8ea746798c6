package retrieve_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
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

// document makes a document of parts, each a place and a chunk of its own.
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

// newIndexWith gives each index a searcher of its own.
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
		t.Fatal(root)
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
		t.Errorf("found %q", got)
	}
	if got := found(t, x, retrieve.Query{Text: "harbour office", K: 1}); len(got) != 1 {
		t.Errorf("found %q", got)
	}
	if got := found(t, x, retrieve.Query{Text: "harbour office", Filter: retrieve.Filter{Document: "handbook/safety.md"}}); !slices.Equal(got,
		[]string{"handbook/safety.md#1"}) {
		t.Errorf("found %q", got)
	}
	if _, err := x.Search(t.Context(), retrieve.Query{Text: " \n"}); !errors.Is(err, retrieve.ErrEmptyQuestion) {
		t.Errorf("an empty question: %v", err)
	}
	// Neither words unheard of nor none at all are an error.
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
		t.Fatalf("%d passages", len(passages))
	}
	for i, p := range passages {
		s := p.Scores
		if p.Score < 0 || p.Score > 1 || i > 0 && p.Score > passages[i-1].Score {
			t.Errorf("%s has the score %v", p.ID, p.Score)
		}
		if s.Dense < -1 || s.Dense > 1 || s.Lexical < 0 || s.Lexical >= 1 || s.Coverage < 0 || s.Coverage > 1 {
			t.Errorf("%s has the scores %+v", p.ID, s)
		}
		if has := strings.Contains(p.Text, "harbour"); has != (s.BM25 > 0) || has != (s.Lexical > 0) || has != (s.Coverage > 0) {
			t.Errorf("%s has the scores %+v", p.ID, s)
		}
	}
	// Two of five chunks have each of two words, none has the third.
	idf, none := retrieve.IDF(5, 2), retrieve.IDF(5, 0)
	if got, want := passages[0].Scores.Coverage, 2*idf/(2*idf+none); math.Abs(got-want) > 1e-12 {
		t.Errorf("coverage %v, want %v", got, want)
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
		t.Errorf("another embedder: %v", err)
	}
	must(t, x.Delete(t.Context(), "a/1"))
	other := newIndex(t, e, hashing{Dims: 32, Name: "other"})
	if got := found(t, other, retrieve.Query{Text: "words"}); len(got) > 0 {
		t.Errorf("found %q in an empty library", got)
	}
	store(t, other, "a", "1", "One", "words")
	doc, chunks := document("a", "2", "Two", "words")
	if err := x.Replace(t.Context(), doc, chunks); !errors.As(err, &space) {
		t.Errorf("storing into another space: %v", err)
	}
	if _, err := x.Search(t.Context(), retrieve.Query{Text: "words"}); !errors.As(err, &space) {
		t.Errorf("searching another space: %v", err)
	}
}

// TestFeedback: the passages that answer best lead to a third, which shares
// their words and none of the question's. Without them it is among the last.
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
		t.Errorf("with feedback %s is not the third: %v", falcons, got)
	}
	dense := newIndexWith(t, e, m, retrieve.Options{Mode: retrieve.DenseOnly})
	if got := found(t, dense, question); slices.Index(got, falcons) == 2 {
		t.Errorf("the test shows nothing: %s is the third without feedback too: %v", falcons, got)
	}
}
