// Package archive reads archives: zip, tar, files compressed with gzip or bzip2, and archives in
// archives. It writes nothing to a file system and does not trust the archive: it cleans names,
// counts bytes as it unpacks them, and applies [Limits] to every read.
//
// The parsers may use all the time and memory of their process, so run them in a separate one.
package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// An Entry is a file in an archive.
type Entry struct {
	// Path is slash-separated, relative to the archive, and valid for [io/fs]. Nested archives are
	// elements of the path, like folders.
	Path string
	// Size is the number of unpacked bytes and Digest their SHA-256 in lower-case hexadecimal. For
	// unwanted entries, Size is the declared size and Digest is empty.
	Size   int64
	Digest string
	// Skip says why the entry has nothing to read, Failed why it can't be read. Both are empty for
	// a readable file.
	Skip, Failed string
	// Archive marks a nested archive that failed. Its stored members may still be valid.
	Archive bool
}

// Limits bound the reading of one archive, including nested ones.
type Limits struct {
	Entries int   // files and folders, wanted or not
	Bytes   int64 // unpacked
	// Ratio is the largest ratio of unpacked bytes to bytes of the archive. It applies from
	// SmallBytes on, since short repetitive files are harmless.
	Ratio      int64
	SmallBytes int64
	Depth      int   // of nested archives; the outermost is 1
	FileBytes  int64 // of one file; larger files are skipped
}

// DefaultLimits returns limits that suit archives of documents on any machine.
func DefaultLimits() Limits {
	return Limits{Entries: 10_000, Bytes: 512 << 20, Ratio: 200, SmallBytes: 64 << 20, Depth: 3, FileBytes: 64 << 20}
}

// A Holder recognises files, such as mails, that are read and also contain other files.
type Holder struct {
	Is func(name string) bool
	// Files calls each with every file in such a file and returns the first error of each.
	Files func(name string, data []byte, each func(name string, data []byte) error) error
}

// A limitError ends the reading of the whole archive.
type limitError struct{ reason string }

func (e *limitError) Error() string { return e.reason }

func isLimit(err error) bool {
	_, ok := errors.AsType[*limitError](err)
	return ok
}

// List returns the files of an archive, or of a file that the holder recognises, in order and
// without hidden ones. It reads the content of wanted files to compute their digests.
//
// The error says why the archive can't be read. The entries read so far are returned with it,
// unless a limit was exceeded.
func List(name string, data []byte, limits Limits, holder Holder, wanted func(path string) bool) ([]Entry, error) {
	var entries []Entry
	places := make(map[string]int)
	w := newWalker(data, limits, holder)
	w.visit = func(e Entry, content io.Reader) error {
		if content != nil && wanted(e.Path) {
			data, err := w.contentOf(&e, content)
			if err != nil {
				return err
			}
			if e.Size = int64(len(data)); e.Failed == "" {
				sum := sha256.Sum256(data)
				e.Digest = hex.EncodeToString(sum[:])
			}
		}
		if i, again := places[e.Path]; again {
			entries[i] = e // as in unpacking, the last file with a name wins
			return nil
		}
		places[e.Path] = len(entries)
		entries = append(entries, e)
		return nil
	}
	err := w.walk(name, data, place{depth: 1})
	if isLimit(err) {
		return nil, err
	}
	if i := slices.IndexFunc(entries, func(e Entry) bool { return e.Archive && w.deep > 1 && e.Failed == w.deepReason() }); i >= 0 {
		entries[i].Failed += fmt.Sprintf("; and %d more", w.deep-1)
	}
	return entries, err
}

// Read returns the content of some files of an archive by path. It omits missing and unreadable
// files.
func Read(name string, data []byte, limits Limits, holder Holder, paths []string) (map[string][]byte, error) {
	contents := make(map[string][]byte, len(paths))
	w := newWalker(data, limits, holder)
	w.wanted = make(map[string]bool) // true for the files, false for their parents
	for _, p := range paths {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if !w.wanted[dir] { // may be a file that is read as a folder
				w.wanted[dir] = false
			}
		}
		w.wanted[p] = true
	}
	w.visit = func(e Entry, content io.Reader) error {
		if content == nil || !w.wanted[e.Path] {
			return nil
		}
		read, err := w.contentOf(&e, content)
		if delete(contents, e.Path); err == nil && e.Failed == "" {
			contents[e.Path] = read
		}
		return err
	}
	if err := w.walk(name, data, place{depth: 1}); isLimit(err) {
		return nil, err
	}
	return contents, nil
}

// A walker walks through an archive and the archives in it.
type walker struct {
	limits  Limits
	holder  Holder
	entries int
	deep    int // number of archives and files nested too deeply; only the first is visited
	// Bytes unpacked so far, and bytes of file contents among them.
	unpacked, content counter
	wanted            map[string]bool // unless nil, the files to visit and their parents
	// visit is called for each file; content is nil if it can't be read.
	visit func(e Entry, content io.Reader) error
}

func newWalker(data []byte, limits Limits, holder Holder) *walker {
	w := &walker{limits: limits, holder: holder}
	w.unpacked.most = min(limits.Bytes, max(limits.SmallBytes, limits.Ratio*int64(len(data))))
	w.unpacked.reason = fmt.Sprintf("it unpacks to more than %d MB", limits.Bytes>>20)
	if w.unpacked.most < limits.Bytes {
		w.unpacked.reason = fmt.Sprintf("it unpacks to more than %d times its size", limits.Ratio)
	}
	w.content = w.unpacked
	return w
}

// contentOf returns the content of an entry, up to one byte over the limit, or records in the entry
// why it can't be read. The error reports an exceeded limit.
func (w *walker) contentOf(e *Entry, content io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(content, w.limits.FileBytes+1))
	if isLimit(err) {
		return nil, err
	}
	if err != nil {
		e.Failed = "it is damaged: " + reason(err)
	}
	return data, nil
}

// A place is the position of a nested archive in the outermost one.
type place struct {
	prefix string // ends with a slash; empty for the outermost
	depth  int
}

func (w *walker) walk(name string, data []byte, at place) error {
	kind := kindOf(name)
	switch {
	case kind == aZip, kind == aTar && bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return w.zip(data, at)
	case kind == none && w.holder.Is(name):
		return w.walkHolder(name, data, at)
	case kind == none:
		return errors.New("it is not an archive that can be read")
	}
	in, compressed, err := w.unpackedBytes(data)
	switch {
	case err != nil:
		return err
	case kind == aTar:
		return w.tar(in, at)
	case !compressed:
		return errors.New("it cannot be unpacked: its compression does not match its name")
	}
	if err := w.countEntry(); err != nil {
		return err
	}
	name = path.Base(name)
	return w.addFile(at, strings.TrimSuffix(name, path.Ext(name)), 0, in, Entry{})
}

// walkHolder adds the files in a file that the holder recognises.
func (w *walker) walkHolder(name string, data []byte, at place) error {
	return w.holder.Files(name, data, func(name string, data []byte) error {
		if err := w.countEntry(); err != nil {
			return err
		}
		return w.addFile(at, name, int64(len(data)), bytes.NewReader(data), Entry{})
	})
}

// countEntry counts a file or folder.
func (w *walker) countEntry() error {
	if w.entries++; w.entries > w.limits.Entries {
		return &limitError{fmt.Sprintf("there are more than %d files in it", w.limits.Entries)}
	}
	return nil
}

// addFile walks a nested archive and visits any other file. problem says why it can't be read.
func (w *walker) addFile(at place, name string, size int64, content io.Reader, problem Entry) error {
	clean, ok := cleanName(name)
	if !ok {
		return nil
	}
	e := problem
	e.Path, e.Size = at.prefix+clean, size
	if e.Skip == "" && e.Failed == "" {
		switch {
		case len(e.Path) > maxPath:
			e.Path = at.prefix + strings.ToValidUTF8(clean[:200], "") + "…"
			e.Failed = fmt.Sprintf("its name is longer than %d bytes", maxPath)
		case strings.ContainsRune(clean, '\ufffd'):
			e.Skip = "its name is not valid UTF-8: rename it"
		}
	}
	if _, wanted := w.wanted[e.Path]; w.wanted != nil && !wanted {
		return nil
	}
	if e.Skip != "" || e.Failed != "" {
		return w.visit(e, nil)
	}
	content = &counted{content, &w.content}
	switch {
	case Is(clean):
		return w.walkInner(e, content, at)
	case w.holder.Is(clean):
		return w.visitHolder(e, content, at)
	}
	return w.visit(e, content)
}

// visitHolder visits a file and the files in it.
func (w *walker) visitHolder(e Entry, content io.Reader, at place) error {
	data, err := w.contentOf(&e, content)
	if err != nil {
		return err
	}
	if e.Failed != "" {
		return w.visit(e, nil)
	}
	if err := w.visit(e, bytes.NewReader(data)); err != nil {
		return err
	}
	switch {
	case int64(len(data)) > w.limits.FileBytes:
		return nil
	case at.depth >= w.limits.Depth:
		return w.holder.Files(e.Path, data, func(name string, _ []byte) error {
			clean, ok := cleanName(name)
			if !ok {
				return nil
			}
			return w.visitTooDeep(Entry{Path: e.Path + "/" + clean})
		})
	}
	return w.walkHolder(e.Path, data, place{prefix: e.Path + "/", depth: at.depth + 1})
}

const maxPath = 1024

// walkInner walks a nested archive. Its errors fail only that archive, unless a limit is exceeded.
func (w *walker) walkInner(e Entry, content io.Reader, at place) error {
	e.Archive = true
	if at.depth >= w.limits.Depth {
		return w.visitTooDeep(e)
	}
	data, err := w.contentOf(&e, content)
	if err != nil {
		return err
	}
	if int64(len(data)) > w.limits.FileBytes {
		e.Failed = fmt.Sprintf("an archive larger than %d MB: unpack it", w.limits.FileBytes>>20)
	}
	if e.Failed == "" {
		before := w.entries
		switch err := w.walk(e.Path, data, place{prefix: e.Path + "/", depth: at.depth + 1}); {
		case isLimit(err):
			return err
		case err != nil:
			e.Failed = err.Error()
		case w.entries == before:
			e.Skip, e.Archive = "empty", false
		}
	}
	if e.Failed != "" || e.Skip != "" {
		return w.visit(e, nil)
	}
	return nil
}

// visitTooDeep visits only the first file that is nested too deeply, since a bomb has thousands.
func (w *walker) visitTooDeep(e Entry) error {
	if w.deep++; w.deep > 1 {
		return nil
	}
	e.Archive, e.Failed = true, w.deepReason()
	return w.visit(e, nil)
}

func (w *walker) deepReason() string {
	return fmt.Sprintf("nested more than %d deep in archives or mails: unpack it", w.limits.Depth)
}

// cleanName returns the path of an entry relative to the archive, without a drive letter, a leading
// slash and "..". ok is false for hidden and empty names.
func cleanName(name string) (clean string, ok bool) {
	name = strings.ReplaceAll(name, `\`, "/")
	if len(name) > 1 && name[1] == ':' {
		name = name[2:]
	}
	name = strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "\ufffd")
	var parts []string
	for _, part := range strings.Split(name, "/") {
		switch {
		case part == "", part == ".", part == "..":
		case strings.HasPrefix(part, "."), part == "__MACOSX" && len(parts) == 0:
			return "", false
		default:
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/"), len(parts) > 0
}

// A counter limits a number of bytes.
type counter struct {
	n, most int64
	reason  string
}

// A counted reader counts its bytes.
type counted struct {
	in io.Reader
	c  *counter
}

func (r *counted) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if r.c.n += int64(n); r.c.n > r.c.most {
		return 0, &limitError{r.c.reason}
	}
	return n, err
}

// reason returns the text of an error without package names.
func reason(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "it is cut off"
	}
	said := err.Error()
	for _, prefix := range []string{"zip: ", "archive/tar: ", "gzip: ", "flate: ", "bzip2 data invalid: "} {
		said = strings.TrimPrefix(said, prefix)
	}
	return said
}
