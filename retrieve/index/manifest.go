package index

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ibid/retrieve"
)

// The files of an index: the manifest names the segments; only the process that
// has locked the lock file writes.
const (
	manifestName  = "manifest"
	lockName      = "lock"
	segmentPrefix = "segment-"
	tempPrefix    = "temp-"
)

// formatVersion changes with the format of segments or of the manifest. A
// directory of another version is ignored and then replaced.
const formatVersion = 1

// A manifest describes what the files of an index hold: exactly the changes up to
// a revision.
type manifest struct {
	Format   int    `json:"format"`
	Analysis int    `json:"analysis"` // [retrieve.Analysis]
	Library  string `json:"library"`
	Space    string `json:"space"`
	Revision int64  `json:"revision"`

	Segments []entry `json:"segments"`
}

// An entry is a segment of a manifest.
type entry struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	Sum   uint32 `json:"sum"` // of the trailer
	// Deleted are the documents that were deleted since the segment was written:
	// their places, as varints of the differences.
	Deleted []byte `json:"deleted,omitempty"`
}

// sameIndex reports whether two manifests are of the same library, space and
// format.
func (m *manifest) sameIndex(n *manifest) bool {
	return m.Format == n.Format && m.Analysis == n.Analysis && m.Library == n.Library && m.Space == n.Space
}

// describe returns the entry of a part in a file.
func describe(p *part) entry {
	e := entry{File: p.file, Bytes: int64(len(p.data)), Sum: p.Sum}
	if p.deaths == nil {
		return e
	}
	last := 0
	for document := range int(p.Documents) {
		if first, _ := p.chunksOf(document); !p.alive(first) {
			e.Deleted = binary.AppendUvarint(e.Deleted, uint64(document-last))
			last = document
		}
	}
	return e
}

// open returns the part of an entry. It uses a segment that is already open.
func (e *entry) open(dir string, known []part) (part, error) {
	var p part
	for i := range known {
		if known[i].file == e.File && known[i].Sum == e.Sum {
			p.segment = known[i].segment
		}
	}
	if p.segment == nil {
		if filepath.Base(e.File) != e.File || !strings.HasPrefix(e.File, segmentPrefix) {
			return p, &damage{file: manifestName, what: "it names a file that is not a segment"}
		}
		var err error
		if p.segment, err = openSegment(filepath.Join(dir, e.File), e.File, e.Bytes, &e.Sum); err != nil {
			return p, err
		}
	}
	document := uint64(0)
	for u := (unpacker{rest: e.Deleted}); len(u.rest) > 0; {
		if document += u.number(); document >= uint64(p.Documents) {
			return p, &damage{file: manifestName, what: "it names a document that is not in its segment"}
		}
		if p.deaths == nil {
			p.deaths = p.deaths.clone(int(p.Chunks))
		}
		first, end := p.chunksOf(int(document))
		p.deaths.add(p.segment, first, end)
	}
	return p, nil
}

// readManifest reads the manifest of a directory, and describes its file. Both are
// nil if there is none.
func readManifest(dir string) (_ *manifest, _ fs.FileInfo, err error) {
	f, err := os.Open(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, info, err
	}
	var sum uint32
	head, body, _ := strings.Cut(string(data), "\n")
	if _, err := fmt.Sscanf(head, "%08x", &sum); err != nil || sum != crc32.Checksum([]byte(body), castagnoli) || len(head) != 8 {
		return nil, info, &damage{file: manifestName, what: "its checksum is wrong"}
	}
	m := new(manifest)
	if err := json.Unmarshal([]byte(body), m); err != nil {
		return nil, info, &damage{file: manifestName, what: err.Error()}
	}
	return m, info, nil
}

// writeManifest replaces the manifest of a directory.
func writeManifest(dir string, m *manifest) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	temp, err := writeTemp(dir, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%08x\n%s", crc32.Checksum(body, castagnoli), body)
		return err
	})
	if err != nil {
		return err
	}
	return rename(dir, temp, manifestName)
}

// writeTemp writes a temporary file, and returns its name when it is durable.
func writeTemp(dir string, write func(io.Writer) error) (name string, err error) {
	f, err := os.CreateTemp(dir, tempPrefix)
	if err != nil {
		return "", err
	}
	name = filepath.Base(f.Name())
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name()) // otherwise the next process that writes removes it
		return "", err
	}
	return name, nil
}

// rename gives a temporary file its name, durably.
func rename(dir, temp, name string) error {
	if err := os.Rename(filepath.Join(dir, temp), filepath.Join(dir, name)); err != nil {
		_ = os.Remove(filepath.Join(dir, temp)) // likewise
		return err
	}
	return syncDir(dir)
}

// clean removes the files that the manifest does not name, and temporary ones if
// wanted. A file that cannot be removed now is removed the next time.
func clean(dir string, m *manifest, temporary bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	named := make(map[string]bool)
	for _, e := range m.Segments {
		named[e.File] = true
	}
	for _, e := range entries {
		old := strings.HasPrefix(e.Name(), segmentPrefix) && !named[e.Name()]
		if old || temporary && strings.HasPrefix(e.Name(), tempPrefix) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// checkSize returns an error unless the file has the given size.
func checkSize(f *os.File, size int64) error {
	info, err := f.Stat()
	if err == nil && (info.Size() != size || size <= 0) {
		err = &damage{file: info.Name(), what: fmt.Sprintf("it has %d bytes, not %d", info.Size(), size)}
	}
	return err
}

// identity returns the manifest of an empty index.
func (o *Options) identity() manifest {
	return manifest{Format: formatVersion, Analysis: retrieve.Analysis, Library: o.Library, Space: o.Space}
}
