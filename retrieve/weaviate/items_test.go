package weaviate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/enginetest"
	"ibid/retrieve/weaviate/weaviatetest"
)

// A root may have more archives and mails than one search of Weaviate gives.
func TestManyListings(t *testing.T) {
	c := weaviatetest.Start(t, 1)
	a, b := openTwo(t, c)
	ctx := t.Context()
	for _, n := range []int{groupPage - 1, groupPage, maxResults + 50} {
		have, err := a.Listings(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		var items []item
		for i := len(have); i < n; i++ {
			id := fmt.Sprintf("a/%06d.eml", i)
			items = append(items, item{kind: listingKind, name: id, group: "listings of a", data: keptListing{id, []byte("{}")}})
		}
		if err := a.wire.putItem(ctx, items...); err != nil {
			t.Fatal(err)
		}
		got, err := b.Listings(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if got = slices.Compact(got); len(got) != n {
			t.Errorf("%d of %d listings are given", len(got), n)
		}
		for i, id := range got {
			if id != fmt.Sprintf("a/%06d.eml", i) {
				t.Fatalf("the listing number %d is %s", i, id)
			}
		}
	}
	// They all go with their root.
	if _, err := a.DeleteRoot(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if left, err := b.Listings(ctx, "a"); err != nil || len(left) > 0 {
		t.Errorf("%d listings are left, %v", len(left), err)
	}
}

// A key that is being revoked by a process that ends in the middle of it lets
// nobody in anywhere: who holds a ring that was read before must not rely on it,
// nor on one that was read meanwhile.
func TestRevokeBrokenOff(t *testing.T) {
	c := weaviatetest.Start(t, 1)
	a, b := openTwo(t, c)
	ctx := t.Context()
	for _, id := range []string{"one", "two"} {
		if err := a.Keyring().Add(ctx, retrieve.Key{ID: id, Name: id, Digest: [32]byte{id[0]}, Created: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(when string, keys int, relied bool) retrieve.Ring {
		t.Helper()
		ring, err := b.Keyring().Ring(ctx)
		if err != nil || len(ring.Keys) != keys {
			t.Errorf("%s: %+v, %v; want %d keys", when, ring, err, keys)
		}
		if now, err := b.Keyring().Revision(ctx); err != nil || (now == ring.Revision) != relied {
			t.Errorf("%s: the ring is of revision %d, and now it is %d, %v", when, ring.Revision, now, err)
		}
		return ring
	}
	before := read("at first", 2, true)
	broken := errors.New("broken off")
	err := a.Keyring().(keyring).change(ctx, func(ctx context.Context, begin func() error) error {
		if err := begin(); err != nil {
			return err
		}
		read("while it goes on", 2, false)
		if err := a.wire.removeItems(ctx, keyKind, "one"); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	read("broken off", 1, false)
	if err := b.Keyring().Revoke(ctx, "two"); err != nil {
		t.Fatal(err)
	}
	if ring := read("changed again", 0, true); ring.Revision <= before.Revision {
		t.Errorf("the revision went from %d to %d", before.Revision, ring.Revision)
	}
}

// What Weaviate would give back with other bytes is refused.
func TestOnlyText(t *testing.T) {
	c := weaviatetest.Start(t, 1)
	a, _ := openTwo(t, c)
	ctx := t.Context()
	says := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "is not in UTF-8") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := a.AddRoot(ctx, "/srv/caf\xe9", "")
	says("a folder", err)
	_, err = a.AddRoot(ctx, "/srv/b", "caf\xe9")
	says("a collection", err)
	says("a root that is copied", a.KeepRoot(ctx, ingest.Root{Name: "caf\xe9", Path: "/srv/c", Collection: "default"}))
	for _, path := range []string{"caf\xe9", "x"} {
		doc, chunks := enginetest.Document("a", path, "caf\xe9")
		says("a document", a.Replace(ctx, doc, chunks, [][]float32{enginetest.Vector(0)}))
	}
	if list, err := a.Documents(ctx, retrieve.Filter{}); err != nil || len(list) > 0 {
		t.Errorf("stored are %+v, %v", list, err)
	}
	if roots, err := a.Roots(ctx); err != nil || len(roots) != 1 {
		t.Errorf("the roots are %+v, %v", roots, err)
	}
}
