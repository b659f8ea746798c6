package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ibid/ingest"
	"ibid/retrieve"
)

// maxRootName limits the length of a root's name in bytes, because the name is in an index.
const maxRootName = 1024

const rootColumns = "name, path, collection"

// AddRoot returns the root stored for the absolute folder path or web address, and creates it under
// a free name if it does not exist. The collection of an existing root does not change.
func (s *Store) AddRoot(ctx context.Context, path, collection string) (root ingest.Root, err error) {
	if path != "" && !filepath.IsAbs(path) && !ingest.IsAddress(path) && !strings.HasPrefix(path, ingest.MadeForUploads) {
		return ingest.Root{}, fmt.Errorf("adding a root: the path %q is not absolute", path)
	}
	if collection == "" {
		collection = ingest.DefaultCollection
	}
	err = s.update(ctx, func(t *tx) {
		t.lock("library")
		roots, damaged := t.roots()
		if i := slices.IndexFunc(roots, func(r ingest.Root) bool { return r.Path == path }); i >= 0 {
			root = roots[i]
			return
		}
		root = ingest.Root{Name: retrieve.RootName(path, roots), Path: path, Collection: collection}
		if root.Name == "" || len(root.Name) > maxRootName {
			check(fmt.Errorf("the name of a root has 1 to %d bytes, and this has %d", maxRootName, len(root.Name)))
		}
		for _, r := range damaged { // makes their names available to their folders again
			t.exec(`DELETE FROM ibid.roots WHERE name = ?`, r.Name)
		}
		t.insert("roots", rootColumns, "", []any{root.Name, root.Path, root.Collection})
		t.recordChanges(change{})
	})
	return root, err
}

// roots lists the undamaged roots by name, and the damaged ones.
func (t *tx) roots() (roots, damaged []ingest.Root) {
	return rowsOf(t, scanRoot, `SELECT `+rootColumns+`, sum FROM ibid.roots ORDER BY name`)
}

func scanRoot(row scanner) (r ingest.Root, err error) {
	err = scanChecked(row, &r.Name, &r.Path, &r.Collection)
	return r, err
}

// Roots lists the roots by name.
func (s *Store) Roots(ctx context.Context) (roots []ingest.Root, err error) {
	err = s.view(ctx, func(t *tx) { roots, _ = t.roots() })
	return roots, err
}

// collectionOf returns the collection of a root.
func (t *tx) collectionOf(root string) string {
	r, err := scanRoot(t.row(`SELECT `+rootColumns+`, sum FROM ibid.roots WHERE name = ?`, root))
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("its root %q is unknown: add the root first: %w", root, retrieve.ErrNotFound)
	} else if err != nil {
		err = fmt.Errorf("the row of its root %q is damaged: add the root again", root)
	}
	check(err)
	return r.Collection
}

// DeleteRoot deletes a root and all its documents in one step, with the records that quote them
// unless keepRecords is set, and returns the number of documents. If the name is unknown, the error
// is [retrieve.ErrNotFound].
func (s *Store) DeleteRoot(ctx context.Context, name string, keepRecords bool) (documents int, err error) {
	err = s.update(ctx, func(t *tx) {
		t.lock("library")
		roots := t.exec(`DELETE FROM ibid.roots WHERE name = ?`, name)
		numbers := column[int64](t, `SELECT number FROM ibid.documents WHERE root = ?`, name)
		if roots == 0 && len(numbers) == 0 {
			check(retrieve.ErrNotFound)
		}
		if t.s.dir == "" {
			t.exec(`DELETE FROM ibid.originals WHERE root = ?`, name)
		}
		if keepRecords {
			t.deleteReplies()
		} else {
			t.forgetQuoting(name)
		}
		changes := []change{{}}
		for _, number := range numbers {
			t.erase(number, nil)
			changes = append(changes, change{document: number, deleted: true})
		}
		documents = len(numbers)
		t.recordChanges(changes...)
	})
	if err != nil {
		return 0, err
	}
	return documents, s.truncateLog(ctx) // the log contains the deleted words
}

// RenameCollection renames a collection in the roots, documents and keys that belong to it. If no
// root is in the collection, the error is [retrieve.ErrNotFound]; if a root is in a collection with
// the new name, it is [retrieve.ErrTaken].
func (s *Store) RenameCollection(ctx context.Context, from, to string) error {
	return inTransaction(ctx, s.update, func(t *tx) {
		t.lock("library")
		roots, _ := t.roots()
		in := func(name string) func(ingest.Root) bool {
			return func(r ingest.Root) bool { return r.Collection == name }
		}
		if slices.ContainsFunc(roots, in(to)) {
			check(retrieve.ErrTaken)
		}
		if !slices.ContainsFunc(roots, in(from)) {
			check(retrieve.ErrNotFound)
		}
		for _, r := range roots {
			if r.Collection == from {
				t.exec(`DELETE FROM ibid.roots WHERE name = ?`, r.Name)
				t.insert("roots", rootColumns, "", []any{r.Name, r.Path, to})
			}
		}
		t.renameInKeys(from, to)
		// Documents with a damaged row remain, as damaged keys do: [Verify] names them.
		rows, _ := rowsOf(t, scanDocument, `SELECT `+documentColumns+` FROM ibid.documents WHERE collection = ? AND `+whole, from)
		changes := []change{{}}
		for _, d := range rows {
			d.Collection = to
			t.replaceRow(&d)
			changes = append(changes, change{document: d.Number, id: d.ID})
		}
		t.recordChanges(changes...)
	}, "renaming the collection %s to %s", from, to)
}

// TakeFromKeys removes a deleted collection from all keys, and revokes keys that permit only this
// collection. Otherwise they would give access to a later collection with the same name.
func (s *Store) TakeFromKeys(ctx context.Context, collection string) error {
	return inTransaction(ctx, s.update, func(t *tx) { t.renameInKeys(collection, "") },
		"removing the collection %s from the keys", collection)
}

// renameInKeys replaces a collection of the keys with another, or removes it if to is "".
func (t *tx) renameInKeys(from, to string) {
	t.lock(ringLock)
	keys, _ := rowsOf(t, scanKey, `SELECT `+keyColumns+`, sum FROM ibid.keys`)
	for _, key := range keys {
		before := len(key.Collections)
		key.Collections = slices.DeleteFunc(key.Collections, func(c string) bool { return c == from })
		if len(key.Collections) == before {
			continue
		}
		if to != "" {
			key.Collections = append(key.Collections, to)
		}
		t.exec(`DELETE FROM ibid.keys WHERE id = ?`, key.ID)
		if len(key.Collections) > 0 {
			t.insertKey(key)
		} else { // without a collection the key would permit all
			t.exec(`DELETE FROM ibid.sessions WHERE key = ?`, key.ID)
		}
	}
	t.advanceRing()
}

// replaceRow stores the row of a document in place of the row with the same number.
func (t *tx) replaceRow(d *documentRow) {
	t.exec(`DELETE FROM ibid.documents WHERE number = ?`, d.Number)
	t.insert("documents", documentValues, "", d.dest())
}
