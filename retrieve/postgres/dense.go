package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ibid/retrieve"
)

const (
	// exactRows is of how many chunks all are compared with the question, without
	// the index.
	exactRows = 10_000
	// exactShare is the part of all chunks, one in so many, up to which those that
	// a filter lets through are compared one by one: the index would have to be
	// searched for so much longer.
	exactShare = 50
	// moreRows is how many more chunks are looked at than are wanted: the server
	// compares in single precision.
	moreRows = 16
	// searchWidth is how many neighbours HNSW keeps in mind for each chunk that is
	// wanted (ef_search); leastWidth and mostWidth are the bounds, the latter
	// pgvector's. Among 100,000 chunks of 192 dimensions, where 50 are wanted, it
	// finds 0.97 of the ten nearest; with 2 it is 0.95, in half the time.
	searchWidth, leastWidth, mostWidth = 6, 200, 1000
	// mostScanned is how far a search of the index goes on for what the filter lets
	// through.
	mostScanned = 200_000
)

// Dense gives the ids of the k chunks nearest to the vector by cosine, nearest
// first. In large libraries some may be missing, which an HNSW index does not
// find; their order is exact.
func (e *Engine) Dense(ctx context.Context, vector []float32, k int, f retrieve.Filter) (ids []string, err error) {
	if k <= 0 {
		return nil, nil
	}
	err = e.view(ctx, func(s *session) error {
		ids = nil
		used, all, err := readUsed(ctx, s)
		if err != nil || all.chunks == 0 {
			return err
		}
		unit, err := retrieve.Unit(vector, used.dimensions)
		if err != nil {
			return err
		}
		exact := !used.indexed || all.chunks <= e.few
		if !exact && !f.IsZero() {
			most := max(e.few, all.chunks/exactShare)
			let, err := countLet(ctx, s, f, most)
			if err != nil || let == 0 {
				return err
			}
			exact = let <= most
		}
		ids, err = nearest(ctx, s, used, unit, k, f, exact)
		if err == nil && !exact && len(ids) < k && !f.IsZero() {
			// The filter lets more through, far from where the index was searched.
			ids, err = nearest(ctx, s, used, unit, k, f, true)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find the chunks nearest to a vector: %w", err)
	}
	return ids, nil
}

// countLet counts the chunks of the documents that the filter lets through, up
// to somewhat more than most.
func countLet(ctx context.Context, s *session, f retrieve.Filter, most int64) (let int64, err error) {
	c := where(f, most)
	// So many documents with a chunk each are enough.
	err = s.row(ctx, `SELECT coalesce(sum(chunks), 0)::bigint FROM (SELECT d.chunks FROM ibid.documents d WHERE d.chunks > 0 AND `+c.sql+` LIMIT $1 + 1) AS let`, c.args...).Scan(&let)
	return let, err
}

// nearest finds the chunks. The inner select finds somewhat more than k by the
// server's distance, with those that are as far away as the last of them; of
// these the ids decide.
func nearest(ctx context.Context, s *session, used vectorSpace, unit []float32, k int, f retrieve.Filter, exact bool) ([]string, error) {
	n := k + moreRows
	c := where(f, unit, n)
	distance := used.distance("v.vector", "$1")
	from, order, rows := used.table()+` v`, distance, `LIMIT $2`
	filtered := c.sql != "true"
	var err error
	switch {
	case exact:
		// A sum is nothing that an index orders.
		order, rows = distance+` + 0`, `FETCH FIRST $2 ROWS WITH TIES`
		if filtered {
			// The documents first, and of each its own part of the table.
			from = `ibid.documents d JOIN ` + from + ` ON v.key BETWEEN d.key << 20 AND (d.key << 20) + 1048575`
			err = set(ctx, s, "enable_seqscan", "off", "enable_hashjoin", "off", "enable_mergejoin", "off")
		}
	default:
		if filtered {
			from += ` JOIN ibid.documents d ON d.key = v.key >> 20`
		}
		// The planner does not know how little of an index scan a limit needs.
		err = set(ctx, s, "enable_seqscan", "off", "enable_sort", "off", "enable_hashjoin", "off", "enable_mergejoin", "off",
			"hnsw.ef_search", fmt.Sprint(min(max(searchWidth*n, leastWidth), mostWidth)),
			"hnsw.iterative_scan", "relaxed_order", "hnsw.max_scan_tuples", fmt.Sprint(s.e.scanned))
	}
	if err != nil {
		return nil, err
	}
	found, err := s.query(ctx, `WITH near AS MATERIALIZED (SELECT v.key, v.vector, `+distance+` AS far FROM `+from+` WHERE `+c.sql+` ORDER BY `+order+` `+rows+`)
		SELECT d.id, n.key, vec.vector_send(n.vector) FROM near n JOIN ibid.documents d ON d.key = n.key >> 20
		ORDER BY n.far, d.id || convert_to('#' || (n.key & 1048575), 'UTF8') LIMIT $2`, c.args...)
	if err != nil {
		return nil, err
	}
	ranked, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (r ranked, err error) {
		var id, packed []byte
		var key int64
		if err := row.Scan(&id, &key, &packed); err != nil {
			return r, err
		}
		r.id = retrieve.ChunkID(string(id), int(key&maxChunks))
		v, err := unpackVector(packed)
		for i := range v {
			r.score += float64(v[i]) * float64(unit[i])
		}
		return r, err
	})
	return best(ranked, k), err
}

// set changes settings, each a name and a value, until the transaction ends.
func set(ctx context.Context, s *session, settings ...any) error {
	calls := make([]string, len(settings)/2)
	for i := range calls {
		calls[i] = fmt.Sprintf("set_config($%d, $%d, true)", 2*i+1, 2*i+2)
	}
	_, err := s.exec(ctx, `SELECT `+strings.Join(calls, ", "), settings...)
	return err
}

// A ranked chunk has a score, which is the higher the better it is.
type ranked struct {
	id    string
	score float64
}

// best gives the ids of the k best, those of equal ones in order.
func best(all []ranked, k int) []string {
	slices.SortFunc(all, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.id, b.id)) })
	ids := make([]string, min(k, len(all)))
	for i := range ids {
		ids[i] = all[i].id
	}
	return ids
}
