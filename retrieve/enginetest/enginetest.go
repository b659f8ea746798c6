// Package enginetest holds the contract of [retrieve.Store] as tests that any
// implementation can be run through.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
)

const (
	space = "enginetest/4"
	dims  = 4
)

// A Backend is a kind of store under test.
type Backend struct {
	// New makes an empty store of its own for the test, with [Limits]. Each call of
	// open gives another handle on that same store, as another process would have
	// it; it is closed when the test ends, whether it was before or not.
	New func(t *testing.T) (open func() retrieve.Store)
	// Recall is the least share of the k best of an exact search, on average over
	// questions, that Dense and Lexical find; 1 where they are exact. What they
	// find stands in exact order whatever it is.
	Recall float64
}

// Run runs the contract of the engine against a backend.
func Run(t *testing.T, b Backend) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, e retrieve.Engine)
	}{
		{"Empty", testEmpty},
		{"Space", testSpace},
		{"Roots", testRoots},
		{"Replace", testReplace},
		{"Refuse", testRefuse},
		{"Delete", testDelete},
		{"Rename", testRename},
		{"Filter", testFilter},
		{"Ties", testTies},
		{"Lexical", testLexical},
		{"Stats", testStats},
		{"Candidates", testCandidates},
		{"Revision", testRevision},
		{"Excerpt", testExcerpt},
		{"Sections", testSections},
		{"Listings", testListings},
		{"Oracle", testOracle},
		{"Concurrent", testConcurrent},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, b.New(t)()) })
	}
}

// Document makes a document of the root with one chunk for each text.
func Document(root, path string, texts ...string) (*ingest.Document, []ingest.Chunk) {
	doc := &ingest.Document{
		ID: root + "/" + path, Root: root, Path: path, Title: "Title of " + path, Format: "text",
		Digest: fmt.Sprintf("%x", strings.Join(texts, "|")), Text: strings.Join(texts, "\n"),
		Sections: []ingest.Section{{Heading: "All", Level: 1, Anchor: "all", End: len(strings.Join(texts, "\n"))}},
		Meta:     map[string]string{"author": "Ann <b>"},
	}
	if strings.HasSuffix(path, ".md") {
		doc.Format = "markdown"
	}
	var chunks []ingest.Chunk
	at := 0
	for i, text := range texts {
		chunks = append(chunks, ingest.Chunk{
			ID: fmt.Sprintf("%s#%d", doc.ID, i+1), Document: doc.ID, Ordinal: i + 1, Start: at, End: at + len(text),
			Heading: "All", Anchor: "all", Line: i + 1, Text: text, Tokens: len(strings.Fields(text)),
		})
		at += len(text) + 1
	}
	return doc, chunks
}

// Vector makes a unit vector that points at an angle, in degrees.
func Vector(angle float64) []float32 {
	sin, cos := math.Sincos(angle * math.Pi / 180)
	return []float32{float32(cos), float32(sin), 0, 0}
}

func ready(t *testing.T, e retrieve.Engine, roots ...string) context.Context {
	t.Helper()
	ctx := t.Context()
	must(t, e.SetSpace(ctx, space))
	for _, r := range roots {
		root, err := e.AddRoot(ctx, "/srv/"+r, "")
		must(t, err)
		if root.Name != r {
			t.Fatalf("root %q got the name %q", r, root.Name)
		}
	}
	return ctx
}

func put(t *testing.T, e retrieve.Engine, root, path string, angles []float64, texts ...string) {
	t.Helper()
	doc, chunks := Document(root, path, texts...)
	vectors := make([][]float32, len(angles))
	for i, a := range angles {
		vectors[i] = Vector(a)
	}
	must(t, e.Replace(t.Context(), doc, chunks, vectors))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantIDs(t *testing.T, what string, got []string, err error, want ...string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s = %q, want %q", what, got, want)
	}
}

func dense(t *testing.T, e retrieve.Engine, angle float64, k int, f retrieve.Filter, want ...string) {
	t.Helper()
	got, err := e.Dense(t.Context(), Vector(angle), k, f)
	wantIDs(t, fmt.Sprintf("Dense(%v°, %d, %+v)", angle, k, f), got, err, want...)
}

func lexical(t *testing.T, e retrieve.Engine, question string, k int, f retrieve.Filter, want ...string) {
	t.Helper()
	got, err := e.Lexical(t.Context(), retrieve.Terms(question), k, f)
	wantIDs(t, fmt.Sprintf("Lexical(%q, %d, %+v)", question, k, f), got, err, want...)
}

func testEmpty(t *testing.T, e retrieve.Engine) {
	ctx := t.Context()
	if s, err := e.Space(ctx); s != "" || err != nil {
		t.Errorf("Space = %q, %v", s, err)
	}
	dense(t, e, 0, 5, retrieve.Filter{})
	lexical(t, e, "boat", 5, retrieve.Filter{})
	s, err := e.Stats(ctx, []string{"boat"})
	if err != nil || s.Chunks != 0 || s.Frequency["boat"] != 0 {
		t.Errorf("Stats = %+v, %v", s, err)
	}
	if _, err := e.Document(ctx, "a/b"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("Document of nothing: %v", err)
	}
	if _, err := e.DeleteRoot(ctx, "a"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("DeleteRoot of nothing: %v", err)
	}
	must(t, e.Delete(ctx, "a/b"))
	doc, chunks := Document("a", "b", "boat")
	if err := e.Replace(ctx, doc, chunks, [][]float32{Vector(0)}); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("Replace under an unknown root: %v", err)
	}
	if err := e.Rename(ctx, "a/c", doc); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("Rename of nothing: %v", err)
	}
	if c, err := e.Candidates(ctx, []string{"a/b#1", "nonsense", "#", "a/b#x"}); len(c) != 0 || err != nil {
		t.Errorf("Candidates of nothing: %v, %v", c, err)
	}
}

func testSpace(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	must(t, e.SetSpace(ctx, space))
	put(t, e, "a", "x", []float64{0}, "boat")
	if s, err := e.Space(ctx); s != space || err != nil {
		t.Errorf("Space = %q, %v", s, err)
	}
	must(t, e.SetSpace(ctx, space))
	var other *retrieve.SpaceError
	if err := e.SetSpace(ctx, "other/8"); !errors.As(err, &other) || other.Stored != space || other.Wanted != "other/8" {
		t.Errorf("SetSpace to another: %v", err)
	}
	must(t, e.Delete(ctx, "a/x"))
	if s, err := e.Space(ctx); s != "" || err != nil {
		t.Errorf("Space when empty again = %q, %v", s, err)
	}
	must(t, e.SetSpace(ctx, "other/8"))
	doc, chunks := Document("a", "x", "boat")
	must(t, e.Replace(ctx, doc, chunks, [][]float32{{1, 0, 0, 0, 0, 0, 0, 0}}))
	got, err := e.Dense(ctx, []float32{1, 0, 0, 0, 0, 0, 0, 1}, 3, retrieve.Filter{})
	wantIDs(t, "Dense in the other space", got, err, "a/x#1")
}

func testRoots(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e)
	for _, c := range []struct {
		path, collection string
		want             ingest.Root
	}{
		{"/srv/notes", "", ingest.Root{Name: "notes", Path: "/srv/notes", Collection: "default"}},
		{"/home/notes", "work", ingest.Root{Name: "notes-2", Path: "/home/notes", Collection: "work"}},
		{"/srv/notes", "other", ingest.Root{Name: "notes", Path: "/srv/notes", Collection: "default"}},
		{"/srv/uploads", "", ingest.Root{Name: "uploads-2", Path: "/srv/uploads", Collection: "default"}},
		{"", "", ingest.Root{Name: "uploads", Collection: "default"}},
		{"", "", ingest.Root{Name: "uploads", Collection: "default"}},
	} {
		got, err := e.AddRoot(ctx, c.path, c.collection)
		must(t, err)
		if got != c.want {
			t.Errorf("AddRoot(%q, %q) = %+v, want %+v", c.path, c.collection, got, c.want)
		}
	}
	if _, err := e.AddRoot(ctx, "relative/folder", ""); err == nil {
		t.Error("a relative path was taken for a root")
	}
	put(t, e, "notes", "a", []float64{0}, "boat")
	put(t, e, "notes-2", "a", []float64{0}, "boat")
	n, err := e.DeleteRoot(ctx, "notes")
	if n != 1 || err != nil {
		t.Errorf("DeleteRoot = %d, %v", n, err)
	}
	dense(t, e, 0, 5, retrieve.Filter{}, "notes-2/a#1")
	roots, err := e.Roots(ctx)
	must(t, err)
	var names []string
	for _, r := range roots {
		names = append(names, r.Name)
	}
	wantIDs(t, "Roots", names, nil, "notes-2", "uploads", "uploads-2")
}

func testReplace(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	put(t, e, "a", "x.md", []float64{0, 90}, "a boat in the harbour", "a train in the station")
	doc, _ := Document("a", "x.md", "a boat in the harbour", "a train in the station")
	got, err := e.Document(ctx, "a/x.md")
	must(t, err)
	if got.Text != doc.Text || got.Title != doc.Title || got.Format != "markdown" || got.Digest != doc.Digest ||
		len(got.Sections) != 1 || got.Sections[0] != doc.Sections[0] || got.Meta["author"] != "Ann <b>" {
		t.Errorf("Document = %+v, want %+v", got, doc)
	}
	put(t, e, "a", "x.md", []float64{45}, "a plane at the airport")
	dense(t, e, 0, 5, retrieve.Filter{}, "a/x.md#1")
	lexical(t, e, "boat", 5, retrieve.Filter{})
	lexical(t, e, "planes", 5, retrieve.Filter{}, "a/x.md#1")
	digests, err := e.Documents(ctx, retrieve.Filter{Root: "a"})
	must(t, err)
	if want, _ := Document("a", "x.md", "a plane at the airport"); len(digests) != 1 || digests[0].Path != "x.md" || digests[0].Digest != want.Digest {
		t.Errorf("Documents of a root = %v", digests)
	}
	// A document without a chunk is stored all the same.
	empty, _ := Document("a", "empty")
	must(t, e.Replace(ctx, empty, nil, nil))
	list, err := e.Documents(ctx, retrieve.Filter{})
	must(t, err)
	if len(list) != 2 || list[0].ID != "a/empty" || list[0].Chunks != 0 || list[1].Chunks != 1 || list[1].Bytes != len("a plane at the airport") || list[1].Collection != "default" {
		t.Errorf("Documents = %+v", list)
	}
}

func testRefuse(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	put(t, e, "a", "x", []float64{0}, "boat")
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, vector := range map[string][]float32{
		"short": {1, 0}, "long": {1, 0, 0, 0, 0}, "none": {}, "zero": {0, 0, 0, 0},
		"NaN": {nan, 0, 0, 1}, "Inf": {inf, 0, 0, 1},
	} {
		doc, chunks := Document("a", "x", "train")
		if err := e.Replace(ctx, doc, chunks, [][]float32{vector}); err == nil {
			t.Errorf("a vector with %s was stored", name)
		}
		doc, chunks = Document("a", "x", "train", "plane")
		if err := e.Replace(ctx, doc, chunks, [][]float32{Vector(0), vector}); err == nil {
			t.Errorf("a second vector with %s was stored", name)
		}
	}
	for name, spoil := range map[string]func(*ingest.Document, []ingest.Chunk){
		"another text":     func(_ *ingest.Document, c []ingest.Chunk) { c[0].Text = "trail" },
		"an end too far":   func(_ *ingest.Document, c []ingest.Chunk) { c[0].End++ },
		"a wrong ordinal":  func(_ *ingest.Document, c []ingest.Chunk) { c[0].Ordinal = 2 },
		"a foreign parent": func(_ *ingest.Document, c []ingest.Chunk) { c[0].Document = "a/y" },
		"a wrong id":       func(d *ingest.Document, _ []ingest.Chunk) { d.ID = "a/y" },
	} {
		doc, chunks := Document("a", "x", "train")
		spoil(doc, chunks)
		if err := e.Replace(ctx, doc, chunks, [][]float32{Vector(0)}); err == nil {
			t.Errorf("a chunk with %s was stored", name)
		}
	}
	doc, chunks := Document("a", "x", "train")
	if err := e.Replace(ctx, doc, chunks, nil); err == nil {
		t.Error("a chunk without a vector was stored")
	}
	lexical(t, e, "boat", 5, retrieve.Filter{}, "a/x#1")
	dense(t, e, 0, 5, retrieve.Filter{}, "a/x#1")
}

func testDelete(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	put(t, e, "a", "x", []float64{0}, "boat")
	put(t, e, "a", "y", []float64{10}, "boat")
	must(t, e.Delete(ctx, "a/x"))
	must(t, e.Delete(ctx, "a/x"))
	dense(t, e, 0, 5, retrieve.Filter{}, "a/y#1")
	lexical(t, e, "boat", 5, retrieve.Filter{}, "a/y#1")
	if s, err := e.Stats(ctx, []string{"boat"}); err != nil || s.Chunks != 1 || s.Frequency["boat"] != 1 {
		t.Errorf("Stats = %+v, %v", s, err)
	}
	if _, err := e.Document(ctx, "a/x"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a deleted document: %v", err)
	}
	if c, err := e.Candidates(ctx, []string{"a/x#1"}); len(c) != 0 || err != nil {
		t.Errorf("a chunk of a deleted document: %v, %v", c, err)
	}
}

func testRename(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a", "b")
	put(t, e, "a", "x", []float64{0, 30}, "boat", "harbour")
	put(t, e, "a", "taken", []float64{60}, "train")
	to, _ := Document("b", "taken", "boat", "harbour")
	must(t, e.Rename(ctx, "a/x", to))
	dense(t, e, 0, 5, retrieve.Filter{}, "b/taken#1", "b/taken#2", "a/taken#1")
	lexical(t, e, "harbour", 5, retrieve.Filter{}, "b/taken#2")
	// The title is searched with the words, so the new one counts.
	lexical(t, e, "x", 5, retrieve.Filter{})
	if _, err := e.Document(ctx, "a/x"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("the old id: %v", err)
	}
	doc, err := e.Document(ctx, "b/taken")
	must(t, err)
	if doc.Text != "boat\nharbour" || doc.Title != "Title of taken" {
		t.Errorf("the new id: %+v", doc)
	}
	onto, _ := Document("a", "taken", "boat", "harbour")
	must(t, e.Rename(ctx, "b/taken", onto))
	dense(t, e, 60, 5, retrieve.Filter{}, "a/taken#2", "a/taken#1")
	changed, _ := Document("a", "z", "another text")
	if err := e.Rename(ctx, "a/taken", changed); err == nil {
		t.Error("a file with another content passed for a renamed one")
	}
}

func testFilter(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	other, err := e.AddRoot(ctx, "/srv/b", "work")
	must(t, err)
	// The nearest and best by far are those that filters leave out.
	for i := range 60 {
		put(t, e, "a", fmt.Sprintf("near/%02d", i), []float64{0}, "boat boat boat")
	}
	put(t, e, "a", "far/x.md", []float64{80}, "a boat among very many other words of no import here")
	put(t, e, other.Name, "far/y", []float64{85}, "a boat among even more and longer words of no import here")
	for path, meta := range map[string]map[string]string{
		"dated/1": {"date": "2024-03-31", "tags": "Sea, harbour"},
		"dated/2": {"date": "April 2, 2024", "tags": "sea", "author": "Ada Lovelace", "language": "en-GB"},
		"dated/3": {"updated": "2024-05", "tags": "harbour, #sea"},
		"dated/4": {"date": "once", "tags": "seaside"},
	} {
		doc, chunks := Document(other.Name, path, "a boat among so many more and still longer words of no import here")
		doc.Meta = meta
		must(t, e.Replace(ctx, doc, chunks, [][]float32{Vector(89)}))
	}
	for _, c := range []struct {
		f    retrieve.Filter
		want []string
	}{
		{retrieve.Filter{Collection: "work", PathPrefix: "far"}, []string{"b/far/y#1"}},
		{retrieve.Filter{Root: "b", PathPrefix: "f"}, []string{"b/far/y#1"}},
		{retrieve.Filter{Document: "a/far/x.md"}, []string{"a/far/x.md#1"}},
		{retrieve.Filter{PathPrefix: "far/"}, []string{"a/far/x.md#1", "b/far/y#1"}},
		{retrieve.Filter{Format: "markdown"}, []string{"a/far/x.md#1"}},
		{retrieve.Filter{Root: "b", Format: "markdown"}, nil},
		{retrieve.Filter{Collection: "none"}, nil},
		{retrieve.Filter{Tags: []string{"sea"}}, []string{"b/dated/1#1", "b/dated/2#1", "b/dated/3#1"}},
		{retrieve.Filter{Tags: []string{"Harbour", "SEA"}}, []string{"b/dated/1#1", "b/dated/3#1"}},
		{retrieve.Filter{Tags: []string{"harbour", "land"}}, nil},
		{retrieve.Filter{Author: "lovelace"}, []string{"b/dated/2#1"}},
		{retrieve.Filter{Author: "lovelace", Language: "fr"}, nil},
		{retrieve.Filter{Language: "en", Tags: []string{"sea"}}, []string{"b/dated/2#1"}},
		{retrieve.Filter{Since: "2024-04"}, []string{"b/dated/2#1", "b/dated/3#1"}},
		{retrieve.Filter{Until: "2024-04-02"}, []string{"b/dated/1#1", "b/dated/2#1"}},
		{retrieve.Filter{Since: "2024-05-31", Until: "2025"}, []string{"b/dated/3#1"}},
		{retrieve.Filter{Since: "2024", Tags: []string{"sea"}, Collection: "work"}, []string{"b/dated/1#1", "b/dated/2#1", "b/dated/3#1"}},
		{retrieve.Filter{Since: "2025"}, nil},
	} {
		dense(t, e, 0, 3, c.f, c.want...)
		lexical(t, e, "boat", 3, c.f, c.want...)
		list, err := e.Documents(ctx, c.f)
		must(t, err)
		if len(list) != len(c.want) {
			t.Errorf("Documents(%+v) = %+v", c.f, list)
		}
		if any, err := e.Holds(ctx, c.f); err != nil || any != (len(c.want) > 0) {
			t.Errorf("Holds(%+v) = %v, %v", c.f, any, err)
		}
	}
	// What changes is filtered as it is now.
	doc, chunks := Document(other.Name, "dated/1", "a boat")
	doc.Meta = map[string]string{"tags": "land"}
	must(t, e.Replace(ctx, doc, chunks, [][]float32{Vector(1)}))
	must(t, e.Delete(ctx, "b/dated/2"))
	put(t, e, other.Name, "dated/5", []float64{2}, "boat")
	dense(t, e, 0, 9, retrieve.Filter{Tags: []string{"sea"}}, "b/dated/3#1")
	dense(t, e, 0, 9, retrieve.Filter{Tags: []string{"land"}}, "b/dated/1#1")
	dense(t, e, 0, 9, retrieve.Filter{Since: "2024"}, "b/dated/3#1")
	dense(t, e, 0, 9, retrieve.Filter{PathPrefix: "dated/"}, "b/dated/1#1", "b/dated/5#1", "b/dated/3#1", "b/dated/4#1")
	lexical(t, e, "boat", 9, retrieve.Filter{Tags: []string{"land"}}, "b/dated/1#1")
	lexical(t, e, "boat", 9, retrieve.Filter{Since: "2024"}, "b/dated/3#1")
}

func testTies(t *testing.T, e retrieve.Engine) {
	ready(t, e, "a")
	for _, path := range []string{"3", "1", "5", "2", "4", "10"} {
		put(t, e, "a", path, []float64{20}, "boat")
	}
	for k := range 8 {
		all := []string{"a/1#1", "a/10#1", "a/2#1", "a/3#1", "a/4#1", "a/5#1"}
		dense(t, e, 0, k, retrieve.Filter{}, all[:min(k, len(all))]...)
		lexical(t, e, "boat", k, retrieve.Filter{}, all[:min(k, len(all))]...)
	}
}

func testLexical(t *testing.T, e retrieve.Engine) {
	ready(t, e, "a")
	put(t, e, "a", "1", []float64{0}, "the boat is in the harbour of the town")
	put(t, e, "a", "2", []float64{0}, "the boat is on the sea of the world")
	put(t, e, "a", "3", []float64{0}, "to be or not to be, that is the question")
	lexical(t, e, "boats in harbours", 5, retrieve.Filter{}, "a/1#1", "a/2#1")
	lexical(t, e, "to be or not to be", 1, retrieve.Filter{}, "a/3#1")
	lexical(t, e, "unheard-of", 5, retrieve.Filter{})
	lexical(t, e, "", 5, retrieve.Filter{})
}

func testStats(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	put(t, e, "a", "1", []float64{0, 0}, "boat boat sea", "sea")
	put(t, e, "a", "2", []float64{0}, "boat")
	s, err := e.Stats(ctx, []string{"boat", "sea", "land"})
	must(t, err)
	terms := 0
	for path, texts := range map[string][]string{"1": {"boat boat sea", "sea"}, "2": {"boat"}} {
		doc, chunks := Document("a", path, texts...)
		for _, c := range chunks {
			_, length := retrieve.CountTerms(ingest.EmbeddingText(doc.Title, c))
			terms += length
		}
	}
	if s.Chunks != 3 || s.Frequency["boat"] != 2 || s.Frequency["sea"] != 2 || s.Frequency["land"] != 0 || math.Abs(s.MeanTerms-float64(terms)/3) > 1e-9 {
		t.Errorf("Stats = %+v, want a mean of %v", s, float64(terms)/3)
	}
}

func testCandidates(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	put(t, e, "a", "1#odd", []float64{10, 20}, "boat", "sea")
	got, err := e.Candidates(ctx, []string{"a/1#odd#2", "gone#1", "a/1#odd#3", "a/1#odd#1", "a/1#odd#01"})
	must(t, err)
	if len(got) != 2 || got[0].ID != "a/1#odd#2" || got[1].ID != "a/1#odd#1" {
		t.Fatalf("Candidates = %+v", got)
	}
	doc, chunks := Document("a", "1#odd", "boat", "sea")
	c := got[0]
	if c.Chunk != chunks[1] {
		t.Errorf("chunk %+v, want %+v", c.Chunk, chunks[1])
	}
	if c.Root != "a" || c.Path != "1#odd" || c.Title != doc.Title || c.Format != "text" || c.Digest != doc.Digest {
		t.Errorf("candidate %+v", c)
	}
	if !maps.Equal(c.Meta, doc.Meta) || c.Meta["author"] == "" {
		t.Errorf("metadata %v, want %v", c.Meta, doc.Meta)
	}
	if len(c.Vector) != dims || math.Abs(float64(c.Vector[0])-math.Cos(20*math.Pi/180)) > 1e-6 {
		t.Errorf("vector %v", c.Vector)
	}
}

func testRevision(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e)
	last := int64(-1)
	grew := func(what string) {
		t.Helper()
		n, err := e.Revision(ctx)
		must(t, err)
		if n <= last {
			t.Errorf("the revision after %s is %d, before it was %d", what, n, last)
		}
		last = n
	}
	grew("the start")
	_, err := e.AddRoot(ctx, "/srv/a", "")
	must(t, err)
	grew("adding a root")
	put(t, e, "a", "1", []float64{0}, "boat")
	grew("adding")
	put(t, e, "a", "1", []float64{0}, "ship")
	grew("replacing")
	to, _ := Document("a", "2", "ship")
	must(t, e.Rename(ctx, "a/1", to))
	grew("renaming")
	must(t, e.Delete(ctx, "a/2"))
	grew("deleting")
	_, err = e.DeleteRoot(ctx, "a")
	must(t, err)
	grew("deleting the root")
}

func testExcerpt(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	put(t, e, "a", "x.md", []float64{1, 2}, "Grüße aus", "Öland")
	const text = "Grüße aus\nÖland"
	for _, r := range [][2]int{{0, len(text)}, {0, 3}, {2, 4}, {3, 4}, {11, 14}, {len(text) - 1, len(text)}, {5, 5}} {
		got, err := e.Excerpt(ctx, "a/x.md", r[0], r[1])
		if err != nil || got != text[r[0]:r[1]] {
			t.Errorf("bytes %d to %d are %q: %v", r[0], r[1], got, err)
		}
	}
	for _, c := range []struct {
		id         string
		start, end int
	}{{"a/x.md", 0, len(text) + 1}, {"a/y.md", 0, 1}} {
		if got, err := e.Excerpt(ctx, c.id, c.start, c.end); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("bytes %d to %d of %s are %q: %v", c.start, c.end, c.id, got, err)
		}
	}
}

func testSections(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	doc, chunks := Document("a", "x.md", "Grüße aus", "Öland")
	doc.Sections = append(doc.Sections, ingest.Section{Heading: "Öland", Level: 2, Anchor: "oland", Start: 12, End: len(doc.Text)})
	must(t, e.Replace(ctx, doc, chunks, [][]float32{Vector(1), Vector(2)}))
	bare, chunks := Document("a", "y.txt", "Grüße")
	bare.Sections = nil
	must(t, e.Replace(ctx, bare, chunks, [][]float32{Vector(1)}))
	for _, d := range []*ingest.Document{doc, bare} {
		if got, err := e.Sections(ctx, d.ID, d.Digest); err != nil || !slices.Equal(got, d.Sections) {
			t.Errorf("the sections of %s are %v, want %v: %v", d.ID, got, d.Sections, err)
		}
	}
	for _, c := range [][2]string{{doc.ID, "another"}, {doc.ID, bare.Digest}, {"a/z.md", doc.Digest}} {
		if got, err := e.Sections(ctx, c[0], c[1]); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("the sections of %s with the digest %s are %v: %v", c[0], c[1], got, err)
		}
	}
}

// testOracle compares both searches with a plain computation, after many
// random changes.
func testListings(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a", "b")
	check := func(id, want string, root string, ids ...string) {
		t.Helper()
		listing, err := e.Listing(ctx, id)
		must(t, err)
		if string(listing) != want {
			t.Errorf("Listing(%s) = %q, want %q", id, listing, want)
		}
		got, err := e.Listings(ctx, root)
		must(t, err)
		slices.Sort(got)
		wantIDs(t, "Listings of "+root, got, nil, ids...)
	}
	check("a/x.zip", "", "a")
	must(t, e.Delete(ctx, "a/x.zip"))
	must(t, e.KeepListing(ctx, "a", "a/x.zip", []byte("first")))
	must(t, e.KeepListing(ctx, "a", "a/x.zip", []byte("second")))
	must(t, e.KeepListing(ctx, "a", "a/y.zip", []byte("third")))
	must(t, e.KeepListing(ctx, "b", "b/x.zip", []byte("fourth")))
	check("a/x.zip", "second", "a", "a/x.zip", "a/y.zip")
	check("b/x.zip", "fourth", "b", "b/x.zip")
	// It goes with what it was found in, whether that is a document or not.
	must(t, e.Delete(ctx, "a/x.zip"))
	check("a/x.zip", "", "a", "a/y.zip")
	_, err := e.DeleteRoot(ctx, "a")
	must(t, err)
	check("a/y.zip", "", "a")
	check("b/x.zip", "fourth", "b", "b/x.zip")
}

func testOracle(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	r := rand.New(rand.NewPCG(1, 2))
	vocabulary := strings.Fields("anchor boat crew deck engine flag gale hull island jetty keel lamp mast north oar port quay rope sail tide")
	type stored struct {
		text   string
		vector []float32
	}
	want := make(map[string]stored)
	for range 300 {
		path := fmt.Sprint(r.IntN(60))
		id := "a/" + path
		for old := range want {
			if strings.HasPrefix(old, id+"#") {
				delete(want, old)
			}
		}
		if r.IntN(4) == 0 {
			must(t, e.Delete(ctx, id))
			continue
		}
		var texts []string
		var vectors [][]float32
		for range 1 + r.IntN(3) {
			var w []string
			for range 1 + r.IntN(30) {
				w = append(w, vocabulary[r.IntN(1+r.IntN(len(vocabulary)))])
			}
			texts = append(texts, strings.Join(w, " "))
			vectors = append(vectors, []float32{r.Float32() - .5, r.Float32() - .5, r.Float32() - .5, r.Float32() - .5})
		}
		doc, chunks := Document("a", path, texts...)
		must(t, e.Replace(ctx, doc, chunks, vectors))
		for i, c := range chunks {
			want[c.ID] = stored{ingest.EmbeddingText(doc.Title, c), vectors[i]}
		}
	}
	total := 0
	frequency := make(map[string]int)
	counts := make(map[string]map[string]int)
	lengths := make(map[string]int)
	for id, s := range want {
		counts[id] = make(map[string]int)
		var terms []retrieve.TermCount
		terms, lengths[id] = retrieve.CountTerms(s.text)
		for _, c := range terms {
			counts[id][c.Term] = c.Count
		}
		total += lengths[id]
		for term := range counts[id] {
			frequency[term]++
		}
	}
	mean := float64(total) / float64(len(want))
	for range 50 {
		q := []float32{r.Float32() - .5, r.Float32() - .5, r.Float32() - .5, r.Float32() - .5}
		k := 1 + r.IntN(2*len(want))
		got, err := e.Dense(ctx, q, k, retrieve.Filter{})
		wantIDs(t, "Dense", got, err, rank(want, k, func(id string) float64 {
			v := want[id].vector
			var product, square float64
			for i := range v {
				product += float64(v[i]) * float64(q[i])
				square += float64(v[i]) * float64(v[i])
			}
			return product / math.Sqrt(square)
		}, math.Inf(-1))...)
		terms := []string{vocabulary[r.IntN(20)], vocabulary[r.IntN(20)]}
		if terms[0] == terms[1] {
			terms = terms[:1]
		}
		for i := range terms {
			terms[i] = retrieve.Terms(terms[i])[0]
		}
		got, err = e.Lexical(ctx, terms, k, retrieve.Filter{})
		wantIDs(t, "Lexical", got, err, rank(want, k, func(id string) float64 {
			score := 0.0
			for _, term := range terms {
				score += retrieve.IDF(len(want), frequency[term]) * retrieve.Saturation(counts[id][term], lengths[id], mean)
			}
			return score
		}, 0)...)
	}
}

// rank gives the k ids with the highest scores above the floor.
func rank[V any](of map[string]V, k int, score func(id string) float64, floor float64) []string {
	var ids []string
	for id := range of {
		if score(id) > floor {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		if x, y := score(a), score(b); x != y {
			if x > y {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return ids[:min(k, len(ids))]
}

// testConcurrent lets writers and readers work at once: readers see whole
// documents only.
func testConcurrent(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	const writers, rounds = 3, 15
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	for w := range writers {
		writing.Go(func() {
			for i := range rounds {
				doc, chunks := Document("a", fmt.Sprint(w), fmt.Sprintf("boat version%d", i), fmt.Sprintf("sea version%d", i))
				if err := e.Replace(ctx, doc, chunks, [][]float32{Vector(float64(w)), Vector(90)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		reading.Go(func() {
			for {
				ids, err := e.Dense(ctx, Vector(0), 100, retrieve.Filter{PathPrefix: []string{"", "1"}[rand.IntN(2)]})
				if err != nil {
					t.Error(err)
					return
				}
				if len(ids)%2 != 0 {
					t.Errorf("half a document is seen: %q", ids)
				}
				if _, err := e.Lexical(ctx, []string{"boat"}, 10, retrieve.Filter{}); err != nil {
					t.Error(err)
				}
				found, err := e.Candidates(ctx, ids)
				if err != nil {
					t.Error(err)
				}
				versions := make(map[string]string)
				for _, c := range found {
					_, version, _ := strings.Cut(c.Text, " ")
					if v := versions[c.Document+c.Digest]; v != "" && v != version {
						t.Errorf("one state of %s has the versions %s and %s", c.Document, v, version)
					}
					versions[c.Document+c.Digest] = version
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	lexical(t, e, fmt.Sprintf("version%d", rounds-1), 10, retrieve.Filter{},
		"a/0#1", "a/0#2", "a/1#1", "a/1#2", "a/2#1", "a/2#2")
}
