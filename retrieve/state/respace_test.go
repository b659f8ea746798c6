package state

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"ibid/retrieve"
)

// fillSpace stores a vector of the space for every chunk, n at a time, and returns
// how many texts there were.
func fillSpace(t testing.TB, s *Store, space string, dimensions, n int) (texts int) {
	t.Helper()
	ctx := t.Context()
	for list, err := range s.Unembedded(ctx, space, n) {
		must(t, err)
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
	return texts
}

func checkEmbedded(t *testing.T, s *Store, space string, done, total int) {
	t.Helper()
	if d, n, err := s.Embedded(t.Context(), space); d != done || n != total || err != nil {
		t.Errorf("Embedded(%s) = %d of %d, %v, want %d of %d", space, d, n, err, done, total)
	}
}

func checkSwitched(t *testing.T, s *Store, want bool) {
	t.Helper()
	if ok, err := s.SwitchSpace(t.Context(), "new/8"); ok != want || err != nil {
		t.Errorf("SwitchSpace = %v, %v, want %v", ok, err, want)
	}
}

func checkSpace(t *testing.T, s *Store, want string) {
	t.Helper()
	if space, err := s.Space(t.Context()); space != want || err != nil {
		t.Errorf("Space = %q, %v, want %q", space, err, want)
	}
}

func TestRespace(t *testing.T) {
	onBoth(t, func(t *testing.T, address string) {
		s, other := openTest(t, address), openTest(t, address)
		ctx := ready(t, s, "a")
		for _, path := range []string{"1", "2", "3"} {
			put(t, s, "a", path, "boat", "boat", "train", path)
		}
		checkEmbedded(t, s, testSpace, 12, 12)
		checkEmbedded(t, s, "new/8", 0, 12)
		checkSwitched(t, s, false)
		if n := fillSpace(t, s, "new/8", 8, 2); n != 9 {
			t.Errorf("%d different texts", n)
		}
		checkEmbedded(t, s, "new/8", 12, 12)
		// A document that comes meanwhile has vectors of the old space alone.
		put(t, other, "a", "1", "plane", "boat")
		checkEmbedded(t, s, "new/8", 9, 10)
		checkSwitched(t, other, false)
		// covered returns the ids of the changed documents with all vectors of the new space.
		covered := func(after int64) (ids []string) {
			for c, err := range s.Changes(ctx, "new/8", after) {
				must(t, err)
				if !c.Deleted && c.Document != 0 {
					ids = append(ids, c.Info.ID)
				}
			}
			slices.Sort(ids)
			return ids
		}
		check := func(after int64, want ...string) {
			t.Helper()
			if ids := covered(after); !slices.Equal(ids, want) {
				t.Errorf("documents whose chunks are all covered: %q, want %q", ids, want)
			}
		}
		check(0, "a/2", "a/3")
		before, _, err := s.Revision(ctx)
		must(t, err)
		if n := fillSpace(t, s, "new/8", 8, 100); n != 1 {
			t.Errorf("%d texts of the new document", n)
		}
		check(before, "a/1") // it counts as changed
		var plane retrieve.Digest
		for list := range s.Unembedded(ctx, "none", 100) {
			for _, l := range list {
				if strings.Contains(l.Text, "plane") {
					plane = l.Digest
				}
			}
		}
		execute(t, s, `UPDATE ibid.vectors SET sum = sum + 1 WHERE space = 2 AND digest = ?`, plane)
		check(0, "a/2", "a/3")
		must(t, s.AddVectors(ctx, "new/8", []retrieve.Digest{plane}, [][]float32{{1, 0, 0, 0, 0, 0, 0, 0}}))
		check(0, "a/1", "a/2", "a/3")
		var f follower
		f.same(t, other)
		if err := s.AddVectors(ctx, "new/8", []retrieve.Digest{{1}}, [][]float32{{1, 0, 0, 0}}); err == nil {
			t.Error("a vector with other dimensions was stored")
		}
		must(t, s.AddVectors(ctx, "new/8", []retrieve.Digest{{1}}, [][]float32{{1, 0, 0, 0, 0, 0, 0, 0}})) // of no chunk
		before, _, err = s.Revision(ctx)
		must(t, err)
		checkSwitched(t, s, true)
		checkSwitched(t, s, true)
		if after, _, err := other.Revision(ctx); after <= before || err != nil {
			t.Errorf("the revision after the switch is %d, %v, before %d", after, err, before)
		}
		checkSpace(t, other, "new/8")
		if n := count(t, s, `SELECT count(*) FROM ibid.vectors`); n != 8 {
			t.Errorf("%d vectors are left", n)
		}
	})
}

// TestOldSpace has readers and writers of the space before a switch.
func TestOldSpace(t *testing.T) {
	onStore(t, func(ctx context.Context, t *testing.T, s *Store) {
		put(t, s, "a", "1", "boat", "train")
		fillSpace(t, s, "new/8", 8, 10)
		checkSwitched(t, s, true)
		var wrong *retrieve.SpaceError
		for _, err := range s.Changes(ctx, testSpace, 0) {
			if !errors.As(err, &wrong) {
				t.Errorf("a follower of the old space: %v", err)
			}
		}
		n := 0
		for c, err := range s.Changes(ctx, "new/8", 0) {
			must(t, err)
			for _, chunk := range c.Chunks {
				if n++; len(chunk.Vector) != 8 {
					t.Errorf("a vector: %v", chunk.Vector)
				}
			}
		}
		if n != 2 {
			t.Errorf("%d chunks in the new space", n)
		}
		if err := replace(s, "a", "4", "late"); !errors.As(err, &wrong) {
			t.Errorf("a late writer: %v", err)
		}
		// Only a library without documents changes its space otherwise.
		_, err := s.DeleteRoot(ctx, "a", false)
		must(t, err)
		checkSpace(t, s, "")
		ready(t, s, "a")
		put(t, s, "a", "1", "boat")
		checkSpace(t, s, testSpace)
	}, "a")
}
