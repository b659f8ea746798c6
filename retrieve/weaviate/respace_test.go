package weaviate

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/enginetest"
	"ibid/retrieve/weaviate/weaviatetest"
)

// While the space is changed nobody changes documents, and then everybody goes on;
// also when who changes it has ended in the middle.
func TestFreeze(t *testing.T) {
	c := weaviatetest.Start(t, 1)
	a, b := openTwo(t, c)
	ctx := t.Context()
	put := func(path, text string) error {
		doc, chunks := enginetest.Document("a", path, text)
		return b.Replace(ctx, doc, chunks, [][]float32{enginetest.Vector(0)})
	}
	for _, path := range []string{"x", "y", "z"} {
		if err := put(path, "before"); err != nil {
			t.Fatal(err)
		}
	}
	texts := func() (out []string) {
		list, err := a.Documents(ctx, retrieve.Filter{})
		if err != nil {
			t.Error(err)
		}
		for _, d := range list {
			doc, err := a.Document(ctx, d.ID)
			if err != nil {
				t.Error(err)
				continue
			}
			out = append(out, d.ID+" "+doc.Text)
		}
		return out
	}
	var working sync.WaitGroup
	do := func(f func() error) {
		working.Go(func() {
			if err := f(); err != nil {
				t.Error(err)
			}
		})
	}
	before := texts()
	err := a.exclusive(ctx, task{Name: spaceTask, Freeze: true}, func(ctx context.Context, h *hold) (bool, error) {
		if err := h.quiet(ctx, task.frozen); err != nil {
			return false, err
		}
		do(func() error { return put("x", "after") })
		do(func() error { return b.Delete(ctx, "a/y") })
		do(func() error {
			doc, _ := enginetest.Document("a", "new", "before")
			return b.Rename(ctx, "a/z", &ingest.Document{ID: doc.ID, Root: doc.Root, Path: doc.Path, Title: doc.Title, Format: doc.Format, Digest: documentDigest(t, b, "a/z")})
		})
		do(func() error { _, err := b.AddRoot(ctx, "/srv/b", ""); return err })
		for waiting := 0; waiting < 4; {
			s, err := a.wire.state(ctx)
			if err != nil {
				return false, err
			}
			waiting = 0
			for _, t := range s.tasks {
				if t.Waiting {
					waiting++
				}
			}
			select {
			case <-ctx.Done():
				return false, ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
		if now := texts(); !slices.Equal(now, before) {
			t.Errorf("there is %q, and was %q", now, before)
		}
		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	working.Wait()
	if now := texts(); !slices.Equal(now, []string{"a/new before", "a/x after"}) {
		t.Errorf("in the end there is %q", now)
	}
	if testing.Short() {
		return // nobody is taken for dead so soon
	}
	h, err := a.journal.begin(ctx, task{Name: spaceTask, Freeze: true})
	if err != nil {
		t.Fatal(err)
	}
	h.j.stop() // it says nothing any more
	h.j.beats.Wait()
	start := time.Now()
	if err := put("x", "at last"); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took < beatDead || took > 2*beatDead {
		t.Errorf("it waited for %s for one that has ended", took)
	}
}

func documentDigest(t *testing.T, e *Engine, id string) string {
	t.Helper()
	doc, err := e.Document(t.Context(), id)
	if err != nil {
		t.Error(err)
		return ""
	}
	return doc.Digest
}
