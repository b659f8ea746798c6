package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ibid/retrieve/disk"
	"ibid/retrieve/state"
)

type copyCmd struct {
	From storeURL `help:"Library to copy: a data directory, or ${stores}." required:"" placeholder:"STORE" noenv:"" group:"Store"`
	To   storeURL `help:"Target: a folder or database that has no library yet." required:"" placeholder:"STORE" noenv:"" group:"Store"`
	JSON bool     `help:"Print a JSON object." name:"json"`

	FromPasswordFile string `help:"File with the password of --from; default: $IBID_FROM_PASSWORD." placeholder:"FILE" noenv:"" group:"Store"`
	ToPasswordFile   string `help:"File with the password of --to; default: $IBID_TO_PASSWORD." placeholder:"FILE" noenv:"" group:"Store"`
}

// Help is what 'ibid copy --help' says in addition to the flags.
func (copyCmd) Help() string {
	return "The copy is a snapshot of all documents with their text and vectors, so that nothing is embedded again, " +
		"answers, feedback, keys and uploaded files. The library may be in use. The copy is verified: " +
		"exit code 4 if something in it is damaged. An interrupted copy leaves no library."
}

// Run copies a library.
func (c *copyCmd) Run(ctx context.Context, s surroundings) (err error) {
	from := placeConfig{Data: c.From.dir, Store: storeURL{url: c.From.url}, StorePasswordFile: c.FromPasswordFile}
	to := placeConfig{Data: c.To.dir, Store: storeURL{url: c.To.url}, StorePasswordFile: c.ToPasswordFile}
	if !from.remote() && !from.exists() { // opening would create it
		return usageError("there is no library in %s: name a data directory or the address of a store with --from", from)
	}
	source, err := openStore(ctx, from, s.withPassword("IBID_FROM_PASSWORD"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	address, err := upkeepConfig{placeConfig: to}.location(s.withPassword("IBID_TO_PASSWORD"))
	if err != nil {
		return err
	}
	if !to.remote() && to.exists() {
		return usageError("%w: %s has a library: name another folder", state.ErrTarget, to)
	}
	checking := newMeter(s.stderr, "documents checked", 0)
	folders, err := copiedUploads(ctx, source, from, to)
	// Uploaded files are copied before their documents, which a server would delete
	// otherwise, and again afterwards for uploads that arrived meanwhile.
	if err == nil && !to.remote() {
		err = copyUploads(ctx, source, from, to, s, folders)
	}
	var r state.Report
	if err == nil {
		r, err = source.CopyTo(ctx, address, to.stateOptions(s), checking.update)
	}
	if err == nil {
		err = copyUploads(ctx, source, from, to, s, folders)
	}
	checking.clear()
	switch {
	case errors.Is(err, state.ErrTarget):
		return usageError("%w", err)
	case err != nil:
		return fmt.Errorf("copying %s to %s: %w", from, to, err)
	}
	return upkeepConfig{placeConfig: to, JSON: c.JSON}.printReport(s, r, "", "copied to "+to.String())
}

// withPassword takes the store's password from another variable.
func (s surroundings) withPassword(variable string) surroundings {
	getenv := s.getenv
	s.getenv = func(name string) string {
		if name == passwordVariable {
			name = variable
		}
		return getenv(name)
	}
	return s
}

// A copiedFolder is the folder of the uploads in a root.
type copiedFolder struct {
	from string
	to   string // in the copy; "" if the copy is on a server
}

// copiedUploads returns the folders made for uploads, by root.
func copiedUploads(ctx context.Context, source *state.Store, from, to placeConfig) (map[string]copiedFolder, error) {
	roots, err := source.Roots(ctx)
	folders := make(map[string]copiedFolder)
	for _, r := range roots {
		var f copiedFolder
		var made bool
		f.from, made = folderOf(from.Data, r)
		if !to.remote() {
			f.to, _ = folderOf(to.Data, r)
		}
		if made {
			folders[r.Name] = f
		}
	}
	return folders, err
}

// copyUploads copies the uploaded files that the copy lacks.
func copyUploads(
	ctx context.Context, source *state.Store, from, to placeConfig, s surroundings, folders map[string]copiedFolder,
) (err error) {
	put := func(root, name string, data []byte, modified time.Time) error {
		return writeWhole(filepath.Join(folders[root].to, name), ".upload-*", 0o600, data, modified) // the name of incomplete uploads
	}
	if to.remote() {
		target, failed := openStore(ctx, to, s.withPassword("IBID_TO_PASSWORD"))
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, target.Close()) }()
		put = func(root, name string, data []byte, _ time.Time) error {
			id := root + "/" + filepath.ToSlash(name)
			if err := target.Originals().Put(ctx, id, bytes.NewReader(data)); err != nil {
				return err
			}
			return target.Originals().FinishPut(ctx, id, true)
		}
	}
	if !from.remote() {
		for root, f := range folders {
			err = cmp.Or(err, f.each(ctx, func(name string, data []byte, modified time.Time) error { return put(root, name, data, modified) }))
		}
	} else {
		var ids []string
		ids, err = source.Originals().IDs(ctx, false)
		for _, id := range ids {
			root, name, _ := strings.Cut(id, "/")
			if _, known := folders[root]; known && err == nil {
				var data []byte
				if data, err = source.Originals().Read(ctx, id, false); err == nil {
					err = put(root, filepath.FromSlash(name), data, time.Now())
				}
			}
		}
	}
	for _, f := range folders {
		if f.to != "" && err == nil {
			err = os.MkdirAll(f.to, 0o700) // even without files
		}
		err = cmp.Or(err, f.syncDirs())
	}
	return err
}

// each creates the folders of the copy and calls f for each file that the copy lacks, or that
// has a different size or time there.
func (c *copiedFolder) each(ctx context.Context, f func(name string, data []byte, modified time.Time) error) error {
	return filepath.WalkDir(c.from, func(path string, e fs.DirEntry, err error) error {
		if path == c.from && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
		name, err := filepath.Rel(c.from, path)
		if err == nil && e.IsDir() && c.to != "" {
			return os.MkdirAll(filepath.Join(c.to, name), 0o700)
		}
		if err != nil || !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		there, missing := os.Lstat(filepath.Join(c.to, name))
		if c.to != "" && missing == nil && there.Size() == info.Size() && there.ModTime().Equal(info.ModTime()) {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return f(name, data, info.ModTime())
	})
}

// syncDirs makes the names in a folder of the copy durable.
func (c *copiedFolder) syncDirs() error {
	return filepath.WalkDir(c.to, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !e.IsDir() {
			return nil
		}
		return cmp.Or(err, disk.SyncDir(path))
	})
}

// writeWhole writes a file whole or not at all.
func writeWhole(name, aside string, mode os.FileMode, content []byte, modified time.Time) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), aside) // 0600
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = errors.Join(f.Chmod(mode), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Chtimes(f.Name(), modified, modified)
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
