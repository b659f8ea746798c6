package weaviate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/enginetest"
	"ibid/retrieve/weaviate/weaviatetest"
)

// A counted chunk is what a plain computation of BM25 needs of one.
type counted struct {
	id     string
	counts map[string]int
	length int
}

// best gives the k best of chunks, by comparing all.
func best(all []counted, terms []string, k int) (ids []string) {
	frequency, total := make(map[string]int), 0
	for _, c := range all {
		total += c.length
		for term := range c.counts {
			frequency[term]++
		}
	}
	var hits []hit
	for _, c := range all {
		score := 0.0
		for _, t := range terms {
			score += retrieve.IDF(len(all), frequency[t]) * retrieve.Saturation(c.counts[t], c.length, float64(total)/float64(len(all)))
		}
		if score > 0 {
			hits = append(hits, hit{c.id, score})
		}
	}
	slices.SortFunc(hits, byScore)
	for _, h := range hits[:min(k, len(hits))] {
		ids = append(ids, h.id)
	}
	return ids
}

// Words that stand in many chunks find the best of them, and not only when these
// have just been stored.
func TestLexicalCommon(t *testing.T) {
	if testing.Short() {
		t.Skip("stores 2,400 chunks: not in short runs")
	}
	c := weaviatetest.Start(t, 1)
	e, err := Open(t.Context(), c.URL(nil), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	ctx := t.Context()
	if err := e.SetSpace(ctx, testSpace); err != nil {
		t.Fatal(err)
	}
	if _, err := e.AddRoot(ctx, "/srv/a", ""); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	common := map[string]int{"fish": 5, "tree": 10, "lake": 25, "bird": 50, "moon": 75, "rock": 90, "wind": 100} // percent of the chunks
	words := []string{"fish", "tree", "lake", "bird", "moon", "rock", "wind"}
	var all []counted
	var g errgroup.Group
	g.SetLimit(e.Writers())
	for n := range 600 {
		texts, vectors := make([]string, 4), make([][]float32, 4)
		for i := range texts {
			var text []string
			for range 10 + r.IntN(150) {
				text = append(text, fmt.Sprintf("w%dx", r.IntN(4000)))
			}
			for _, w := range words {
				if r.IntN(100) < common[w] {
					text = append(text, slices.Repeat([]string{w}, 1+r.IntN(1+r.IntN(8)))...)
				}
			}
			texts[i], vectors[i] = strings.Join(text, " "), enginetest.Vector(float64(r.IntN(360)))
		}
		doc, chunks := enginetest.Document("a", fmt.Sprintf("log%d.md", n), texts...)
		doc.Title = fmt.Sprintf("Log %d", n)
		for _, chunk := range chunks {
			terms, length := retrieve.CountTerms(ingest.EmbeddingText(doc.Title, chunk))
			x := counted{id: chunk.ID, counts: make(map[string]int), length: length}
			for _, term := range terms {
				x.counts[term.Term] = term.Count
			}
			all = append(all, x)
		}
		g.Go(func() error { return e.Replace(ctx, doc, chunks, vectors) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	// What the server has in its files counts, and not when it was stored.
	c.Nodes[0].Kill()
	c.Nodes[0].Start()
	c.Nodes[0].Ready()
	e.unflushed = 0
	questions := append(words, "log", "log wind rock", "tree rock", "bird moon", "fish wind", "17 moon", "17 18 bird", "log w17x wind", "nowhere moon", strings.Join(words, " "))
	for _, q := range questions {
		for _, k := range []int{10, retrieve.DefaultCandidates} {
			terms := retrieve.Terms(q)
			got, err := e.Lexical(ctx, terms, k, retrieve.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			want := best(all, terms, k)
			if !slices.Equal(got, want) {
				there := 0
				for _, id := range got {
					if slices.Contains(want, id) {
						there++
					}
				}
				t.Errorf("%q finds %d of the %d best", q, there, k)
			}
		}
	}
}

func TestCommonDecide(t *testing.T) {
	for _, x := range []struct {
		frequency []int
		want      bool
	}{
		{[]int{5000}, true},
		{[]int{5000, 9000}, true},
		{[]int{0, 5000}, true},
		{[]int{9, 5000}, true},
		{[]int{10, 5000}, false},
		{[]int{6, 6, 5000}, false},
		{[]int{94}, false},
		{[]int{95}, true},
		{[]int{0}, false},
		{nil, false},
	} {
		s := retrieve.Stats{Chunks: 10_000, Frequency: make(map[string]int)}
		for i, n := range x.frequency {
			s.Frequency[fmt.Sprint(i)] = n
		}
		if got := commonDecide(s, 10, 94); got != x.want {
			t.Errorf("with terms in %d chunks: %t", x.frequency, got)
		}
	}
}
