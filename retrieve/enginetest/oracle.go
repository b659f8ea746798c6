package enginetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ibid/ingest"
	"ibid/retrieve"
)

// words returns a vocabulary, of which few takes the first much more often.
func words() []string {
	return strings.Fields("anchor boat crew deck engine flag gale hull island jetty keel lamp mast north oar port quay rope sail tide")
}

// few returns a text of 1 to n words.
func few(r *rand.Rand, vocabulary []string, n int) string {
	var w []string
	for range 1 + r.IntN(n) {
		w = append(w, vocabulary[r.IntN(1+r.IntN(len(vocabulary)))])
	}
	return strings.Join(w, " ")
}

// asked returns the terms of a question of one or two words.
func asked(r *rand.Rand, vocabulary []string) []string {
	return termsOf(vocabulary[r.IntN(len(vocabulary))], vocabulary[r.IntN(len(vocabulary))])
}

// termsOf returns the different terms of words.
func termsOf(words ...string) []string {
	terms := retrieve.Terms(strings.Join(words, " "))
	slices.Sort(terms)
	return slices.Compact(terms)
}

// testOracle compares everything stored and both searches with a plain computation,
// after random changes by several handles.
func testOracle(t *testing.T, b Backend, open func() retrieve.Store) {
	handles := []retrieve.Store{open(), open()}
	ctx := ready(t, handles[0])
	r := rand.New(rand.NewPCG(1, 2))
	p := newPlain()
	p.space = space
	var roots []ingest.Root
	add := func(e retrieve.Engine, path, collection string) {
		t.Helper()
		root, err := e.AddRoot(ctx, path, collection)
		must(t, err)
		p.collections[root.Name] = root.Collection
		roots = append(roots, root)
	}
	add(handles[0], "/srv/a", "")
	add(handles[1], "/srv/b", "work")
	random := func(root ingest.Root) (*ingest.Document, []ingest.Chunk, [][]float32) {
		var texts []string
		var vectors [][]float32
		for range r.IntN(4) {
			texts = append(texts, few(r, words(), 30))
			vectors = append(vectors, []float32{r.Float32() - .5, r.Float32() - .5, r.Float32() - .5, r.Float32() - .5})
		}
		doc, chunks := Document(root.Name, fmt.Sprint(r.IntN(30))+[]string{"", ".md"}[r.IntN(2)], texts...)
		if r.IntN(2) == 0 {
			doc.Meta = map[string]string{"tags": few(r, words(), 1), "date": fmt.Sprint(2000 + r.IntN(20))}
		}
		return doc, chunks, vectors
	}
	for round := range 250 {
		e := handles[r.IntN(2)]
		root := roots[r.IntN(len(roots))]
		doc, chunks, vectors := random(root)
		stored, _ := p.Documents(ctx, retrieve.Filter{})
		switch n := r.IntN(20); {
		case n < 3:
			must(t, e.Delete(ctx, doc.ID))
			must(t, p.Delete(ctx, doc.ID))
		case n < 6 && len(stored) > 0:
			from := stored[r.IntN(len(stored))]
			to := *doc
			to.Digest, to.Format = from.Digest, from.Format
			must(t, e.Rename(ctx, from.ID, &to))
			must(t, p.Rename(ctx, from.ID, &to))
		case n == 6 && round%4 == 0:
			got, err := e.DeleteRoot(ctx, root.Name)
			must(t, err)
			if want, _ := p.DeleteRoot(ctx, root.Name); got != want {
				t.Errorf("DeleteRoot gave up %d documents, want %d", got, want)
			}
			roots = slices.DeleteFunc(roots, func(other ingest.Root) bool { return other == root })
			add(e, root.Path, root.Collection)
		default:
			must(t, e.Replace(ctx, doc, chunks, vectors))
			must(t, p.Replace(ctx, doc, chunks, vectors))
		}
		if round%50 == 49 {
			must(t, p.same(ctx, handles[0], termsOf(words()...)...))
			must(t, p.same(ctx, handles[1], termsOf(words()...)...))
		}
	}
	e := open()
	must(t, p.same(ctx, e, termsOf(words()...)...))
	var near, matching recall
	for i := range 60 {
		f := []retrieve.Filter{{}, {Collection: "work"}, {Format: "markdown"}, {Since: "2010"}, {Tags: []string{words()[r.IntN(5)]}}, {Collections: []string{"default", "none"}, PathPrefix: "1"}}[i%6]
		vector := []float32{r.Float32() - .5, r.Float32() - .5, r.Float32() - .5, r.Float32() - .5}
		p.question(t, e, &near, &matching, vector, asked(r, words()), 1+r.IntN(200), f)
	}
	near.check(t, "Dense", b)
	matching.check(t, "Lexical", b)
}

// testRecall searches among thousands of chunks in clusters, as those of texts are,
// with and without filters.
func testRecall(t *testing.T, b Backend, open func() retrieve.Store) {
	const documents, chunksEach, dimensions, clusters = 100, 30, 64, 40
	handles := []retrieve.Store{open(), open()}
	ctx := t.Context()
	p := newPlain()
	const wide = "enginetest/64"
	must(t, handles[0].SetSpace(ctx, wide))
	must(t, p.SetSpace(ctx, wide))
	for i, e := range handles {
		root, err := e.AddRoot(ctx, fmt.Sprintf("/srv/r%d", i), fmt.Sprintf("c%d", i))
		must(t, err)
		p.collections[root.Name] = root.Collection
	}
	r := rand.New(rand.NewPCG(3, 4))
	vocabulary := make([]string, 400)
	for i := range vocabulary {
		vocabulary[i] = fmt.Sprintf("word%d", i)
	}
	centres := make([][]float64, clusters)
	for i := range centres {
		centres[i] = make([]float64, dimensions)
		for j := range centres[i] {
			centres[i][j] = r.NormFloat64()
		}
	}
	point := func() []float32 {
		centre := centres[r.IntN(clusters)]
		v := make([]float32, dimensions)
		for j := range v {
			v[j] = float32(centre[j] + 0.6*r.NormFloat64())
		}
		return v
	}
	for i := range documents {
		var texts []string
		var vectors [][]float32
		for range chunksEach {
			texts = append(texts, few(r, vocabulary, 40))
			vectors = append(vectors, point())
		}
		path := fmt.Sprint(i)
		if i%20 == 0 {
			path += ".md" // one in twenty
		}
		doc, chunks := Document(fmt.Sprintf("r%d", i%2), path, texts...)
		must(t, handles[i%2].Replace(ctx, doc, chunks, vectors))
		must(t, p.Replace(ctx, doc, chunks, vectors))
	}
	e := open()
	for _, c := range []struct {
		what string
		k    int
		f    retrieve.Filter
	}{
		{"the nearest 10", 10, retrieve.Filter{}},
		{"the nearest 50", 50, retrieve.Filter{}},
		{"the nearest 10 of half", 10, retrieve.Filter{Collection: "c1"}},
		{"the nearest 10 of a twentieth", 10, retrieve.Filter{Format: "markdown"}},
		{"the nearest 10 of one document", 10, retrieve.Filter{Document: "r1/7"}},
	} {
		var near, matching recall
		for range 25 {
			p.question(t, e, &near, &matching, point(), asked(r, vocabulary), c.k, c.f)
		}
		near.check(t, c.what+" by Dense", b)
		matching.check(t, c.what+" by Lexical", b)
	}
}

// testHybrid compares the passages of an index, their order and scores with those
// over a plain computation.
func testHybrid(t *testing.T, b Backend, open func() retrieve.Store) {
	ctx := t.Context()
	handles := []retrieve.Store{open(), open()}
	m := Hashing{Dims: 48, Name: "hashing"}
	p := newPlain()
	indexes := make([]*retrieve.Index, len(handles))
	for i, e := range handles {
		root, err := e.AddRoot(ctx, fmt.Sprintf("/srv/r%d", i), fmt.Sprintf("c%d", i))
		must(t, err)
		p.collections[root.Name] = root.Collection
		indexes[i], err = retrieve.NewIndex(ctx, e, m, retrieve.Options{})
		must(t, err)
	}
	exact, err := retrieve.NewIndex(ctx, p, m, retrieve.Options{})
	must(t, err)
	r := rand.New(rand.NewPCG(5, 6))
	vocabulary := words()
	for i := range 100 {
		vocabulary = append(vocabulary, fmt.Sprintf("word%d", i))
	}
	for i := range 70 {
		var texts []string
		for range 1 + r.IntN(6) {
			texts = append(texts, "The "+few(r, vocabulary, 40)+".")
		}
		doc, chunks := Document(fmt.Sprintf("r%d", i%2), fmt.Sprintf("%d.md", r.IntN(50)), texts...)
		doc.Title = few(r, vocabulary, 4)
		for j := range chunks {
			chunks[j].Heading = few(r, vocabulary, 2)
		}
		must(t, indexes[i%2].Replace(ctx, doc, chunks))
		must(t, exact.Replace(ctx, doc, chunks))
	}
	must(t, p.same(ctx, open(), termsOf(vocabulary...)...))

	ids := func(passages []retrieve.Passage) (ids []string) {
		for _, p := range passages {
			ids = append(ids, p.ID)
		}
		return ids
	}
	var overlap recall
	for i := range 60 {
		q := retrieve.Query{Text: few(r, vocabulary, 8), K: 1 + r.IntN(12)}
		switch i % 4 {
		case 1:
			q.Filter = retrieve.Filter{Collections: []string{"c1"}}
		case 2:
			q.Filter = retrieve.Filter{PathPrefix: "1"}
		case 3:
			q.Diversity = 0.3
		}
		want, err := exact.Search(ctx, q)
		must(t, err)
		for _, x := range indexes {
			got, err := x.Search(ctx, q)
			must(t, err)
			share := shared(ids(want), ids(got))
			overlap.add(share)
			if b.Recall == 1 || share == 1 {
				// Normalising a vector twice may change its last bits.
				if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, cosineError)); diff != "" {
					t.Errorf("%q with %+v (-plain +found):\n%s", q.Text, q.Filter, diff)
				}
				continue
			}
			scores := make(map[string]retrieve.Scores)
			for _, p := range want {
				scores[p.ID] = p.Scores
			}
			for _, p := range got {
				if want, ok := scores[p.ID]; ok && !cmp.Equal(want, p.Scores, cmpopts.EquateApprox(0, cosineError)) {
					t.Errorf("%q: the scores of %s are %+v, want %+v", q.Text, p.ID, p.Scores, want)
				}
			}
		}
	}
	overlap.check(t, "Search", b)
}

// shared returns the share of want that is in got.
func shared(want, got []string) float64 {
	if len(want) == 0 {
		return 1
	}
	n := 0
	for _, id := range want {
		if slices.Contains(got, id) {
			n++
		}
	}
	return float64(n) / float64(len(want))
}
