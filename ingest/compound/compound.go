// Package compound reads the container format that office programs used before zip (MS-CFB), a file
// system in a file.
package compound

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/richardlehane/mscfb"
)

// Magic is the signature at the start of a container.
const Magic = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

// A Folder has streams and folders by name. The zero value is empty.
type Folder struct {
	files map[string]*mscfb.File // all files of the container, by path
	path  string
	most  int64 // largest stream in bytes
}

// Open returns the outermost folder of a container.
func Open(data []byte) (Folder, error) {
	r, err := mscfb.New(bytes.NewReader(data))
	if err != nil {
		return Folder{}, errors.New("it is damaged or cut off: the directory of its streams cannot be read")
	}
	f := Folder{files: make(map[string]*mscfb.File), most: int64(len(data))}
	for _, file := range r.File {
		f.files[path.Join(path.Join(file.Path...), file.Name)] = file
	}
	return f, nil
}

// Has reports whether the folder contains a stream or folder with the name.
func (f Folder) Has(name string) bool { return f.files[path.Join(f.path, name)] != nil }

// Folder returns a folder in f.
func (f Folder) Folder(name string) Folder {
	f.path = path.Join(f.path, name)
	return f
}

// Names returns the sorted names in the folder that begin with a prefix.
func (f Folder) Names(prefix string) (names []string) {
	for p := range f.files {
		if dir, name := path.Split(p); path.Clean("/"+dir) == path.Clean("/"+f.path) && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Stream returns the content of a stream up to any damage, or nil if it does not exist.
func (f Folder) Stream(name string) []byte {
	file := f.files[path.Join(f.path, name)]
	if file == nil {
		return nil
	}
	data, _ := io.ReadAll(io.LimitReader(file, f.most))
	return data
}

// UTF16 decodes little-endian UTF-16.
func UTF16(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

// Time decodes a time in units of 100 ns since 1601. It returns the zero time for the values that
// programs write for a missing time.
func Time(b []byte) time.Time {
	const epoch, second, none = 11644473600, 10_000_000, 4500 // in seconds; a year
	if len(b) < 8 {
		return time.Time{}
	}
	n := binary.LittleEndian.Uint64(b)
	t := time.Unix(int64(n/second)-epoch, int64(n%second)*100).UTC()
	if n < second*86400*366 || t.Year() > none {
		return time.Time{}
	}
	return t
}
