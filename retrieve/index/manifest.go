package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ibid/retrieve/disk"
)

// The files of an index: the manifest names the segments, and only the process that has locked the
// lock file writes.
const (
	manifestName  = "manifest"
	lockName      = "lock"
	segmentPrefix = "segment-"
	tempPrefix    = "temp-"
)

// formatVersion changes with the format of segments or of the manifest.
const formatVersion = 2

// An identity says to which library and space an index belongs. A directory with another identity
// is treated as empty.
type identity struct {
	Format   int    `json:"format"`
	Analysis int    `json:"analysis"` // [retrieve.Analysis]
	Library  string `json:"library"`
	Space    string `json:"space"`
}

// A manifest describes the files of an index, which contain exactly the changes up to a revision.
// The first line of the file is a checksum.
type manifest struct {
	identity
	position
	Segments []entry `json:"segments"`
}

// A position is the revision and era of the last applied change.
type position struct {
	Revision int64 `json:"revision"`
	Era      int64 `json:"era,omitempty"` // from [retrieve.Change.Era]
}

// An entry is a segment of a manifest.
type entry struct {
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
	Sum     uint32 `json:"sum"`               // of the trailer
	Deleted []int  `json:"deleted,omitempty"` // indexes of the documents deleted since the segment was written
}

// open returns the part of an entry. If a known part has the same segment, open shares it.
func (e *entry) open(dir string, known []part) (p part, err error) {
	if at := slices.IndexFunc(known, func(p part) bool { return p.file == e.File && p.Sum == e.Sum }); at >= 0 {
		p.segment = known[at].segment
	} else if p.segment, err = openSegment(dir, filepath.Base(e.File), e.Bytes, e.Sum); err != nil {
		return p, err
	}
	if slices.ContainsFunc(e.Deleted, func(d int) bool { return d < 0 || d >= int(p.Documents) }) {
		return p, &damage{file: manifestName, what: "it names a document that is not in its segment"}
	}
	return p.withoutDocuments(e.Deleted), nil
}

// readManifest reads the manifest of a directory, and describes its file. Both results are nil if
// the directory has no manifest.
func readManifest(dir string) (*manifest, fs.FileInfo, error) {
	path := filepath.Join(dir, manifestName)
	info, err := os.Stat(path) // before the file is read, so that a manifest that replaces it meanwhile is read again
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, info, err
	}
	sum, body, _ := strings.Cut(string(data), "\n")
	m := new(manifest)
	if sum != checksum([]byte(body)) {
		err = errors.New("its checksum is wrong")
	} else {
		err = json.Unmarshal([]byte(body), m)
	}
	if err != nil {
		return nil, info, &damage{file: manifestName, what: err.Error()}
	}
	return m, info, nil
}

func checksum(body []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)) }

// writeManifest replaces the manifest of a directory, and removes the segments that it does not
// name. A segment that cannot be removed now is removed the next time.
func writeManifest(dir string, m *manifest) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	temp, err := writeTemp(dir, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\n%s", checksum(body), body)
		return err
	})
	if err == nil {
		err = rename(dir, temp, manifestName)
	}
	if err != nil {
		return err
	}
	removeFiles(dir, segmentPrefix, func(name string) bool {
		return !slices.ContainsFunc(m.Segments, func(e entry) bool { return e.File == name })
	})
	return nil
}

// removeFiles removes the files with a prefix for which f returns true.
func removeFiles(dir, prefix string, f func(name string) bool) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && f(e.Name()) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// writeTemp writes a temporary file durably, and returns its name. The next process that writes
// removes temporary files that are left over.
func writeTemp(dir string, write func(io.Writer) error) (name string, err error) {
	f, err := os.CreateTemp(dir, tempPrefix)
	if err != nil {
		return "", err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
	}
	return filepath.Base(f.Name()), err
}

// rename durably gives a temporary file its name.
func rename(dir, temp, name string) error {
	if err := os.Rename(filepath.Join(dir, temp), filepath.Join(dir, name)); err != nil {
		return err
	}
	return disk.SyncDir(dir)
}
