package weaviate

import (
	"fmt"
	"slices"
	"testing"

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
