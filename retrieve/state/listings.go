package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

const listingColumns = "key, id, root, listing"

// Listing returns the listing stored under an id; nil if there is none or it is
// damaged, so that it is made again.
func (s *Store) Listing(ctx context.Context, id string) (listing []byte, err error) {
	err = s.view(ctx, func(t *tx) error {
		var key []byte
		var stored, root string
		err := checked(t.row(`SELECT key, id, root, listing, sum FROM ibid.listings WHERE key = ?`, keyOf(id)), &key, &stored, &root, &listing)
		if errors.Is(err, sql.ErrNoRows) || errors.Is(err, errRow) {
			listing = nil
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the listing of %s: %w", id, err)
	}
	return listing, nil
}

// KeepListing stores a listing under an id, in place of the one before.
func (s *Store) KeepListing(ctx context.Context, root, id string, listing []byte) error {
	err := s.update(ctx, func(t *tx) error {
		return t.insert("listings", listingColumns,
			"ON CONFLICT (key) DO UPDATE SET id = excluded.id, root = excluded.root, listing = excluded.listing, sum = excluded.sum",
			[]any{keyOf(id), id, root, listing})
	})
	if err != nil {
		return fmt.Errorf("storing the listing of %s: %w", id, err)
	}
	return nil
}

// Listings returns the ids in a root that have listings.
func (s *Store) Listings(ctx context.Context, root string) (ids []string, err error) {
	err = s.view(ctx, func(t *tx) error {
		ids, err = column[string](t, `SELECT id FROM ibid.listings WHERE root = ?`, root)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the listings of the root %q: %w", root, err)
	}
	return ids, nil
}
