package office

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"path"
	"strings"
)

// An archive holds the files of a zip, called parts, by lower-case name.
type archive struct {
	parts    map[string]part
	names    []string // in order
	unpacked int64    // bytes unpacked so far
	exceeded error    // the limit that was exceeded; nothing more is unpacked
}

type part struct {
	packed []byte
	method uint16
	size   int64  // as declared
	sum    uint32 // CRC-32 of the unpacked bytes
}

// partName normalises a name: forward slashes, none at the start, lower case.
func partName(name string) string {
	return strings.ToLower(strings.TrimLeft(strings.ReplaceAll(name, `\`, "/"), "/"))
}

func (a *archive) load(data []byte) error {
	// Each directory entry needs many times its size in memory.
	if n := bytes.Count(data, []byte("PK\x01\x02")); n > maxEntries {
		return &limitError{fmt.Sprintf("it is an archive of more than %d files, and no document has so many", maxEntries)}
	}
	a.parts = map[string]part{}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		if !bytes.HasPrefix(data, []byte("PK\x03\x04")) {
			return errors.New("it is not an office document: it does not begin like a zip archive or an older format")
		}
		return errors.New("it is damaged or cut off: the directory of its zip archive is missing")
	}
	for _, f := range r.File {
		if f.Flags&1 != 0 {
			return errors.New("it is protected with a password: save it without one")
		}
		p := part{method: f.Method, size: int64(min(f.UncompressedSize64, 1<<62)), sum: f.CRC32}
		if start, err := f.DataOffset(); err == nil && start >= 0 && start <= int64(len(data)) {
			p.packed = data[start:]
			p.packed = p.packed[:min(uint64(len(p.packed)), f.CompressedSize64)]
		}
		name := partName(f.Name)
		if a.has(name) || name == "" || strings.HasSuffix(name, "/") {
			continue
		}
		a.parts[name] = p
		a.names = append(a.names, name)
	}
	return nil
}

func (a *archive) has(name string) bool {
	_, ok := a.parts[partName(name)]
	return ok
}

var errNoPart = errors.New("it is missing in the file")

// open returns a reader for a part that counts the unpacked bytes.
func (a *archive) open(name string) (io.ReadCloser, error) {
	p, ok := a.parts[partName(name)]
	if !ok {
		return nil, errNoPart
	}
	if a.exceeded == nil && p.size > maxOut-a.unpacked {
		a.exceeded = &limitError{fmt.Sprintf("%s in it unpacks to %d MB, more than the limit of %d MB: split it", name,
			p.size>>20, int64(maxOut)>>20)}
	}
	if a.exceeded != nil {
		return nil, a.exceeded
	}
	in := bytes.NewReader(p.packed)
	out := &counted{a: a, name: name, part: p, in: in, hash: crc32.NewIEEE()}
	switch p.method {
	case zip.Store:
		out.from = io.NopCloser(in)
	case zip.Deflate:
		out.from = flate.NewReader(in) // reads byte by byte, so never past the end of the part
	default:
		return nil, fmt.Errorf("%s in it is compressed by an unsupported method (%d)", name, p.method)
	}
	return out, nil
}

// A counted reader counts the bytes of a part and checks its declared size and checksum.
type counted struct {
	part
	a    *archive
	name string
	in   *bytes.Reader // the compressed bytes
	from io.ReadCloser
	out  int64
	hash hash.Hash32
}

func (c *counted) Read(p []byte) (int, error) {
	if c.a.exceeded != nil {
		return 0, c.a.exceeded
	}
	n, err := c.from.Read(p)
	c.out += int64(n)
	c.a.unpacked += int64(n)
	c.hash.Write(p[:n])
	switch {
	case c.out > c.size:
		c.a.exceeded = &limitError{fmt.Sprintf("%s in it is larger than the archive says: it is damaged, or a zip bomb", c.name)}
	case c.a.unpacked > maxOut:
		c.a.exceeded = &limitError{fmt.Sprintf("it unpacks to more than %d MB", int64(maxOut)>>20)}
	case c.out > minRatio && c.out > maxRatio*(int64(len(c.packed))-int64(c.in.Len())):
		c.a.exceeded = &limitError{fmt.Sprintf("%s in it unpacks to over %d times its size, like a zip bomb", c.name, maxRatio)}
	}
	if c.a.exceeded != nil {
		return 0, c.a.exceeded
	}
	if errors.Is(err, io.EOF) && c.sum != 0 && c.hash.Sum32() != c.sum {
		err = zip.ErrChecksum
	}
	return n, err
}

func (c *counted) Close() error { return c.from.Close() }

// content returns a whole part of at most limit bytes.
func (a *archive) content(name string, limit int64) ([]byte, error) {
	r, err := a.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s in it is larger than %d KB", name, limit>>10)
	}
	return data, err
}

// A relation is a link from one part to another.
type relation struct {
	id     string
	kind   string // the last element of its type, which is the same in all versions of the format
	target string // a part
}

// relations returns the links of a part within the archive. The links of "" lead to the main part.
func (a *archive) relations(from string) []relation {
	dir, base := path.Split(from)
	var out []relation
	_ = a.elements(dir+"_rels/"+base+".rels", func(_ *xmlReader, e element) { // keeps the relations before any damage
		target := attr(e, "Target")
		if attr(e, "TargetMode") == "External" || target == "" || len(out) > maxEntries {
			return
		}
		if strings.HasPrefix(target, "/") || strings.HasPrefix(target, `\`) {
			target = path.Clean(target[1:])
		} else {
			target = path.Join(dir, target)
		}
		out = append(out, relation{attr(e, "Id"), path.Base(attr(e, "Type")), target})
	})
	return out
}

// relatedParts returns the parts of one kind that a part links to, in order.
func relatedParts(all []relation, kind string) (targets []string) {
	for _, r := range all {
		if r.kind == kind {
			targets = append(targets, r.target)
		}
	}
	return targets
}

// relationTarget returns the part that the relation with the given ID links to.
func relationTarget(all []relation, id string) (target string, ok bool) {
	for _, r := range all {
		if r.id == id && id != "" {
			return r.target, true
		}
	}
	return "", false
}
