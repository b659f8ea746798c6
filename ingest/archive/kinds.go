package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"ibid/ingest/charset"
)

// A kind is the kind of archive that a name implies. Its compression is recognised by content.
type kind uint8

const (
	none kind = iota
	aZip
	aTar
	aFile // a compressed single file
)

// endings of archive names, longest first.
var endings = []struct {
	ending string
	kind   kind
}{
	{".tar.gz", aTar}, {".tar.bz2", aTar}, {".tgz", aTar}, {".tbz2", aTar}, {".tbz", aTar},
	{".tar", aTar}, {".zip", aZip}, {".gz", aFile}, {".bz2", aFile},
}

// Is reports whether a file of this name is a readable archive.
func Is(name string) bool { return kindOf(name) != none }

func kindOf(name string) kind {
	lower := strings.ToLower(path.Base(name))
	for _, e := range endings {
		if len(lower) > len(e.ending) && strings.HasSuffix(lower, e.ending) {
			return e.kind
		}
	}
	return none
}

// unpackedBytes returns the decompressed bytes of a file.
func (w *walker) unpackedBytes(data []byte) (in io.Reader, compressed bool, err error) {
	in, compressed = bytes.NewReader(data), true
	switch {
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		in, err = gzip.NewReader(in)
	case bytes.HasPrefix(data, []byte("BZh")):
		in = bzip2.NewReader(in)
	default:
		compressed = false
	}
	if err != nil {
		return nil, false, fmt.Errorf("it cannot be unpacked: %s", reason(err))
	}
	return &counted{in, &w.unpacked}, compressed, nil
}

func (w *walker) zip(data []byte, at place) error {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are cleaned here
		return fmt.Errorf("it cannot be read as a zip archive: %s", reason(err))
	}
	names := zipNames(r.File)
	for i, f := range r.File {
		if err := w.countEntry(); err != nil {
			return err
		}
		if strings.HasSuffix(names[i], "/") || f.Mode().IsDir() {
			continue
		}
		if err := w.zipFile(at, f, names[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) zipFile(at place, f *zip.File, name string) error {
	const encrypted = 1 // bit 0 of the flags
	var problem Entry
	var content io.Reader
	switch in, err := f.Open(); {
	case f.Flags&encrypted != 0:
		problem.Failed = "it is encrypted: unpack it with its password"
	case !f.Mode().IsRegular():
		problem.Skip = specialKind(f.Mode())
	case errors.Is(err, zip.ErrAlgorithm):
		problem.Failed = fmt.Sprintf("its compression (method %d) is not supported: unpack it", f.Method)
	case err != nil:
		problem.Failed = "it is damaged: " + reason(err)
	default:
		defer in.Close()
		content = &counted{in, &w.unpacked}
	}
	return w.addFile(at, name, int64(min(f.UncompressedSize64, 1<<62)), content, problem)
}

// zipNames returns the names of the files. It decodes all names that are not marked as UTF-8
// together, as one text.
func zipNames(files []*zip.File) []string {
	names := make([]string, len(files))
	var old []string
	for i, f := range files {
		if names[i] = f.Name; f.NonUTF8 {
			old = append(old, strings.ReplaceAll(f.Name, "\n", " "))
		}
	}
	text, err := charset.Decode([]byte(strings.Join(old, "\n")), "")
	decoded := strings.Split(text, "\n")
	if err != nil || len(decoded) != len(old) {
		return names // some may be invalid UTF-8
	}
	for i, f := range files {
		if f.NonUTF8 {
			names[i], decoded = decoded[0], decoded[1:]
		}
	}
	return names
}

func specialKind(mode fs.FileMode) string {
	if mode&fs.ModeSymlink != 0 {
		return "a symbolic link"
	}
	return "a device, pipe or socket, not a file"
}

func (w *walker) tar(in io.Reader, at place) error {
	r := tar.NewReader(in)
	for n := 0; ; n++ {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case isLimit(err):
			return err
		case err != nil && !errors.Is(err, tar.ErrInsecurePath): // names are cleaned here
			return fmt.Errorf("it cannot be read as a tar archive after file number %d: %s", n, reason(err))
		}
		if err := w.countEntry(); err != nil {
			return err
		}
		var problem Entry
		switch h.Typeflag {
		case tar.TypeDir, tar.TypeXGlobalHeader:
			continue
		case tar.TypeReg, tar.TypeGNUSparse:
		case tar.TypeLink:
			problem.Skip = "a hard link to a file in the archive, which is read under its first name"
		default:
			problem.Skip = specialKind(h.FileInfo().Mode())
		}
		if err := w.addFile(at, h.Name, h.Size, r, problem); err != nil {
			return err
		}
	}
}
