package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ibid/ingest"
	"ibid/retrieve/disk"
	"ibid/web"
)

// uploadFolders are the open folders of uploads: the one of the server's collection, and those
// of other collections, which are created by the first upload.
type uploadFolders struct {
	making sync.Mutex // held while a folder is made

	mu   sync.Mutex // guards open
	open []*ingest.Uploads
}

// maxUploadFolders limits the folders that the holder of a key for all collections can create.
const maxUploadFolders = 1000

func (f *uploadFolders) all() []*ingest.Uploads {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.open)
}

func (f *uploadFolders) find(root string) *ingest.Uploads {
	all := f.all()
	if i := slices.IndexFunc(all, func(u *ingest.Uploads) bool { return u.Root.Name == root }); i >= 0 {
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

// add creates the uploads of a root whose folder is open. All folders share one size limit.
func (f *uploadFolders) add(srv *server, root ingest.Root, dir *os.Root) *ingest.Uploads {
	u := &ingest.Uploads{
		Dir: dir, Root: root, MaxBytes: int64(srv.MaxUpload) << 20, MaxTotal: int64(srv.MaxUploads) << 20,
		Syncer: &ingest.Syncer{Sink: srv.lib.Index, Reader: srv.lib.reader}, Lock: disk.Lock, All: f.all,
	}
	if files := srv.lib.State.Originals(); files != nil {
		u.Files = files
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = append(f.open, u)
	return u
}

func (f *uploadFolders) close(root string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = slices.DeleteFunc(f.open, func(u *ingest.Uploads) bool { return u.Root.Name == root })
}

// folderOf returns the folder of a root, or the address of a site. made reports whether the
// folder was created for uploads, in the data directory.
func folderOf(data string, r ingest.Root) (folder string, made bool) {
	if r.Path == "" {
		return filepath.Join(data, "uploads"), true
	}
	if name, made := strings.CutPrefix(r.Path, ingest.MadeForUploads); made && filepath.IsLocal(name) {
		return filepath.Join(data, "collections", name), true
	}
	return r.Path, false
}

// Roots lists the roots created for uploads to other collections, including by other servers of
// the store.
func (srv *server) Roots(ctx context.Context) ([]ingest.Root, error) {
	roots, err := srv.lib.Roots(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the folders of uploads: %w", err)
	}
	return slices.DeleteFunc(roots, func(r ingest.Root) bool { return !srv.isShelf(r) }), nil
}

func (srv *server) isShelf(r ingest.Root) bool {
	_, made := folderOf(srv.Data, r)
	return made && r.Path != ""
}

// openShelves opens the folders of the server's uploads, and of other collections that
// earlier servers made.
func (srv *server) openShelves(ctx context.Context) error {
	roots, err := srv.Roots(ctx)
	if err != nil {
		return err
	}
	for _, root := range append([]ingest.Root{*srv.uploads}, roots...) {
		if _, err := srv.openShelf(ctx, root); err != nil {
			srv.logger.Warn("a folder of uploads could not be opened; its documents remain", "root", root.Name, "error", err)
		}
	}
	return nil
}

// openShelf returns the uploads in a root, and opens them if they are not open. Unless
// the files are in the store, it does not open a missing or empty folder whose documents
// are stored: they would seem deleted.
func (srv *server) openShelf(ctx context.Context, root ingest.Root) (*ingest.Uploads, error) {
	if u := srv.shelves.find(root.Name); u != nil {
		return u, nil
	}
	folder, _ := folderOf(srv.Data, root)
	if srv.lib.State.Originals() == nil {
		files, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("opening the folder of uploads: %w", err)
		}
		known, err := srv.lib.StoredDocuments(ctx, root)
		if err != nil {
			return nil, fmt.Errorf("listing the stored uploads: %w", err)
		}
		if len(files) == 0 && len(known) > 0 {
			return nil, fmt.Errorf("%w (%s)", ingest.ErrUploadsMissing, folder)
		}
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of the uploads: %w", err)
	}
	dir, err := ingest.OpenUploads(folder)
	if err != nil {
		return nil, err
	}
	return srv.shelves.add(srv, root, dir), nil
}

// CollectionUploads returns the uploads of a collection, and creates their folder if needed.
func (srv *server) CollectionUploads(ctx context.Context, collection string) (web.Uploads, error) {
	srv.shelves.making.Lock()
	defer srv.shelves.making.Unlock()
	if collection == srv.uploads.Collection {
		return srv.openShelf(ctx, *srv.uploads)
	}
	roots, err := srv.Roots(ctx)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(roots, func(r ingest.Root) bool { return r.Collection == collection }); i >= 0 {
		return srv.openShelf(ctx, roots[i])
	}
	if err := ingest.CheckCollection(collection); err != nil {
		return nil, err
	}
	if len(roots) >= maxUploadFolders {
		return nil, fmt.Errorf("%w, or whole collections: there are %d with uploads", ingest.ErrUploadSpace, len(roots))
	}
	// Some file systems have one folder for names that differ only in case, and a renamed
	// collection keeps its folder.
	made := ingest.Root{Path: ingest.MadeForUploads + collection}
	for n := 2; slices.ContainsFunc(roots, func(r ingest.Root) bool { return strings.EqualFold(r.Path, made.Path) }); n++ {
		made.Path = fmt.Sprintf("%s%s-%d", ingest.MadeForUploads, collection, n)
	}
	root, err := srv.lib.AddRoot(ctx, made.Path, collection)
	if err != nil {
		return nil, fmt.Errorf("adding the uploads of a collection: %w", err)
	}
	srv.shelves.close(root.Name) // close one that another server deleted
	return srv.openShelf(ctx, root)
}

// RootUploads returns the uploads in a root, or a folder whose files can be read again, and the
// collection.
func (srv *server) RootUploads(ctx context.Context, root string) (web.Uploads, string, error) {
	roots, err := srv.lib.Roots(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("finding the folder %s: %w", root, err)
	}
	i := slices.IndexFunc(roots, func(r ingest.Root) bool { return r.Name == root })
	if i < 0 {
		return nil, "", fs.ErrNotExist
	}
	if _, made := folderOf(srv.Data, roots[i]); made {
		srv.shelves.making.Lock()
		defer srv.shelves.making.Unlock()
		u, err := srv.openShelf(ctx, roots[i])
		return u, roots[i].Collection, err // u may have the name from before a renaming
	}
	return readFolder{srv, roots[i]}, roots[i].Collection, nil
}

// A readFolder is a folder not created for uploads: its files can only be read again.
type readFolder struct {
	srv  *server
	root ingest.Root
}

func (readFolder) Add(context.Context, string, io.Reader, map[string]string) (ingest.Change, error) {
	return ingest.Change{}, ingest.ErrNotUploaded
}

func (readFolder) Remove(context.Context, string) error { return ingest.ErrNotUploaded }

// busyFolder is how long rereading a file waits while its whole folder is being read.
const busyFolder = 5 * time.Second

// Reread reads a file of the folder, or the archive that contains it, again. Only a server that
// syncs the folder may do so, since it knows the folder's settings.
func (r readFolder) Reread(ctx context.Context, name string, meta map[string]string) (c ingest.Change, err error) {
	switch {
	case meta != nil:
		return c, ingest.ErrNotUploaded
	case ingest.IsAddress(r.root.Path):
		return c, &ingest.UnreadableError{Reason: "a web site is read once a day: to read it now, add its address again"}
	case !slices.Contains(r.srv.paths, r.root.Path):
		return c, &ingest.UnreadableError{Reason: "this server does not read the folder of this document: " +
			"the server that reads it reads the file again when it changes; or run 'ibid ingest' on the folder"}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	busy := &ingest.UnreadableError{Reason: "its folder is being read, including this file: wait until that ends"}
	late := time.AfterFunc(busyFolder, func() { cancel(busy) })
	f := r.srv.folder(r.srv.lib, r.root.Path, r.srv.crawlConfig)
	claimed, release, err := claimRoot(ctx, r.srv.lib.State.Ledger(), r.root.Name, f.onWait)
	late.Stop()
	if err != nil {
		return c, cmp.Or(context.Cause(ctx), err)
	}
	defer release()
	files, closer, err := f.open()
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	file, info := name, fs.FileInfo(nil)
	for info, err = fs.Lstat(files, file); err != nil && file != "."; info, err = fs.Lstat(files, file) {
		file = path.Dir(file) // of a file in an archive
	}
	if err != nil || info.IsDir() {
		return c, fmt.Errorf("reading the file again: %w", fs.ErrNotExist)
	}
	f.syncer.Force = true
	c, err = f.syncer.SyncFile(claimed, r.root, files, file)
	if err == nil && (c.Action == ingest.Skipped || c.Action == ingest.Failed) {
		err = &ingest.UnreadableError{Reason: c.Reason}
	} else if err == nil {
		r.srv.progress.clearFailures(r.root.Path, c.Document)
	}
	return c, err
}

// uploadRoots returns the roots of a collection; all must have been created for uploads.
func (srv *server) uploadRoots(ctx context.Context, collection string) ([]ingest.Root, error) {
	roots, err := srv.lib.Roots(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the folders of a collection: %w", err)
	}
	roots = slices.DeleteFunc(roots, func(r ingest.Root) bool { return r.Collection != collection })
	if len(roots) == 0 || slices.ContainsFunc(roots, func(r ingest.Root) bool { return !srv.isShelf(r) }) {
		return nil, fs.ErrNotExist
	}
	return roots, nil
}

// Rename renames a collection of uploads. Its folder keeps the old name.
func (srv *server) Rename(ctx context.Context, from, to string) error {
	srv.shelves.making.Lock()
	defer srv.shelves.making.Unlock()
	if err := ingest.CheckCollection(to); err != nil {
		return err
	}
	if _, err := srv.uploadRoots(ctx, from); err != nil || from == to {
		return err
	}
	return srv.lib.State.RenameCollection(ctx, from, to)
}

// Delete deletes a collection of uploads with its files.
func (srv *server) Delete(ctx context.Context, collection string, keepAnswers bool) error {
	srv.shelves.making.Lock()
	defer srv.shelves.making.Unlock()
	roots, err := srv.uploadRoots(ctx, collection)
	if err != nil {
		return err
	}
	if err := srv.lib.State.TakeFromKeys(ctx, collection); err != nil {
		return err
	}
	for _, root := range roots {
		srv.shelves.close(root.Name)
		// A new collection of the same name would read files that have no root.
		folder, _ := folderOf(srv.Data, root)
		if err := os.RemoveAll(folder); err != nil {
			return fmt.Errorf("deleting the files of the collection %s: %w", collection, err)
		}
		if _, err := srv.lib.State.DeleteRoot(ctx, root.Name, keepAnswers); err != nil {
			return fmt.Errorf("deleting the collection %s: %w", collection, err)
		}
	}
	return nil
}
