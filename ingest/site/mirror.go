package site

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ibid/ingest"
)

// A page is the stored state of an address.
type page struct {
	URL string `json:"url"`
	// Path is the path of its document.
	Path string `json:"path,omitempty"`
	// ETag and Changed are the server's identifiers of this version.
	ETag    string `json:"etag,omitempty"`
	Changed string `json:"changed,omitempty"`
	// Digest is the digest of the stored body; empty if no body is stored.
	Digest string    `json:"digest,omitempty"`
	Size   int64     `json:"size,omitempty"`
	Depth  int       `json:"depth"`
	Read   time.Time `json:"read"`    // when the body was fetched
	Looked time.Time `json:"checked"` // when the server last replied
	// Failed is the reason why the last request failed.
	Failed string `json:"failed,omitempty"`
}

// index is the state that a mirror keeps between runs.
type index struct {
	// Started and Ended are the times of the last crawl. The next run resumes an unfinished crawl.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// ByURL maps addresses to pages.
	ByURL map[string]*page `json:"pages"`
}

// A Site is the mirror of a web site, or of one page, in a folder: the bodies of its pages and an
// index. It is a file system with the pages as files, which an ingest.Syncer reads. A crawl updates
// it.
//
// A page whose last request failed is an unreadable file, so that its stored version is kept. A
// page that no longer exists is not a file.
type Site struct {
	Fetcher *Fetcher
	Limits  Limits

	address *url.URL
	dir     *os.Root
	index
	files map[string]*page // by document path
}

// Address returns the normalised form of an address that may be fetched.
func Address(f *Fetcher, address string) (string, error) {
	u, err := parse(address)
	if err != nil {
		if u, _ := url.Parse(address); u != nil {
			address = u.Redacted()
		}
		return "", &RefusedError{address, err.Error()}
	}
	return u.String(), f.check(u)
}

// Folder returns the folder in a data directory for the mirror of an address.
func Folder(data, address string) string { return filepath.Join(data, "sites", hash(address)) }

const indexName = "pages.json"

// Open opens the mirror of an address in a folder, which it creates if necessary.
func Open(folder, address string) (*Site, error) {
	u, err := parse(address)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of %s: %w", address, err)
	}
	dir, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of %s: %w", address, err)
	}
	s := &Site{address: u, dir: dir}
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the index of %s: %w", address, err), dir.Close())
	}
	s.setFiles()
	return s, nil
}

// Close closes the mirror.
func (s *Site) Close() error { return s.dir.Close() }

// LastCrawl returns when the last crawl started and ended. ended is zero if the crawl did not end.
func (s *Site) LastCrawl() (started, ended time.Time) { return s.index.Started, s.index.Ended }

func (s *Site) load() error {
	data, err := s.dir.ReadFile(indexName)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = []byte(`{"pages":{}}`), nil
	}
	return cmp.Or(err, json.Unmarshal(data, &s.index))
}

// save writes the index.
func (s *Site) save() error {
	data, err := json.Marshal(s.index)
	if err != nil {
		return err
	}
	return s.write(indexName, data)
}

// clean removes the bodies of pages that no longer exist.
func (s *Site) clean() error {
	kept := map[string]bool{indexName: true}
	for u := range s.ByURL {
		kept[hash(u)] = true
	}
	names, err := fs.ReadDir(s.dir.FS(), ".")
	for _, e := range names {
		if !kept[e.Name()] {
			err = errors.Join(err, s.dir.Remove(e.Name()))
		}
	}
	return err
}

// write replaces a file atomically.
func (s *Site) write(name string, data []byte) error {
	if err := s.dir.WriteFile(name+".new", data, 0o600); err != nil {
		return err
	}
	return s.dir.Rename(name+".new", name)
}

// body returns the stored body of a page, or nil if it is missing or damaged.
func (s *Site) body(p page) []byte {
	if p.Digest == "" {
		return nil
	}
	data, err := s.dir.ReadFile(hash(p.URL))
	if err != nil || digest(data) != p.Digest {
		return nil
	}
	return data
}

// setPath sets the path of a page's document. The path changes only if its ending does.
func (s *Site) setPath(p *page, u *url.URL, ending string, taken map[string]string) {
	if p.Path != "" && path.Ext(p.Path) == ending {
		return
	}
	p.Path = documentPath(u, ending)
	if other, there := taken[p.Path]; there && other != p.URL {
		p.Path = strings.TrimSuffix(p.Path, ending) + "~" + hash(p.URL)[:8] + ending
	}
	taken[p.Path] = p.URL
}

// setFiles builds the map of document files.
func (s *Site) setFiles() {
	s.files = make(map[string]*page, len(s.ByURL))
	for _, p := range s.ByURL {
		if p.Path != "" {
			s.files[p.Path] = p
		}
	}
}

// Pages yields the pages in path order.
func (s *Site) Pages() iter.Seq[ingest.WebPage] {
	return func(yield func(ingest.WebPage) bool) {
		for _, name := range slices.Sorted(maps.Keys(s.files)) {
			p := s.files[name]
			page := ingest.WebPage{Path: name, Size: p.Size, Fetched: p.Read}
			switch {
			case p.Failed == "":
			case p.Digest == "":
				page.Err = &ingest.SkipError{Reason: p.Failed}
			default:
				page.Err = errors.New(p.Failed)
			}
			if !yield(page) {
				return
			}
		}
	}
}

// Address returns the address of the page that a document was read from.
func (s *Site) Address(name string) string {
	if p := s.files[name]; p != nil {
		return p.URL
	}
	return ""
}

// Open opens the body of a page.
func (s *Site) Open(name string) (fs.File, error) {
	if p := s.files[name]; p != nil {
		return s.dir.Open(hash(p.URL))
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
