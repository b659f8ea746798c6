package index

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"ibid/data/datatest"
	"ibid/retrieve"
)

// open opens an index. If flush is odd, its sieve is used for any number of chunks.
func open(t testing.TB, dir string, flush int) *Index {
	t.Helper()
	x := Open(dir, Options{Library: "library", Space: "test/8", Flush: flush})
	if flush%2 == 1 {
		x.sieve.above = 0
	}
	t.Cleanup(func() {
		must(t, x.Close())
	})
	return x
}

// err returns the error of the last attempt to write.
func (x *Index) err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failed
}

// waitUntilIdle waits until the background work has ended.
func (x *Index) waitUntilIdle() {
	for {
		x.mu.Lock()
		busy := x.flushing != nil || x.merging != nil
		x.mu.Unlock()
		if !busy {
			return
		}
		x.running.Wait()
	}
}

// TestOracle compares an index with a model through random changes, flushes, merges and restarts.
// After a restart without Close, the index must have exactly the changes up to the revision of its
// manifest.
func TestOracle(t *testing.T) {
	r := datatest.Rand(t)
	for range datatest.Cases(t, 40) {
		ctx := t.Context()
		dir := t.TempDir()
		maker := &Maker{Rand: r, Dims: []int{3, 8, 65}[r.IntN(3)], Documents: 20 + r.IntN(300), Chunks: 1 + r.IntN(12)}
		var history []retrieve.Change
		model := NewModel()
		x := open(t, dir, 1+r.IntN(300))
		for round := range 30 {
			changes := maker.Changes(1 + r.IntN(1+r.IntN(40)))
			history = append(history, changes...)
			model.Apply(changes...)
			must(t, x.Apply(ctx, changes))
			if r.IntN(3) == 0 {
				x.waitUntilIdle()
			}
			if err := maker.Check(ctx, model, x, 4); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			switch r.IntN(8) {
			case 0:
				must(t, x.Close())
			case 1: // as if the process was killed
				x.pause()
				if x.lock != nil {
					x.lock.Close()
				}
				x.closed = true
			default:
				continue
			}
			x = open(t, dir, 1+r.IntN(300))
			at, _, err := x.Revision(ctx)
			must(t, err)
			model = NewModel()
			for _, c := range history {
				if c.Revision <= at {
					model.Apply(c)
				}
			}
			if model.Revision() != at {
				t.Fatalf("round %d: no change has the revision %d", round, at)
			}
			if err := maker.Check(ctx, model, x, 3); err != nil {
				t.Fatalf("round %d, revision %d after opening: %v", round, at, err)
			}
			model.Apply(history...)
			must(t, x.Apply(ctx, history))
			if err := maker.Check(ctx, model, x, 4); err != nil {
				t.Fatalf("round %d after opening: %v", round, err)
			}
		}
		entries, err := os.ReadDir(dir)
		must(t, err)
		t.Log(len(entries), "files,", len(x.current.Load().parts), "parts")
	}
}

// TestPurge searches all files for the words of a deleted document.
func TestPurge(t *testing.T) {
	dir := t.TempDir()
	x := open(t, dir, 10)
	text := func(n int64, text string, deleted bool) {
		t.Helper()
		c := retrieve.Change{Revision: n, Document: n % 100, Deleted: deleted,
			Chunks: []retrieve.IndexChunk{{Text: text, Vector: []float32{1, 0}}}}
		c.Info.ID = text
		must(t, x.Apply(t.Context(), []retrieve.Change{c}))
	}
	for n := range int64(30) {
		text(n+1, fmt.Sprint("ordinary", n), false)
	}
	text(50, "confidential", false)
	for n := range int64(30) {
		text(n+51, fmt.Sprint("ordinary", n), false)
	}
	x.waitUntilIdle()
	traces := func() (n int) {
		for _, data := range files(t, dir) {
			n += bytes.Count(data, []byte("confidential"))
		}
		return n
	}
	if traces() == 0 {
		t.Fatal("the document's words are in no file")
	}
	text(150, "", true)
	must(t, x.Purge(t.Context()))
	if n := traces(); n > 0 {
		t.Errorf("%d traces of the deleted document", n)
	}
	if s, err := x.Stats(t.Context(), nil); err != nil || s.Chunks != 60 {
		t.Errorf("Stats = %+v, %v; want 60 chunks", s, err)
	}
}
