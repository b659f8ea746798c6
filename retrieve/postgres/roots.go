package postgres

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5"

	"ibid/ingest"
	"ibid/retrieve"
)

// AddRoot gives the root stored for the absolute folder path, and makes it
// under a free name when there is none. An empty path is the root of uploads.
// The collection of a root that is there already stays what it was; empty means
// [ingest.DefaultCollection].
func (e *Engine) AddRoot(ctx context.Context, path, collection string) (root ingest.Root, err error) {
	if path != "" && !filepath.IsAbs(path) {
		return ingest.Root{}, fmt.Errorf("add a root: the path %q is not absolute", path)
	}
	if collection == "" {
		collection = ingest.DefaultCollection
	}
	// Most are there: then nobody need wait.
	there := func(s *session) (roots []ingest.Root, found bool, err error) {
		roots, err = readRoots(ctx, s)
		i := slices.IndexFunc(roots, func(r ingest.Root) bool { return r.Path == path })
		if i >= 0 {
			root = roots[i]
		}
		return roots, i >= 0, err
	}
	var found bool
	err = e.view(ctx, func(s *session) (err error) {
		_, found, err = there(s)
		return err
	})
	if err == nil && !found {
		err = e.update(ctx, func(s *session) error {
			if err := e.lockLibrary(ctx, s); err != nil {
				return err
			}
			roots, found, err := there(s)
			if err != nil || found {
				return err
			}
			root = ingest.Root{Name: retrieve.RootName(path, roots), Path: path, Collection: collection}
			return e.insertRoot(ctx, s, root)
		})
	}
	if err != nil {
		return ingest.Root{}, fmt.Errorf("add the root of %q: %w", path, err)
	}
	return root, nil
}

func (e *Engine) insertRoot(ctx context.Context, s *session, root ingest.Root) error {
	_, err := s.exec(ctx, `INSERT INTO ibid.roots (name, path, collection) VALUES ($1, $2, $3)`, []byte(root.Name), []byte(root.Path), []byte(root.Collection))
	if err != nil {
		return err
	}
	return e.changed(ctx, s, totals{})
}

// Roots lists the roots by name.
func (e *Engine) Roots(ctx context.Context) (roots []ingest.Root, err error) {
	err = e.view(ctx, func(s *session) (err error) {
		roots, err = readRoots(ctx, s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the roots: %w", err)
	}
	return roots, nil
}

func readRoots(ctx context.Context, s *session) ([]ingest.Root, error) {
	rows, err := s.query(ctx, `SELECT name, path, collection FROM ibid.roots ORDER BY name`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r ingest.Root, err error) {
		var name, path, collection []byte
		err = row.Scan(&name, &path, &collection)
		return ingest.Root{Name: string(name), Path: string(path), Collection: string(collection)}, err
	})
}

// DeleteRoot removes a root and all its documents in one step.
func (e *Engine) DeleteRoot(ctx context.Context, name string) (documents int, err error) {
	err = e.update(ctx, func(s *session) error {
		if err := e.lockLibrary(ctx, s); err != nil {
			return err
		}
		gone, err := s.exec(ctx, `DELETE FROM ibid.roots WHERE name = $1`, []byte(name))
		if err != nil {
			return err
		}
		rows, err := s.query(ctx, `SELECT key, id FROM ibid.documents WHERE root = $1`, []byte(name))
		if err != nil {
			return err
		}
		var keys []int64
		var ids []string
		var key int64
		var id []byte
		_, err = pgx.ForEachRow(rows, []any{&key, &id}, func() error {
			keys, ids = append(keys, key), append(ids, string(id))
			return nil
		})
		if err != nil {
			return err
		}
		if gone == 0 && len(keys) == 0 {
			return retrieve.ErrNotFound
		}
		spaces, err := readSpaces(ctx, s)
		if err != nil {
			return err
		}
		var less totals
		for _, key := range keys {
			t, err := e.erase(ctx, s, spaces, key)
			if err != nil {
				return err
			}
			less.add(t)
		}
		documents = len(keys)
		if _, err := s.exec(ctx, `DELETE FROM ibid.listings WHERE root = $1`, []byte(name)); err != nil {
			return err
		}
		if err := errors.Join(e.forgetReplies(ctx, s), e.forgetRecordsOf(ctx, s, ids...)); err != nil {
			return err
		}
		return e.changed(ctx, s, less)
	})
	if err != nil {
		return 0, fmt.Errorf("forget the root %q: %w", name, err)
	}
	return documents, nil
}

// collectionOf gives the collection of a root.
func collectionOf(ctx context.Context, s *session, root string) (collection []byte, err error) {
	err = s.row(ctx, `SELECT collection FROM ibid.roots WHERE name = $1`, []byte(root)).Scan(&collection)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("its root %q is not known: add the root first: %w", root, retrieve.ErrNotFound)
	}
	return collection, err
}
