package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"ibid/ingest"
	"ibid/retrieve"
)

const unembedded = `SELECT c.key, c.start, c.end, c.page, c.tokens, c.sum, c.heading, c.anchor, c.terms, c.text
	FROM chunks c LEFT JOIN vectors_next v ON v.key = c.key WHERE v.key IS NULL AND c.key > ? ORDER BY c.key LIMIT ?`

// Unembedded gives up to n chunks that have no vector of the new space yet.
func (e *Engine) Unembedded(ctx context.Context, space string, n int) (out []retrieve.Candidate, err error) {
	err = e.update(ctx, func(tx *sql.Tx) error {
		next, err := getMeta(ctx, tx, metaNext)
		if err != nil && !errors.Is(err, errRow) {
			return err
		}
		if next != space || err != nil {
			if _, err := tx.ExecContext(ctx, `DELETE FROM vectors_next`); err != nil {
				return err
			}
			if err := setMeta(ctx, tx, metaNext, space); err != nil {
				return err
			}
		}
		// Chunks are embedded in the order of their keys, so those without a
		// vector follow the last that has one; what a writer put in between is
		// found by looking from the beginning.
		var last int64
		if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(key), 0) FROM vectors_next`).Scan(&last); err != nil {
			return err
		}
		if out, err = readUnembedded(ctx, tx, last, n); err == nil && len(out) == 0 {
			out, err = readUnembedded(ctx, tx, 0, n)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find chunks without a vector: %w", err)
	}
	return out, nil
}

// readUnembedded gives up to n chunks behind a key. Damaged ones are passed
// over: their documents are set apart, and SwitchSpace knows of them.
func readUnembedded(ctx context.Context, tx *sql.Tx, after int64, n int) (out []retrieve.Candidate, err error) {
	type found struct {
		chunkRow
		key int64
	}
	var all []found
	for more := true; more && len(all) < n; {
		rows, err := tx.QueryContext(ctx, unembedded, after, n-len(all))
		if err != nil {
			return nil, err
		}
		more = false
		for rows.Next() {
			more = true
			c, key, err := readChunk(rows)
			if err != nil && (!errors.Is(err, errRow) || key <= after) {
				return nil, errors.Join(fmt.Errorf("chunk %d: %w", key, err), rows.Close())
			}
			if after = key; err == nil {
				all = append(all, found{c, key})
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
	}
	for _, f := range all {
		document, ordinal := f.key>>ordinalBits, int(f.key&maxChunks)
		c := retrieve.Candidate{Chunk: f.Chunk}
		err := tx.QueryRowContext(ctx, `SELECT id, root, path, title, format, digest FROM documents WHERE key = ?`, document).
			Scan(&c.Document, &c.Root, &c.Path, &c.Title, &c.Format, &c.Digest)
		if err != nil {
			return nil, fmt.Errorf("find the document of chunk %d: %w", f.key, err)
		}
		c.ID, c.Ordinal = retrieve.ChunkID(c.Document, ordinal), ordinal
		out = append(out, c)
	}
	return out, nil
}

// Prepared counts the chunks that have a vector of the new space, and all.
func (e *Engine) Prepared(ctx context.Context, space string) (done, total int, err error) {
	err = e.view(ctx, func(tx *sql.Tx) error {
		next, err := getMeta(ctx, tx, metaNext)
		if err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT coalesce(sum(chunks), 0) FROM documents`).Scan(&total); err != nil {
			return err
		}
		if done = 0; next != space {
			return nil
		}
		return tx.QueryRowContext(ctx, `SELECT count(*) FROM vectors_next`).Scan(&done)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count the prepared vectors: %w", err)
	}
	return done, total, nil
}

// AddVectors keeps vectors of the new space beside those in use.
func (e *Engine) AddVectors(ctx context.Context, space string, chunks []retrieve.Candidate, vectors [][]float32) error {
	if len(chunks) != len(vectors) {
		return fmt.Errorf("keep vectors of %s: %d vectors for %d chunks", space, len(vectors), len(chunks))
	}
	units := make([][]float32, len(vectors))
	for i, v := range vectors {
		unit, err := retrieve.Unit(v, len(vectors[0]))
		if err != nil {
			return fmt.Errorf("keep the vector of %s: %w", chunks[i].ID, err)
		}
		units[i] = unit
	}
	err := e.update(ctx, func(tx *sql.Tx) error {
		next, err := getMeta(ctx, tx, metaNext)
		if err != nil {
			return err
		}
		if next != space {
			return fmt.Errorf("another process prepares the space %s: run one re-embedding at a time", next)
		}
		for i, c := range chunks {
			key, err := keyOf(ctx, tx, c.Document)
			if err != nil {
				return err
			}
			key = chunkKey(key, c.Ordinal)
			var title string
			var now ingest.Chunk
			err = tx.QueryRowContext(ctx, `SELECT d.title, c.heading, c.text FROM chunks c JOIN documents d ON d.key = c.key >> ? WHERE c.key = ?`, ordinalBits, key).
				Scan(&title, &now.Heading, &now.Text)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			if err != nil || ingest.EmbeddingText(title, now) != ingest.EmbeddingText(c.Title, c.Chunk) {
				continue
			}
			if err := insertVector(ctx, tx, "vectors_next", key, retrieve.PackVector(units[i])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep vectors of %s: %w", space, err)
	}
	return nil
}

// standIn gives every chunk that is left, all of them damaged, the vector of
// another, so that the rows stay complete: a chunk whose sum does not fit is
// never searched, and its document stays named as damaged.
func standIn(ctx context.Context, tx *sql.Tx) error {
	keys, err := column[int64](ctx, tx, `SELECT c.key FROM chunks c LEFT JOIN vectors_next v ON v.key = c.key WHERE v.key IS NULL`)
	if err != nil || len(keys) == 0 {
		return err
	}
	var vector []byte
	err = tx.QueryRowContext(ctx, `SELECT vector FROM vectors_next LIMIT 1`).Scan(&vector)
	if errors.Is(err, sql.ErrNoRows) {
		return errors.New("every stored document is damaged: remove their folders with 'ibid forget', and ingest them again")
	}
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := insertVector(ctx, tx, "vectors_next", key, vector); err != nil {
			return err
		}
	}
	return nil
}

// SwitchSpace puts the prepared vectors in place of those in use, in one
// durable transaction.
func (e *Engine) SwitchSpace(ctx context.Context, space string) (switched bool, err error) {
	err = e.update(ctx, func(tx *sql.Tx) error {
		switched = false
		next, err := getMeta(ctx, tx, metaNext)
		if err != nil {
			return err
		}
		if next != space {
			return nil
		}
		if left, err := readUnembedded(ctx, tx, 0, 1); err != nil || len(left) > 0 {
			return err
		}
		if err := standIn(ctx, tx); err != nil {
			return err
		}
		for _, statement := range []string{
			`DELETE FROM vectors`,
			`INSERT INTO vectors SELECT * FROM vectors_next`,
			`DELETE FROM vectors_next`,
		} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		if err := setMeta(ctx, tx, metaSpace, space); err != nil {
			return err
		}
		if err := setMeta(ctx, tx, metaNext, ""); err != nil {
			return err
		}
		if _, err := changed(ctx, tx, changedAll, false); err != nil {
			return err
		}
		switched = true
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("change to the embedding space %s: %w", space, err)
	}
	return switched, nil
}
