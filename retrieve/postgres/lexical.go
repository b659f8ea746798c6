package postgres

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ibid/retrieve"
)

// Frequencies are in how many chunks terms stand, as last counted.
type frequencies struct {
	mu       sync.Mutex
	revision int64
	known    map[string]int
}

// mostFrequencies is how many are remembered.
const mostFrequencies = 20_000

// stats counts what BM25 needs, in the state that the session sees.
func (e *Engine) stats(ctx context.Context, s *session, terms []string) (st retrieve.Stats, err error) {
	all, revision, err := readTotals(ctx, s)
	if err != nil {
		return st, err
	}
	st = retrieve.Stats{Chunks: int(all.chunks), Frequency: make(map[string]int, len(terms))}
	if all.chunks > 0 {
		st.MeanTerms = float64(all.length) / float64(all.chunks)
	}
	var unknown [][]byte
	e.frequencies.mu.Lock()
	if e.frequencies.known == nil || e.frequencies.revision != revision || len(e.frequencies.known) > mostFrequencies {
		e.frequencies.revision, e.frequencies.known = revision, make(map[string]int)
	}
	for _, t := range terms {
		if n, ok := e.frequencies.known[t]; ok {
			st.Frequency[t] = n
		} else if _, twice := st.Frequency[t]; !twice {
			st.Frequency[t] = 0
			unknown = append(unknown, []byte(t))
		}
	}
	e.frequencies.mu.Unlock()
	if len(unknown) == 0 {
		return st, nil
	}
	// Each in a scan of its own part of the index.
	rows, err := s.query(ctx, `SELECT t.term, p.chunks FROM unnest($1::bytea[]) AS t (term),
		LATERAL (SELECT coalesce(sum(chunks), 0)::bigint AS chunks FROM ibid.postings p WHERE p.term = t.term) p`, unknown)
	if err != nil {
		return st, err
	}
	var term []byte
	var chunks int
	_, err = pgx.ForEachRow(rows, []any{&term, &chunks}, func() error {
		st.Frequency[string(term)] = chunks
		return nil
	})
	if err != nil {
		return st, err
	}
	e.frequencies.mu.Lock()
	defer e.frequencies.mu.Unlock()
	if e.frequencies.revision == revision {
		for _, t := range unknown {
			e.frequencies.known[string(t)] = st.Frequency[string(t)]
		}
	}
	return st, nil
}

// Stats counts what BM25 needs, over everything stored.
func (e *Engine) Stats(ctx context.Context, terms []string) (st retrieve.Stats, err error) {
	err = e.view(ctx, func(s *session) error {
		st, err = e.stats(ctx, s, terms)
		return err
	})
	if err != nil {
		return retrieve.Stats{}, fmt.Errorf("count terms: %w", err)
	}
	return st, nil
}

// mostRead is how many postings a search reads as whole lists before the words
// that are more frequent only add to what the rarer ones have found.
const mostRead = 1_000_000

// Lexical gives the ids of the k chunks with the highest BM25 score over the
// terms. The lists of the terms are read from the rarest on. When no chunk that
// has none of the terms read so far can be among the best any more, what is left
// is looked up for the chunks found (MaxScore: Turtle and Flood, "Query
// evaluation: strategies and optimizations", 1995). That is exact; where the
// lists are longer than a search may read, words that stand nearly everywhere
// bring no chunks of their own.
func (e *Engine) Lexical(ctx context.Context, terms []string, k int, f retrieve.Filter) (ids []string, err error) {
	if k <= 0 || len(terms) == 0 {
		return nil, nil
	}
	err = e.view(ctx, func(s *session) error {
		st, err := e.stats(ctx, s, terms)
		if err != nil {
			return err
		}
		l := lexicalSearch{s: s, stats: st, k: k, filter: f, scores: make(map[int64]float64)}
		for t, n := range st.Frequency {
			if n > 0 {
				l.terms = append(l.terms, weighted{t, retrieve.IDF(st.Chunks, n), n})
			}
		}
		ids, err = l.run(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find the chunks with words: %w", err)
	}
	return ids, nil
}

type weighted struct {
	term   string
	idf    float64
	chunks int
}

// most is above what the term can add to a score.
func (w weighted) most() float64 { return w.idf * (retrieve.BM25K1 + 1) }

type lexicalSearch struct {
	s      *session
	stats  retrieve.Stats
	terms  []weighted
	k      int
	filter retrieve.Filter
	scores map[int64]float64 // by the chunk's key
}

func (l *lexicalSearch) run(ctx context.Context) ([]string, error) {
	slices.SortFunc(l.terms, func(a, b weighted) int { return cmp.Or(cmp.Compare(a.chunks, b.chunks), cmp.Compare(a.term, b.term)) })
	left := 0.0 // the most that the terms not read yet can add
	for _, w := range l.terms {
		left += w.most()
	}
	read, lists := 0, true
	for _, w := range l.terms {
		if lists && len(l.scores) >= l.k {
			lists = l.least() <= left && read+w.chunks <= mostRead
		}
		var err error
		if lists {
			read += w.chunks
			err = l.readList(ctx, w, true)
		} else if l.drop(left); len(l.scores) > w.chunks/lookUpShare {
			err = l.readList(ctx, w, false)
		} else {
			err = l.lookUp(ctx, w)
		}
		if err != nil {
			return nil, err
		}
		left -= w.most()
	}
	return l.result(ctx)
}

// least is the k-th highest score so far; there are as many.
func (l *lexicalSearch) least() float64 {
	h := make(floats, 0, l.k+1)
	for _, score := range l.scores {
		if len(h) < l.k {
			heap.Push(&h, score)
		} else if score > h[0] {
			h[0] = score
			heap.Fix(&h, 0)
		}
	}
	return h[0]
}

// drop forgets the chunks that cannot be among the best even if they have all
// that is left.
func (l *lexicalSearch) drop(left float64) {
	least := l.least() - left
	for key, score := range l.scores {
		if score < least-1e-9 {
			delete(l.scores, key)
		}
	}
}

// lookUpShare is how much longer it takes to look up a document in a list than to
// read past one.
const lookUpShare = 8

// readList adds what a term gives to all chunks where it stands, or to those of
// them that have been found already.
func (l *lexicalSearch) readList(ctx context.Context, w weighted, fresh bool) error {
	c := where(l.filter, []byte(w.term))
	from := `ibid.postings p`
	if c.sql != "true" {
		from += ` JOIN ibid.documents d ON d.key = p.key >> 20`
	}
	rows, err := l.s.query(ctx, `SELECT p.key, p.packed FROM `+from+` WHERE p.term = $1 AND `+c.sql, c.args...)
	if err != nil {
		return err
	}
	return l.add(rows, w, fresh)
}

// lookUp adds what a term gives to the chunks found.
func (l *lexicalSearch) lookUp(ctx context.Context, w weighted) error {
	documents := make([]int64, 0, len(l.scores))
	for key := range l.scores {
		documents = append(documents, key>>ordinalBits)
	}
	slices.Sort(documents)
	documents = slices.Compact(documents)
	rows, err := l.s.query(ctx, `SELECT p.key, p.packed FROM unnest($2::bigint[]) AS t (document),
		LATERAL (SELECT key, packed FROM ibid.postings WHERE term = $1 AND key BETWEEN t.document << 20 AND (t.document << 20) + 1048575 OFFSET 0) p`, []byte(w.term), documents)
	if err != nil {
		return err
	}
	return l.add(rows, w, false)
}

// add adds what a term gives to the chunks in rows of keys and packed postings.
func (l *lexicalSearch) add(rows pgx.Rows, w weighted, fresh bool) error {
	defer rows.Close()
	for rows.Next() {
		var key int64
		var packed pgtype.DriverBytes
		if err := rows.Scan(&key, &packed); err != nil {
			return err
		}
		err := eachPosting(key, packed, func(p posting) {
			if _, known := l.scores[p.key]; known || fresh {
				l.scores[p.key] += w.idf * retrieve.Saturation(p.count, p.length, l.stats.MeanTerms)
			}
		})
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// result gives the ids of the best.
func (l *lexicalSearch) result(ctx context.Context) ([]string, error) {
	least := 0.0
	if len(l.scores) > l.k {
		least = l.least() // with all that have as much: the ids decide
	}
	owners := make(map[int64][]byte)
	var keys []int64
	for key, score := range l.scores {
		if score >= least {
			keys = append(keys, key)
			owners[key>>ordinalBits] = nil
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	documents := make([]int64, 0, len(owners))
	for d := range owners {
		documents = append(documents, d)
	}
	rows, err := l.s.query(ctx, `SELECT key, id FROM ibid.documents WHERE key = ANY ($1::bigint[])`, documents)
	if err != nil {
		return nil, err
	}
	var document int64
	var id []byte
	_, err = pgx.ForEachRow(rows, []any{&document, &id}, func() error {
		owners[document] = slices.Clone(id)
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]ranked, len(keys))
	for i, key := range keys {
		owner := owners[key>>ordinalBits]
		if owner == nil {
			return nil, errors.Join(errPostings, fmt.Errorf("chunk %d of a document that is not there", key&maxChunks))
		}
		all[i] = ranked{retrieve.ChunkID(string(owner), int(key&maxChunks)), l.scores[key]}
	}
	return best(all, l.k), nil
}

// floats is a heap with the least on top.
type floats []float64

func (f floats) Len() int           { return len(f) }
func (f floats) Less(i, j int) bool { return f[i] < f[j] }
func (f floats) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *floats) Push(x any)        { *f = append(*f, x.(float64)) }
func (f *floats) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}
