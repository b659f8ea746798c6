package local

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ibid/ingest"
	"ibid/retrieve"
)

// plainScan finds what matching finds by computing the score of every chunk
// from its own terms.
type plainScan struct {
	slots map[int32]plainChunk
}

type plainChunk struct {
	id     string
	path   string
	counts map[string]int
	length int
}

func (p *plainScan) top(terms []string, k int, through func(plainChunk) bool) []string {
	frequency, total := make(map[string]int), 0
	for _, c := range p.slots {
		total += c.length
		for t := range c.counts {
			frequency[t]++
		}
	}
	mean := float64(total) / float64(len(p.slots))
	type scored struct {
		id    string
		score float64
	}
	var all []scored
	for _, c := range p.slots {
		s := scored{id: c.id}
		seen := make(map[string]bool)
		for _, t := range terms {
			if !seen[t] && c.counts[t] > 0 {
				s.score += retrieve.IDF(len(p.slots), frequency[t]) * retrieve.Saturation(c.counts[t], c.length, mean)
			}
			seen[t] = true
		}
		if s.score > 0 && through(c) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
	})
	var ids []string
	for _, s := range all[:min(k, len(all))] {
		ids = append(ids, s.id)
	}
	return ids
}

// TestMatchingIsExact: whatever has been added and taken away, the search that
// leaves out gives what the plain scan gives, in the same order.
func TestMatchingIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		vocabulary := rapid.SampledFrom([]int{3, 30, 400}).Draw(t, "vocabulary")
		m, plain := fillMemory(t, r, vocabulary, rapid.SampledFrom([]int{1, 60, 1200}).Draw(t, "documents"))
		for range 12 {
			terms := make([]string, 1+r.IntN(12))
			for i := range terms {
				terms[i] = term(r, vocabulary)
			}
			k := rapid.SampledFrom([]int{1, 2, 10, 50, 100000}).Draw(t, "k")
			f, through := retrieve.Filter{}, func(plainChunk) bool { return true }
			if r.IntN(3) == 0 {
				f.PathPrefix = fmt.Sprint(1 + r.IntN(9))
				through = func(c plainChunk) bool { return c.path[:1] == f.PathPrefix }
			}
			found := m.matching(terms, k, m.selected(f))
			got, want := found.ids(), plain.top(terms, k, through)
			if !slices.Equal(got, want) {
				t.Fatalf("%q, the first %d of %d chunks, filter %+v:\n got %q\nwant %q", terms, k, m.live(), f, got, want)
			}
			s := m.index.stats(terms, m.live())
			for _, term := range terms {
				n := 0
				for _, c := range plain.slots {
					if c.counts[term] > 0 {
						n++
					}
				}
				if s.Frequency[term] != n {
					t.Fatalf("%s stands in %d chunks, counted %d", term, n, s.Frequency[term])
				}
			}
		}
	})
}

// term gives one of so many, as unevenly as words are.
func term(r *rand.Rand, vocabulary int) string {
	return fmt.Sprint("t", min(vocabulary-1, int(float64(vocabulary)/(1+float64(r.IntN(vocabulary))*r.Float64()))))
}

// fillMemory adds documents of a few chunks to a memory and takes every third away again.
func fillMemory(t interface{ Fatal(...any) }, r *rand.Rand, vocabulary, documents int) (*memory, *plainScan) {
	m, err := newMemory()
	if err != nil {
		t.Fatal(err)
	}
	plain := &plainScan{make(map[int32]plainChunk)}
	ctx := context.Background()
	for key := int64(1); key <= int64(documents); key++ {
		path := fmt.Sprint(key)
		l := &loaded{document: document{key: key, info: retrieve.DocumentInfo{Document: ingest.Document{ID: "a/" + path, Root: "a", Path: path}}}}
		for i := range r.IntN(9) {
			c := plainChunk{id: chunkID(l.info.ID, i+1), path: path, counts: make(map[string]int)}
			for range r.IntN(40) {
				n := 1
				if r.IntN(100) == 0 {
					n = 1 + r.IntN(600)
				}
				c.counts[term(r, vocabulary)] += n
				c.length += n
			}
			var counts []retrieve.TermCount
			for term, n := range c.counts {
				counts = append(counts, retrieve.TermCount{Term: term, Count: n})
			}
			plain.slots[int32(len(m.slots)+i)] = c
			l.chunks = append(l.chunks, loadedChunk{length: c.length, counts: counts, vector: []float32{1, 0}})
		}
		if err := m.add(ctx, l); err != nil {
			t.Fatal(err)
		}
		if gone := key - r.Int64N(20); r.IntN(3) == 0 && m.documents[gone] != nil {
			d := m.documents[gone]
			for s := d.first; s < d.first+int32(d.count); s++ {
				delete(plain.slots, s)
			}
			if err := m.remove(ctx, gone); err != nil {
				t.Fatal(err)
			}
		}
	}
	return m, plain
}
