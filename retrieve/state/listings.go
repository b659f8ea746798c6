package state

import (
	"context"
	"database/sql"
	"errors"

	"ibid/ingest"
)

const listingColumns = "key, id, root, listing"

// Listing returns the listing stored under an id; nil if there is none or it is
// damaged, so that it is made again.
func (s *Store) Listing(ctx context.Context, id string) (listing []byte, err error) {
	err = within(ctx, s.view, func(t *tx) error {
		var key []byte
		var stored, root string
		err := checked(t.row(`SELECT `+listingColumns+`, sum FROM ibid.listings WHERE key = ?`, keyOf(id)), &key, &stored, &root, &listing)
		if errors.Is(err, sql.ErrNoRows) || errors.Is(err, errRow) {
			listing = nil
			return nil
		}
		return err
	}, "reading the listing of %s", id)
	return listing, err
}

// KeepListing stores a listing under an id, in place of the one before.
func (s *Store) KeepListing(ctx context.Context, root ingest.Root, id string, listing []byte) error {
	return within(ctx, s.update, func(t *tx) error {
		return t.insert("listings", listingColumns,
			"ON CONFLICT (key) DO UPDATE SET id = excluded.id, root = excluded.root, listing = excluded.listing, sum = excluded.sum",
			[]any{keyOf(id), id, root.Name, listing})
	}, "storing the listing of %s", id)
}

// Listings returns the ids in a root that have listings.
func (s *Store) Listings(ctx context.Context, root ingest.Root) (ids []string, err error) {
	err = within(ctx, s.view, func(t *tx) error {
		ids, err = column[string](t, `SELECT id FROM ibid.listings WHERE root = ?`, root.Name)
		return err
	}, "reading the listings of the root %q", root.Name)
	return ids, err
}
