package enginetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"ibid/ingest"
	"ibid/retrieve"
)

// plain is the engine that others are compared with: it stores everything in maps
// and reads all of it for every question. It has the methods that an index needs.
type plain struct {
	retrieve.Engine // nil: the other methods are not called
	space           string
	collections     map[string]string // of the roots
	documents       map[string]kept
}

type kept struct {
	doc     ingest.Document
	chunks  []ingest.Chunk
	vectors [][]float32
	counts  []map[string]int // of the terms of each chunk
	lengths []int
}

func keep(doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) kept {
	k := kept{doc: *doc, chunks: chunks, vectors: vectors, counts: make([]map[string]int, len(chunks)), lengths: make([]int, len(chunks))}
	for i, c := range chunks {
		var terms []retrieve.TermCount
		terms, k.lengths[i] = retrieve.CountTerms(ingest.EmbeddingText(doc.Title, c))
		k.counts[i] = countOf(terms)
	}
	return k
}

func newPlain() *plain {
	return &plain{collections: make(map[string]string), documents: make(map[string]kept)}
}

func (p *plain) clone() *plain {
	return &plain{space: p.space, collections: maps.Clone(p.collections), documents: maps.Clone(p.documents)}
}

func (p *plain) Space(context.Context) (string, error) {
	if len(p.documents) == 0 {
		return "", nil
	}
	return p.space, nil
}

func (p *plain) SetSpace(_ context.Context, space string) error {
	p.space = space
	return nil
}

func (p *plain) Replace(_ context.Context, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) error {
	p.documents[doc.ID] = keep(doc, chunks, vectors)
	return nil
}

func (p *plain) Prepare(_ string, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) (func(context.Context) error, error) {
	return func(ctx context.Context) error { return p.Replace(ctx, doc, chunks, vectors) }, nil
}

func (p *plain) Delete(_ context.Context, id string) error {
	delete(p.documents, id)
	return nil
}

func (p *plain) Rename(_ context.Context, from string, to *ingest.Document) error {
	k := p.documents[from]
	delete(p.documents, from)
	k.doc.ID, k.doc.Root, k.doc.Path, k.doc.Title, k.doc.Meta = to.ID, to.Root, to.Path, to.Title, to.Meta
	k.chunks = slices.Clone(k.chunks)
	for i := range k.chunks {
		k.chunks[i].ID, k.chunks[i].Document = fmt.Sprintf("%s#%d", to.ID, i+1), to.ID
	}
	p.documents[to.ID] = keep(&k.doc, k.chunks, k.vectors)
	return nil
}

func (p *plain) DeleteRoot(_ context.Context, name string) (documents int, err error) {
	before := len(p.documents)
	maps.DeleteFunc(p.documents, func(_ string, k kept) bool { return k.doc.Root == name })
	delete(p.collections, name)
	return before - len(p.documents), nil
}

func (p *plain) info(k kept) retrieve.DocumentInfo {
	return retrieve.DocumentInfo{Document: k.doc, Collection: p.collections[k.doc.Root], Chunks: len(k.chunks), Pages: len(k.doc.Pages), Bytes: len(k.doc.Text)}
}

// Documents returns them with their texts.
func (p *plain) Documents(_ context.Context, f retrieve.Filter) (list []retrieve.DocumentInfo, err error) {
	for _, id := range slices.Sorted(maps.Keys(p.documents)) {
		if info := p.info(p.documents[id]); f.Matches(&info, retrieve.LabelsOf(info.Meta)) {
			list = append(list, info)
		}
	}
	return list, nil
}

func (p *plain) Excerpt(_ context.Context, id string, start, end int) (string, error) {
	k, ok := p.documents[id]
	if !ok || end > len(k.doc.Text) {
		return "", retrieve.ErrNotFound
	}
	return k.doc.Text[start:end], nil
}

func (p *plain) Sections(_ context.Context, id, digest string) ([]ingest.Section, error) {
	k, ok := p.documents[id]
	if !ok || k.doc.Digest != digest {
		return nil, retrieve.ErrNotFound
	}
	return k.doc.Sections, nil
}

// A graded is a chunk with its score; the highest is the best.
type graded struct {
	id    string
	score float64
}

// graded returns the chunks that pass the filter and have a score, best first.
func (p *plain) graded(f retrieve.Filter, score func(k kept, i int) (s float64, ok bool)) (all []graded) {
	for _, k := range p.documents {
		if info := p.info(k); f.Matches(&info, retrieve.LabelsOf(info.Meta)) {
			for i, c := range k.chunks {
				if s, ok := score(k, i); ok {
					all = append(all, graded{c.ID, s})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b graded) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
	return all
}

func (p *plain) near(vector []float32, f retrieve.Filter) []graded {
	return p.graded(f, func(k kept, i int) (float64, bool) {
		var product, square float64
		for j, x := range k.vectors[i] {
			product += float64(x) * float64(vector[j])
			square += float64(x) * float64(x)
		}
		return product / math.Sqrt(square), true
	})
}

func (p *plain) matching(terms []string, f retrieve.Filter) []graded {
	stats := p.stats(terms)
	return p.graded(f, func(k kept, i int) (score float64, ok bool) {
		for _, term := range terms {
			if n := k.counts[i][term]; n > 0 {
				score += retrieve.IDF(stats.Chunks, stats.Frequency[term]) * retrieve.Saturation(n, k.lengths[i], stats.MeanTerms)
			}
		}
		return score, score > 0
	})
}

func best(all []graded, k int) (ids []string) {
	for _, g := range all[:min(k, len(all))] {
		ids = append(ids, g.id)
	}
	return ids
}

func (p *plain) Dense(_ context.Context, vector []float32, k int, f retrieve.Filter) ([]string, error) {
	return best(p.near(vector, f), k), nil
}

func (p *plain) Lexical(_ context.Context, terms []string, k int, f retrieve.Filter) ([]string, error) {
	return best(p.matching(terms, f), k), nil
}

func (p *plain) Candidates(_ context.Context, ids []string) (found []retrieve.Candidate, err error) {
	all := make(map[string]retrieve.Candidate)
	for _, k := range p.documents {
		for i, c := range k.chunks {
			all[c.ID] = retrieve.Candidate{Chunk: c, Root: k.doc.Root, Path: k.doc.Path, Title: k.doc.Title, Format: k.doc.Format,
				Digest: k.doc.Digest, Meta: k.doc.Meta, Vector: k.vectors[i]}
		}
	}
	for _, id := range ids {
		if c, ok := all[id]; ok {
			found = append(found, c)
		}
	}
	return found, nil
}

func (p *plain) Stats(_ context.Context, terms []string) (retrieve.Stats, error) {
	return p.stats(terms), nil
}

func (p *plain) stats(terms []string) retrieve.Stats {
	s := retrieve.Stats{Frequency: make(map[string]int)}
	total := 0
	for _, k := range p.documents {
		for i := range k.chunks {
			for _, term := range terms {
				if k.counts[i][term] > 0 {
					s.Frequency[term]++
				}
			}
			s.Chunks++
			total += k.lengths[i]
		}
	}
	s.MeanTerms = float64(total) / float64(max(1, s.Chunks))
	return s
}

// The largest differences between scores that count as equal: cosines of float32
// components, and sums of a few float64.
const (
	cosineError = 1e-6
	bm25Error   = 1e-9
)

// ranked checks that the chunks found are graded, different and in order, and
// returns their share of the k best.
func ranked(t *testing.T, what string, got []string, all []graded, k int, rounding float64) float64 {
	t.Helper()
	scores := make(map[string]float64, len(all))
	for _, g := range all {
		scores[g.id] = g.score
	}
	if len(got) > k {
		t.Errorf("%s gave %d for %d", what, len(got), k)
	}
	seen := make(map[string]bool)
	for i, id := range got {
		score, ok := scores[id]
		if !ok || seen[id] {
			t.Errorf("%s gave %s (number %d), which it must not, or gave it before", what, id, i+1)
			return 0
		}
		seen[id] = true
		if i == 0 {
			continue
		}
		if last := scores[got[i-1]]; score > last+rounding || score == last && id < got[i-1] {
			t.Errorf("%s gave %s (%.9f) before %s (%.9f)", what, got[i-1], last, id, score)
		}
	}
	k = min(k, len(all))
	if k == 0 {
		return 1
	}
	found := 0
	for _, id := range got {
		if scores[id] >= all[k-1].score-rounding {
			found++
		}
	}
	return float64(found) / float64(k)
}

// A recall is the mean share of the best chunks that was found.
type recall struct {
	sum float64
	n   int
}

func (r *recall) add(share float64) {
	r.sum += share
	r.n++
}

// check compares the mean with the backend's Recall.
func (r *recall) check(t *testing.T, what string, b Backend) {
	t.Helper()
	mean := r.sum / float64(r.n)
	t.Logf("%s: recall %.4f over %d questions", what, mean, r.n)
	if mean < b.Recall-1e-12 {
		t.Errorf("%s has a recall of %.4f, and %.4f is promised", what, mean, b.Recall)
	}
}

// question runs both searches for k chunks and records what share was found.
func (p *plain) question(t *testing.T, e retrieve.Engine, near, matching *recall, vector []float32, terms []string, k int, f retrieve.Filter) {
	t.Helper()
	got, err := e.Dense(t.Context(), vector, k, f)
	must(t, err)
	near.add(ranked(t, fmt.Sprintf("Dense(%d, %+v)", k, f), got, p.near(vector, f), k, cosineError))
	got, err = e.Lexical(t.Context(), terms, k, f)
	must(t, err)
	matching.add(ranked(t, fmt.Sprintf("Lexical(%q, %d, %+v)", terms, k, f), got, p.matching(terms, f), k, bm25Error))
}

// same compares everything that the engine returns with p.
func (p *plain) same(ctx context.Context, e retrieve.Engine, terms ...string) error {
	ids, err := p.sameDocuments(ctx, e)
	if err != nil {
		return err
	}
	if err := p.sameCandidates(ctx, e, ids); err != nil {
		return err
	}
	stats, err := e.Stats(ctx, terms)
	if err != nil {
		return err
	}
	counted := p.stats(terms)
	if stats.Chunks != counted.Chunks || math.Abs(stats.MeanTerms-counted.MeanTerms) > 1e-9 {
		return fmt.Errorf("counted %+v, want %+v", stats, counted)
	}
	for _, term := range terms {
		if stats.Frequency[term] != counted.Frequency[term] {
			return fmt.Errorf("%q is in %d chunks, want %d", term, stats.Frequency[term], counted.Frequency[term])
		}
	}
	return p.nothingElse(ctx, e, ids)
}

// sameDocuments compares the documents and returns the ids of all chunks.
func (p *plain) sameDocuments(ctx context.Context, e retrieve.Engine) (ids []string, err error) {
	want, _ := p.Documents(ctx, retrieve.Filter{})
	got, err := e.Documents(ctx, retrieve.Filter{})
	if err != nil {
		return nil, err
	}
	for i := range want {
		for _, c := range p.documents[want[i].ID].chunks {
			ids = append(ids, c.ID)
		}
	}
	for _, list := range [][]retrieve.DocumentInfo{want, got} {
		for i := range list {
			list[i].Text, list[i].Sections, list[i].Document.Pages, list[i].Lines = "", nil, nil, nil
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		return nil, fmt.Errorf("the documents (-want +got):\n%s", diff)
	}
	for id, k := range p.documents {
		d, err := e.Document(ctx, id)
		if err != nil {
			return nil, err
		}
		if d.Text != k.doc.Text || !slices.Equal(d.Sections, k.doc.Sections) || !slices.Equal(d.Pages, k.doc.Pages) {
			return nil, fmt.Errorf("the document %s is %+v, want %+v", id, d, k.doc)
		}
	}
	return ids, nil
}

// sameCandidates compares the chunks with their terms and vectors.
func (p *plain) sameCandidates(ctx context.Context, e retrieve.Engine, ids []string) error {
	wanted, _ := p.Candidates(ctx, ids)
	found, err := e.Candidates(ctx, ids)
	if err != nil {
		return err
	}
	if len(found) != len(wanted) {
		return fmt.Errorf("%d chunks found, want %d", len(found), len(wanted))
	}
	for i, c := range found {
		w := wanted[i]
		k := p.documents[w.Document]
		if counts := k.counts[w.Ordinal-1]; c.Terms != nil && (c.Length != k.lengths[w.Ordinal-1] || !maps.Equal(countOf(c.Terms), counts)) {
			return fmt.Errorf("the %d terms of %s are %v, want %v", c.Length, c.ID, c.Terms, counts)
		}
		if len(c.Vector) != len(w.Vector) || cosine(c.Vector, w.Vector) < 1-cosineError {
			return fmt.Errorf("the vector of %s is %v, want %v", c.ID, c.Vector, w.Vector)
		}
		c.Terms, c.Length, c.Vector, w.Vector = nil, 0, nil, nil
		if diff := gocmp.Diff(w, c); diff != "" {
			return fmt.Errorf("the candidate %s (-want +got):\n%s", w.ID, diff)
		}
	}
	return nil
}

// nothingElse checks that a search for more than all chunks finds no others.
func (p *plain) nothingElse(ctx context.Context, e retrieve.Engine, ids []string) error {
	for _, k := range p.documents {
		if len(k.vectors) == 0 {
			continue
		}
		got, err := e.Dense(ctx, k.vectors[0], len(ids)+10, retrieve.Filter{})
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(got, func(id string) bool { return !slices.Contains(ids, id) }); i >= 0 {
			return fmt.Errorf("the search finds %s, which is not stored", got[i])
		}
		return nil
	}
	return nil
}

func countOf(terms []retrieve.TermCount) map[string]int {
	counts := make(map[string]int, len(terms))
	for _, c := range terms {
		counts[c.Term] = c.Count
	}
	return counts
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
