package index

import (
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/weaviate"
)

// TestContract runs every implementation of [retrieve.Searcher] through the same tests. A
// new implementation needs a line here.
func TestContract(t *testing.T) {
	segments := func(flush int) func(*testing.T) retrieve.Searcher {
		return func(t *testing.T) retrieve.Searcher {
			return open(t, t.TempDir(), flush)
		}
	}
	cluster := func(t *testing.T) retrieve.Searcher {
		server := os.Getenv("IBID_TEST_WEAVIATE")
		if server == "" {
			t.Skip("IBID_TEST_WEAVIATE is not set: '.ci/weaviate DIR' starts a server and prints what to set")
		}
		at, err := weaviate.ParseAddress(server)
		must(t, err)
		empty := func(context.Context) (revision int64, chunks int, err error) { return 0, 0, nil }
		options := weaviate.Options{Library: cryptorand.Text(), Space: "test", Size: empty}
		t.Cleanup(func() { must(t, weaviate.Open(at, options).Reset(context.Background())) })
		return weaviate.Open(at, options)
	}
	for name, open := range map[string]func(*testing.T) retrieve.Searcher{
		"memory": segments(0), "files": segments(10), "sieve": segments(11), "weaviate": cluster,
	} {
		t.Run(name, func(t *testing.T) {
			for name, test := range map[string]func(*testing.T, *candidate){
				"Empty": testEmpty, "Close": testClose, "Apply": testApply, "Reset": testReset, "Filter": testFilter, "Ties": testTies,
				"TiesOfNames": testTiesOfNames, "Lexical": testLexical, "Stats": testStats, "Evidence": testEvidence,
				"Refused": testRefused, "Random": testRandom, "Clusters": testClusters,
			} {
				t.Run(name, func(t *testing.T) {
					s := open(t)
					test(t, &candidate{T: t, s: s, model: NewModel(), numbers: make(map[string]int64)})
					must(t, s.Close())
				})
			}
		})
	}
}

// A candidate is a searcher and a model that get the same changes.
type candidate struct {
	*testing.T
	s        retrieve.Searcher
	model    *Model
	revision int64
	numbers  map[string]int64 // numbers of the documents, by id
}

func (l *candidate) apply(c retrieve.Change) {
	l.Helper()
	l.revision++
	c.Revision = l.revision
	must(l.T, l.s.Apply(l.Context(), []retrieve.Change{c}))
	l.model.Apply(c)
}

// vector returns the unit vector at an angle in degrees.
func vector(angle float64) []float32 {
	sin, cos := math.Sincos(angle * math.Pi / 180)
	return []float32{float32(cos), float32(sin), 0, 0}
}

// put stores a document with a chunk at the angle for each text.
func (l *candidate) put(root, path string, meta map[string]string, angle float64, texts ...string) {
	l.Helper()
	id := root + "/" + path
	if l.numbers[id] == 0 {
		l.numbers[id] = int64(len(l.numbers) + 1)
	}
	c := retrieve.Change{Document: l.numbers[id], Info: retrieve.DocumentInfo{
		Collection: map[string]string{"a": "default", "b": "work"}[root],
		Document:   ingest.Document{ID: id, Root: root, Path: path, Format: "text", Meta: meta}}}
	if strings.HasSuffix(path, ".md") {
		c.Info.Format = "markdown"
	}
	for _, text := range texts {
		c.Chunks = append(c.Chunks, retrieve.IndexChunk{Text: text, Vector: vector(angle)})
	}
	l.apply(c)
}

func (l *candidate) delete(id string) {
	l.Helper()
	l.apply(retrieve.Change{Document: l.numbers[id], Deleted: true})
}

// ids returns the ids of the chunks.
func (l *candidate) ids(hits []retrieve.Hit) (ids []string) {
	for _, h := range hits {
		d := l.model.documents[h.Document]
		if d.Revision != h.Generation {
			l.Errorf("%+v is of generation %d", h, d.Revision)
		}
		ids = append(ids, retrieve.ChunkID(d.Info.ID, h.Ordinal))
	}
	return ids
}

func (l *candidate) dense(angle float64, k int, f retrieve.Filter, want ...string) {
	l.Helper()
	hits, err := l.s.Dense(l.Context(), vector(angle), k, f)
	if got := l.ids(hits); err != nil || !slices.Equal(got, want) {
		l.Errorf("Dense(%v°, %d, %+v) = %q, %v; want %q", angle, k, f, got, err, want)
	}
}

func (l *candidate) lexical(question string, k int, f retrieve.Filter, want ...string) {
	l.Helper()
	hits, err := l.s.Lexical(l.Context(), terms(question), k, f)
	if got := l.ids(hits); err != nil || !slices.Equal(got, want) {
		l.Errorf("Lexical(%q, %d, %+v) = %q, %v; want %q", question, k, f, got, err, want)
	}
}

func testEmpty(t *testing.T, l *candidate) {
	must(t, l.model.CheckAll(t.Context(), l.s, []string{"boat"}))
	l.dense(0, 5, retrieve.Filter{})
	l.lexical("boat", 5, retrieve.Filter{Root: "a"})
	must(t, l.s.Apply(t.Context(), nil))
	l.apply(retrieve.Change{}) // a change of no document
	l.put("a", "empty", nil, 0)
	must(t, l.model.CheckAll(t.Context(), l.s, []string{"boat"}))
}

func testClose(t *testing.T, l *candidate) {
	must(t, l.s.Close())
	if _, err := l.s.Dense(t.Context(), vector(0), 1, retrieve.Filter{}); err == nil {
		t.Error("Dense of a closed searcher = no error")
	}
	if err := l.s.Apply(t.Context(), []retrieve.Change{{Revision: 1}}); err == nil {
		t.Error("Apply of a closed searcher = no error")
	}
}

// testApply replaces and deletes documents, and applies changes again.
func testApply(t *testing.T, l *candidate) {
	l.put("a", "1", nil, 10, "boat", "sea")
	l.put("a", "2", nil, 20, "boat")
	l.dense(0, 9, retrieve.Filter{}, "a/1#1", "a/1#2", "a/2#1")
	l.put("a", "1", nil, 30, "land")
	l.dense(0, 9, retrieve.Filter{}, "a/2#1", "a/1#1")
	l.lexical("boat", 9, retrieve.Filter{}, "a/2#1")
	again := []retrieve.Change{{Revision: 2, Document: 2, Deleted: true}, {Revision: 3, Document: 1, Deleted: true}}
	must(t, l.s.Apply(t.Context(), again))
	must(t, l.model.CheckAll(t.Context(), l.s, []string{"boat", "sea", "land"}))
	l.delete("a/2")
	l.delete("a/2")
	l.dense(0, 9, retrieve.Filter{}, "a/1#1")
	l.put("a", "2", nil, 5, "boat")
	l.dense(0, 9, retrieve.Filter{}, "a/2#1", "a/1#1")
	// One call may change a document several times.
	all := []retrieve.Change{l.model.documents[2].Change, {Document: 2, Deleted: true}, l.model.documents[2].Change,
		{Document: 1, Deleted: true}}
	for i := range all {
		l.revision++
		all[i].Revision = l.revision
	}
	must(t, l.s.Apply(t.Context(), all))
	l.model.Apply(all...)
	l.dense(0, 9, retrieve.Filter{}, "a/2#1")
	must(t, l.model.CheckAll(t.Context(), l.s, []string{"boat", "sea", "land"}))
}

func testReset(t *testing.T, l *candidate) {
	l.put("a", "1", nil, 10, "boat")
	must(t, l.s.Reset(t.Context()))
	must(t, NewModel().CheckAll(t.Context(), l.s, []string{"boat"}))
	l.dense(0, 9, retrieve.Filter{})
	must(t, l.s.Apply(t.Context(), []retrieve.Change{l.model.documents[1].Change}))
	must(t, l.model.CheckAll(t.Context(), l.s, []string{"boat"}))
}

func testFilter(t *testing.T, l *candidate) {
	for i := range 60 { // the filters exclude the best chunks
		l.put("a", fmt.Sprintf("near/%02d", i), nil, 0, "boat boat boat")
	}
	l.put("a", "far/x.md", nil, 80, "a boat among very many other words of no import here")
	l.put("b", "far/y", nil, 85, "a boat among even more and longer words of no import here")
	long := "a boat among so many more and still longer words of no import here"
	l.put("b", "dated/1", map[string]string{"date": "2024-03-31", "tags": "Sea, harbour"}, 89, long)
	l.put("b", "dated/2", map[string]string{"date": "2024/4/2", "tags": "sea", "author": "Ada Lovelace", "language": "en-GB"}, 89, long)
	l.put("b", "dated/3", map[string]string{"updated": "2024-05", "tags": "harbour, #sea"}, 89, long)
	l.put("b", "dated/4", map[string]string{"date": "once", "tags": "seaside"}, 89, long)
	for _, c := range datatest.Lines[struct {
		Filter            retrieve.Filter
		Collections, Want []string
	}](l, "testdata/filters.jsonl") {
		c.Filter.Collections = c.Collections
		l.dense(0, 3, c.Filter, c.Want...)
		l.lexical("boat", 3, c.Filter, c.Want...)
	}
	// Filters apply to the current documents.
	l.put("b", "dated/1", map[string]string{"tags": "land"}, 1, "a boat")
	l.delete("b/dated/2")
	l.put("b", "dated/5", nil, 2, "boat")
	l.dense(0, 9, retrieve.Filter{Tags: []string{"sea"}}, "b/dated/3#1")
	l.dense(0, 9, retrieve.Filter{PathPrefix: "dated/"}, "b/dated/1#1", "b/dated/5#1", "b/dated/3#1", "b/dated/4#1")
	l.lexical("boat", 9, retrieve.Filter{Tags: []string{"land"}}, "b/dated/1#1")
	l.lexical("boat", 9, retrieve.Filter{Since: "2024"}, "b/dated/3#1")
}

func testTies(t *testing.T, l *candidate) {
	for _, path := range []string{"3", "1", "5", "2", "4", "10"} {
		l.put("a", path, nil, 20, "boat")
	}
	all := []string{"a/1#1", "a/10#1", "a/2#1", "a/3#1", "a/4#1", "a/5#1"}
	for k := range 8 {
		l.dense(0, k, retrieve.Filter{}, all[:min(k, len(all))]...)
		l.lexical("boat", k, retrieve.Filter{}, all[:min(k, len(all))]...)
	}
	// Many chunks of one document, of which few match.
	l.put("a", "x", nil, 5, slices.Repeat([]string{"boat ship"}, 150)...)
	all = nil
	for i := range 150 {
		all = append(all, retrieve.ChunkID("a/x", i+1))
	}
	slices.Sort(all)
	for _, k := range []int{1, 10, 149, 150} {
		l.dense(0, k, retrieve.Filter{}, all[:k]...)
		l.lexical("ship", k, retrieve.Filter{}, all[:k]...)
	}
}

// testTiesOfNames has equal documents whose names continue with characters that sort before the "#"
// of a chunk id, so that the longest name comes first by chunk id.
func testTiesOfNames(t *testing.T, l *candidate) {
	var all []string
	for i := range 50 {
		path := "log" + strings.Repeat("!", i)
		l.put("a", path, nil, 20, "boat")
		all = append(all, retrieve.ChunkID("a/"+path, 1))
	}
	slices.Sort(all)
	for _, k := range []int{1, 10, 30} {
		l.dense(0, k, retrieve.Filter{}, all[:k]...)
		l.lexical("boat", k, retrieve.Filter{}, all[:k]...)
	}
}

func testLexical(t *testing.T, l *candidate) {
	l.put("a", "1", nil, 0, "the boat is in the harbour of the town")
	l.put("a", "2", nil, 0, "the boat is on the sea of the world")
	l.put("a", "3", nil, 0, "to be or not to be, that is the question")
	l.lexical("boats in harbours", 5, retrieve.Filter{}, "a/1#1", "a/2#1")
	l.lexical("to be or not to be", 1, retrieve.Filter{}, "a/3#1")
	l.lexical("unheard-of", 5, retrieve.Filter{})
	l.lexical("", 5, retrieve.Filter{})
}

func testStats(t *testing.T, l *candidate) {
	l.put("a", "1", nil, 0, "boat boat sea", "sea")
	l.put("a", "2", nil, 0, "boat")
	s, err := l.s.Stats(t.Context(), []string{"boat", "sea", "land"})
	must(t, err)
	if s.Chunks != 3 || s.Frequency["boat"] != 2 || s.Frequency["sea"] != 2 || s.Frequency["land"] != 0 || math.Abs(s.MeanTerms-5./3) > 1e-9 {
		t.Errorf("Stats = %+v", s)
	}
}

func testEvidence(t *testing.T, l *candidate) {
	l.put("a", "1", nil, 10, "boat boat", strings.Repeat("sea ", 300))
	hits := []retrieve.Hit{{Document: 1, Generation: 1, Ordinal: 2}, {Document: 1, Generation: 1, Ordinal: 3},
		{Document: 1, Generation: 2, Ordinal: 1},
		{Document: 2, Generation: 1, Ordinal: 1}, {Document: 1, Generation: 1, Ordinal: 1}, {Document: 1, Generation: 1}}
	all, err := l.s.Evidence(t.Context(), hits, []string{"boat", "sea", "land"})
	must(t, err)
	if len(all) != 2 || all[0].Hit != hits[0] || all[1].Hit != hits[4] || !slices.Equal(all[0].Counts, []int{0, 300, 0}) ||
		!slices.Equal(all[1].Counts, []int{2, 0, 0}) || all[0].Length != 300 || all[1].Length != 2 || !slices.Equal(all[1].Vector, vector(10)) {
		t.Errorf("Evidence = %+v", all)
	}
}

// testRefused has questions and documents with invalid vectors.
func testRefused(t *testing.T, l *candidate) {
	l.put("a", "1", nil, 10, "boat")
	nan := float32(math.NaN())
	for _, v := range [][]float32{{}, {1}, {0, 0, 0, 0}, {nan, 0, 0, 0}, {1, 0, 0, 0, 0}} {
		if hits, err := l.s.Dense(t.Context(), v, 1, retrieve.Filter{}); err == nil {
			t.Errorf("Dense(%v) = %v, want an error", v, hits)
		}
		c := retrieve.Change{Revision: 2, Document: 2, Info: l.model.documents[1].Info, Chunks: []retrieve.IndexChunk{{Text: "boat", Vector: v}}}
		if err := l.s.Apply(t.Context(), []retrieve.Change{c}); err == nil {
			t.Errorf("Apply accepts the vector %v", v)
		}
	}
	must(t, l.model.CheckAll(t.Context(), l.s, []string{"boat"}))
	must(t, l.s.Reset(t.Context()))
	mixed := []retrieve.Change{{Revision: 1, Document: 1, Chunks: []retrieve.IndexChunk{{Vector: vector(0)}}},
		{Revision: 2, Document: 2, Chunks: []retrieve.IndexChunk{{Vector: []float32{1}}}}}
	if err := l.s.Apply(t.Context(), mixed); err == nil {
		t.Error("Apply accepts vectors of different lengths")
	}
}

func testRandom(t *testing.T, l *candidate) {
	r := &Maker{Rand: rand.New(rand.NewPCG(1, 2)), Dims: 4, Documents: 60, Chunks: 5}
	for range 20 {
		changes := r.Changes(1 + r.IntN(20))
		l.model.Apply(changes...)
		must(t, l.s.Apply(t.Context(), changes))
		must(t, r.Check(t.Context(), l.model, l.s, 4))
	}
}

// testClusters searches among thousands of chunks in clusters, like the vectors of texts.
func testClusters(t *testing.T, l *candidate) {
	r := rand.New(rand.NewPCG(3, 4))
	point := func() []float32 {
		v := vector(float64(9 * r.IntN(40)))
		for i := range v {
			v[i] += float32(.1 * r.NormFloat64())
		}
		unit, err := retrieve.Unit(v, len(v))
		must(t, err)
		return unit
	}
	word := func() string { return fmt.Sprint("word", r.IntN(1+r.IntN(400))) }
	var changes []retrieve.Change
	for i := range 150 {
		c := retrieve.Change{Revision: int64(i + 1), Document: int64(i + 1), Info: retrieve.DocumentInfo{Collection: fmt.Sprint("c", i%2),
			Document: ingest.Document{ID: fmt.Sprint("a/", i), Root: "a", Path: fmt.Sprint(i)}}}
		for range 20 + r.IntN(20) {
			words := ""
			for range 1 + r.IntN(40) {
				words += word() + " "
			}
			c.Chunks = append(c.Chunks, retrieve.IndexChunk{Text: words, Vector: point()})
		}
		changes = append(changes, c)
	}
	l.model.Apply(changes...)
	must(t, l.s.Apply(t.Context(), changes))
	for _, f := range []retrieve.Filter{{}, {Collection: "c1"}, {PathPrefix: "7"}} {
		for _, k := range []int{10, 50} {
			for range 5 {
				must(t, l.model.CheckDense(t.Context(), l.s, point(), k, f))
				must(t, l.model.CheckLexical(t.Context(), l.s, distinct(word(), word(), word()), k, f))
			}
		}
	}
}
