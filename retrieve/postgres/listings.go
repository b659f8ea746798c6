package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Listing gives what was kept last for an id; nil where nothing is.
func (e *Engine) Listing(ctx context.Context, id string) (listing []byte, err error) {
	err = e.view(ctx, func(s *session) error {
		err := s.row(ctx, `SELECT listing FROM ibid.listings WHERE sha256(id) = sha256($1)`, []byte(id)).Scan(&listing)
		if errors.Is(err, pgx.ErrNoRows) {
			listing, err = nil, nil
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
	if listing == nil {
		listing = []byte{}
	}
	err := e.update(ctx, func(s *session) error {
		_, err := s.exec(ctx, `INSERT INTO ibid.listings (id, root, listing) VALUES ($1, $2, $3)
			ON CONFLICT (sha256(id)) DO UPDATE SET root = excluded.root, listing = excluded.listing`, []byte(id), []byte(root), listing)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the listing of %s: %w", id, err)
	}
	return nil
}

// Listings gives the ids in a root for which there are listings.
func (e *Engine) Listings(ctx context.Context, root string) (ids []string, err error) {
	err = e.view(ctx, func(s *session) error {
		rows, err := s.query(ctx, `SELECT id FROM ibid.listings WHERE root = $1`, []byte(root))
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			var id []byte
			err := row.Scan(&id)
			return string(id), err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the listings of the root %q: %w", root, err)
	}
	return ids, nil
}
