package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"ibid/ingest"
	"ibid/retrieve"
)

// maxRootName is the longest name of a root in bytes: an index has it.
const maxRootName = 1024

const rootColumns = "name, path, collection"

// AddRoot returns the root stored for the absolute folder path or web address,
// and creates it under a free name if there is none. The collection of an existing root stays.
func (s *Store) AddRoot(ctx context.Context, path, collection string) (root ingest.Root, err error) {
	if path != "" && !filepath.IsAbs(path) && !ingest.IsAddress(path) {
		return ingest.Root{}, fmt.Errorf("adding a root: the path %q is not absolute", path)
	}
	if collection == "" {
		collection = ingest.DefaultCollection
	}
	err = s.update(ctx, func(t *tx) error {
		roots, damaged, err := t.lockRoots()
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(roots, func(r ingest.Root) bool { return r.Path == path }); i >= 0 {
			root = roots[i]
			return nil
		}
		root = ingest.Root{Name: retrieve.RootName(path, roots), Path: path, Collection: collection}
		return t.insertRoot(root, damaged)
	})
	return root, err
}

// lockRoots returns the roots, which do not change until the transaction ends.
func (t *tx) lockRoots() (roots, damaged []ingest.Root, err error) {
	if err := t.lock("library"); err != nil {
		return nil, nil, err
	}
	return t.roots()
}

// roots lists the roots by name, and those whose rows are damaged.
func (t *tx) roots() (roots, damaged []ingest.Root, err error) {
	return rowsOf(t, scanRoot, `SELECT `+rootColumns+`, sum FROM ibid.roots ORDER BY name`)
}

func scanRoot(row scanner) (r ingest.Root, err error) {
	err = checked(row, &r.Name, &r.Path, &r.Collection)
	return r, err
}

// insertRoot stores a root. The names of damaged ones are free for their folders
// again.
func (t *tx) insertRoot(root ingest.Root, damaged []ingest.Root) error {
	if root.Name == "" || len(root.Name) > maxRootName {
		return fmt.Errorf("the name of a root has 1 to %d bytes, and this has %d", maxRootName, len(root.Name))
	}
	for _, r := range damaged {
		if _, err := t.exec(`DELETE FROM ibid.roots WHERE name = ?`, r.Name); err != nil {
			return err
		}
	}
	if err := t.insert("roots", rootColumns, "", []any{root.Name, root.Path, root.Collection}); err != nil {
		return err
	}
	return t.changed(change{})
}

// Roots lists the roots by name.
func (s *Store) Roots(ctx context.Context) (roots []ingest.Root, err error) {
	err = s.view(ctx, func(t *tx) error {
		roots, _, err = t.roots()
		return err
	})
	return roots, err
}

// collectionOf returns the collection of a root.
func (t *tx) collectionOf(root string) (string, error) {
	r, err := scanRoot(t.row(`SELECT `+rootColumns+`, sum FROM ibid.roots WHERE name = ?`, root))
	if errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("its root %q is unknown: add the root first: %w", root, retrieve.ErrNotFound)
	}
	if errors.Is(err, errRow) {
		return "", fmt.Errorf("the row of its root %q is damaged: add the root again", root)
	}
	return r.Collection, err
}

// DeleteRoot removes a root and all its documents in one step, with the records
// that quote them, and returns how many documents there were.
func (s *Store) DeleteRoot(ctx context.Context, name string) (documents int, err error) {
	return s.deleteRoot(ctx, name, (*tx).forgetQuoting)
}

// DeleteRootAlone is DeleteRoot without the deletion of records.
func (s *Store) DeleteRootAlone(ctx context.Context, name string) (documents int, err error) {
	return s.deleteRoot(ctx, name, func(t *tx, _ string) error { return t.deleteReplies() })
}

func (s *Store) deleteRoot(ctx context.Context, name string, forget func(*tx, string) error) (documents int, err error) {
	err = s.update(ctx, func(t *tx) error {
		documents = 0
		if err := t.lock("library"); err != nil {
			return err
		}
		roots, err := t.exec(`DELETE FROM ibid.roots WHERE name = ?`, name)
		if err != nil {
			return err
		}
		numbers, err := column[int64](t, `SELECT number FROM ibid.documents WHERE root = ?`, name)
		if err != nil {
			return err
		}
		if roots == 0 && len(numbers) == 0 {
			return retrieve.ErrNotFound
		}
		if err := forget(t, name); err != nil {
			return err
		}
		changes := []change{{}}
		for _, number := range numbers {
			if err := t.erase(number, nil); err != nil {
				return err
			}
			changes = append(changes, change{document: number, deleted: true})
		}
		documents = len(numbers)
		return t.changed(changes...)
	})
	if err == nil {
		err = s.truncateLog(ctx) // it has the deleted words
	}
	return documents, err
}

// RenameCollection gives the roots and documents of a collection, and the keys for
// it, another name. It returns [retrieve.ErrNotFound] if no root is in the
// collection, and [retrieve.ErrTaken] if one is in a collection with the new name.
func (s *Store) RenameCollection(ctx context.Context, from, to string) error {
	return within(ctx, s.update, func(t *tx) error {
		if err := t.lock("library"); err != nil {
			return err
		}
		roots, _, err := t.roots()
		if err != nil {
			return err
		}
		in := func(name string) func(ingest.Root) bool {
			return func(r ingest.Root) bool { return r.Collection == name }
		}
		if slices.ContainsFunc(roots, in(to)) {
			return retrieve.ErrTaken
		}
		if !slices.ContainsFunc(roots, in(from)) {
			return retrieve.ErrNotFound
		}
		for _, r := range roots {
			if r.Collection != from {
				continue
			}
			if err := t.replaceRoot(ingest.Root{Name: r.Name, Path: r.Path, Collection: to}); err != nil {
				return err
			}
		}
		if err := t.renameInKeys(from, to); err != nil {
			return err
		}
		return t.moveDocuments(from, to)
	}, "renaming the collection %s to %s", from, to)
}

// moveRoots gives roots the paths that their folders have now.
func (s *Store) moveRoots(ctx context.Context, moved func(path string) string) error {
	return within(ctx, s.update, func(t *tx) error {
		roots, _, err := t.lockRoots()
		if err != nil {
			return err
		}
		for _, r := range roots {
			if path := moved(r.Path); path != r.Path {
				r.Path = path
				if err := t.replaceRoot(r); err != nil {
					return err
				}
			}
		}
		return t.changed(change{})
	}, "moving the folders of a copy")
}

func (t *tx) replaceRoot(r ingest.Root) error {
	if _, err := t.exec(`DELETE FROM ibid.roots WHERE name = ?`, r.Name); err != nil {
		return err
	}
	return t.insert("roots", rootColumns, "", []any{r.Name, r.Path, r.Collection})
}

func (t *tx) renameInKeys(from, to string) error {
	if err := t.lock(ringLock); err != nil {
		return err
	}
	keys, _, err := rowsOf(t, scanKey, `SELECT `+keyColumns+`, sum FROM ibid.keys`)
	if err != nil {
		return err
	}
	for _, key := range keys {
		i := slices.Index(key.Collections, from)
		if i < 0 {
			continue
		}
		key.Collections[i] = to
		if _, err := t.exec(`DELETE FROM ibid.keys WHERE id = ?`, key.ID); err != nil {
			return err
		}
		if err := t.insertKey(key); err != nil {
			return err
		}
	}
	return t.ringChanged()
}

// moveDocuments puts the documents of a collection into another. Those with a damaged
// row stay, as damaged keys do: [Verify] names them.
func (t *tx) moveDocuments(from, to string) error {
	rows, _, err := rowsOf(t, func(r scanner) (d documentRow, err error) {
		err = d.scan(r)
		return d, err
	}, `SELECT `+documentColumns+` FROM ibid.documents WHERE collection = ? AND `+whole, from)
	if err != nil {
		return err
	}
	changes := []change{{}}
	for _, d := range rows {
		d.collection = to
		if _, err := t.exec(`DELETE FROM ibid.documents WHERE number = ?`, d.number); err != nil {
			return err
		}
		if err := t.insert("documents", documentValues, "", d.dest()); err != nil {
			return err
		}
		changes = append(changes, change{document: d.number, id: d.id})
	}
	return t.changed(changes...)
}
