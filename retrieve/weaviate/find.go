package weaviate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"
	"golang.org/x/sync/errgroup"

	"ibid/retrieve"
)

// What is found may belong to a generation that no longer counts, or not yet,
// and one search does not see all shards at one moment. So what was found is
// held against the documents' objects, read after it. A document whose object
// says what it said before the search began was seen whole. Of any other the
// chunks are looked for once more, within its one generation, until its object
// says the same before and after.

// A recent remembers which generation of a document was read when.
type recent struct {
	mu   sync.Mutex
	seen map[string]sighting
}

type sighting struct {
	generation string
	since      time.Time
}

// maxSightings is how many documents are remembered before all are forgotten:
// a few megabytes.
const maxSightings = 50_000

// put notes that the generation is the one that counts now.
func (r *recent) put(id, generation string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[id].generation == generation {
		return
	}
	if r.seen == nil || len(r.seen) >= maxSightings {
		r.seen = make(map[string]sighting)
	}
	r.seen[id] = sighting{generation, time.Now()}
}

// before says whether the generation counted at that time.
func (r *recent) before(id, generation string, at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.seen[id]
	return ok && s.generation == generation && s.since.Before(at)
}

// settled is how long ago a document was stored, by the clock of who stored it,
// that was there when a search began, whatever the clocks are.
const settled = 2 * time.Minute

// A hit is a chunk with its exact score.
type hit struct {
	id    string
	score float64
}

// A search is one of the two that an engine has.
type search struct {
	// request is the search of Weaviate.
	request func(class string, where *pb.Filters, limit int) *pb.SearchRequest
	// score is the chunk's own; ok is false for one that is not to be given.
	score func(row) (score float64, ok bool)
	// missed, where it is set, selects the chunks that may be better than the
	// least score although the request for so many has not found them; nil for
	// none.
	missed func(limit int, least float64) *pb.Filters
}

// Over how many chunks are asked for than are wanted: other generations are
// taken out, and an approximate order is made exact. moreFor is how many times
// more when these were too few.
const (
	overTimes = 3
	overPlus  = 64
	moreFor   = 4
)

// find gives the ids of the k best chunks of documents that pass the filter.
func (e *Engine) find(ctx context.Context, k int, f retrieve.Filter, s search) ([]string, error) {
	where, none := narrow(f)
	if none || k <= 0 {
		return nil, nil
	}
	if f.Document != "" {
		where = all(where, equal("document", documentID(f.Document)))
	}
	for limit := min(overTimes*k+overPlus, maxResults); ; {
		var hits []hit
		floor := math.Inf(-1)
		err := e.inSpace(ctx, func(ctx context.Context, space string) (err error) {
			hits, floor, err = e.findIn(ctx, space, limit, f, where, s)
			return err
		})
		if err != nil {
			return nil, err
		}
		slices.SortFunc(hits, byScore)
		// As good as the worst there may be others, which come first by their ids.
		if math.IsInf(floor, -1) || limit == maxResults || len(hits) >= k && hits[k-1].score > floor {
			if s.missed != nil && !math.IsInf(floor, -1) {
				if hits, err = e.addMissed(ctx, k, limit, f, where, s, hits); err != nil {
					return nil, err
				}
			}
			ids := make([]string, min(k, len(hits)))
			for i := range ids {
				ids[i] = hits[i].id
			}
			return ids, nil
		}
		limit = min(moreFor*limit, maxResults)
	}
}

// addMissed adds to sorted hits what a search for limit chunks has missed.
func (e *Engine) addMissed(ctx context.Context, k, limit int, f retrieve.Filter, where *pb.Filters, s search, hits []hit) ([]hit, error) {
	least := 0.0
	if len(hits) >= k {
		least = hits[k-1].score
	}
	missed := s.missed(limit, least)
	if missed == nil {
		return hits, nil
	}
	s.request = func(class string, where *pb.Filters, limit int) *pb.SearchRequest {
		return query(class, where, limit, lexicalProperties...)
	}
	err := e.inSpace(ctx, func(ctx context.Context, space string) error {
		more, _, err := e.findIn(ctx, space, maxResults, f, all(where, missed), s)
		hits = append(hits, more...)
		return err
	})
	slices.SortFunc(hits, byScore)
	return slices.Compact(hits), err
}

func byScore(a, b hit) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
}

// findIn looks once, for limit chunks. No other is better than the floor, and
// none there where that is infinitely low.
func (e *Engine) findIn(ctx context.Context, space string, limit int, f retrieve.Filter, where *pb.Filters, s search) (hits []hit, floor float64, err error) {
	floor = math.Inf(-1)
	if space == "" {
		return nil, floor, nil
	}
	class := e.wire.at.chunks(space)
	began := time.Now()
	rows, err := e.wire.search(ctx, s.request(class, where, limit))
	if err != nil {
		return nil, floor, err
	}
	docs, err := e.documents(ctx, documentsOf(rows))
	if err != nil {
		return nil, floor, err
	}
	unsure := make(map[string]*document)
	for id, d := range docs {
		sure := e.seen.before(id, d.Generation, began) || began.Sub(time.UnixMicro(d.Committed)) > settled
		e.seen.put(id, d.Generation)
		if !sure {
			unsure[id] = d
		}
	}
	passes := make(map[string]bool)
	take := func(r row, d *document) {
		id := r.text("document")
		if _, known := passes[id]; !known {
			info := d.info()
			passes[id] = f.Matches(&info, retrieve.LabelsOf(d.Meta))
		}
		if score, ok := s.score(r); ok && passes[id] {
			hits = append(hits, hit{retrieve.ChunkID(d.ID, r.int("ordinal")), score})
		}
	}
	for _, r := range rows {
		if score, ok := s.score(r); ok && len(rows) == limit {
			if math.IsInf(floor, -1) || score < floor {
				floor = score
			}
		}
		id := r.text("document")
		if d := docs[id]; d != nil && unsure[id] == nil && d.Generation == r.text("generation") {
			take(r, d)
		}
	}
	for round := 0; len(unsure) > 0; round++ {
		if round == 100 {
			return nil, floor, fmt.Errorf("%d documents: %w", len(unsure), errChanged)
		}
		generations := make([]string, 0, len(unsure))
		ids := make([]string, 0, len(unsure))
		for id, d := range unsure {
			generations, ids = append(generations, d.Generation), append(ids, id)
		}
		again, err := e.wire.search(ctx, s.request(class, all(where, anyOf("generation", generations)), limit))
		if err != nil {
			return nil, floor, err
		}
		now, err := e.documents(ctx, ids)
		if err != nil {
			return nil, floor, err
		}
		still := make(map[string]*document)
		for id, d := range unsure {
			if n := now[id]; n != nil && n.Generation != d.Generation {
				still[id] = n
			}
		}
		for _, r := range again {
			id := r.text("document")
			if d := now[id]; d != nil && still[id] == nil && d.Generation == r.text("generation") {
				take(r, d)
			}
		}
		unsure = still
	}
	// Below the worst of as many as were asked for there may be others.
	hits = slices.DeleteFunc(hits, func(h hit) bool { return h.score < floor })
	return hits, floor, nil
}

// documentsOf gives the documents of chunks, each once.
func documentsOf(rows []row) (ids []string) {
	seen := make(map[string]bool)
	for _, r := range rows {
		if id := r.text("document"); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// exactUpTo is up to how many chunks a dense search compares with every vector.
// With a filter Weaviate does so by itself, up to 40,000 that pass it
// (flatSearchCutoff); a filter that everything passes makes it do so without.
const exactUpTo = 10_000

// Dense gives the ids of the k chunks nearest to the vector by cosine.
func (e *Engine) Dense(ctx context.Context, vector []float32, k int, f retrieve.Filter) ([]string, error) {
	ids, err := e.dense(ctx, vector, k, f)
	if err != nil {
		return nil, fmt.Errorf("search by vector: %w", err)
	}
	return ids, nil
}

func (e *Engine) dense(ctx context.Context, vector []float32, k int, f retrieve.Filter) ([]string, error) {
	unit, err := retrieve.Unit(vector, len(vector))
	if err != nil {
		return nil, err
	}
	packed := retrieve.PackVector(unit)
	total, err := e.total(ctx)
	if err != nil {
		return nil, err
	}
	return e.find(ctx, k, f, search{
		request: func(class string, where *pb.Filters, limit int) *pb.SearchRequest {
			if where == nil && total <= exactUpTo {
				where = always("stored")
			}
			q := query(class, where, limit, "document", "generation", "ordinal")
			q.Metadata.Vector = true
			q.NearVector = &pb.NearVector{Vectors: []*pb.Vectors{{VectorBytes: packed, Type: pb.Vectors_VECTOR_TYPE_SINGLE_FP32}}}
			return q
		},
		score: func(r row) (float64, bool) {
			if len(r.vector) != len(unit) {
				return 0, false
			}
			var dot, square float64
			for i, x := range r.vector {
				dot += float64(x) * float64(unit[i])
				square += float64(x) * float64(x)
			}
			return dot / math.Sqrt(square), true
		},
	})
}

var lexicalProperties = []string{"document", "generation", "ordinal", "terms", "length"}

// Lexical gives the ids of the k chunks with the highest BM25 score over the
// terms. Weaviate's own search of words leaves out some of the best where a term
// stands in more chunks than it is asked for. So in a library of up to [maxMissed]
// chunks those with the rarest terms are looked through as well, and these are the
// best; so it is in a larger one where common terms decide, or that has just been
// changed, as long as so many suffice. In a larger one the order is right too, but
// some of the best may be missing.
func (e *Engine) Lexical(ctx context.Context, terms []string, k int, f retrieve.Filter) ([]string, error) {
	ids, err := e.lexical(ctx, terms, k, f)
	if err != nil {
		return nil, fmt.Errorf("search by words: %w", err)
	}
	return ids, nil
}

func (e *Engine) lexical(ctx context.Context, terms []string, k int, f retrieve.Filter) ([]string, error) {
	if len(terms) == 0 {
		return nil, nil
	}
	stats, now, err := e.stats(ctx, terms)
	if err != nil {
		return nil, err
	}
	tokens := make([]string, len(terms))
	idf := make(map[string]float64, len(terms))
	for i, t := range terms {
		tokens[i] = word(t)
		idf[tokens[i]] += retrieve.IDF(stats.Chunks, stats.Frequency[t])
	}
	text := strings.Join(tokens, " ")
	s := search{
		request: func(class string, where *pb.Filters, limit int) *pb.SearchRequest {
			q := query(class, where, limit, lexicalProperties...)
			q.Bm25Search = &pb.BM25{Query: text, Properties: []string{"terms"}}
			return q
		},
		score: func(r row) (score float64, ok bool) {
			count := make(map[string]int)
			for token := range strings.FieldsSeq(r.text("terms")) {
				if idf[token] > 0 {
					count[token]++
				}
			}
			// In the order of the terms, so that equal chunks have equal scores.
			for i, token := range tokens {
				if n := count[token]; n > 0 && slices.Index(tokens, token) == i {
					score, ok = score+idf[token]*retrieve.Saturation(n, r.int("length"), stats.MeanTerms), true
				}
			}
			return score, ok
		},
	}
	look := stats.Chunks <= maxMissed || time.Since(now.last) < e.unflushed
	s.missed = func(limit int, least float64) *pb.Filters {
		if !look && !commonDecide(stats, k, limit) {
			return nil
		}
		return rarest(terms, stats, least)
	}
	return e.find(ctx, k, f, s)
}

// commonDecide says whether common terms decide which chunks are the k best:
// those that stand in more than limit, when too few chunks hold any other.
//
// For each block of 128 chunks with a term Weaviate (1.35) keeps the occurrence
// that should give the highest score, and passes the block over when that is too
// low. When it writes its memory to disk it takes k1 for b and b for k1, and keeps
// the wrong one (flushDataInverted in adapters/repos/db/lsmkv), which is so until
// it merges the file with another. Of 3,000 chunks written at once it left out up
// to half of the ten best for words that stand in a tenth of them and more.
func commonDecide(stats retrieve.Stats, k, limit int) bool {
	rare, common := 0, false
	for _, n := range stats.Frequency {
		if n > limit {
			common = true
		} else {
			rare += n
		}
	}
	return common && rare < k
}

// unflushed is how long after a change Weaviate may still hold it in memory
// alone: it is to flush after a minute (PERSISTENCE_MEMTABLES_FLUSH_DIRTY_AFTER_SECONDS). Its search of words
// (BlockMax WAND) leaves out, of what is in memory, all but the first that it
// comes upon, as many as were asked for: github.com/weaviate/weaviate/pull/11780.
const unflushed = 2 * time.Minute

// maxMissed is how many chunks are looked through at most for what was missed.
const maxMissed = 4000

// rarest selects the chunks that hold one of the rarest terms: as many of these
// as it takes that all the others together cannot give a better score than the
// least (as in MaxScore: H. Turtle and J. Flood, "Query Evaluation: Strategies
// and Optimizations", 1995).
func rarest(terms []string, stats retrieve.Stats, least float64) *pb.Filters {
	terms = slices.Clone(terms)
	slices.SortFunc(terms, func(a, b string) int {
		return cmp.Or(cmp.Compare(stats.Frequency[a], stats.Frequency[b]), cmp.Compare(a, b))
	})
	bound := 0.0
	for _, t := range terms {
		bound += retrieve.IDF(stats.Chunks, stats.Frequency[t]) * (retrieve.BM25K1 + 1)
	}
	var tokens []string
	chunks := 0
	for _, t := range terms {
		// No chunk counts twice, whatever it holds.
		if chunks = min(chunks+stats.Frequency[t], stats.Chunks); bound <= least || chunks > maxMissed {
			break
		}
		bound -= retrieve.IDF(stats.Chunks, stats.Frequency[t]) * (retrieve.BM25K1 + 1)
		tokens = append(tokens, word(t))
	}
	if len(tokens) == 0 {
		return nil
	}
	return anyOf("terms", tokens)
}

// Candidates gives chunks with their vectors by id, in the order of the ids.
func (e *Engine) Candidates(ctx context.Context, ids []string) ([]retrieve.Candidate, error) {
	var found []retrieve.Candidate
	err := e.inSpace(ctx, func(ctx context.Context, space string) (err error) {
		found, err = e.candidates(ctx, space, ids)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the chunks found: %w", err)
	}
	return found, nil
}

func (e *Engine) candidates(ctx context.Context, space string, ids []string) ([]retrieve.Candidate, error) {
	if space == "" || len(ids) == 0 {
		return nil, nil
	}
	type place struct {
		document string
		ordinal  int
	}
	wanted := make([]place, len(ids))
	found := make(map[string]retrieve.Candidate, len(ids))
	missing := make(map[string][]int) // ordinals by the id of the document's object
	for i, id := range ids {
		if document, ordinal, ok := retrieve.SplitChunkID(id); ok {
			wanted[i] = place{documentID(document), ordinal}
			missing[wanted[i].document] = append(missing[wanted[i].document], ordinal)
		}
	}
	last := make(map[string]string)
	for range 10 {
		keys := make([]string, 0, len(missing))
		for id := range missing {
			keys = append(keys, id)
		}
		docs, err := e.documents(ctx, keys)
		if err != nil {
			return nil, err
		}
		of := make(map[string]*document)
		var chunks []string
		for id, ordinals := range missing {
			d := docs[id]
			// What is not there in the same generation twice is not there.
			if d == nil || last[id] == d.Generation {
				delete(missing, id)
				continue
			}
			last[id] = d.Generation
			for _, n := range ordinals {
				if n <= d.Chunks {
					chunks = append(chunks, d.chunkID(n))
					of[d.chunkID(n)] = d
				}
			}
		}
		rows, err := e.chunkRows(ctx, space, chunks)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			c, err := of[r.id].readChunk(r)
			if err != nil {
				return nil, err
			}
			found[c.ID] = c
		}
		// A generation of which something is gone has been replaced.
		for id, ordinals := range missing {
			d := docs[id]
			if !slices.ContainsFunc(ordinals, func(n int) bool {
				_, ok := found[retrieve.ChunkID(d.ID, n)]
				return n <= d.Chunks && !ok
			}) {
				delete(missing, id)
			}
		}
		if len(missing) == 0 {
			break
		}
		for id := range missing {
			for n := range docs[id].Chunks {
				delete(found, retrieve.ChunkID(docs[id].ID, n+1))
			}
		}
	}
	out := make([]retrieve.Candidate, 0, len(ids))
	for _, id := range ids {
		if c, ok := found[id]; ok {
			out = append(out, c)
		}
	}
	return out, nil
}

// chunkRows reads chunks with their vectors by the ids of their objects.
func (e *Engine) chunkRows(ctx context.Context, space string, ids []string) ([]row, error) {
	const some = 400
	pages := make([][]row, (len(ids)+some-1)/some)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i := range pages {
		part := ids[i*some : min(len(ids), (i+1)*some)]
		g.Go(func() (err error) {
			q := query(e.wire.at.chunks(space), byID(part...), len(part), "ordinal", "data")
			q.Metadata.Vector = true
			pages[i], err = e.wire.search(ctx, q)
			return err
		})
	}
	err := g.Wait()
	return slices.Concat(pages...), err
}
