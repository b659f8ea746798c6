package state

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"ibid/ingest"
	"ibid/retrieve"
)

// Unembedded gives the texts of stored chunks that have no vector of the space
// yet, each once, up to n at a time, those of the latest documents first.
func (s *Store) Unembedded(ctx context.Context, space string, n int) iter.Seq2[[]retrieve.ChunkText, error] {
	return func(yield func([]retrieve.ChunkText, error) bool) {
		for last := int64(math.MaxInt64); ; {
			var texts []retrieve.ChunkText
			err := s.view(ctx, func(t *tx) { texts, last = t.unembedded(space, last, n) })
			if err == nil && len(texts) == 0 || !yield(texts, err) || err != nil {
				return
			}
		}
	}
}

// unembedded returns texts of chunks before a key, and the key of the last.
func (t *tx) unembedded(space string, before int64, n int) (texts []retrieve.ChunkText, last int64) {
	all := t.spaces()
	seen := make(map[retrieve.Digest]bool)
	last = before
	// Subqueries, because PostgreSQL would read whole tables for a join.
	for r := range t.rows(`SELECT c.key, c.digest, c.heading, c.text, (SELECT d.title FROM ibid.documents d WHERE d.number = c.key >> 20)
		FROM ibid.chunks c WHERE c.key < ? AND (SELECT count(*) FROM ibid.vectors v WHERE v.digest = c.digest AND v.space = ?) = 0
		ORDER BY c.key DESC LIMIT ?`, before, all.named(space).Number, n) {
		var c chunkRow
		var title []byte // of a missing row, nil
		check(r.Scan(&c.key, &c.digest, &c.Heading, &c.Text, &title))
		last = c.key
		digest := retrieve.Digest(append(c.digest, make([]byte, len(retrieve.Digest{}))...))
		if !seen[digest] {
			seen[digest] = true
			texts = append(texts, retrieve.ChunkText{Digest: digest, Text: ingest.EmbeddingText(string(title), c.Chunk)})
		}
	}
	return texts, last
}

// Embedded counts the chunks that have a vector of the space, and all.
func (s *Store) Embedded(ctx context.Context, space string) (done, total int, err error) {
	err = s.view(ctx, func(t *tx) {
		all := t.spaces()
		check(t.row(`SELECT count(*), (SELECT count(*) FROM ibid.chunks) FROM ibid.chunks c
			WHERE EXISTS (SELECT 1 FROM ibid.vectors v WHERE v.digest = c.digest AND v.space = ?)`, all.named(space).Number).Scan(&done, &total))
	})
	return done, total, err
}

// AddVectors stores vectors of a space next to those in use.
func (s *Store) AddVectors(ctx context.Context, name string, digests []retrieve.Digest, vectors [][]float32) error {
	if len(digests) != len(vectors) {
		return fmt.Errorf("there are %d chunks and %d vectors", len(digests), len(vectors))
	}
	if len(digests) == 0 {
		return nil
	}
	rows := make(map[string][]any, len(digests))
	for i, d := range digests {
		unit, err := retrieve.Unit(vectors[i], len(vectors[0]))
		if err != nil {
			return fmt.Errorf("the vector %d: %w", i+1, err)
		}
		rows[string(d[:])] = []any{d, retrieve.PackVector(unit)}
	}
	return s.update(ctx, func(t *tx) {
		t.lockShared("library")
		t.insertVectors(name, len(vectors[0]), t.stillUsed(rows))
	})
}

// stillUsed returns the vectors whose digests any chunk has. They are locked
// until the transaction ends.
func (t *tx) stillUsed(rows map[string][]any) map[string][]any {
	used := make(map[string][]any, len(rows))
	for part := range slices.Chunk(slices.Sorted(maps.Keys(rows)), maxList) {
		list, args := in(part)
		t.s.dialect.lockVectors(t, list, args)
		for _, d := range column[string](t, `SELECT DISTINCT digest FROM ibid.chunks WHERE digest IN `+list, args...) {
			used[d] = rows[d]
		}
	}
	return used
}

// SwitchSpace makes the space the one in use and deletes the vectors of all
// others.
func (s *Store) SwitchSpace(ctx context.Context, name string) (switched bool, err error) {
	var kept space
	err = s.update(ctx, func(t *tx) {
		t.lock("library")
		all := t.spaces()
		kept = all.named(name)
		switched = !value[bool](t, `SELECT EXISTS (SELECT 1 FROM ibid.chunks c
			WHERE NOT EXISTS (SELECT 1 FROM ibid.vectors v WHERE v.digest = c.digest AND v.space = ?))`, kept.Number)
		if switched && kept.Number == 0 { // there are no chunks
			kept = *all.add(name)
		}
		if switched && (all.Used != kept.Number || len(all.All) > 1) {
			all.use(kept)
			t.setSpaces(all)
			t.changed(change{})
		}
	})
	if err == nil && switched {
		err = s.dropSpaces(ctx, kept.Number)
	}
	return switched && err == nil, err
}

// vectorsAtOnce is how many vectors one transaction deletes.
const vectorsAtOnce = 5000

// dropSpaces deletes the vectors of all spaces but one, in several transactions.
// What an interruption leaves is deleted the next time, or by Compact; no space
// gets a number again.
func (s *Store) dropSpaces(ctx context.Context, kept int64) error {
	for from, last := int64(0), int64(1); from < last; from += vectorsAtOnce {
		err := s.update(ctx, func(t *tx) {
			last = value[int64](t, `SELECT coalesce(max(number), 0) FROM ibid.vectors`)
			t.exec(`DELETE FROM ibid.vectors WHERE number > ? AND number <= ? AND space <> ?`, from, from+vectorsAtOnce, kept)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
