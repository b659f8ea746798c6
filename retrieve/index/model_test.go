package index

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

var must = datatest.Must

// A Model is a searcher that keeps all data in a map and reads all of it for every question.
type Model struct {
	revision  int64
	documents map[int64]document
}

type document struct {
	retrieve.Change
	counts  []map[string]int // of the terms of each chunk
	lengths []int
}

// NewModel returns an empty model.
func NewModel() *Model { return &Model{documents: make(map[int64]document)} }

// Apply applies changes, like a [retrieve.Searcher].
func (m *Model) Apply(changes ...retrieve.Change) {
	for _, c := range changes {
		if c.Revision <= m.revision {
			continue
		}
		m.revision = c.Revision
		delete(m.documents, c.Document)
		if c.Deleted || c.Document == 0 {
			continue
		}
		d := document{Change: c}
		for _, chunk := range c.Chunks {
			terms, length := retrieve.CountTerms(chunk.Text)
			counts := make(map[string]int)
			for _, t := range terms {
				counts[t.Term] = t.Count
			}
			d.counts, d.lengths = append(d.counts, counts), append(d.lengths, length)
		}
		m.documents[c.Document] = d
	}
}

// Revision returns the revision of the last change.
func (m *Model) Revision() int64 { return m.revision }

// A graded is a chunk with its score.
type graded struct {
	hit   retrieve.Hit
	id    string
	score float64
}

// graded returns the chunks that pass the filter and have a score, best first.
func (m *Model) graded(f retrieve.Filter, score func(d document, i int) (s float64, ok bool)) (all []graded) {
	for _, d := range m.documents {
		if !f.Matches(&d.Info, retrieve.LabelsOf(d.Info.Meta)) {
			continue
		}
		for i := range d.Chunks {
			if s, ok := score(d, i); ok {
				all = append(all, graded{retrieve.Hit{Document: d.Document, Generation: d.Revision, Ordinal: i + 1}, retrieve.ChunkID(d.Info.ID, i+1),
					s})
			}
		}
	}
	slices.SortFunc(all, func(a, b graded) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
	return all
}

func (m *Model) dense(vector []float32, f retrieve.Filter) []graded {
	return m.graded(f, func(d document, i int) (float64, bool) { return cosine(d.Chunks[i].Vector, vector), true })
}

func cosine(a, b []float32) float64 {
	var product, left, right float64
	for i := range a {
		product += float64(a[i]) * float64(b[i])
		left += float64(a[i]) * float64(a[i])
		right += float64(b[i]) * float64(b[i])
	}
	return product / math.Sqrt(left*right)
}

func (m *Model) lexical(terms []string, f retrieve.Filter) []graded {
	stats := m.stats(terms)
	return m.graded(f, func(d document, i int) (score float64, ok bool) {
		for _, t := range terms {
			score += retrieve.IDF(stats.Chunks, stats.Frequency[t]) * retrieve.Saturation(d.counts[i][t], d.lengths[i], stats.MeanTerms)
		}
		return score, score > 0
	})
}

func (m *Model) stats(terms []string) retrieve.Stats {
	s := retrieve.Stats{Frequency: make(map[string]int)}
	words := 0
	for _, d := range m.documents {
		for i := range d.Chunks {
			for _, term := range terms {
				if d.counts[i][term] > 0 {
					s.Frequency[term]++
				}
			}
			s.Chunks++
			words += d.lengths[i]
		}
	}
	if s.Chunks > 0 {
		s.MeanTerms = float64(words) / float64(s.Chunks)
	}
	return s
}

// The largest differences between scores that count as equal, for cosines of float32 components and
// for sums of a few float64.
const (
	cosineError = 1e-6
	bm25Error   = 1e-9
)

// ranked compares the hits with the k best chunks of all.
func ranked(what string, got []retrieve.Hit, all []graded, k int, rounding float64) error {
	k = max(0, min(k, len(all)))
	if len(got) != k {
		return fmt.Errorf("%s found %d chunks, want %d", what, len(got), k)
	}
	of := make(map[retrieve.Hit]graded, len(all))
	for _, g := range all {
		of[g.hit] = g
	}
	for i, h := range got {
		g, ok := of[h]
		if !ok {
			return fmt.Errorf("%s found %+v (number %d), which is filtered out or repeated", what, h, i+1)
		}
		delete(of, h)
		if math.Abs(g.score-all[i].score) > rounding {
			return fmt.Errorf("%s found %s (%.9f) as number %d, want %s (%.9f)", what, g.id, g.score, i+1, all[i].id, all[i].score)
		}
		// Only equal vectors and counts are certain to have equal scores.
		if i > 0 && g.score == all[i-1].score && got[i-1] == all[i-1].hit && g.score == all[i].score && g.id != all[i].id {
			return fmt.Errorf("%s found %s as number %d, want %s, which has the same score", what, g.id, i+1, all[i].id)
		}
	}
	return nil
}

// CheckDense compares a dense search with the model.
func (m *Model) CheckDense(ctx context.Context, s retrieve.Searcher, vector []float32, k int, f retrieve.Filter) error {
	got, err := s.Dense(ctx, vector, k, f)
	if err != nil {
		return err
	}
	return ranked(fmt.Sprintf("Dense(%d, %+v)", k, f), got, m.dense(vector, f), k, cosineError)
}

// CheckLexical compares a lexical search with the model.
func (m *Model) CheckLexical(ctx context.Context, s retrieve.Searcher, terms []string, k int, f retrieve.Filter) error {
	got, err := s.Lexical(ctx, terms, k, f)
	if err != nil {
		return err
	}
	return ranked(fmt.Sprintf("Lexical(%v, %d, %+v)", terms, k, f), got, m.lexical(terms, f), k, bm25Error)
}

// CheckAll compares the revision, the statistics of the terms and the evidence of all chunks with
// the model, and checks that searches find no other chunks.
func (m *Model) CheckAll(ctx context.Context, s retrieve.Searcher, terms []string) error {
	if revision, _, err := s.Revision(ctx); err != nil || revision != m.revision {
		return fmt.Errorf("revision = %d, want %d: %w", revision, m.revision, err)
	}
	stats, err := s.Stats(ctx, terms)
	if err != nil {
		return err
	}
	want := m.stats(terms)
	if stats.Chunks != want.Chunks || math.Abs(stats.MeanTerms-want.MeanTerms) > 1e-9 {
		return fmt.Errorf("counted %d chunks with a mean of %v, want %d with %v", stats.Chunks, stats.MeanTerms, want.Chunks, want.MeanTerms)
	}
	for _, term := range terms {
		if stats.Frequency[term] != want.Frequency[term] {
			return fmt.Errorf("%q is in %d chunks, want %d", term, stats.Frequency[term], want.Frequency[term])
		}
	}
	return m.checkEvidence(ctx, s, terms)
}

func (m *Model) checkEvidence(ctx context.Context, s retrieve.Searcher, terms []string) error {
	var hits []retrieve.Hit
	for _, g := range m.graded(retrieve.Filter{}, func(document, int) (float64, bool) { return 0, true }) {
		hits = append(hits, g.hit)
		// these chunks are missing
		hits = append(hits, retrieve.Hit{Document: g.hit.Document, Generation: g.hit.Generation - 1, Ordinal: g.hit.Ordinal},
			retrieve.Hit{Document: g.hit.Document, Generation: g.hit.Generation, Ordinal: 1000 * g.hit.Ordinal})
	}
	all, err := s.Evidence(ctx, hits, terms)
	if err != nil {
		return err
	}
	if 3*len(all) != len(hits) {
		return fmt.Errorf("evidence of %d chunks, want %d", len(all), len(hits)/3)
	}
	for i, e := range all {
		d := m.documents[e.Hit.Document]
		at := e.Hit.Ordinal - 1
		if e.Hit != hits[3*i] || e.Length != d.lengths[at] || cosine(e.Vector, d.Chunks[at].Vector) < 1-cosineError {
			return fmt.Errorf("evidence %+v, want that of %+v: %+v with %d terms", e, hits[3*i], d.Chunks[at], d.lengths[at])
		}
		for j, term := range terms {
			if e.Counts[j] != d.counts[at][term] {
				return fmt.Errorf("%q is in %+v %d times, want %d", term, e.Hit, e.Counts[j], d.counts[at][term])
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	got, err := s.Dense(ctx, all[0].Vector, len(all)+10, retrieve.Filter{})
	if err == nil && len(got) != len(all) {
		err = fmt.Errorf("a search for everything finds %d chunks, want %d", len(got), len(all))
	}
	return err
}

// A Maker makes random changes to random documents.
type Maker struct {
	*rand.Rand
	Dims      int
	Documents int // number of different documents
	Chunks    int // most chunks of a document
	revision  int64
}

// Words is the vocabulary of a [Maker]; the first are more frequent.
var Words = strings.Fields("anchor boat crew deck engine flag gale hull island jetty keel lamp mast north oar port quay rope sail tide")

// Text returns 1 to n words.
func (r *Maker) Text(n int) string {
	var w []string
	for range 1 + r.IntN(n) {
		w = append(w, Words[r.IntN(1+r.IntN(len(Words)))])
	}
	return strings.Join(w, " ")
}

// Terms returns distinct terms of one or a few words.
func (r *Maker) Terms() []string { return terms(r.Text(4)) }

// terms returns the distinct terms of a question.
func terms(question string) []string { return distinct(retrieve.Terms(question)...) }

func distinct(terms ...string) []string { return slices.Compact(slices.Sorted(slices.Values(terms))) }

// Vector returns a vector of unit length. Every tenth is one of three fixed vectors.
func (r *Maker) Vector() []float32 {
	if r.IntN(10) == 0 {
		v := make([]float32, r.Dims)
		v[r.IntN(min(3, r.Dims))] = 1
		return v
	}
	v := make([]float32, r.Dims)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	unit, err := retrieve.Unit(v, r.Dims)
	if err != nil {
		panic(err)
	}
	return unit
}

// Filter returns a filter that some documents match.
func (r *Maker) Filter() retrieve.Filter {
	return []retrieve.Filter{
		{}, {Collection: "work"}, {Format: "markdown"}, {Since: "2010"}, {Tags: []string{Words[r.IntN(5)]}}, {Root: "b"},
		{Collections: []string{"default", "none"}, PathPrefix: "1"}, {Document: fmt.Sprintf("a/%d", r.IntN(r.Documents))}, {Author: "ann"},
	}[r.IntN(9)]
}

// Changes returns changes of at least n documents, or no changes.
func (r *Maker) Changes(n int) (all []retrieve.Change) {
	for range n {
		r.revision += 1 + r.Int64N(3)
		number := 1 + r.Int64N(int64(r.Documents))
		c := retrieve.Change{Revision: r.revision, Document: number}
		switch n := r.IntN(20); {
		case n == 0:
			c.Document = 0
		case n < 4:
			c.Deleted = true
		default:
			c = r.Document(number, r.revision)
		}
		all = append(all, c)
	}
	return all
}

// Document returns a change that stores a random document.
func (r *Maker) Document(number, revision int64) retrieve.Change {
	c := retrieve.Change{Revision: revision, Document: number}
	root := []string{"a", "b"}[number%2]
	path := fmt.Sprint(number)
	c.Info = retrieve.DocumentInfo{Collection: []string{"default", "work"}[number%2], Document: ingest.Document{
		ID: root + "/" + path, Root: root, Path: path, Format: []string{"text", "markdown"}[r.IntN(2)]}}
	if r.IntN(2) == 0 {
		c.Info.Meta = map[string]string{"tags": r.Text(1), "date": fmt.Sprint(2000 + r.IntN(20)), "author": []string{"Ann B", "Bob"}[r.IntN(2)]}
	}
	for range r.IntN(r.Chunks + 1) {
		c.Chunks = append(c.Chunks, retrieve.IndexChunk{Text: r.Text(60), Vector: r.Vector()})
	}
	c.Info.Chunks = len(c.Chunks)
	return c
}

// Check makes random searches and compares them with the model.
func (r *Maker) Check(ctx context.Context, m *Model, s retrieve.Searcher, searches int) error {
	if err := m.CheckAll(ctx, s, retrieve.Terms(strings.Join(Words, " "))); err != nil {
		return err
	}
	for range searches {
		k := 1 + r.IntN(1+r.IntN(200))
		if err := m.CheckDense(ctx, s, r.Vector(), k, r.Filter()); err != nil {
			return err
		}
		if err := m.CheckLexical(ctx, s, r.Terms(), k, r.Filter()); err != nil {
			return err
		}
	}
	return nil
}
