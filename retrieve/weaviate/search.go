package weaviate

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ibid/retrieve"
)

// A row is an object as a search returns it.
type row struct {
	Document   int64
	Generation int64
	Ordinal    int
	Length     int
	Name       string
	Terms      string
	Packed     string
	Additional struct{ Distance float64 } `json:"_additional"`
}

func (r *row) hit() retrieve.Hit {
	return retrieve.Hit{Document: r.Document, Generation: r.Generation, Ordinal: r.Ordinal}
}

// rows searches the collection with a search operator of GraphQL. If the operator is empty, rows
// only filters.
func (x *Index) rows(ctx context.Context, operator string, w *where, limit int, fields string) ([]row, error) {
	arguments := fmt.Sprintf("limit:%d", limit)
	if x.client.at.replicas > 1 {
		arguments += ",consistencyLevel:ONE"
	}
	if operator != "" {
		arguments += "," + operator
	}
	if w != nil {
		arguments += ",where:" + w.String()
	}
	var reply struct{ Get map[string][]row }
	err := x.query(ctx, fmt.Sprintf("{Get{%s(%s){document generation ordinal %s}}}", x.collection, arguments, fields), &reply)
	return reply.Get[x.collection], err
}

// A found is a chunk that a search found.
type found struct {
	hit   retrieve.Hit
	id    string // of the chunk
	score float64
}

func byScore(a, b found) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) }

// Weaviate's order is approximate, and chunks with equal scores have no fixed order. To find k
// chunks, a search therefore requests searchTimes*k + searchPlus. While these are too few, it
// requests deeper times as many, up to maxResults, which is Weaviate's limit.
const (
	searchTimes = 2
	searchPlus  = 20
	deeper      = 4
	maxResults  = 10_000
)

// A result has the chunks that a search found, best first, and the number that it requested. If it
// is not complete, there may be more chunks, all worse than the last.
type result struct {
	found    []found
	limit    int
	complete bool
}

// searchBest requests more and more chunks until the best k are certainly among them.
func searchBest(k int, search func(limit int) ([]found, error)) (r result, err error) {
	for r.limit = min(searchTimes*k+searchPlus, maxResults); ; r.limit = min(deeper*r.limit, maxResults) {
		if r.found, err = search(r.limit); err != nil {
			return r, err
		}
		r.complete = len(r.found) < r.limit
		slices.SortFunc(r.found, byScore)
		// A chunk that was not returned may have the score of the last and an earlier id.
		if r.complete || r.limit == maxResults || r.found[k-1].score > r.found[len(r.found)-1].score {
			return r, nil
		}
	}
}

// hits returns the hits of the k best chunks.
func (r *result) hits(k int) []retrieve.Hit {
	hits := make([]retrieve.Hit, min(k, len(r.found)))
	for i := range hits {
		hits[i] = r.found[i].hit
	}
	return hits
}

// Dense implements [retrieve.Searcher].
func (x *Index) Dense(ctx context.Context, vector []float32, k int, f retrieve.Filter) ([]retrieve.Hit, error) {
	parts, none := conditions(f)
	stats, err := x.Stats(ctx, nil)
	if err != nil {
		return nil, err
	}
	dims := len(vector)
	if m := x.mark.Load(); m != nil && m.Dims > 0 {
		dims = m.Dims
	}
	unit, err := retrieve.Unit(vector, dims)
	if err != nil || none || stats.Chunks == 0 || k <= 0 {
		return nil, err
	}
	near := fmt.Sprintf("nearVector:{vector:%v}", unit) // GraphQL needs no commas
	r, err := searchBest(k, func(limit int) ([]found, error) {
		rows, err := x.rows(ctx, near, allOf(parts...), limit, "name _additional{distance}")
		if err != nil {
			return nil, err
		}
		return chunksOf(rows, func(r *row) float64 { return -r.Additional.Distance })
	})
	return r.hits(k), err
}

// chunksOf returns the chunks of the rows with their scores.
func chunksOf(rows []row, score func(*row) float64) ([]found, error) {
	out := make([]found, len(rows))
	for i := range rows {
		r := &rows[i]
		document, err := strconv.Unquote(r.Name)
		if err != nil {
			return nil, fmt.Errorf("%w: a chunk of document %d has no name", retrieve.ErrIndexDamaged, r.Document)
		}
		out[i] = found{r.hit(), retrieve.ChunkID(document, r.Ordinal), score(r)}
	}
	return out, nil
}

// Lexical implements [retrieve.Searcher]. It computes the scores of the candidates that Weaviate
// finds.
//
// Weaviate may not find some of the best chunks that are not in its files yet (see
// [Index.missedChunks]). Lexical then also reads the new chunks with the rarest of the terms.
func (x *Index) Lexical(ctx context.Context, terms []string, k int, f retrieve.Filter) ([]retrieve.Hit, error) {
	parts, none := conditions(f)
	if len(terms) == 0 || none || k <= 0 {
		return nil, nil
	}
	stats, err := x.Stats(ctx, terms)
	if err != nil || stats.Chunks == 0 {
		return nil, err
	}
	s := newScorer(terms, stats)
	read := func(operator string, parts []where, limit int) ([]found, error) {
		rows, err := x.rows(ctx, operator, allOf(parts...), limit, "name terms length")
		if err != nil {
			return nil, err
		}
		return chunksOf(rows, s.score)
	}
	operator := fmt.Sprintf("bm25:{query:\"%s\",properties:[\"terms\"]}", strings.Join(s.tokens, " "))
	r, err := searchBest(k, func(limit int) ([]found, error) { return read(operator, parts, limit) })
	if err != nil || r.complete {
		return r.hits(k), err
	}
	if rarest := x.missedChunks(s, k, r); rarest != nil {
		more, err := read("", append(parts, *rarest), maxMissed)
		if err != nil {
			return nil, err
		}
		r.found = append(r.found, more...)
		slices.SortFunc(r.found, byScore)
		r.found = slices.CompactFunc(r.found, func(a, b found) bool { return a.hit == b.hit })
	}
	return r.hits(k), nil
}

// A scorer computes BM25 scores.
type scorer struct {
	terms, tokens []string
	idf           []float64
	position      map[string]int // index of a token
	stats         retrieve.Stats
}

func newScorer(terms []string, stats retrieve.Stats) *scorer {
	s := &scorer{position: make(map[string]int, len(terms)), stats: stats}
	for _, t := range terms {
		if _, known := s.position[indexToken(t)]; known {
			continue
		}
		s.position[indexToken(t)] = len(s.tokens)
		s.terms, s.tokens = append(s.terms, t), append(s.tokens, indexToken(t))
		s.idf = append(s.idf, retrieve.IDF(stats.Chunks, stats.Frequency[t]))
	}
	return s
}

// count returns the number of occurrences of each token in the terms of a chunk.
func (s *scorer) count(terms string) []int {
	counts := make([]int, len(s.tokens))
	for word := range strings.FieldsSeq(terms) {
		if i, ok := s.position[word]; ok {
			counts[i]++
		}
	}
	return counts
}

// score returns the score of a chunk. It sums in the order of the terms, so that equal chunks have
// equal scores.
func (s *scorer) score(r *row) (score float64) {
	for i, n := range s.count(r.Terms) {
		if n > 0 {
			score += s.idf[i] * retrieve.Saturation(n, r.Length, s.stats.MeanTerms)
		}
	}
	return score
}

// maxMissed is the largest number of chunks that are read to find chunks that Weaviate's search
// missed.
const maxMissed = 4000

// missedChunks returns a filter for the chunks that may be among the best k although a search did
// not find them, or nil if there are none, or too many to read.
//
// From the chunks in its memory, Weaviate 1.35 returns the first ones instead of the best, up to
// the requested number (github.com/weaviate/weaviate/pull/11780).
func (x *Index) missedChunks(s *scorer, k int, r result) *where {
	m := x.mark.Load()
	if m == nil || m.settledRevision() >= m.Revision {
		return nil
	}
	rarest := s.selectRarest(r.found[min(k, len(r.found))-1].score)
	if rarest == nil || m.settledRevision() == 0 {
		return rarest // Weaviate would read every generation above a number
	}
	return allOf(*rarest, number("generation", "GreaterThan", m.settledRevision()))
}

// selectRarest returns a filter for the chunks with any of the rarest terms. It adds terms until
// all other terms together cannot reach the score least (MaxScore: Turtle and Flood, "Query
// Evaluation: Strategies and Optimizations", 1995), but stops before more than maxMissed chunks
// match.
func (s *scorer) selectRarest(least float64) *where {
	order := make([]int, len(s.terms))
	bound := 0.0
	for i := range order {
		order[i] = i
		bound += s.idf[i] * (retrieve.BM25K1 + 1)
	}
	frequency := func(i int) int { return s.stats.Frequency[s.terms[i]] }
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(frequency(a), frequency(b)) })
	var tokens []string
	chunks := 0
	for _, i := range order {
		// A chunk may have several of the terms.
		if chunks = min(chunks+frequency(i), s.stats.Chunks); bound < least || chunks > maxMissed {
			break
		}
		bound -= s.idf[i] * (retrieve.BM25K1 + 1)
		tokens = append(tokens, s.tokens[i])
	}
	if len(tokens) == 0 {
		return nil
	}
	w := anyOf("terms", tokens)
	return &w
}

// Evidence implements [retrieve.Searcher].
func (x *Index) Evidence(ctx context.Context, hits []retrieve.Hit, terms []string) ([]retrieve.Evidence, error) {
	ids := make([]string, len(hits))
	for i, h := range hits {
		ids[i] = idOf(h)
	}
	at := make(map[retrieve.Hit]*row, len(hits))
	for together := range slices.Chunk(ids, maxResults) {
		w := anyOf("id", together)
		found, err := x.rows(ctx, "", &w, len(together), "length terms packed")
		if err != nil {
			return nil, err
		}
		for i := range found {
			at[found[i].hit()] = &found[i]
		}
	}
	s := newScorer(terms, retrieve.Stats{})
	out := make([]retrieve.Evidence, 0, len(hits))
	for _, h := range hits {
		r, ok := at[h]
		if !ok || r.Packed == "" { // deleted, or the watermark
			continue
		}
		packed, err := base64.StdEncoding.DecodeString(r.Packed)
		if err != nil {
			return nil, fmt.Errorf("%w: the vector of chunk %d of document %d: %w", retrieve.ErrIndexDamaged, h.Ordinal, h.Document, err)
		}
		counts := make([]int, len(terms))
		found := s.count(r.Terms)
		for i, t := range terms {
			counts[i] = found[s.position[indexToken(t)]]
		}
		out = append(out, retrieve.Evidence{Hit: h, Vector: retrieve.UnpackVector(packed), Counts: counts, Length: r.Length})
	}
	return out, nil
}
