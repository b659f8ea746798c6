package local

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ibid/data/datatest"
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
func TestMatchingIsExact(t *testing.T) { rapid.Check(t, matchingIsExact) }

// manyDocuments is the size of the larger collections in these tests.
func manyDocuments() int {
	if datatest.Campaign() {
		return 1200
	}
	return 300
}

func FuzzMatching(f *testing.F) { f.Fuzz(rapid.MakeFuzz(matchingIsExact)) }

func matchingIsExact(t *rapid.T) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	s := newStore(t, r, rapid.SampledFrom([]int{3, 30, 400}).Draw(t, "vocabulary"))
	s.change(t, rapid.SampledFrom([]int{1, 60, manyDocuments()}).Draw(t, "documents"))
	for range 3 {
		for range 2 {
			k := rapid.OneOf(rapid.SampledFrom([]int{1, 2, 10, 50, 200, 100000}), rapid.IntRange(1, 1000)).Draw(t, "k")
			s.compare(t, s.terms(1+r.IntN(12)), k)
		}
		s.change(t, 5)
	}
}

// TestMatchingAcrossWindows does the same over many windows, where terms come
// and go with the slots.
func TestMatchingAcrossWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	s := newStore(t, r, 500)
	for range 5 {
		s.season++
		s.change(t, 1200)
		for _, k := range datatest.Pick(t, []int{1, 10, 200, 1000}) {
			s.compare(t, s.terms(3), k)
			s.compare(t, s.terms(12), k)
		}
	}
	if last := len(s.m.slots) / windowSlots; last < 4 {
		t.Fatalf("the slots end in window %d", last)
	}
	with, without := 0, 0
	for i := range s.m.index.lists {
		if len(s.m.index.lists[i].starts) > 0 {
			with++
		} else {
			without++
		}
	}
	if with < 10 || without < 10 {
		t.Errorf("%d lists know where windows start, %d do not", with, without)
	}
}

// TestMatchingManyTerms asks for more terms than there are units for.
func TestMatchingManyTerms(t *testing.T) {
	s := newStore(t, rand.New(rand.NewPCG(7, 8)), 3)
	var counts []retrieve.TermCount
	for i := range maxTerms {
		counts = append(counts, retrieve.TermCount{Term: fmt.Sprint("t", i), Count: 1 + i%20})
	}
	s.add(t, map[string][]retrieve.TermCount{"1": counts, "2": counts[:maxTerms/2], "3": counts[maxTerms/3:]})
	s.change(t, 20)
	terms := make([]string, maxTerms+3)
	for i := range terms {
		terms[i] = fmt.Sprint("t", i)
	}
	s.compare(t, terms[:maxTerms], 50) // the most with units
	s.add(t, map[string][]retrieve.TermCount{"4": {{Term: terms[maxTerms], Count: 3}}, "5": {{Term: terms[maxTerms+1], Count: 1}}})
	s.compare(t, terms, 50)
	s.compare(t, terms, 1000)
}

// TestMatchingWeights asks for terms of very different weights: one that stands
// in every chunk, one in a single one, and lengths from one word to many.
func TestMatchingWeights(t *testing.T) {
	s := newStore(t, rand.New(rand.NewPCG(9, 10)), 1)
	chunks := make(map[string][]retrieve.TermCount)
	for i := range 6000 {
		counts := []retrieve.TermCount{{Term: "all", Count: 1 + i%3}, {Term: "filling", Count: 1 + i*i%4000}}
		if i%17 == 0 {
			counts = append(counts, retrieve.TermCount{Term: "some", Count: 1 + i%300})
		}
		if i == 4321 {
			counts = append(counts, retrieve.TermCount{Term: "one", Count: 1})
		}
		chunks[fmt.Sprint(i)] = counts
	}
	s.add(t, chunks)
	for _, terms := range [][]string{{"all"}, {"one"}, {"all", "one"}, {"some", "all"}, {"all", "some", "one", "filling", "all", "absent"}} {
		for _, k := range []int{1, 10, 1000} {
			s.compare(t, terms, k)
		}
	}
}

// A store is a memory and what must be found in it.
type store struct {
	m          *memory
	plain      *plainScan
	r          *rand.Rand
	vocabulary int
	season     int // shifts which terms are frequent
	key        int64
}

type fatal interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

func newStore(t fatal, r *rand.Rand, vocabulary int) *store {
	m, err := newMemory()
	if err != nil {
		t.Fatal(err)
	}
	return &store{m: m, plain: &plainScan{make(map[int32]plainChunk)}, r: r, vocabulary: vocabulary}
}

// term gives one of the vocabulary, as unevenly as words are.
func (s *store) term() string {
	n := min(s.vocabulary-1, int(float64(s.vocabulary)/(1+float64(s.r.IntN(s.vocabulary))*s.r.Float64())))
	return fmt.Sprint("t", (n+37*s.season)%s.vocabulary)
}

func (s *store) terms(n int) []string {
	terms := make([]string, n)
	for i := range terms {
		terms[i] = s.term()
	}
	return terms
}

// change adds documents of a few chunks and takes every third away again.
func (s *store) change(t fatal, documents int) {
	defer func() {
		for term, n := range s.m.index.ids {
			s.inspect(t, term, n)
		}
	}()
	for range documents {
		var chunks [][]retrieve.TermCount
		for range s.r.IntN(9) {
			counts := make(map[string]int)
			for range s.r.IntN(40) {
				n := 1
				if s.r.IntN(100) == 0 {
					n = 1 + s.r.IntN(600)
				}
				counts[s.term()] += n
			}
			var list []retrieve.TermCount
			for term, n := range counts {
				list = append(list, retrieve.TermCount{Term: term, Count: n})
			}
			chunks = append(chunks, list)
		}
		s.document(t, fmt.Sprint(s.key+1), chunks...)
		gone := s.key - s.r.Int64N(20)
		if d := s.m.documents[gone]; s.r.IntN(3) == 0 && d != nil {
			for slot := d.first; slot < d.first+int32(d.count); slot++ {
				delete(s.plain.slots, slot)
			}
			if err := s.m.remove(context.Background(), gone); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// add adds documents of a chunk by their paths.
func (s *store) add(t fatal, chunks map[string][]retrieve.TermCount) {
	for _, path := range slices.Sorted(maps.Keys(chunks)) {
		s.document(t, "x"+path, chunks[path])
	}
}

func (s *store) document(t fatal, path string, chunks ...[]retrieve.TermCount) {
	s.key++
	l := &loaded{document: document{key: s.key, info: retrieve.DocumentInfo{Document: ingest.Document{ID: "a/" + path, Root: "a", Path: path}}}}
	for i, counts := range chunks {
		c := plainChunk{id: retrieve.ChunkID(l.info.ID, i+1), path: path, counts: make(map[string]int)}
		for _, t := range counts {
			c.counts[t.Term] = t.Count
			c.length += t.Count
		}
		s.plain.slots[int32(len(s.m.slots)+i)] = c
		l.chunks = append(l.chunks, loadedChunk{length: c.length, counts: counts, vector: []float32{1, 0}})
	}
	if err := s.m.add(context.Background(), l); err != nil {
		t.Fatal(err)
	}
}

// compare searches with and without a filter.
func (s *store) compare(t fatal, terms []string, k int) {
	f := retrieve.Filter{PathPrefix: fmt.Sprint(1 + s.r.IntN(9))}
	for _, filtered := range []bool{false, true} {
		var only selection
		if filtered {
			only = s.m.selected(f)
		}
		found := s.m.matching(terms, k, only)
		got := found.ids()
		want := s.plain.top(terms, k, func(c plainChunk) bool { return !filtered || c.path[:1] == f.PathPrefix })
		if !slices.Equal(got, want) {
			t.Fatalf("%.200q, the first %d of %d chunks, filtered by %+v: %v:\n got %q\nwant %q", terms, k, s.m.live(), f, filtered, got, want)
		}
	}
	stats := s.m.index.stats(terms, s.m.live())
	for _, term := range terms[:min(20, len(terms))] {
		n := 0
		for _, c := range s.plain.slots {
			if c.counts[term] > 0 {
				n++
			}
		}
		if stats.Frequency[term] != n {
			t.Fatalf("%s stands in %d chunks, counted %d", term, n, stats.Frequency[term])
		}
	}
}

// inspect compares what a list holds with the chunks, and what is known of its
// parts with the list.
func (s *store) inspect(t fatal, term string, n int32) {
	p := &s.m.index.lists[n]
	for i, x := range p.list {
		if i > 0 && p.list[i-1].slot() >= x.slot() {
			t.Fatalf("%s: slot %d stands before %d", term, p.list[i-1].slot(), x.slot())
		}
		if c, ok := s.plain.slots[x.slot()]; ok {
			if got := s.m.index.count(n, x); int(got) != c.counts[term] {
				t.Fatalf("%s stands %d times in %s, counted %d", term, c.counts[term], c.id, got)
			}
			b := p.bounds[i/postingsBlock]
			if float32(c.counts[term]) > b.count || float32(c.length)/float32(c.counts[term]) < b.length {
				t.Fatalf("%s: %d times of %d is not within %+v", term, c.counts[term], c.length, b)
			}
		}
		if w := p.window(x.slot()); w[place(w, x.slot())] != x {
			t.Fatalf("%s: slot %d is not found in its window", term, x.slot())
		}
	}
	for w, start := range p.starts {
		if want := place(p.list, int32(w*windowSlots)); int(start) != want {
			t.Fatalf("%s: window %d starts at %d, not %d", term, w, start, want)
		}
	}
	if len(p.starts) > 0 && len(p.starts) != 1+int(p.list[len(p.list)-1].slot())/windowSlots {
		t.Fatalf("%s: %d windows are known, and the last slot is %d", term, len(p.starts), p.list[len(p.list)-1].slot())
	}
}

// TestCodebook: every code says what it was given for, and its shares enclose
// what BM25 gives.
func TestCodebook(t *testing.T) {
	b := newCodebook()
	used := make(map[uint8]bool)
	for _, mean := range []float64{1, 20, 120.5, 5000} {
		by := saturation{retrieve.BM25K1 * (1 - retrieve.BM25B), retrieve.BM25K1 * retrieve.BM25B / mean}
		lower, upper := b.shares(by)
		for count := 1; count < 40; count++ {
			for length := 0; length < endless+100; length++ {
				code := b.of(count, length)
				used[code] = true
				if int(b.count[code]) != min(count, manyTimes) || float64(length) < b.shortest[code] || float64(length) > b.longest[code] {
					t.Fatalf("%d times of %d has the code of %d times of %v to %v", count, length, b.count[code], b.shortest[code], b.longest[code])
				}
				share := retrieve.Saturation(count, length, mean) / (retrieve.BM25K1 + 1)
				if share < lower[code]-1e-12 || share > upper[code]+1e-12 {
					t.Fatalf("%d times of %d gives %v, not %v to %v", count, length, share, lower[code], upper[code])
				}
				if length > 0 && code < b.of(count, length-1) {
					t.Fatalf("%d times: length %d is of an earlier class than %d", count, length, length-1)
				}
			}
		}
	}
	if len(used) < codes*9/10 {
		t.Errorf("%d codes are used", len(used))
	}
}

// TestCompareIDs: slots are in the order of their chunks' ids.
func TestCompareIDs(t *testing.T) {
	s := newStore(t, rand.New(rand.NewPCG(1, 2)), 3)
	for _, path := range []string{"1", "10", "1!", "1#", "1#1", "1#10", "1a", "2", ""} {
		s.document(t, path, make([][]retrieve.TermCount, 12)...)
	}
	for a := range int32(len(s.m.slots)) {
		for b := range int32(len(s.m.slots)) {
			if got, want := s.m.compareIDs(a, b), strings.Compare(s.m.id(a), s.m.id(b)); got != want {
				t.Errorf("%s and %s: %d, want %d", s.m.id(a), s.m.id(b), got, want)
			}
		}
	}
}
