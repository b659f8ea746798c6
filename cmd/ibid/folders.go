package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
)

// syncConfig says what of the folders is read.
type syncConfig struct {
	Collection string   `help:"Collection the folders belong to." default:"${default_collection}" placeholder:"NAME"`
	Include    []string `help:"Read only files that match, or stand in a folder that does: '*.md', 'manuals/'. Written as in .gitignore; several: any of them." placeholder:"GLOB"`
	Exclude    []string `help:"Leave out files and folders that match, as in .gitignore." placeholder:"GLOB"`
}

// folders makes ready to read the folders, and to watch them.
func (c syncConfig) folders(lib *library, paths []string, watch bool) []*folder {
	folders := make([]*folder, len(paths))
	for i, path := range paths {
		f := &folder{lib: lib, path: path, collection: c.Collection, told: make(map[string]string)}
		f.syncer = &ingest.Syncer{Sink: lib.Index, Reader: lib.reader, Writers: lib.Index.Writers(), Include: c.Include, Exclude: c.Exclude}
		if watch {
			f.watcher = ingest.NewWatcher(path)
			f.syncer.Enter = f.watcher.Enter
		}
		folders[i] = f
	}
	return folders
}

// check refuses patterns that are not understood.
func (c syncConfig) check() error {
	for _, pattern := range append(append([]string(nil), c.Include...), c.Exclude...) {
		if err := ingest.CheckGlob(pattern); err != nil {
			return usageError("--include, --exclude: %w", err)
		}
	}
	return nil
}

// checkFolders makes the folders' paths absolute, and refuses what is no folder.
func checkFolders(folders []string) ([]string, error) {
	abs := make([]string, 0, len(folders))
	for _, f := range folders {
		info, err := os.Stat(f)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, usageError("there is no folder %s", f)
		case err != nil:
			return nil, fmt.Errorf("looking at the folder %s: %w", f, err)
		case !info.IsDir():
			return nil, usageError("%s is a file, not a folder: give the folder that holds it", f)
		}
		path, err := filepath.Abs(f)
		if err != nil {
			return nil, fmt.Errorf("finding the folder %s: %w", f, err)
		}
		abs = append(abs, path)
	}
	return abs, nil
}

// A folder is kept in step with the store.
type folder struct {
	lib              *library
	path, collection string
	syncer           *ingest.Syncer
	watcher          *ingest.Watcher   // nil where the folder is not watched
	told             map[string]string // why files were skipped or failed, by path
	// waiting is told, where it is set, which process syncs the root already, and
	// since when.
	waiting func(root, worker string, since time.Time)
}

// sync brings the store up to date with the folder, after any other process that
// does. Each is told what became of
// every file, and whether that is new since the last sync.
func (f *folder) sync(ctx context.Context, each func(c ingest.Change, isNew bool) error) (err error) {
	dir, err := os.OpenRoot(f.path)
	if err != nil {
		return fmt.Errorf("opening the folder %s: %w", f.path, err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if f.syncer.Reader != nil {
		defer f.syncer.Reader.Close() // until the next time
	}
	root, err := f.lib.AddRoot(ctx, f.path, f.collection)
	if err != nil {
		return fmt.Errorf("adding the folder %s: %w", f.path, err)
	}
	ctx, turn, err := takeTurn(ctx, f.lib.store.Ledger(), root.Name, func(worker string, since time.Time) {
		if f.waiting != nil {
			f.waiting(root.Name, worker, since)
		}
	})
	if err != nil {
		return err
	}
	defer func() {
		if cause := context.Cause(ctx); retrieve.IsLost(cause) {
			err = cause
		}
		err = errors.Join(err, turn.end(ctx))
	}()
	for change, err := range f.syncer.Sync(ctx, root, dir.FS()) {
		if err != nil {
			return fmt.Errorf("reading the folder %s: %w", f.path, err)
		}
		if err := each(change, f.isNew(change)); err != nil {
			return err
		}
	}
	return nil
}

// isNew notes what became of a file, and says whether that is new.
func (f *folder) isNew(c ingest.Change) bool {
	reason, told := f.told[c.Path]
	switch c.Action {
	case ingest.Unchanged:
		delete(f.told, c.Path)
		return false
	case ingest.Skipped, ingest.Failed:
		f.told[c.Path] = c.Reason
		return !told || reason != c.Reason
	}
	delete(f.told, c.Path)
	return true
}

// follow syncs the folder whenever something in it has changed, until ctx is
// done, which is no error. Each sync is a call of once.
func (f *folder) follow(ctx context.Context, once func() error) (err error) {
	defer func() { err = errors.Join(err, f.watcher.Close()) }()
	for {
		if f.watcher.Wait(ctx) != nil {
			return nil
		}
		if err := once(); err != nil && ctx.Err() == nil {
			return err
		}
	}
}
