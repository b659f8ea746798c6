package state

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

// TestTogether changes one library through several handles at once, each with its own follower. At
// the end all must have the same documents, as last written.
func TestTogether(t *testing.T) {
	onBothDialects(t, func(t *testing.T, address string) {
		const handles = 4
		rounds := datatest.Cases(t, 400)
		s := openTest(t, address)
		ready(t, s, "a", "b")
		var writers sync.WaitGroup
		last := make([]map[string]string, handles) // the text that a writer stored last, by id
		for i := range handles {
			s := openTest(t, address)
			last[i] = make(map[string]string)
			writers.Go(func() { writeTogether(t, s, i, rounds, last[i]) })
		}
		writers.Wait()
		want := make(map[string]string)
		for _, l := range last {
			maps.Copy(want, l)
		}
		var f follower
		f.same(t, s)
		if got := f.ids(); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Errorf("documents %q, want %q", got, slices.Sorted(maps.Keys(want)))
		}
		for _, c := range f.documents {
			if text := ingest.EmbeddingText("One title", ingest.Chunk{Heading: "All", Text: want[c.Info.ID]}); len(c.Chunks) != 1 ||
				c.Chunks[0].Text != text {
				t.Errorf("%s = %+v, want %q", c.Info.ID, c.Chunks, text)
			}
		}
		if n := count(t, s, `SELECT count(*) FROM ibid.vectors WHERE NOT EXISTS (SELECT 1 FROM ibid.chunks WHERE chunks.digest = vectors.digest)`); n > 0 {
			t.Errorf("%d vectors belong to no chunk", n)
		}
	})
}

// fillSpace stores a vector of the space for every chunk, n at a time, and returns the number of
// texts.
func fillSpace(t testing.TB, s *Store, space string, dimensions, n int) (texts int) {
	t.Helper()
	ctx := t.Context()
	for list, err := range s.Unembedded(ctx, space, n) {
		must(t, err)
		texts += len(list)
		digests, vectors := make([]retrieve.Digest, len(list)), make([][]float32, len(list))
		for i, l := range list {
			if digests[i], vectors[i] = l.Digest, make([]float32, dimensions); retrieve.DigestOf(l.Text) != l.Digest {
				t.Fatalf("wrong digest of %q", l.Text)
			}
			vectors[i][0] = 1
		}
		must(t, s.AddVectors(ctx, space, digests, vectors))
	}
	return texts
}

// TestRespaceTogether switches to another space while documents change.
func TestRespaceTogether(t *testing.T) {
	onBothDialects(t, func(t *testing.T, address string) {
		s, other := openTest(t, address), openTest(t, address)
		ctx := ready(t, s, "a")
		for i := range 20 {
			put(t, s, "a", fmt.Sprint(i), "boat", fmt.Sprint(i))
		}
		var writer sync.WaitGroup
		writer.Go(func() {
			for i := range 40 {
				err := replace(other, "a", fmt.Sprint(i%25), "boat", fmt.Sprint("again ", i))
				var switched *retrieve.SpaceError
				if errors.As(err, &switched) {
					return
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
		for switched := false; !switched; {
			fillSpace(t, s, "new/8", 8, 7)
			var err error
			switched, err = s.SwitchSpace(ctx, "new/8")
			must(t, err)
		}
		writer.Wait()
		for c, err := range s.Changes(ctx, "new/8", 0) {
			must(t, err)
			if c.Document != 0 && len(c.Chunks) != 2 {
				t.Errorf("document %d has %d chunks", c.Document, len(c.Chunks))
			}
		}
		if bad := count(t, s, `SELECT count(*) FROM ibid.damage`); bad > 0 {
			t.Errorf("%d documents were set aside", bad)
		}
	})
}

// writeTogether stores, renames and deletes its own documents, which share chunks with the
// documents of other calls, and sets last to the texts that were stored last, by id.
func writeTogether(t *testing.T, s *Store, i, rounds int, last map[string]string) {
	ctx := t.Context()
	random := rand.New(rand.NewPCG(uint64(i), 1))
	var f follower
	for n := range rounds {
		root, path := []string{"a", "b"}[random.IntN(2)], fmt.Sprintf("%d/%d", i, random.IntN(4))
		id := root + "/" + path
		var err error
		switch text := fmt.Sprint("shared ", random.IntN(3)); random.IntN(4) {
		case 0:
			err = s.Delete(ctx, id)
			delete(last, id)
		case 1:
			if to := fmt.Sprintf("%s/%d/%d", root, i, random.IntN(4)); last[id] != "" {
				doc, _ := newDocument(root, to[len(root)+1:], last[id])
				doc.Title = "One title"
				err = s.Rename(ctx, id, doc)
				text := last[id]
				delete(last, id)
				last[to] = text
			}
		default:
			doc, chunks := newDocument(root, path, text)
			doc.Title = "One title"
			err = s.Replace(ctx, testSpace, doc, chunks, vectorsFor(doc, chunks))
			last[id] = text
		}
		if err != nil {
			t.Error(err)
		}
		if n%5 == 0 {
			f.follow(t, s)
			mine := f.ids()
			for id := range last {
				if !slices.Contains(mine, id) {
					t.Errorf("%s was stored, but is not followed", id)
				}
			}
		}
	}
}
