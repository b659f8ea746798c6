package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"ibid/ingest"
	"ibid/retrieve"
)

// The counted terms of a chunk.
type chunkTerms struct {
	counts []retrieve.TermCount
	length int
}

func (t chunkTerms) pack() []byte { return retrieve.PackTerms(t.counts, t.length) }

func lengthOf(terms []chunkTerms) (sum int64) {
	for _, t := range terms {
		sum += int64(t.length)
	}
	return sum
}

// unpack reads the stored form of terms, whichever analysis made them: what
// stands in the posting lists is known by them.
func unpack(b []byte) (t chunkTerms, err error) {
	_, n := binary.Uvarint(b)
	if n <= 0 {
		return t, retrieve.ErrTerms
	}
	current := binary.AppendUvarint(nil, retrieve.Analysis)
	t.counts, t.length, _, err = retrieve.UnpackTerms(append(current, b[n:]...))
	return t, err
}

// readTerms gives the stored terms of a document's chunks, in order.
func readTerms(ctx context.Context, s *session, document int64) ([]chunkTerms, error) {
	first, last := keyRange(document)
	rows, err := s.query(ctx, `SELECT terms FROM ibid.chunks WHERE key BETWEEN $1 AND $2 ORDER BY key`, first, last)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (chunkTerms, error) {
		var b []byte
		if err := row.Scan(&b); err != nil {
			return chunkTerms{}, err
		}
		return unpack(b)
	})
}

// A posting says that a term stands in a chunk.
type posting struct {
	key           int64
	count, length int
}

// mostPostings is how many one row has: with it an index entry stays below the
// third of a page that it may have at most.
const mostPostings = 200

// appendPosting adds a posting to a packed row; after is the key of the one before,
// or of the row.
func appendPosting(b []byte, after int64, p posting) []byte {
	b = binary.AppendUvarint(b, uint64(p.key-after))
	b = binary.AppendUvarint(b, uint64(p.count))
	return binary.AppendUvarint(b, uint64(p.length))
}

var errPostings = errors.New("a posting list is damaged")

// eachPosting reads a packed row.
func eachPosting(key int64, packed []byte, do func(posting)) error {
	for len(packed) > 0 {
		var n [3]uint64
		for i := range n {
			v, size := binary.Uvarint(packed)
			if size <= 0 {
				return errPostings
			}
			n[i], packed = v, packed[size:]
		}
		key += int64(n[0])
		do(posting{key, int(n[1]), int(n[2])})
	}
	return nil
}

// insertPostings adds a document's chunks to the lists of their terms.
func insertPostings(ctx context.Context, s *session, document int64, terms []chunkTerms) error {
	type row struct {
		term      string
		key, last int64
		chunks    int16
		packed    []byte
	}
	var rows []*row
	open := make(map[string]*row) // the last row of each term
	for i, t := range terms {
		key := chunkKey(document, i+1)
		for _, c := range t.counts {
			r := open[c.Term]
			if r == nil || r.chunks == mostPostings {
				r = &row{term: c.Term, key: key, last: key}
				open[c.Term] = r
				rows = append(rows, r)
			}
			r.packed = appendPosting(r.packed, r.last, posting{key, c.Count, t.length})
			r.last = key
			r.chunks++
		}
	}
	// In the order of the index, where it touches fewer pages.
	slices.SortFunc(rows, func(a, b *row) int {
		if a.term != b.term {
			if a.term < b.term {
				return -1
			}
			return 1
		}
		return int(a.key - b.key)
	})
	for batch := range slices.Chunk(rows, insertBatch) {
		n := len(batch)
		list, keys, chunks, packed := make([][]byte, n), make([]int64, n), make([]int16, n), make([][]byte, n)
		for i, r := range batch {
			list[i], keys[i], chunks[i], packed[i] = []byte(r.term), r.key, r.chunks, r.packed
		}
		_, err := s.exec(ctx, `INSERT INTO ibid.postings (term, key, chunks, packed) SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::smallint[], $4::bytea[])`, list, keys, chunks, packed)
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteTerms deletes by the index, term by term. As a join it would be left to
// the planner, which takes the keys of a document that came since it last counted
// for very few, and reads the whole index for them.
const deleteTerms = `DELETE FROM ibid.postings WHERE ctid = ANY (ARRAY (SELECT p.at FROM unnest($1::bytea[]) AS t (term),
	LATERAL (SELECT ctid AS at FROM ibid.postings WHERE term = t.term AND key BETWEEN $2 AND $3 OFFSET 0) p))`

// deletePostings takes a document out of the lists of its terms.
func deletePostings(ctx context.Context, s *session, document int64, terms []chunkTerms) error {
	distinct := make(map[string]bool)
	for _, t := range terms {
		for _, c := range t.counts {
			distinct[c.Term] = true
		}
	}
	first, last := keyRange(document)
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(distinct)), insertBatch) {
		list := make([][]byte, len(batch))
		for i, t := range batch {
			list[i] = []byte(t)
		}
		if _, err := s.exec(ctx, deleteTerms, list, first, last); err != nil {
			return err
		}
	}
	return nil
}

// analyse counts the terms of a stored document's chunks anew, and says by how
// much that changes the totals.
func (e *Engine) analyse(ctx context.Context, s *session, document int64) (by totals, err error) {
	old, err := readTerms(ctx, s, document)
	if err != nil {
		return by, err
	}
	if err := deletePostings(ctx, s, document, old); err != nil {
		return by, err
	}
	first, last := keyRange(document)
	rows, err := s.query(ctx, `SELECT d.title, c.heading, substring(t.text FROM c.start + 1 FOR c."end" - c.start)
		FROM ibid.chunks c JOIN ibid.documents d ON d.key = $1 JOIN ibid.texts t ON t.document = $1 WHERE c.key BETWEEN $2 AND $3 ORDER BY c.key`, document, first, last)
	if err != nil {
		return by, err
	}
	terms, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t chunkTerms, err error) {
		var title, heading, text []byte
		if err := row.Scan(&title, &heading, &text); err != nil {
			return t, err
		}
		t.counts, t.length = retrieve.CountTerms(ingest.EmbeddingText(string(title), ingest.Chunk{Heading: string(heading), Text: string(text)}))
		return t, nil
	})
	if err != nil {
		return by, err
	}
	if len(terms) != len(old) {
		return by, fmt.Errorf("its chunks are not complete: ingest it again")
	}
	keys, packed := make([]int64, len(terms)), make([][]byte, len(terms))
	for i, t := range terms {
		keys[i], packed[i] = chunkKey(document, i+1), t.pack()
	}
	_, err = s.exec(ctx, `UPDATE ibid.chunks c SET terms = t.terms FROM unnest($1::bigint[], $2::bytea[]) AS t (key, terms) WHERE c.key = t.key`, keys, packed)
	if err != nil {
		return by, err
	}
	if _, err := s.exec(ctx, `UPDATE ibid.documents SET analysis = $2 WHERE key = $1`, document, retrieve.Analysis); err != nil {
		return by, err
	}
	return totals{length: lengthOf(terms) - lengthOf(old)}, insertPostings(ctx, s, document, terms)
}

// renew stores anew the terms that an older version of the analysis made. What
// a crash leaves undone the next start does.
func (e *Engine) renew(ctx context.Context, tell func(documents int)) error {
	for told := false; ; {
		var count int
		var ids [][]byte
		err := e.view(ctx, func(s *session) error {
			rows, err := s.query(ctx, `SELECT id FROM ibid.documents WHERE analysis < $1 LIMIT 64`, retrieve.Analysis)
			if err != nil {
				return err
			}
			if ids, err = pgx.CollectRows(rows, pgx.RowTo[[]byte]); err != nil || len(ids) == 0 || told {
				return err
			}
			return s.row(ctx, `SELECT count(*) FROM ibid.documents WHERE analysis < $1`, retrieve.Analysis).Scan(&count)
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		if tell != nil && !told {
			tell(count)
		}
		told = true
		for _, id := range ids {
			err := e.update(ctx, func(s *session) error {
				if err := e.lockDocuments(ctx, s, string(id)); err != nil {
					return err
				}
				key, analysis := int64(0), 0
				err := s.row(ctx, `SELECT key, analysis FROM ibid.documents WHERE sha256(id) = sha256($1)`, id).Scan(&key, &analysis)
				if errors.Is(err, pgx.ErrNoRows) || err == nil && analysis >= retrieve.Analysis {
					return nil // another server has deleted it, or done this
				}
				if err != nil {
					return err
				}
				by, err := e.analyse(ctx, s, key)
				if err != nil {
					return err
				}
				return e.changed(ctx, s, by)
			})
			if err != nil {
				return fmt.Errorf("store the terms of %s by this version's analysis: %w", id, err)
			}
		}
	}
}
