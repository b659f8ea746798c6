// Package archive looks into archives: zip, tar and what is compressed by
// gzip, bzip2 or xz, and archives inside of them. It writes nothing to a file
// system. What it reads is not believed: names are cleaned, bytes are counted
// as they come out, and [Limits] end every look.
//
// Its parsers may take all the time and memory that their process has: give
// them one of their own.
package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// An Entry is a file in an archive.
type Entry struct {
	// Path is slash-separated, relative to the archive, and valid for [io/fs];
	// archives on the way to it are elements of it as folders are.
	Path string
	// Size is the number of bytes that came out, and Digest their SHA-256 in
	// lower-case hexadecimal. Of what is not wanted Size is as declared and
	// Digest is empty.
	Size   int64
	Digest string
	// Skip says why there is nothing to read in it, Failed why it cannot be
	// read; both are empty for a file that can.
	Skip, Failed string
	// Archive marks an archive inside of the archive that failed: what is
	// stored of it may still be there.
	Archive bool
}

// Limits bound a look into one archive with all that is in it.
type Limits struct {
	Entries int   // files and folders, whether wanted or not
	Bytes   int64 // that come out of compression, and of files
	// Ratio bounds the bytes that come out, divided by those of the archive.
	// It counts from SmallBytes on: short files of one letter are harmless.
	Ratio      int64
	SmallBytes int64
	Depth      int   // of archives in archives; the outermost is 1
	FileBytes  int64 // of one file; larger ones are passed over
}

// DefaultLimits suit archives of documents on a machine of any size.
func DefaultLimits() Limits {
	return Limits{Entries: 10_000, Bytes: 512 << 20, Ratio: 200, SmallBytes: 64 << 20, Depth: 3, FileBytes: 64 << 20}
}

// A Holder knows files that are read themselves and hold others, as mails do.
type Holder struct {
	Is func(name string) bool
	// Files calls each for every file in one; it passes an error of each on.
	Files func(name string, data []byte, each func(name string, data []byte) error) error
}

// A limitError ends the look into the whole archive.
type limitError struct{ reason string }

func (e *limitError) Error() string { return e.reason }

// List gives the files in an archive, or in what the holder knows, in the order
// in which they stand in it, hidden ones left out. The content of the wanted
// ones is read for its digest.
//
// The error says why the archive cannot be read. When some of it could be, the
// entries read so far are given with it; when it broke a limit, none are.
func List(name string, data []byte, limits Limits, holder Holder, wanted func(path string) bool) ([]Entry, error) {
	var entries []Entry
	places := make(map[string]int)
	w := newWalker(data, limits, holder)
	w.visit = func(e Entry, content io.Reader) error {
		if content != nil && wanted(e.Path) {
			sum := sha256.New()
			n, err := io.Copy(sum, io.LimitReader(content, limits.FileBytes+1))
			e.Size, e.Digest = n, hex.EncodeToString(sum.Sum(nil))
			if err := w.failed(&e, err); err != nil {
				return err
			}
		}
		if i, again := places[e.Path]; again {
			entries[i] = e // as when unpacking: the last of a name stays
			return nil
		}
		places[e.Path] = len(entries)
		entries = append(entries, e)
		return nil
	}
	err := w.walk(name, data, place{depth: 1})
	if broken := (*limitError)(nil); errors.As(err, &broken) {
		return nil, err
	}
	return entries, err
}

// Read gives the content of some files of an archive, by path. A file that is
// not there, or cannot be read, is missing in what is given.
func Read(name string, data []byte, limits Limits, holder Holder, paths []string) (map[string][]byte, error) {
	contents := make(map[string][]byte, len(paths))
	w := newWalker(data, limits, holder)
	w.only = make(map[string]bool)
	for _, p := range paths {
		for ; p != "."; p = path.Dir(p) {
			w.only[p] = true
		}
	}
	want := make(map[string]bool, len(paths))
	for _, p := range paths {
		want[p] = true
	}
	w.visit = func(e Entry, content io.Reader) error {
		if content == nil || !want[e.Path] {
			return nil
		}
		read, err := io.ReadAll(io.LimitReader(content, limits.FileBytes+1))
		if err := w.failed(&e, err); err != nil {
			return err
		}
		if delete(contents, e.Path); e.Failed == "" {
			contents[e.Path] = read
		}
		return nil
	}
	err := w.walk(name, data, place{depth: 1})
	if broken := (*limitError)(nil); errors.As(err, &broken) {
		return nil, err
	}
	return contents, nil
}

// A walker goes through an archive and the archives in it.
type walker struct {
	limits  Limits
	holder  Holder
	size    int64 // of the outermost archive
	entries int
	// Bytes that came out of compression and of files.
	unpacked, read counter
	// only, unless it is nil, holds the paths of files to visit and of what
	// they stand in.
	only map[string]bool
	// visit is given each file; content is nil for one that cannot be read.
	visit func(e Entry, content io.Reader) error
}

func newWalker(data []byte, limits Limits, holder Holder) *walker {
	w := &walker{limits: limits, holder: holder, size: int64(len(data))}
	w.unpacked.most = min(limits.Bytes, max(limits.SmallBytes, limits.Ratio*w.size))
	w.unpacked.reason = fmt.Sprintf("more than %d MB would come out of it", limits.Bytes>>20)
	if w.unpacked.most < limits.Bytes {
		w.unpacked.reason = fmt.Sprintf("it unpacks to more than %d times its size", limits.Ratio)
	}
	w.read = w.unpacked
	return w
}

// failed notes in an entry why reading it failed; limits that are broken are
// the archive's failure.
func (w *walker) failed(e *Entry, err error) error {
	if broken := (*limitError)(nil); errors.As(err, &broken) {
		return err
	}
	if err != nil {
		e.Failed, e.Digest = "it is damaged: "+reason(err), ""
	}
	return nil
}

// A place is where in the outermost archive an inner one stands.
type place struct {
	prefix string // with a slash at its end; empty outermost
	depth  int
}

func (w *walker) walk(name string, data []byte, at place) error {
	asTar := func(in io.Reader) error { return w.tar(in, at) }
	asFile := func(in io.Reader) error { return w.one(in, name, at) }
	switch kindIn(data, kindOf(name)) {
	case plainZip:
		return w.zip(data, at)
	case tarPlain:
		return asTar(bytes.NewReader(data))
	case tarGzip:
		return w.compressed(data, openGzip, asTar)
	case tarBzip2:
		return w.compressed(data, openBzip2, asTar)
	case tarXZ:
		return w.compressed(data, openXZ, asTar)
	case oneGzip:
		return w.compressed(data, openGzip, asFile)
	case oneBzip2:
		return w.compressed(data, openBzip2, asFile)
	case oneXZ:
		return w.compressed(data, openXZ, asFile)
	}
	if w.holder.Is(name) {
		return w.held(name, data, at)
	}
	return errors.New("it is no archive that can be read")
}

// held takes the files in one that the holder knows.
func (w *walker) held(name string, data []byte, at place) error {
	return w.holder.Files(name, data, func(name string, data []byte) error {
		if err := w.count(); err != nil {
			return err
		}
		return w.file(at, name, int64(len(data)), bytes.NewReader(data), Entry{})
	})
}

// count counts a file or folder.
func (w *walker) count() error {
	if w.entries++; w.entries > w.limits.Entries {
		return &limitError{fmt.Sprintf("there are more than %d files in it", w.limits.Entries)}
	}
	return nil
}

// file takes one file: an archive is walked, another is visited. The problem,
// a reason, is set for what cannot be read.
func (w *walker) file(at place, name string, size int64, content io.Reader, problem Entry) error {
	clean, ok := cleanName(name)
	if !ok {
		return nil
	}
	e := problem
	e.Path, e.Size = at.prefix+clean, size
	if e.Skip == "" && e.Failed == "" {
		switch {
		case len(e.Path) > maxPath:
			e.Path = at.prefix + shorten(clean)
			e.Failed = fmt.Sprintf("its name is longer than %d bytes", maxPath)
		case strings.ContainsRune(clean, '\ufffd'):
			e.Skip = "its name is not valid UTF-8: rename it"
		}
	}
	if w.only != nil && !w.only[e.Path] {
		return nil
	}
	if e.Skip != "" || e.Failed != "" {
		return w.visit(e, nil)
	}
	content = &counted{content, &w.read}
	switch {
	case Is(clean):
		return w.inner(e, content, at)
	case w.holder.Is(clean):
		return w.both(e, content, at)
	}
	return w.visit(e, content)
}

// both visits a file and those that it holds.
func (w *walker) both(e Entry, content io.Reader, at place) error {
	data, err := io.ReadAll(io.LimitReader(content, w.limits.FileBytes+1))
	if err := w.failed(&e, err); err != nil {
		return err
	}
	if e.Failed != "" {
		return w.visit(e, nil)
	}
	if err := w.visit(e, bytes.NewReader(data)); err != nil {
		return err
	}
	if at.depth >= w.limits.Depth || int64(len(data)) > w.limits.FileBytes {
		return nil
	}
	return w.held(e.Path, data, place{prefix: e.Path + "/", depth: at.depth + 1})
}

const maxPath = 1024

// inner walks an archive in an archive. What is wrong with it is its own
// failure, but for the limits of all.
func (w *walker) inner(e Entry, content io.Reader, at place) error {
	e.Archive = true
	if at.depth >= w.limits.Depth {
		e.Failed = fmt.Sprintf("an archive in an archive, more than %d deep: unpack it", w.limits.Depth)
		return w.visit(e, nil)
	}
	data, err := io.ReadAll(io.LimitReader(content, w.limits.FileBytes+1))
	if err := w.failed(&e, err); err != nil {
		return err
	}
	if int64(len(data)) > w.limits.FileBytes {
		e.Failed = fmt.Sprintf("an archive larger than %d MB: unpack it", w.limits.FileBytes>>20)
	}
	if e.Failed == "" {
		before := w.entries
		err := w.walk(e.Path, data, place{prefix: e.Path + "/", depth: at.depth + 1})
		if broken := (*limitError)(nil); errors.As(err, &broken) {
			return err
		}
		if err != nil {
			e.Failed = err.Error()
		} else if w.entries == before {
			e.Skip, e.Archive = "empty", false
		}
	}
	if e.Failed != "" || e.Skip != "" {
		return w.visit(e, nil)
	}
	return nil
}

// cleanName makes of an entry's name a path below the archive, whatever drive,
// root or parent it names; ok is false for names that are hidden or empty.
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

func shorten(name string) string {
	return strings.ToValidUTF8(name[:200], "") + "…"
}

// A counter bounds a number of bytes.
type counter struct {
	n, most int64
	reason  string
}

// counted is a reader whose bytes are counted.
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

// reason takes the names of packages off an error of theirs.
func reason(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "it is cut off"
	}
	said := err.Error()
	for _, prefix := range []string{"zip: ", "archive/tar: ", "gzip: ", "flate: ", "bzip2 data invalid: ", "xz: ", "lzma: "} {
		said = strings.TrimPrefix(said, prefix)
	}
	return said
}
