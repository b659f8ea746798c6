package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

// age gives every chunk the terms of a version that knew but one word.
func age(t *testing.T, e *Engine) {
	t.Helper()
	old := retrieve.PackTerms([]retrieve.TermCount{{Term: "old", Count: 1}}, 1)
	old[0] = retrieve.Analysis - 1
	err := e.update(t.Context(), func(tx *sql.Tx) error {
		ids, err := column[string](t.Context(), tx, `SELECT id FROM documents`)
		if err != nil {
			return err
		}
		for _, id := range ids {
			row, err := readRow(t.Context(), tx, id)
			if err != nil {
				return err
			}
			if err := e.eraseRow(t.Context(), tx, row.key); err != nil {
				return err
			}
			first, last := keyRange(row.key)
			keys, err := column[int64](t.Context(), tx, `SELECT key FROM chunks WHERE key BETWEEN ? AND ? ORDER BY key`, first, last)
			if err != nil {
				return err
			}
			var sums []int64
			for _, key := range keys {
				c, _, err := readChunk(tx.QueryRowContext(t.Context(), `SELECT `+chunkColumns+` FROM chunks WHERE key = ?`, key))
				if err != nil {
					return err
				}
				sums = append(sums, chunkSum(key, &c.Chunk, old))
				if _, err := tx.ExecContext(t.Context(), `UPDATE chunks SET terms = ?, sum = ? WHERE key = ?`, old, sums[len(sums)-1], key); err != nil {
					return err
				}
			}
			if err := e.insert(t.Context(), tx, row, sums); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRenew opens what another version has stored: the start says so, searches
// find by the words of this version, and a start that is cut off goes on.
func TestRenew(t *testing.T) {
	dir := t.TempDir()
	e, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.SetSpace(t.Context(), "s/2"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.AddRoot(t.Context(), "/srv/a", ""); err != nil {
		t.Fatal(err)
	}
	const documents = 3*renewBatch + 1
	for n := range documents {
		doc, chunks := enginetest.Document("a", fmt.Sprint(n), "the lantern of the harbour", "the anchor")
		if err := e.Replace(t.Context(), doc, chunks, [][]float32{{1, 0}, {0, 1}}); err != nil {
			t.Fatal(err)
		}
	}
	age(t, e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	open := func(ctx context.Context) (renewed int, err error) {
		e, err := Open(ctx, dir, Options{Renewing: func(n int) { renewed = n }})
		if err != nil {
			return renewed, err
		}
		defer func() { err = errors.Join(err, e.Close()) }()
		for word, want := range map[string]int{"lantern": documents, "anchor": documents, "old": 0} {
			if got, err := e.Lexical(ctx, []string{word}, 1000, retrieve.Filter{}); err != nil || len(got) != want {
				t.Errorf("%s is found %d times, want %d; %v", word, len(got), want, err)
			}
		}
		if d := e.Damaged(); len(d) > 0 {
			t.Errorf("damage: %v", d)
		}
		return renewed, nil
	}
	// The start is given up after the first batch.
	ctx, cancel := context.WithCancel(t.Context())
	half, err := Open(ctx, dir, Options{Renewing: func(n int) {
		if n != documents {
			t.Errorf("%d documents are renewed, want %d", n, documents)
		}
		cancel()
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the start goes on without its context: %v, %v", half, err)
	}
	first := interrupted(t, dir)
	if renewed, err := open(t.Context()); err != nil || renewed != documents-first {
		t.Fatalf("%d of %d documents are renewed after %d; %v", renewed, documents, first, err)
	}
	if renewed, err := open(t.Context()); err != nil || renewed != 0 {
		t.Errorf("%d documents are renewed a second time; %v", renewed, err)
	}
	r, err := Verify(t.Context(), dir, Options{}, nil)
	if err != nil || len(r.Damaged) > 0 {
		t.Errorf("verify: %v, %v", r.Damaged, err)
	}
}

// interrupted renews one batch as a start does that is killed then.
func interrupted(t *testing.T, dir string) (documents int) {
	t.Helper()
	e, err := attach(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = e.update(t.Context(), func(tx *sql.Tx) error {
		ids, err := column[string](t.Context(), tx, `SELECT id FROM documents`)
		if err != nil {
			return err
		}
		slices.Sort(ids)
		documents = renewBatch
		for _, id := range ids[:documents] {
			if err := e.renewDocument(t.Context(), tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, e.disconnect(), e.lock.Close()); err != nil {
		t.Fatal(err)
	}
	return documents
}
