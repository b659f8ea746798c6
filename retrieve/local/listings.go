package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// listingSchema is laid out with the first listing, as the ledger's is with the
// first run. Listings are not salvaged from a damaged file: they are made anew.
const listingSchema = `
CREATE TABLE listings (
	id      TEXT PRIMARY KEY,
	root    TEXT NOT NULL,
	sum     INTEGER NOT NULL,
	listing BLOB NOT NULL
);
`

func listingSum(id string, listing []byte) int64 {
	var s sum
	s.text(id)
	s.bytes(listing)
	return s.value()
}

// Listing gives what was kept last for an id; nil where nothing is, or it is
// damaged.
func (e *Engine) Listing(ctx context.Context, id string) (listing []byte, err error) {
	err = e.view(ctx, func(tx *sql.Tx) error {
		listing = nil
		if yes, err := hasTable(ctx, tx, "listings"); err != nil || !yes {
			return err
		}
		var stored int64
		err := scanned(tx.QueryRowContext(ctx, `SELECT sum, listing FROM listings WHERE id = ?`, id).Scan(&stored, &listing))
		if errors.Is(err, sql.ErrNoRows) || errors.Is(err, errRow) || err == nil && listingSum(id, listing) != stored {
			listing = nil
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the listing of %s: %w", id, err)
	}
	return listing, nil
}

// KeepListing keeps a listing under an id, in place of the one before.
func (e *Engine) KeepListing(ctx context.Context, root, id string, listing []byte) error {
	err := e.update(ctx, func(tx *sql.Tx) error {
		yes, err := hasTable(ctx, tx, "listings")
		if err == nil && !yes {
			_, err = tx.ExecContext(ctx, listingSchema)
		}
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO listings (id, root, sum, listing) VALUES (?, ?, ?, ?)`, id, root, listingSum(id, listing), notNil(listing))
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the listing of %s: %w", id, err)
	}
	return nil
}

// Listings gives the ids in a root for which there are listings.
func (e *Engine) Listings(ctx context.Context, root string) (ids []string, err error) {
	err = e.view(ctx, func(tx *sql.Tx) error {
		ids = nil
		yes, err := hasTable(ctx, tx, "listings")
		if err == nil && yes {
			ids, err = column[string](ctx, tx, `SELECT id FROM listings WHERE root = ?`, root)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the listings of the root %q: %w", root, err)
	}
	return ids, nil
}

// forgetListings removes listings by a column.
func forgetListings(ctx context.Context, tx *sql.Tx, column, value string) error {
	if yes, err := hasTable(ctx, tx, "listings"); err != nil || !yes {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM listings WHERE `+column+` = ?`, value)
	return err
}
