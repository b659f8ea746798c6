package state

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
)

// A filling is how far the vectors of a new space are, as far as this process
// knows. Every answer is found without it; it saves reading what is done again.
type filling struct {
	space string
	// All chunks up to this key had a vector when they were looked at last.
	after int64
	// done and total were counted at a time, which took some.
	done, total int
	at          time.Time
	took        time.Duration
}

// fillingOf returns what is known about a space.
func (s *Store) fillingOf(space string) filling {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.filling.space != space {
		s.filling = filling{space: space}
	}
	return s.filling
}

func (s *Store) setFilling(f filling) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.filling = f
}

// scanned is how many chunks Unembedded looks at in one transaction.
const scanned = 20_000

// Unembedded returns up to n texts of stored chunks that have no vector of the
// space yet, each once.
func (s *Store) Unembedded(ctx context.Context, space string, n int) (texts []retrieve.ChunkText, err error) {
	f := s.fillingOf(space)
	for start := f.after; ; {
		var next int64
		err = s.view(ctx, func(t *tx) (err error) {
			texts, next, err = t.unembedded(space, f.after, n)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("looking for chunks to embed with %s: %w", space, err)
		}
		if next > 0 {
			f.after = next
		} else if start > 0 && len(texts) == 0 {
			// Chunks of documents that were replaced meanwhile have earlier keys.
			f.after, start = 0, 0
			continue
		}
		if len(texts) > 0 || next == 0 {
			s.setFilling(f)
			return texts, nil
		}
	}
}

// unembedded looks at chunks after a key. Next is the key up to which all have a
// vector; 0 if there are none after that.
func (t *tx) unembedded(space string, after int64, n int) (texts []retrieve.ChunkText, next int64, err error) {
	all, err := t.spaces()
	if err != nil {
		return nil, 0, err
	}
	seen := make(map[retrieve.Digest]bool)
	looked := 0
	err = t.each(func(r scanner) error {
		var c chunkRow
		var title []byte // of a missing row, nil
		var has bool
		if err := r.Scan(&c.key, &c.digest, &c.Heading, &c.Text, &title, &has); err != nil {
			return err
		}
		if looked++; has && len(texts) == 0 {
			next = c.key
		}
		digest := retrieve.Digest(append(c.digest, make([]byte, len(retrieve.Digest{}))...))
		if !has && len(texts) < n && !seen[digest] {
			seen[digest] = true
			texts = append(texts, retrieve.ChunkText{Digest: digest, Text: ingest.EmbeddingText(string(title), c.Chunk)})
		}
		return nil
	}, `SELECT c.key, c.digest, c.heading, c.text, d.title, EXISTS (SELECT 1 FROM ibid.vectors v WHERE v.digest = c.digest AND v.space = ?)
		FROM ibid.chunks c LEFT JOIN ibid.documents d ON d.number = c.key >> 20 WHERE c.key > ? ORDER BY c.key LIMIT ?`,
		all.named(space).Number, after, scanned)
	if looked < scanned && len(texts) == 0 {
		next = 0
	}
	return texts, next, err
}

// recount is how many times as long as counting took its result is used.
const recount = 20

// Embedded counts the chunks that have a vector of the space, and all. In a large
// library the result may be some seconds old.
func (s *Store) Embedded(ctx context.Context, space string) (done, total int, err error) {
	f := s.fillingOf(space)
	if time.Since(f.at) < recount*f.took-time.Second {
		return min(f.done, f.total), f.total, nil
	}
	start := time.Now()
	err = s.view(ctx, func(t *tx) error {
		all, err := t.spaces()
		if err != nil {
			return err
		}
		return t.row(`SELECT count(*), (SELECT count(*) FROM ibid.chunks) FROM ibid.chunks c
			WHERE EXISTS (SELECT 1 FROM ibid.vectors v WHERE v.digest = c.digest AND v.space = ?)`, all.named(space).Number).Scan(&done, &total)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("counting the chunks embedded with %s: %w", space, err)
	}
	f.done, f.total, f.at, f.took = done, total, time.Now(), time.Since(start)
	s.setFilling(f)
	return done, total, nil
}

// AddVectors stores vectors of a space next to those in use.
func (s *Store) AddVectors(ctx context.Context, name string, digests []retrieve.Digest, vectors [][]float32) error {
	err := s.addVectors(ctx, name, digests, vectors)
	if err != nil {
		return fmt.Errorf("storing vectors of %s: %w", name, err)
	}
	return nil
}

func (s *Store) addVectors(ctx context.Context, name string, digests []retrieve.Digest, vectors [][]float32) error {
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
	return s.update(ctx, func(t *tx) error {
		// Not shared: the list of spaces may change.
		lock := t.lockShared
		all, err := t.spaces()
		if err != nil {
			return err
		}
		if all.named(name).Number == 0 {
			lock = t.lock
		}
		if err := lock("library"); err != nil {
			return err
		}
		if all, err = t.spaces(); err != nil {
			return err
		}
		known := all.named(name).Number != 0
		of := all.add(name)
		if !known {
			if err := t.setSpaces(all); err != nil {
				return err
			}
		}
		if err := t.hasDimensions(of, len(vectors[0])); err != nil {
			return err
		}
		stored, err := t.stillUsed(rows)
		if err != nil {
			return err
		}
		return t.insertVectors(of, stored)
	})
}

// stillUsed returns the vectors whose digests any chunk has. They are locked
// until the transaction ends.
func (t *tx) stillUsed(rows map[string][]any) (map[string][]any, error) {
	used := make(map[string][]any, len(rows))
	for part := range slices.Chunk(sortedKeys(rows), maxList) {
		list, args := in(part)
		if err := t.s.dialect.lockVectors(t, list, args); err != nil {
			return nil, err
		}
		found, err := column[string](t, `SELECT DISTINCT digest FROM ibid.chunks WHERE digest IN `+list, args...)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			used[d] = rows[d]
		}
	}
	return used, nil
}

// SwitchSpace makes the space the one in use and deletes the vectors of all
// others.
func (s *Store) SwitchSpace(ctx context.Context, name string) (switched bool, err error) {
	var kept space
	err = s.update(ctx, func(t *tx) error {
		switched = false
		if err := t.lock("library"); err != nil {
			return err
		}
		all, err := t.spaces()
		if err != nil {
			return err
		}
		kept = all.named(name)
		var lacks bool
		err = t.row(`SELECT EXISTS (SELECT 1 FROM ibid.chunks c
			WHERE NOT EXISTS (SELECT 1 FROM ibid.vectors v WHERE v.digest = c.digest AND v.space = ?))`, kept.Number).Scan(&lacks)
		if err != nil || lacks {
			return err
		}
		if switched = true; kept.Number == 0 { // there are no chunks
			kept = all.add(name)
		}
		if all.Used == kept.Number && len(all.All) == 1 {
			return nil
		}
		all.use(kept)
		if err := t.setSpaces(all); err != nil {
			return err
		}
		return t.changed(change{})
	})
	if err == nil && switched {
		err = s.dropSpaces(ctx, kept.Number)
	}
	if err != nil {
		return false, fmt.Errorf("switching to %s: %w", name, err)
	}
	return switched, nil
}

// vectorsAtOnce is how many vectors one transaction deletes.
const vectorsAtOnce = 5000

// dropSpaces deletes the vectors of all spaces but one, in several transactions.
// What an interruption leaves is deleted the next time, or by Compact; no space
// gets a number again.
func (s *Store) dropSpaces(ctx context.Context, kept int64) error {
	for from, last := int64(0), int64(1); from < last; from += vectorsAtOnce {
		err := s.update(ctx, func(t *tx) error {
			if err := t.row(`SELECT coalesce(max(number), 0) FROM ibid.vectors`).Scan(&last); err != nil {
				return err
			}
			_, err := t.exec(`DELETE FROM ibid.vectors WHERE number > ? AND number <= ? AND space <> ?`, from, from+vectorsAtOnce, kept)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
