package enginetest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
)

func testFilter(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	other, err := e.AddRoot(ctx, "/srv/b", "work")
	must(t, err)
	// The filters leave out the best chunks.
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
	// Filters apply to the current state.
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

// testManyTies searches for fewer chunks than have the best score.
func testManyTies(t *testing.T, b Backend, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	const n = 150
	texts, vectors := make([]string, n), make([][]float32, n)
	for i := range texts {
		texts[i], vectors[i] = "boat", Vector(20)
	}
	doc, chunks := Document("a", "x", texts...)
	must(t, e.Replace(ctx, doc, chunks, vectors))
	all := make([]graded, n)
	for i, c := range chunks {
		all[i].id = c.ID
	}
	slices.SortFunc(all, func(a, b graded) int { return strings.Compare(a.id, b.id) })
	for _, k := range []int{1, 10, n - 1, n} {
		near, err := e.Dense(ctx, Vector(0), k, retrieve.Filter{})
		must(t, err)
		matching, err := e.Lexical(ctx, retrieve.Terms("boat"), k, retrieve.Filter{})
		must(t, err)
		for what, got := range map[string][]string{"Dense": near, "Lexical": matching} {
			ranked(t, what, got, all, k, 0)
			if b.Recall == 1 && !slices.Equal(got, best(all, k)) {
				t.Errorf("%s gave %q, want the first %d", what, got, k)
			}
			if len(got) != k {
				t.Errorf("%s gave %d of %d that are alike", what, len(got), k)
			}
		}
	}
}

// testTiesOfNames has equal documents whose names continue with signs that sort
// before the "#" of a chunk id: by chunk id the longest name comes first.
func testTiesOfNames(t *testing.T, b Backend, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	var all []graded
	for i := range 50 {
		doc, chunks := Document("a", "log"+strings.Repeat("!", i), "boat")
		doc.Title = "log"
		must(t, e.Replace(ctx, doc, chunks, [][]float32{Vector(20)}))
		all = append(all, graded{id: chunks[0].ID})
	}
	slices.SortFunc(all, func(a, b graded) int { return strings.Compare(a.id, b.id) })
	for _, k := range []int{1, 10, 30} {
		near, err := e.Dense(ctx, Vector(0), k, retrieve.Filter{})
		must(t, err)
		matching, err := e.Lexical(ctx, retrieve.Terms("boat"), k, retrieve.Filter{})
		must(t, err)
		for what, got := range map[string][]string{"Dense": near, "Lexical": matching} {
			if ranked(t, what, got, all, k, 0); b.Recall == 1 && !slices.Equal(got, best(all, k)) {
				t.Errorf("%s gave %q, want the first %d", what, got, k)
			}
		}
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
