package office

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// An archive holds the files of a zip, called parts, by name in any case.
type archive struct {
	parts map[string]*zip.File
	names []string // in order
	size  int64    // in bytes
	out   int64    // bytes unpacked so far
	over  error    // the limit that was exceeded; nothing more is unpacked
}

// partName normalises a name: slashes, none at the start, lower case.
func partName(name string) string {
	return strings.ToLower(strings.TrimLeft(strings.ReplaceAll(name, `\`, "/"), "/"))
}

func openArchive(data []byte) (*archive, error) {
	// Each entry of the directory needs memory many times its size.
	if n := bytes.Count(data, []byte("PK\x01\x02")); n > maxEntries {
		return nil, &limitError{fmt.Sprintf("it is an archive of more than %d files: no document is", maxEntries)}
	}
	a := &archive{parts: map[string]*zip.File{}, size: int64(len(data))}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		if !bytes.HasPrefix(data, []byte("PK\x03\x04")) {
			return nil, errors.New("it is not an office document: it does not begin like a zip archive or an older format")
		}
		return nil, errors.New("it is damaged or cut off: the directory of its zip archive is missing")
	}
	for _, f := range r.File {
		if f.Flags&1 != 0 {
			return nil, errors.New("it is protected with a password: save it without one")
		}
		name := partName(f.Name)
		if _, there := a.parts[name]; !there && name != "" && !strings.HasSuffix(name, "/") {
			a.parts[name] = f
			a.names = append(a.names, name)
		}
	}
	return a, nil
}

func (a *archive) has(name string) bool {
	_, ok := a.parts[partName(name)]
	return ok
}

var errNoPart = errors.New("it is missing in the file")

// open returns a reader of a part that counts the unpacked bytes.
func (a *archive) open(name string) (io.ReadCloser, error) {
	p, ok := a.parts[partName(name)]
	if !ok {
		return nil, errNoPart
	}
	if size := int64(min(p.UncompressedSize64, 1<<62)); a.over == nil && size > maxOut-a.out {
		a.over = &limitError{fmt.Sprintf("%s in it unpacks to %d MB, over the limit of %d MB: split it, unless it is a bomb", name,
			size>>20, int64(maxOut)>>20)}
	}
	if a.over != nil {
		return nil, a.over
	}
	from, err := p.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, fmt.Errorf("%s in it is compressed by an unsupported method (%d)", name, p.Method)
	}
	if err != nil {
		return nil, err
	}
	return &counted{ReadCloser: from, a: a, name: name, part: p}, nil
}

// A counted reader counts the bytes of a part and compares them with its
// declared size.
type counted struct {
	io.ReadCloser
	a    *archive
	name string
	part *zip.File
	out  int64
}

func (c *counted) Read(p []byte) (int, error) {
	if c.a.over != nil {
		return 0, c.a.over
	}
	n, err := c.ReadCloser.Read(p)
	c.out += int64(n)
	c.a.out += int64(n)
	packed := int64(min(c.part.CompressedSize64, uint64(c.a.size)))
	switch {
	case uint64(c.out) > c.part.UncompressedSize64:
		c.a.over = &limitError{fmt.Sprintf("%s in it is larger than the archive says: it is damaged, or a bomb", c.name)}
	case c.a.out > maxOut:
		c.a.over = &limitError{fmt.Sprintf("it unpacks to more than %d MB", int64(maxOut)>>20)}
	case c.out > minRatio && c.out > maxRatio*packed:
		c.a.over = &limitError{fmt.Sprintf("%s in it unpacks to over %d times its size: a bomb", c.name, maxRatio)}
	}
	if c.a.over != nil {
		return 0, c.a.over
	}
	return n, err
}

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
	kind   string // the last element of its type, the same in all versions of the format
	target string // a part
}

// relations returns the links of a part within the archive; those of "" lead
// to the main part. A part without links has none.
func (a *archive) relations(from string) []relation {
	dir, base := path.Split(from)
	var out []relation
	_ = a.elements(dir+"_rels/"+base+".rels", func(x *xmlReader, e element) error { // of a damaged part, the first ones count
		target := attr(e, "Target")
		if attr(e, "TargetMode") == "External" || target == "" || len(out) > maxEntries {
			return nil
		}
		if strings.HasPrefix(target, "/") || strings.HasPrefix(target, `\`) {
			target = path.Clean(target[1:])
		} else {
			target = path.Join(dir, target)
		}
		out = append(out, relation{attr(e, "Id"), path.Base(attr(e, "Type")), target})
		return nil
	})
	return out
}

// related returns the parts of one kind that a part links to, in order.
func related(all []relation, kind string) (targets []string) {
	for _, r := range all {
		if r.kind == kind {
			targets = append(targets, r.target)
		}
	}
	return targets
}

// byID returns the part that a relation links to.
func byID(all []relation, id string) (target string, ok bool) {
	for _, r := range all {
		if r.id == id && id != "" {
			return r.target, true
		}
	}
	return "", false
}
