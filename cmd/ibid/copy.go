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
	"slices"
	"strings"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/disk"
	"ibid/retrieve/state"
)

type copyCmd struct {
	From storeURL `help:"Library to copy: a data directory, or ${stores}." required:"" placeholder:"STORE" noenv:"" group:"Store"`
	To   storeURL `help:"Target, without a library: a folder, or a database." required:"" placeholder:"STORE" noenv:"" group:"Store"`
	JSON bool     `help:"Print a JSON object." name:"json"`

	FromPasswordFile string `help:"File with the password of --from; default: $IBID_FROM_PASSWORD." placeholder:"FILE" noenv:"" group:"Store"`
	ToPasswordFile   string `help:"File with the password of --to; default: $IBID_TO_PASSWORD." placeholder:"FILE" noenv:"" group:"Store"`
}

// Help is what 'ibid copy --help' says in addition to the flags.
func (copyCmd) Help() string {
	return "Everything is copied as it is at one moment: documents with their text and vectors, so that nothing is embedded again, " +
		"answers, feedback, keys and uploaded files. The library may be in use meanwhile. The copy is verified: " +
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
	address, err := upkeepConfig{placeConfig: to}.located(s.withPassword("IBID_TO_PASSWORD"))
	if err != nil {
		return err
	}
	checking := newMeter(s.stderr, "documents checked", 0)
	// Uploaded files are there before their documents, which a server deletes
	// otherwise. The second time come those that were uploaded meanwhile.
	moved, err := movedShelves(from, to)
	if err == nil {
		err = copyUploads(ctx, source, from, to, moved)
	}
	var r state.Report
	if err == nil {
		r, err = source.CopyTo(ctx, address, to.stateOptions(s), moved, checking.update)
	}
	if err == nil {
		err = copyUploads(ctx, source, from, to, moved)
	}
	if err == nil && (from.remote() || to.remote()) {
		err = copyOriginals(ctx, source, from, to, s)
	}
	checking.clear()
	switch {
	case errors.Is(err, state.ErrTarget):
		return usageError("%w", err)
	case err != nil:
		return fmt.Errorf("copying %s to %s: %w", from, to, err)
	}
	return upkeepConfig{placeConfig: to, JSON: c.JSON}.show(s, r, "", "copied to "+to.String())
}

// withPassword makes a store find its password in another variable.
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

// movedShelves returns where the copy has a folder that was made for uploads, by its
// path; other paths stay. It is nil unless both places are data directories.
func movedShelves(from, to placeConfig) (moved func(path string) string, err error) {
	if from.remote() || to.remote() {
		return nil, nil
	}
	old, err := filepath.Abs(collectionsIn(from.Data))
	if err != nil {
		return nil, err
	}
	parent, err := filepath.Abs(collectionsIn(to.Data))
	return func(path string) string {
		if filepath.Dir(path) == old {
			return filepath.Join(parent, filepath.Base(path))
		}
		return path
	}, err
}

// copyUploads copies the uploaded files into a data directory that received
// their documents. It marks the directory if some files may be elsewhere:
// otherwise a server would delete the documents that have no file.
func copyUploads(ctx context.Context, store *state.Store, from, to placeConfig, moved func(string) string) (err error) {
	roots, err := store.Roots(ctx)
	uploaded := slices.ContainsFunc(roots, func(r ingest.Root) bool { return r.Path == "" })
	if err != nil || to.remote() || !uploaded {
		return err
	}
	if from.shared() {
		if err := writePrivately(filepath.Join(uploadsIn(to.Data), elsewhereMark), elsewhereMark+"*", nil, time.Now()); err != nil {
			return err
		}
	}
	if from.remote() {
		return nil
	}
	for _, r := range roots {
		if there := moved(r.Path); there != r.Path {
			err = errors.Join(err, copyFolder(ctx, r.Path, there))
		}
	}
	return errors.Join(err, copyFolder(ctx, uploadsIn(from.Data), uploadsIn(to.Data)))
}

// copyOriginals copies the uploaded files from a store on a server or into one. Into a
// data directory it copies those of the server's own collection.
func copyOriginals(ctx context.Context, source *state.Store, from, to placeConfig, s surroundings) (err error) {
	put := func(id string, data []byte) error {
		name, own := strings.CutPrefix(id, retrieve.Uploads+"/")
		if !own {
			return nil
		}
		return writePrivately(filepath.Join(uploadsIn(to.Data), filepath.FromSlash(name)), ".upload-*", data, time.Now())
	}
	if to.remote() {
		target, err := openStore(ctx, to, s.withPassword("IBID_TO_PASSWORD"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, target.Close()) }()
		put = func(id string, data []byte) error {
			if err := target.Originals().Put(ctx, id, bytes.NewReader(data)); err != nil {
				return err
			}
			return target.Originals().Settle(ctx, id, true)
		}
	}
	if from.remote() {
		ids, err := source.Originals().IDs(ctx, false)
		for _, id := range ids {
			var data []byte
			if data, err = source.Originals().Read(ctx, id, false); err == nil {
				err = put(id, data)
			}
			if err != nil {
				return err
			}
		}
		return err
	}
	made, err := filepath.Abs(collectionsIn(from.Data))
	if err != nil {
		return err
	}
	roots, err := source.Roots(ctx)
	for _, r := range roots {
		folder := cmp.Or(r.Path, uploadsIn(from.Data))
		if r.Path != "" && filepath.Dir(r.Path) != made {
			continue
		}
		walked := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") {
				return err
			}
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			below, err := filepath.Rel(folder, name)
			return cmp.Or(err, put(r.Name+"/"+filepath.ToSlash(below), data))
		})
		if !errors.Is(walked, fs.ErrNotExist) {
			err = errors.Join(err, walked)
		}
	}
	return err
}

// copyFolder copies the files of a folder that the other one lacks, or has with another
// size or time.
func copyFolder(ctx context.Context, from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := copyFolder(ctx, filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := e.Info()
		if err := cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
		target := filepath.Join(to, e.Name())
		there, missing := os.Lstat(target)
		if missing == nil && there.Size() == info.Size() && there.ModTime().Equal(info.ModTime()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = writePrivately(target, ".upload-*", data, info.ModTime()) // the name of incomplete uploads
		}
		if err != nil {
			return err
		}
	}
	return cmp.Or(os.MkdirAll(to, 0o700), disk.SyncDir(to)) // the copied files survive a power cut
}

// writePrivately writes a file that only its owner may read, whole or not at all.
func writePrivately(name, aside string, content []byte, modified time.Time) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), aside) // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
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
