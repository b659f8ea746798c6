package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ibid/retrieve"
)

// copyUploads brings the files of uploads to a data directory that has got their
// documents, and marks it where some may be elsewhere: else a server would take
// a document without its file for one that was deleted.
func copyUploads(ctx context.Context, from, to placeConfig, roots []retrieve.CopiedRoot) (err error) {
	documents := 0
	for _, r := range roots {
		if r.Path == "" {
			documents = r.Documents
		}
	}
	if to.remote() || documents == 0 {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("copying the files of the uploads: %w", err)
		}
	}()
	if err := os.MkdirAll(uploadsIn(to.Data), 0o700); err != nil {
		return err
	}
	target, err := os.OpenRoot(uploadsIn(to.Data))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if from.shared() {
		mark, err := target.OpenFile(elsewhereMark, os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			err = errors.Join(mark.Sync(), mark.Close())
		}
		if err != nil {
			return err
		}
	}
	if from.remote() {
		return nil
	}
	source, err := os.OpenRoot(uploadsIn(from.Data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	entries, err := fs.ReadDir(source.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if err := errors.Join(ctx.Err(), copyUpload(source, target, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// copyUpload copies one file, unless it is there with its size and time.
func copyUpload(source, target *os.Root, name string) (err error) {
	info, err := source.Lstat(name)
	if err != nil {
		return err
	}
	if there, err := target.Lstat(name); err == nil && there.Size() == info.Size() && there.ModTime().Equal(info.ModTime()) {
		return nil
	}
	in, err := source.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	temporary := ".upload-" + rand.Text() // as the uploads call what is not whole yet
	out, err := target.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = target.Chtimes(temporary, info.ModTime(), info.ModTime())
	}
	if err == nil {
		err = target.Rename(temporary, name)
	}
	if err != nil {
		err = errors.Join(err, target.Remove(temporary))
	}
	return err
}

// uploadsIn is the folder of the uploads in a data directory.
func uploadsIn(data string) string { return filepath.Join(data, "uploads") }

// elsewhereMark is the name of a file in the folder of the uploads that says
// that the files of some are not in it: their documents came by 'ibid copy'.
const elsewhereMark = ".elsewhere"

// shared says whether documents may have their files elsewhere.
func (c placeConfig) shared() bool {
	_, err := os.Lstat(filepath.Join(uploadsIn(c.Data), elsewhereMark))
	return c.remote() || err == nil
}
