package weaviate

import (
	"context"
	"fmt"
	"strings"
	"sync"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"
	"golang.org/x/sync/errgroup"

	"ibid/retrieve"
)

// counts are figures of the library at one revision, kept while it lasts.
type counts struct {
	mu       sync.Mutex
	revision int64
	valid    bool
	chunks   int
	terms    int
	of       map[string]int
}

// maxCounts is how many terms are remembered before all are forgotten.
const maxCounts = 100_000

// Stats counts what BM25 needs, over everything stored.
func (e *Engine) Stats(ctx context.Context, terms []string) (retrieve.Stats, error) {
	s, _, err := e.stats(ctx, terms)
	if err != nil {
		return retrieve.Stats{}, fmt.Errorf("count the terms: %w", err)
	}
	return s, nil
}

// stats counts, and gives what the journals said before it.
func (e *Engine) stats(ctx context.Context, terms []string) (s retrieve.Stats, now state, err error) {
	err = e.inSpace(ctx, func(ctx context.Context, space string) (err error) {
		if now, err = e.wire.state(ctx); err == nil {
			s, err = e.statsIn(ctx, space, now, terms)
		}
		return err
	})
	return s, now, err
}

func (e *Engine) statsIn(ctx context.Context, space string, now state, terms []string) (retrieve.Stats, error) {
	s := retrieve.Stats{Frequency: make(map[string]int, len(terms))}
	// While something is being changed figures are of the moment.
	lasting := len(now.tasks) == 0
	var missing []string
	c := &e.counted
	c.mu.Lock()
	known := lasting && c.valid && c.revision == now.revision
	if known {
		s.Chunks, s.MeanTerms = c.chunks, mean(c.terms, c.chunks)
	}
	for _, t := range terms {
		n, ok := 0, false
		if known {
			n, ok = c.of[t]
		}
		if s.Frequency[t] = n; !ok {
			missing = append(missing, t)
		}
	}
	c.mu.Unlock()
	if space == "" {
		return s, nil
	}
	chunks, total := s.Chunks, 0
	g, limit := errgroup.WithContext(ctx)
	g.SetLimit(8)
	if !known {
		g.Go(func() (err error) {
			chunks, total, err = e.sums(limit)
			return err
		})
	}
	frequency := make([]int, len(missing))
	for i, t := range missing {
		g.Go(func() (err error) {
			frequency[i], err = e.count(limit, space, word(t))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return s, err
	}
	for i, t := range missing {
		s.Frequency[t] = frequency[i]
	}
	if !lasting && len(missing) > 0 {
		if err := e.subtract(ctx, space, now.tasks, missing, s.Frequency); err != nil {
			return s, err
		}
	}
	if !known {
		s.Chunks, s.MeanTerms = chunks, mean(total, chunks)
	}
	for t, n := range s.Frequency {
		s.Frequency[t] = max(0, min(n, s.Chunks)) // counted at another moment
	}
	if lasting {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.valid || c.revision != now.revision || len(c.of) > maxCounts {
			if known {
				return s, nil
			}
			c.valid, c.revision, c.chunks, c.terms, c.of = true, now.revision, chunks, total, make(map[string]int)
		}
		for _, t := range missing {
			c.of[t] = s.Frequency[t]
		}
	}
	return s, nil
}

func mean(terms, chunks int) float64 {
	if chunks == 0 {
		return 0
	}
	return float64(terms) / float64(chunks)
}

// total is about how many chunks there are, as it was counted last.
func (e *Engine) total(ctx context.Context) (int, error) {
	e.counted.mu.Lock()
	valid, n := e.counted.valid, e.counted.chunks
	e.counted.mu.Unlock()
	if valid {
		return n, nil
	}
	n, _, err := e.sums(ctx)
	return n, err
}

// sums counts the chunks and their terms, by what the documents' objects say.
func (e *Engine) sums(ctx context.Context) (chunks, terms int, err error) {
	sum := func(property string) *pb.AggregateRequest_Aggregation {
		return &pb.AggregateRequest_Aggregation{Property: property, Aggregation: &pb.AggregateRequest_Aggregation_Int{Int: &pb.AggregateRequest_Aggregation_Integer{Sum: true}}}
	}
	reply, err := e.aggregate(ctx, &pb.AggregateRequest{
		Collection: e.wire.at.documents(), ObjectsCount: true, Aggregations: []*pb.AggregateRequest_Aggregation{sum("chunks"), sum("terms")},
	})
	if err == nil {
		for _, a := range reply.GetSingleResult().GetAggregations().GetAggregations() {
			switch n := int(a.GetInt().GetSum()); a.Property {
			case "chunks":
				chunks = n
			case "terms":
				terms = n
			}
		}
		return chunks, terms, nil
	}
	if !transient(err) {
		return 0, 0, fmt.Errorf("%s: %w", e.wire.host(), plain(err))
	}
	// With a node away Weaviate does not add up, but it does list.
	err = e.wire.each(ctx, e.wire.at.documents(), listPage, func(r row) error {
		chunks, terms = chunks+r.int("chunks"), terms+r.int("terms")
		return nil
	}, "chunks", "terms")
	return chunks, terms, err
}

// aggregate asks once: what fails for want of a node is asked in another way.
func (e *Engine) aggregate(ctx context.Context, q *pb.AggregateRequest) (*pb.AggregateReply, error) {
	limit, cancel := context.WithTimeout(ctx, rpcTime)
	defer cancel()
	return e.wire.rpc.Aggregate(limit, q)
}

// count says in how many chunks a word stands, of all generations.
func (e *Engine) count(ctx context.Context, space, word string) (int, error) {
	reply, err := e.aggregate(ctx, &pb.AggregateRequest{Collection: e.wire.at.chunks(space), ObjectsCount: true, Filters: equal("terms", word)})
	if err == nil {
		return int(reply.GetSingleResult().GetObjectsCount()), nil
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if !transient(err) {
		return 0, fmt.Errorf("%s: %w", e.wire.host(), plain(err))
	}
	return e.countFound(ctx, space, word)
}

// countFound counts by looking for all chunks with the word, of which a search
// gives so many at most: more are looked for a slice at a time.
func (e *Engine) countFound(ctx context.Context, space, word string) (int, error) {
	class := e.wire.at.chunks(space)
	rows, err := e.wire.search(ctx, query(class, equal("terms", word), maxResults))
	if err != nil || len(rows) < maxResults {
		return len(rows), err
	}
	total := 0
	for slice := range slicesOfAll {
		rows, err := e.wire.search(ctx, query(class, all(equal("terms", word), number(pb.Filters_OPERATOR_EQUAL, "slice", slice)), maxResults))
		if err != nil {
			return 0, err
		}
		total += len(rows)
	}
	return total, nil
}

// subtract takes from frequencies what stands in generations that do not count:
// those of documents that somebody is at work on, or was.
func (e *Engine) subtract(ctx context.Context, space string, tasks []task, terms []string, frequency map[string]int) error {
	var ids []string
	for _, t := range tasks {
		if isDocument(t) {
			ids = append(ids, documentID(strings.TrimPrefix(t.Name, documentTask)))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	words := make([]string, len(terms))
	for i, t := range terms {
		words[i] = word(t)
	}
	rows, err := e.wire.search(ctx, query(e.wire.at.chunks(space), all(anyOf("document", ids), anyOf("terms", words)), maxResults, "document", "generation", "terms"))
	if err != nil {
		return err
	}
	docs, err := e.documents(ctx, documentsOf(rows))
	if err != nil {
		return err
	}
	for _, r := range rows {
		if d := docs[r.text("document")]; d != nil && d.Generation == r.text("generation") {
			continue
		}
		there := make(map[string]bool)
		for token := range strings.FieldsSeq(r.text("terms")) {
			there[token] = true
		}
		for i, t := range terms {
			if there[words[i]] {
				frequency[t]--
			}
		}
	}
	return nil
}
