package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ibid/ingest"
	"ibid/retrieve"
)

// Unembedded gives up to n chunks that have no vector of the new space yet.
func (e *Engine) Unembedded(ctx context.Context, space string, n int) (out []retrieve.Candidate, err error) {
	err = e.update(ctx, func(s *session) error {
		out = nil
		spaces, err := readSpaces(ctx, s)
		if err != nil {
			return err
		}
		next, ok := pick(spaces, true)
		if !ok || next.name != space {
			if err := e.lockLibrary(ctx, s); err != nil {
				return err
			}
			if spaces, err = readSpaces(ctx, s); err != nil {
				return err
			}
			if next, ok = pick(spaces, true); ok && next.name != space {
				if err := dropSpace(ctx, s, next); err != nil {
					return err
				}
				ok = false
			}
			if !ok {
				next = vectorSpace{name: space, next: true}
				if err := s.row(ctx, `INSERT INTO ibid.spaces (name, next) VALUES ($1, true) RETURNING number`, space).Scan(&next.number); err != nil {
					return err
				}
			}
		}
		// Chunks are embedded in the order of their keys, so those without a
		// vector follow the last that has one; what a writer put in between is
		// found by looking from the beginning.
		var last int64
		if next.dimensions > 0 {
			if err := s.row(ctx, `SELECT coalesce(max(key), 0) FROM `+next.table()).Scan(&last); err != nil {
				return err
			}
		}
		if out, err = readUnembedded(ctx, s, next, last, n); err == nil && len(out) == 0 && last > 0 {
			out, err = readUnembedded(ctx, s, next, 0, n)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find chunks without a vector: %w", err)
	}
	return out, nil
}

// readUnembedded gives up to n chunks behind a key.
func readUnembedded(ctx context.Context, s *session, next vectorSpace, after int64, n int) ([]retrieve.Candidate, error) {
	missing := `true`
	if next.dimensions > 0 {
		missing = `NOT EXISTS (SELECT 1 FROM ` + next.table() + ` v WHERE v.key = c.key)`
	}
	rows, err := s.query(ctx, `SELECT c.key, d.id, d.root, d.path, d.title, d.format, d.digest, c.start, c."end", c.place, c.tokens, c.heading, c.anchor,
			substring(t.text FROM c.start + 1 FOR c."end" - c.start)
		FROM ibid.chunks c JOIN ibid.documents d ON d.key = c.key >> 20 JOIN ibid.texts t ON t.document = d.key
		WHERE c.key > $1 AND `+missing+` ORDER BY c.key LIMIT $2`, after, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c retrieve.Candidate, err error) {
		var key int64
		var place int32
		var id, root, path, title, format, digest, heading, anchor, text []byte
		err = row.Scan(&key, &id, &root, &path, &title, &format, &digest, &c.Start, &c.End, &place, &c.Tokens, &heading, &anchor, &text)
		c.Document, c.Ordinal = string(id), int(key&maxChunks)
		c.ID = retrieve.ChunkID(c.Document, c.Ordinal)
		setPlace(&c.Chunk, place)
		c.Root, c.Path, c.Title, c.Format, c.Digest = string(root), string(path), string(title), string(format), string(digest)
		c.Heading, c.Anchor, c.Text = string(heading), string(anchor), string(text)
		return c, err
	})
}

// Prepared counts the chunks that have a vector of the new space, and all.
func (e *Engine) Prepared(ctx context.Context, space string) (done, total int, err error) {
	err = e.view(ctx, func(s *session) error {
		all, _, err := readTotals(ctx, s)
		if err != nil {
			return err
		}
		done, total = 0, int(all.chunks)
		spaces, err := readSpaces(ctx, s)
		next, ok := pick(spaces, true)
		if err != nil || !ok || next.name != space || next.dimensions == 0 {
			return err
		}
		return s.row(ctx, `SELECT count(*) FROM `+next.table()).Scan(&done)
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
	if len(chunks) == 0 {
		return nil
	}
	dimensions := len(vectors[0])
	units := make([][]float32, len(vectors))
	for i, v := range vectors {
		unit, err := retrieve.Unit(v, dimensions)
		if err != nil {
			return fmt.Errorf("keep the vector of %s: %w", chunks[i].ID, err)
		}
		units[i] = unit
	}
	err := e.withTable(ctx, true, dimensions, func() error {
		return e.update(ctx, func(s *session) error {
			ids := make([]string, len(chunks))
			for i, c := range chunks {
				ids[i] = c.Document
			}
			if err := e.lockDocuments(ctx, s, ids...); err != nil {
				return err
			}
			spaces, err := readSpaces(ctx, s)
			if err != nil {
				return err
			}
			next, ok := pick(spaces, true)
			if !ok || next.name != space {
				return fmt.Errorf("another process prepares the space %q: run one re-embedding at a time", next.name)
			}
			if next.dimensions != dimensions {
				return errTable
			}
			if wanted, err := e.wantsIndex(ctx, s, next); err != nil {
				return err
			} else if wanted {
				return errIndex
			}
			var keys []int64
			var flat []float32
			for i, c := range chunks {
				var document int64
				var title, heading, text []byte
				err := s.row(ctx, `SELECT d.key, d.title, c.heading, substring(t.text FROM c.start + 1 FOR c."end" - c.start)
					FROM ibid.documents d JOIN ibid.chunks c ON c.key = (d.key << 20) + $2::bigint JOIN ibid.texts t ON t.document = d.key
					WHERE sha256(d.id) = sha256($1)`, []byte(c.Document), c.Ordinal).Scan(&document, &title, &heading, &text)
				if errors.Is(err, pgx.ErrNoRows) {
					continue
				}
				if err != nil {
					return err
				}
				now := ingest.Chunk{Heading: string(heading), Text: string(text)}
				if ingest.EmbeddingText(string(title), now) != ingest.EmbeddingText(c.Title, c.Chunk) {
					continue
				}
				keys, flat = append(keys, chunkKey(document, c.Ordinal)), append(flat, units[i]...)
			}
			return insertVectors(ctx, s, next, keys, flat)
		})
	})
	if err != nil {
		return fmt.Errorf("keep vectors of %s: %w", space, err)
	}
	return nil
}

// SwitchSpace puts the prepared vectors in place of those in use, in one
// durable transaction: their table takes the other's part.
func (e *Engine) SwitchSpace(ctx context.Context, space string) (switched bool, err error) {
	err = e.update(ctx, func(s *session) error {
		switched = false
		if err := e.lockLibrary(ctx, s); err != nil {
			return err
		}
		spaces, err := readSpaces(ctx, s)
		if err != nil {
			return err
		}
		next, ok := pick(spaces, true)
		if !ok || next.name != space {
			return nil
		}
		if left, err := readUnembedded(ctx, s, next, 0, 1); err != nil || len(left) > 0 {
			return err
		}
		if used, ok := pick(spaces, false); ok {
			if err := dropSpace(ctx, s, used); err != nil {
				return err
			}
		}
		if _, err := s.exec(ctx, `UPDATE ibid.spaces SET next = false WHERE number = $1`, next.number); err != nil {
			return err
		}
		switched = true
		return e.changed(ctx, s, totals{})
	})
	if err != nil {
		return false, fmt.Errorf("change to the embedding space %s: %w", space, err)
	}
	return switched, nil
}
