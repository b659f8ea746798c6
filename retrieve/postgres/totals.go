package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// Totals are counts over everything stored, or by how much they change.
type totals struct{ documents, chunks, length int64 }

func (t *totals) add(u totals) {
	t.documents += u.documents
	t.chunks += u.chunks
	t.length += u.length
}

// How many rows the totals have before some are made one, about, and how many
// then are at a time.
const (
	foldEvery = 64
	foldMost  = 1024
)

// changed tells a change. It adds a row to the totals, whose sum grows with every
// transaction that becomes visible, in whatever order they do: no reader misses
// one, and no writer waits for another.
func (e *Engine) changed(ctx context.Context, s *session, by totals) error {
	_, err := s.exec(ctx, `INSERT INTO ibid.totals (revision, documents, chunks, length) VALUES (1, $1, $2, $3)`, by.documents, by.chunks, by.length)
	if err != nil || rand.N(foldEvery) > 0 {
		return err
	}
	return fold(ctx, s)
}

// fold makes many rows of the totals one. A row that another transaction is about
// to make one of is left to it.
func fold(ctx context.Context, s *session) error {
	_, err := s.exec(ctx, `WITH gone AS (
			DELETE FROM ibid.totals WHERE ctid = ANY (ARRAY (SELECT ctid FROM ibid.totals LIMIT $1 FOR UPDATE SKIP LOCKED))
			RETURNING revision, documents, chunks, length)
		INSERT INTO ibid.totals SELECT coalesce(sum(revision), 0), coalesce(sum(documents), 0), coalesce(sum(chunks), 0), coalesce(sum(length), 0) FROM gone`, foldMost)
	return err
}

func readTotals(ctx context.Context, s *session) (t totals, revision int64, err error) {
	err = s.row(ctx, `SELECT coalesce(sum(revision), 0)::bigint, coalesce(sum(documents), 0)::bigint, coalesce(sum(chunks), 0)::bigint, coalesce(sum(length), 0)::bigint FROM ibid.totals`).
		Scan(&revision, &t.documents, &t.chunks, &t.length)
	return t, revision, err
}

// Revision grows with every durable change, by whichever server.
func (e *Engine) Revision(ctx context.Context) (revision int64, err error) {
	err = e.view(ctx, func(s *session) (err error) {
		_, revision, err = readTotals(ctx, s)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the revision: %w", err)
	}
	return revision, nil
}
