package state

import (
	"errors"
	"slices"
	"testing"

	"ibid/retrieve"
)

// fill stores a vector of the space for every chunk, n at a time, and returns how
// many texts there were.
func fillSpace(t testing.TB, s *Store, space string, dimensions, n int) (texts int) {
	t.Helper()
	ctx := t.Context()
	for {
		list, err := s.Unembedded(ctx, space, n)
		must(t, err)
		if len(list) == 0 {
			return texts
		}
		texts += len(list)
		digests, vectors := make([]retrieve.Digest, len(list)), make([][]float32, len(list))
		for i, l := range list {
			if digests[i], vectors[i] = l.Digest, make([]float32, dimensions); retrieve.DigestOf(l.Text) != l.Digest {
				t.Fatalf("the digest of %q is another", l.Text)
			}
			vectors[i][0] = 1
		}
		must(t, s.AddVectors(ctx, space, digests, vectors))
	}
}

func TestRespace(t *testing.T) {
	onBoth(t, func(t *testing.T, address string) {
		s, other := openTest(t, address), openTest(t, address)
		ctx := ready(t, s, "a")
		for _, path := range []string{"1", "2", "3"} {
			put(t, s, "a", path, "boat", "boat", "train", path)
		}
		check := func(space string, done, total int) {
			t.Helper()
			if d, n, err := s.Embedded(ctx, space); d != done || n != total || err != nil {
				t.Errorf("Embedded(%s) = %d of %d, %v, want %d of %d", space, d, n, err, done, total)
			}
		}
		check(testSpace, 12, 12)
		check("new/8", 0, 12)
		if ok, err := s.SwitchSpace(ctx, "new/8"); ok || err != nil {
			t.Errorf("SwitchSpace without vectors = %v, %v", ok, err)
		}
		if n := fillSpace(t, s, "new/8", 8, 2); n != 9 {
			t.Errorf("%d different texts", n)
		}
		check("new/8", 12, 12)
		// A document that comes meanwhile has vectors of the old space alone.
		put(t, other, "a", "1", "plane", "boat")
		check("new/8", 9, 10)
		if ok, err := other.SwitchSpace(ctx, "new/8"); ok || err != nil {
			t.Errorf("SwitchSpace with a new document = %v, %v", ok, err)
		}
		if n := fillSpace(t, s, "new/8", 8, 100); n != 1 {
			t.Errorf("%d texts of the new document", n)
		}
		var f follower
		f.same(t, other)
		if err := s.AddVectors(ctx, "new/8", []retrieve.Digest{{1}}, [][]float32{{1, 0, 0, 0}}); err == nil {
			t.Error("a vector with other dimensions was stored")
		}
		must(t, s.AddVectors(ctx, "new/8", []retrieve.Digest{{1}}, [][]float32{{1, 0, 0, 0, 0, 0, 0, 0}})) // of no chunk
		before, err := s.Revision(ctx)
		must(t, err)
		for range 2 {
			if ok, err := s.SwitchSpace(ctx, "new/8"); !ok || err != nil {
				t.Errorf("SwitchSpace = %v, %v", ok, err)
			}
		}
		if after, err := other.Revision(ctx); after <= before || err != nil {
			t.Errorf("the revision after the switch is %d, %v, before %d", after, err, before)
		}
		if space, err := other.Space(ctx); space != "new/8" || err != nil {
			t.Errorf("Space = %q, %v", space, err)
		}
		if n := count(t, s, `SELECT count(*) FROM ibid.vectors`); n != 8 {
			t.Errorf("%d vectors are left", n)
		}
		var wrong *retrieve.SpaceError
		for _, err := range other.Changes(ctx, testSpace, 0) {
			if !errors.As(err, &wrong) {
				t.Errorf("a follower of the old space: %v", err)
			}
		}
		n := 0
		for c, err := range other.Changes(ctx, "new/8", 0) {
			must(t, err)
			for _, chunk := range c.Chunks {
				if n++; len(chunk.Vector) != 8 {
					t.Errorf("a vector: %v", chunk.Vector)
				}
			}
		}
		if n != 10 {
			t.Errorf("%d chunks in the new space", n)
		}
		doc, chunks := newDocument("a", "4", "late")
		if err := other.Replace(ctx, testSpace, doc, chunks, vectorsFor(doc, chunks)); !errors.As(err, &wrong) {
			t.Errorf("a late writer: %v", err)
		}
		// Only a library without documents changes its space otherwise.
		if err := s.SetSpace(ctx, testSpace); !errors.As(err, &wrong) {
			t.Errorf("SetSpace: %v", err)
		}
		_, err = s.DeleteRoot(ctx, "a")
		must(t, err)
		if space, err := s.Space(ctx); space != "" || err != nil {
			t.Errorf("Space = %q, %v", space, err)
		}
		ready(t, s, "a")
		put(t, s, "a", "1", "boat")
		f = follower{}
		f.same(t, other)
	})
}

// TestUnembeddedAll checks that chunks are found also before the place that an
// earlier look came to.
func TestUnembeddedAll(t *testing.T) {
	onBoth(t, func(t *testing.T, address string) {
		s := openTest(t, address)
		ctx := ready(t, s, "a")
		for _, path := range []string{"1", "2", "3", "4"} {
			put(t, s, "a", path, "boat", path)
		}
		fillSpace(t, s, "new/4", 4, 1)
		put(t, s, "a", "1", "plane", "1")
		put(t, s, "a", "2", "ship", "2")
		list, err := s.Unembedded(ctx, "new/4", 10)
		must(t, err)
		var texts []string
		for _, l := range list {
			texts = append(texts, l.Text)
		}
		if want := []string{"Title of 1 › All\nplane", "Title of 2 › All\nship"}; !slices.Equal(texts, want) {
			t.Errorf("Unembedded = %q, want %q", texts, want)
		}
	})
}
