package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"ibid/ingest"
	"ibid/web"
)

// uploadFolders are the open folders of uploads: that of the server's collection, and
// those of other collections, which are made when something is uploaded into them.
type uploadFolders struct {
	making sync.Mutex // held while a folder is made

	mu   sync.Mutex // guards what follows
	open []*ingest.Uploads
}

// maxUploadFolders bounds what the holder of a key for all collections can make.
const maxUploadFolders = 1000

func (f *uploadFolders) all() []*ingest.Uploads {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.open)
}

// find returns the first open folder that fits; nil if there is none.
func (f *uploadFolders) find(fits func(*ingest.Uploads) bool) *ingest.Uploads {
	all := f.all()
	if i := slices.IndexFunc(all, fits); i >= 0 {
		return all[i]
	}
	return nil
}

func (f *uploadFolders) failures() (failed []ingest.Change) {
	for _, u := range f.all() {
		failed = append(failed, u.Failures()...)
	}
	return failed
}

// add makes uploads of a root, whose folder is open. All folders together have one limit.
func (f *uploadFolders) add(srv *server, root ingest.Root, dir *os.Root) *ingest.Uploads {
	u := &ingest.Uploads{
		Dir: dir, Root: root, MaxBytes: int64(srv.MaxUpload) << 20, MaxTotal: int64(srv.MaxUploads) << 20,
		Syncer: &ingest.Syncer{Sink: srv.lib.Index, Reader: srv.lib.reader}, Shared: srv.shared(),
	}
	u.Others = func() (total int64, err error) {
		for _, other := range f.all() {
			if other == u {
				continue
			}
			size, err := other.Size()
			if err != nil {
				return 0, err
			}
			total += size
		}
		return total, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = append(f.open, u)
	return u
}

// collectionsIn is the folder of the folders of uploads of other collections.
func collectionsIn(data string) string { return filepath.Join(data, "collections") }

// openShelves opens the folders of other collections that earlier servers made.
func (srv *server) openShelves(ctx context.Context) error {
	roots, err := srv.lib.Roots(ctx)
	if err != nil {
		return fmt.Errorf("listing the folders of uploads: %w", err)
	}
	parent, err := filepath.Abs(collectionsIn(srv.Data))
	if err != nil {
		return fmt.Errorf("finding the folders of uploads: %w", err)
	}
	for _, root := range roots {
		if root.Path == "" || filepath.Dir(root.Path) != parent {
			continue
		}
		if _, err := os.Stat(root.Path); err != nil {
			srv.logger.Warn("a folder of uploads cannot be opened: its documents remain", "root", root.Name, "error", err)
			continue
		}
		dir, err := ingest.OpenUploads(root.Path)
		if err != nil {
			return err
		}
		srv.shelves.add(srv, root, dir)
	}
	return nil
}

// Into returns the uploads of a collection, and makes their folder if there is none.
func (srv *server) Into(ctx context.Context, collection string) (web.Uploads, error) {
	srv.shelves.making.Lock()
	defer srv.shelves.making.Unlock()
	if u := srv.shelves.find(func(u *ingest.Uploads) bool { return u.Root.Collection == collection }); u != nil {
		return u, nil
	}
	if err := ingest.CheckCollection(collection); err != nil {
		return nil, err
	}
	all := srv.shelves.all()
	if len(all) >= maxUploadFolders {
		return nil, fmt.Errorf("%w, or whole collections: there are %d with uploads", ingest.ErrUploadSpace, len(all))
	}
	// Some file systems have one folder for names that differ only in case.
	parent, err := filepath.Abs(collectionsIn(srv.Data))
	if err != nil {
		return nil, fmt.Errorf("finding the folders of uploads: %w", err)
	}
	path := filepath.Join(parent, collection)
	if slices.ContainsFunc(all, func(u *ingest.Uploads) bool { return strings.EqualFold(u.Root.Path, path) }) {
		return nil, ingest.ErrCollection
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the uploads: %w", err)
	}
	dir, err := ingest.OpenUploads(path)
	if err != nil {
		return nil, err
	}
	root, err := srv.lib.AddRoot(ctx, path, collection)
	if err == nil && root.Collection != collection {
		err = ingest.ErrCollection // the folder was ingested into another
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("adding the uploads of a collection: %w", err), dir.Close())
	}
	return srv.shelves.add(srv, root, dir), nil
}

// Of returns the uploads in a root, and their collection.
func (srv *server) Of(_ context.Context, root string) (web.Uploads, string, error) {
	u := srv.shelves.find(func(u *ingest.Uploads) bool { return u.Root.Name == root })
	if u == nil {
		return nil, "", fs.ErrNotExist
	}
	return u, u.Root.Collection, nil
}
