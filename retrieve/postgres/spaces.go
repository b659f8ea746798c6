package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ibid/retrieve"
)

// A vectorSpace is a table of vectors.
type vectorSpace struct {
	number     int
	name       string
	dimensions int // 0: there is no table yet
	indexed    bool
	next       bool
}

// What pgvector can do.
const (
	maxDimensions        = 16_000 // of a vector
	maxIndexedDimensions = 2_000  // by HNSW, as a vector
	maxHalvedDimensions  = 4_000  // by HNSW, as a vector of half precision
	// maxPlainDimensions fit into a row in its place; longer ones are apart from it.
	maxPlainDimensions = 1_900
)

func (v vectorSpace) table() string { return fmt.Sprintf("ibid.vectors_%d", v.number) }

// distance is the cosine distance of the column to a parameter, as the index has it.
func (v vectorSpace) distance(column, parameter string) string {
	if v.dimensions <= maxIndexedDimensions || v.dimensions > maxHalvedDimensions {
		return fmt.Sprintf("(%s OPERATOR(vec.<=>) %s::real[]::vec.vector)", column, parameter)
	}
	return fmt.Sprintf("(%s::vec.halfvec(%d) OPERATOR(vec.<=>) %s::real[]::vec.vector::vec.halfvec(%[2]d))", column, v.dimensions, parameter)
}

func readSpaces(ctx context.Context, s *session) ([]vectorSpace, error) {
	rows, err := s.query(ctx, `SELECT number, name, coalesce(dimensions, 0), indexed, next FROM ibid.spaces ORDER BY next`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (v vectorSpace, err error) {
		err = row.Scan(&v.number, &v.name, &v.dimensions, &v.indexed, &v.next)
		return v, err
	})
}

// readUsed gives the space in use with the totals; there is nothing to search
// where these have no chunks.
func readUsed(ctx context.Context, s *session) (v vectorSpace, t totals, err error) {
	err = s.row(ctx, `SELECT number, name, dimensions, indexed, t.documents, t.chunks, t.length FROM ibid.spaces,
		(SELECT sum(documents)::bigint AS documents, sum(chunks)::bigint AS chunks, sum(length)::bigint AS length FROM ibid.totals) AS t
		WHERE NOT next AND dimensions IS NOT NULL AND t.chunks > 0`).
		Scan(&v.number, &v.name, &v.dimensions, &v.indexed, &t.documents, &t.chunks, &t.length)
	if errors.Is(err, pgx.ErrNoRows) {
		return v, totals{}, nil
	}
	return v, t, err
}

// pick gives the space in use, or the one that is being prepared.
func pick(spaces []vectorSpace, next bool) (v vectorSpace, ok bool) {
	i := slices.IndexFunc(spaces, func(v vectorSpace) bool { return v.next == next })
	if i < 0 {
		return vectorSpace{}, false
	}
	return spaces[i], true
}

// Space is the embedding space of the stored vectors, empty while there are no
// documents.
func (e *Engine) Space(ctx context.Context) (space string, err error) {
	err = e.view(ctx, func(s *session) error {
		err := s.row(ctx, `SELECT name FROM ibid.spaces WHERE NOT next AND EXISTS (SELECT 1 FROM ibid.documents)`).Scan(&space)
		if errors.Is(err, pgx.ErrNoRows) {
			space, err = "", nil
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the embedding space: %w", err)
	}
	return space, nil
}

// SetSpace sets the space of an engine without documents. Where documents are,
// a space other than theirs is a [*retrieve.SpaceError].
func (e *Engine) SetSpace(ctx context.Context, space string) error {
	if space == "" {
		return errors.New("set the embedding space: its name is empty")
	}
	err := e.update(ctx, func(s *session) error {
		spaces, err := readSpaces(ctx, s)
		if used, ok := pick(spaces, false); err != nil || ok && used.name == space {
			return err
		}
		if err := e.lockLibrary(ctx, s); err != nil {
			return err
		}
		if spaces, err = readSpaces(ctx, s); err != nil {
			return err
		}
		if used, ok := pick(spaces, false); ok {
			if used.name == space {
				return nil
			}
			stored := false
			if err := s.row(ctx, `SELECT EXISTS (SELECT 1 FROM ibid.documents)`).Scan(&stored); err != nil {
				return err
			}
			if stored {
				return &retrieve.SpaceError{Stored: used.name, Wanted: space}
			}
			if err := dropSpace(ctx, s, used); err != nil {
				return err
			}
		}
		_, err = s.exec(ctx, `INSERT INTO ibid.spaces (name, next) VALUES ($1, false)`, space)
		return err
	})
	if err != nil {
		return fmt.Errorf("set the embedding space: %w", err)
	}
	return nil
}

func dropSpace(ctx context.Context, s *session, v vectorSpace) error {
	if _, err := s.exec(ctx, `DELETE FROM ibid.spaces WHERE number = $1`, v.number); err != nil {
		return err
	}
	_, err := s.exec(ctx, `DROP TABLE IF EXISTS `+v.table())
	return err
}

// lay makes the table of a space, now that its dimensions are known. It is done
// alone, and anew where the library has no vector of other dimensions any more.
func (e *Engine) lay(ctx context.Context, next bool, dimensions int) error {
	if dimensions > maxDimensions {
		return fmt.Errorf("its vectors have %d dimensions, and pgvector stores %d at most", dimensions, maxDimensions)
	}
	return e.update(ctx, func(s *session) error {
		if err := e.lockLibrary(ctx, s); err != nil {
			return err
		}
		spaces, err := readSpaces(ctx, s)
		v, ok := pick(spaces, next)
		if err != nil || !ok || v.dimensions == dimensions {
			return err
		}
		if v.dimensions != 0 {
			var any bool
			if err := s.row(ctx, `SELECT EXISTS (SELECT 1 FROM `+v.table()+`)`).Scan(&any); err != nil {
				return err
			}
			if any {
				return fmt.Errorf("its vectors have %d dimensions, and the stored ones have %d", dimensions, v.dimensions)
			}
			if _, err := s.exec(ctx, `DROP TABLE `+v.table()); err != nil {
				return err
			}
		}
		if _, err := s.exec(ctx, `UPDATE ibid.spaces SET dimensions = $2, indexed = false WHERE number = $1`, v.number, dimensions); err != nil {
			return err
		}
		v.dimensions = dimensions
		statements := []string{fmt.Sprintf(`CREATE TABLE %s (key bigint PRIMARY KEY, vector vec.vector(%d) NOT NULL)`, v.table(), dimensions)}
		if dimensions <= maxPlainDimensions {
			statements = append(statements, fmt.Sprintf(`ALTER TABLE %s ALTER COLUMN vector SET STORAGE PLAIN`, v.table()))
		}
		for _, statement := range statements {
			if _, err := s.exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// wantsIndex says whether the vectors are so many that they want an index, and
// have none. Fewer are compared one by one: then a search is exact, and storing
// is several times as fast.
func (e *Engine) wantsIndex(ctx context.Context, s *session, v vectorSpace) (bool, error) {
	if v.indexed || v.dimensions == 0 || v.dimensions > maxHalvedDimensions {
		return false, nil
	}
	all, _, err := readTotals(ctx, s)
	if err != nil || all.chunks <= e.few {
		return false, err
	}
	var many bool
	err = s.row(ctx, `SELECT EXISTS (SELECT 1 FROM `+v.table()+` OFFSET $1)`, e.few).Scan(&many)
	return many, err
}

// index makes the index of the vectors of a space. Who writes waits for it.
func (e *Engine) index(ctx context.Context, next bool) error {
	err := e.update(ctx, func(s *session) error {
		if err := e.lockLibrary(ctx, s); err != nil {
			return err
		}
		spaces, err := readSpaces(ctx, s)
		if err != nil {
			return err
		}
		v, ok := pick(spaces, next)
		if !ok {
			return nil
		}
		if wanted, err := e.wantsIndex(ctx, s, v); err != nil || !wanted {
			return err
		}
		on := `(vector vec.vector_cosine_ops)`
		if v.dimensions > maxIndexedDimensions {
			on = fmt.Sprintf(`((vector::vec.halfvec(%d)) vec.halfvec_cosine_ops)`, v.dimensions)
		}
		if _, err := s.exec(ctx, `CREATE INDEX ON `+v.table()+` USING hnsw `+on); err != nil {
			return err
		}
		_, err = s.exec(ctx, `UPDATE ibid.spaces SET indexed = true WHERE number = $1`, v.number)
		return err
	})
	if err != nil {
		return fmt.Errorf("make the index of the vectors: %w", err)
	}
	return nil
}
